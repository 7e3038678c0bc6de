package process

import "syscall"

// attributes make the kernel kill the child when the thread that started it
// goes, which is when this process goes: Go keeps its threads, unless a
// goroutine that is locked to one ends, and nothing here locks any.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
