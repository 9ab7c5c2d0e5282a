//go:build unix && !linux

package process

import "syscall"

// attributes make a process of a group of its own. Only Linux ties its life to
// the parent's; elsewhere it outlives a parent that is killed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
