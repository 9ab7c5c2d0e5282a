//go:build unix && !linux

package machine

import (
	"errors"
	"syscall"
)

var errLinux = errors.New("machines want Linux")

type namespaces struct{}

func ownNamespaces(*syscall.SysProcAttr) {}

func dieWithMachine(*syscall.SysProcAttr) {}

func openNamespaces(int) (*namespaces, error) { return nil, errLinux }

func (*namespaces) close() error        { return nil }
func (*namespaces) enter() error        { return errLinux }
func (*namespaces) enterNetwork() error { return errLinux }
func makeMountsPrivate() error          { return errLinux }
func setHostname(string) error          { return errLinux }
func bind(string, string) error         { return errLinux }
