//go:build !linux

package machine

import (
	"context"
	"errors"
)

// Disk is where a replica's decision log lies.
type Disk struct{}

// OpenDisk does nothing.
func OpenDisk(string) *Disk { return &Disk{} }

// Close does nothing.
func (*Disk) Close() {}

// Fill fails.
func (*Disk) Fill(context.Context, int) (func() error, error) {
	return nil, errors.New("no disk can be filled here")
}
