// Command pause holds namespaces: those of a pod as its sandbox, and those of a
// machine of a test's as its first process. It waits for the orphans that every
// first process inherits, and ends by SIGINT or SIGTERM.
package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	stop, children := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		reap()
		select {
		case <-stop:
			return
		case <-children: // some may have ended since: one signal stands for many
		}
	}
}

// reap takes the status of every child that has ended.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
