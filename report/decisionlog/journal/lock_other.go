//go:build !unix

package journal

import (
	"fmt"
	"os"
)

// lock names the file only: whoever starts two processes with one folder sees it in the
// chain.
func lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("decision log: %w", err)
	}
	return file, nil
}
