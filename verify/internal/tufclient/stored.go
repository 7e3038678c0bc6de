package tufclient

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/verify/internal/limits"
)

// removeDamaged removes stored metadata that cannot be read, such as a file that a full disk cut. go-tuf
// would fail at it in each fetch, and a fetch replaces what is missing. The roots, which newestRoot verifies,
// stay.
func removeDamaged(folder string) error {
	stored, err := os.ReadDir(folder)
	if err != nil {
		return nil //nolint:nilerr // nothing is stored; storing reports the error
	}
	for _, entry := range stored {
		path := filepath.Join(folder, entry.Name())
		if filepath.Ext(path) != ".json" || entry.Name() == "root.json" || usable(path) {
			continue
		}
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("remove damaged metadata: %w", err)
		}
	}
	return nil
}

// usable reports whether go-tuf can read a stored file of its role. It fails at a file of another role, and
// panics at entries that are null.
func usable(path string) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	text, err := limit.ReadFile(path, maxMetadata, "stored metadata")
	if err != nil || limits.Document(text) != nil {
		return false
	}
	switch filepath.Base(path) {
	case "timestamp.json":
		m, err := metadata.Timestamp().FromBytes(text)
		return err == nil && m.Signed.Meta["snapshot.json"] != nil
	case "snapshot.json":
		m, err := metadata.Snapshot().FromBytes(text)
		return err == nil && !slices.Contains(slices.Collect(maps.Values(m.Signed.Meta)), nil)
	default:
		_, err := metadata.Targets().FromBytes(text)
		return err == nil
	}
}
