package main

import "syscall"

// attributes make a command that is killed when this program is.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
