package process

import (
	"os"

	"golang.org/x/sys/unix"
)

func isFirstThread() bool { return unix.Gettid() == os.Getpid() }
