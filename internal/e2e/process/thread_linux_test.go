package process

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAThreadThatIsChangedIsNeverTheFirst(t *testing.T) {
	t.Parallel()
	for range 5000 { // of goroutines, which the first thread takes its part of
		OnThread(func() {
			if unix.Gettid() == os.Getpid() {
				t.Error("the process's first thread was used")
			}
		})
	}
}
