package certificate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/quaymaster/quaymaster/internal/file"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// folderEntries are in writing order: the ownership mark first, the leaf last.
var folderEntries = [...]string{EntryPeers, EntryAuthority, EntryBundle, EntryKey, EntryCertificate}

// Folder is a Store in a local folder, for a single gateway without a cluster. The folder belongs
// to the gateway if it holds the replicas' key, which no other program writes.
type Folder struct {
	path string
	mu   sync.Mutex
}

// NewFolder makes a Folder. The first write creates the folder.
func NewFolder(path string) (*Folder, error) {
	if path == "" {
		return nil, errors.New("certificate folder: a path is required")
	}
	return &Folder{path: path}, nil
}

// Get implements Store.
func (f *Folder) Get(context.Context) (Content, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read()
}

func (f *Folder) read() (Content, error) {
	c := Content{Entries: map[string][]byte{}}
	hash := sha256.New()
	for _, name := range folderEntries {
		value, err := readFile(filepath.Join(f.path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Content{}, err
		}
		c.Entries[name] = value
		fmt.Fprintf(hash, "%s %d\n", name, len(value))
		hash.Write(value)
	}
	if len(c.Entries) == 0 {
		return Content{}, ErrAbsent
	}
	c.Version = hex.EncodeToString(hash.Sum(nil))
	_, c.Ours = c.Entries[EntryPeers]
	return c, nil
}

// Put implements Store.
func (f *Folder) Put(_ context.Context, entries map[string][]byte, version string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, err := f.read()
	if err != nil && !errors.Is(err, ErrAbsent) {
		return err
	}
	if before.Version != version {
		return ErrConflict
	}
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return err
	}
	for _, name := range folderEntries {
		if value, ok := entries[name]; ok {
			if err := file.Replace(filepath.Join(f.path, name), value); err != nil {
				return err
			}
		}
	}
	return nil
}

// readFile reads a file of bounded size.
func readFile(path string) ([]byte, error) { return limit.ReadRegular(path, maxEntry, path) }
