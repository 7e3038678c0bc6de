//go:build !linux

package process

import "syscall"

// attributes: elsewhere only Kill ends a child.
func attributes() *syscall.SysProcAttr { return nil }
