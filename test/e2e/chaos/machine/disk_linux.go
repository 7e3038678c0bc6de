package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"
)

// diskSize is the size of a replica's disk for its decision log.
const diskSize = 256 << 20

// Disk is where a replica's decision log lies: a file system of its own where that may be
// mounted.
type Disk struct {
	folder  string
	mounted bool
}

// OpenDisk mounts a small file system at a folder, or leaves it as it is.
func OpenDisk(folder string) *Disk {
	err := syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprint("mode=0700,size=", diskSize))
	return &Disk{folder: folder, mounted: err == nil}
}

// Close takes the file system away.
func (d *Disk) Close() {
	if d.mounted {
		_ = syscall.Unmount(d.folder, syscall.MNT_DETACH)
	}
}

// Fill leaves no room: on the disk, or else in the files of the process, which may then not be
// larger than they are. The function that it returns makes room again.
func (d *Disk) Fill(ctx context.Context, pid int) (free func() error, err error) {
	if !d.mounted {
		return limitFiles(pid)
	}
	filler := filepath.Join(d.folder, "filler")
	file, err := os.Create(filler)
	if err != nil {
		return nil, err
	}
	for block := make([]byte, 1<<20); len(block) > 0 && ctx.Err() == nil; {
		switch _, err = file.Write(block); {
		case errors.Is(err, syscall.ENOSPC):
			block = block[:len(block)/2] // down to the last byte
		case err != nil:
			return nil, errors.Join(err, file.Close(), os.Remove(filler))
		}
	}
	return func() error { return os.Remove(filler) }, file.Close()
}

// limitFiles lets a process write nothing more into any file.
func limitFiles(pid int) (free func() error, err error) {
	before := syscall.Rlimit{}
	none := syscall.Rlimit{Cur: 0, Max: ^uint64(0)}
	set := func(limit, old *syscall.Rlimit) error {
		_, _, failed := syscall.Syscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE,
			uintptr(unsafe.Pointer(limit)), uintptr(unsafe.Pointer(old)), 0, 0)
		if failed != 0 {
			return fmt.Errorf("limit the files of process %d: %w", pid, failed)
		}
		return nil
	}
	return func() error { return set(&before, nil) }, set(&none, &before)
}
