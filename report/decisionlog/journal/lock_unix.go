//go:build unix

package journal

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock prevents a second process from writing the same log.
func lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("decision log: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("decision log: %s: another process writes this log (%w): give each a folder of its own", path, err), file.Close())
	}
	return file, nil
}
