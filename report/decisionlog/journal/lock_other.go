//go:build !unix

package journal

import (
	"fmt"
	"os"
)

// lock only creates the file on this platform. Two processes with one folder break the chain
// visibly.
func lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("decision log: %w", err)
	}
	return file, nil
}
