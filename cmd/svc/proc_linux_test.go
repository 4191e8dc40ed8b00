package main

import "syscall"

// childAttr lets no process outlive a test binary that is killed.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
