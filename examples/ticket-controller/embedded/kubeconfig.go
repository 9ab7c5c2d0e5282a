package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// kubeconfig is a file that is there while the servers run: in a folder that is
// given, so that the next run has it in the same place, or in one of its own. It is
// safe for concurrent use.
type kubeconfig struct {
	mu     sync.Mutex // guards what follows
	folder string     // empty until one of its own is made
	own    bool
	path   string // empty until it is written
	gone   bool   // nothing is to be written any more
}

var errEnding = errors.New("the program is about to end")

// write writes the file, for none but this user, and tells where it is.
func (k *kubeconfig) write(content []byte) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gone {
		return "", errEnding
	}
	if k.folder == "" {
		var err error
		if k.folder, err = os.MkdirTemp("", "ticket-controller-"); err != nil {
			return "", err
		}
		k.own = true
	}
	path, err := filepath.Abs(filepath.Join(k.folder, "kubeconfig"))
	if err != nil {
		return "", err
	}
	// One that a run has left which was killed may have other rights.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	k.path = path
	return path, os.WriteFile(path, content, 0o600)
}

// remove removes what write has made. It may be called again, and before write,
// which then writes nothing.
func (k *kubeconfig) remove() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gone = true
	switch {
	case k.own:
		return os.RemoveAll(k.folder)
	case k.path == "":
		return nil
	}
	if err := os.Remove(k.path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
