//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package wal

import (
	"errors"
	"os"
)

// tryLock refuses: without a lock that ends with its process, two could write to
// one log, or none after a crash.
func tryLock(*os.File) (bool, error) { return false, errors.ErrUnsupported }
