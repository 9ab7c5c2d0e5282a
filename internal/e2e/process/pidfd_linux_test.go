package process

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

func pidfdOpen(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

func waitReadable(fd int, limit time.Duration) error {
	for end := time.Now().Add(limit); ; {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(time.Until(end).Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("nothing within %s", limit)
		default:
			return nil
		}
	}
}
