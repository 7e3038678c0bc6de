package sink

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// cursor is the position of a Follower.
type cursor struct {
	// Delivered is the number of the last delivered line.
	Delivered uint64 `json:"delivered"`
}

func (f *Follower) path() string {
	return filepath.Join(f.config.Folder, "sink-"+f.config.Name+".json")
}

// start returns the position. Without a cursor it is before the oldest line of the log, and it is
// stored at once: a later gap then counts as dropped lines.
func (f *Follower) start() (uint64, error) {
	at, err := readCursor(f.path())
	if err == nil {
		return at, nil
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	segments, listed := decisionlog.Segments(f.config.Folder)
	if listed == nil && len(segments) > 0 {
		at = segments[0].First - 1
	}
	return at, errors.Join(err, listed, writeCursor(f.path(), at))
}

func readCursor(path string) (uint64, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // opened read-only
	text, err := limit.ReadAll(file, maxCursor, path)
	if err != nil {
		return 0, err
	}
	var c cursor
	if err := json.Unmarshal(text, &c); err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return c.Delivered, nil
}

// writeCursor replaces the cursor atomically. It is not flushed: lines that are delivered again
// after a power failure have the same numbers.
func writeCursor(path string, delivered uint64) error {
	text, err := json.Marshal(cursor{delivered})
	if err != nil {
		return err
	}
	next := path + ".tmp"
	if err := os.WriteFile(next, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
