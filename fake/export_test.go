package fake

import (
	"github.com/tetherkube/tether/internal/wal"
)

// OnDisk puts something between a state's files and what writes to them.
func (s *State) OnDisk(wrap func(wal.File) wal.File) { s.disk.Wrap = wrap }
