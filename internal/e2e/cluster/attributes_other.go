//go:build unix && !linux

package main

import "syscall"

// attributes change nothing: only Linux ties a command's life to its parent's.
func attributes() *syscall.SysProcAttr { return nil }
