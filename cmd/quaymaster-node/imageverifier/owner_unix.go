//go:build unix

package imageverifier

import (
	"os"
	"syscall"
)

// ownerOf returns the user that owns a file, if the system reports it.
func ownerOf(info os.FileInfo) (user int, known bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
