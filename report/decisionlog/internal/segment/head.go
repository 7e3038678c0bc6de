package segment

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// ReadHead returns the copy of the last checkpoint; nil without one.
func ReadHead(folder string) ([]byte, error) {
	file, err := os.Open(filepath.Join(folder, HeadName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("decision log: %w", err)
	}
	defer func() { _ = file.Close() }() // opened read-only
	text, err := limit.ReadAll(file, MaxLine, HeadName)
	text = bytes.TrimRight(text, "\n")
	if len(text) == 0 {
		return nil, err // a power failure during the write
	}
	return text, err
}
