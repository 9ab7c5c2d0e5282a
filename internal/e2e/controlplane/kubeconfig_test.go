package controlplane

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func TestAKubeconfigIsWholeWhoeverWritesItAtOnce(t *testing.T) {
	t.Parallel()
	c := &ControlPlane{dir: t.TempDir()}
	var writers sync.WaitGroup
	for range 50 {
		writers.Go(func() {
			path, err := c.WriteKubeconfig("admin", &rest.Config{Host: "https://127.0.0.1:1"})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := clientcmd.LoadFromFile(path); err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	files, err := os.ReadDir(c.dir)
	if err != nil || len(files) != 1 {
		t.Errorf("left are %v, %v", files, err)
	}
	info, err := os.Stat(filepath.Join(c.dir, "admin.kubeconfig"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
