package machine

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaces are those of a machine, by its first process.
type namespaces struct{ pidfd int }

const ofMachine = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC

// ownNamespaces makes a process the first one of a machine.
func ownNamespaces(a *syscall.SysProcAttr) { a.Cloneflags |= ofMachine }

// dieWithMachine has a process end by the kernel's hand alone, when the first one
// of its machine does.
func dieWithMachine(a *syscall.SysProcAttr) { a.Pdeathsig = 0 }

func openNamespaces(pid int) (*namespaces, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the first process: %w", err)
	}
	return &namespaces{pidfd: fd}, nil
}

func (n *namespaces) close() error {
	if n.pidfd < 0 {
		return nil
	}
	fd := n.pidfd
	n.pidfd = -1
	return unix.Close(fd)
}

// enter takes the thread, and what it will start, onto the machine.
func (n *namespaces) enter() error {
	// A thread that shares its root and folder with others may not leave the
	// mounts that they are in.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unsharing a thread's folder: %w", err)
	}
	if err := unix.Setns(n.pidfd, ofMachine); err != nil {
		return fmt.Errorf("entering the machine: %w", err)
	}
	return nil
}

// enterNetwork takes the thread into the machine's network, and leaves it
// outside for the rest.
func (n *namespaces) enterNetwork() error {
	if err := unix.Setns(n.pidfd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering the machine's network: %w", err)
	}
	return nil
}

// makeMountsPrivate keeps what is mounted from here on to the machine.
func makeMountsPrivate() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	return nil
}

func setHostname(name string) error {
	if err := unix.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	return nil
}

// bind shows the machine one file or folder in the place of another.
func bind(inside, path string) error {
	if err := unix.Mount(inside, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", inside, path, err)
	}
	return nil
}
