package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/workload"
)

const (
	// usualInterval is how often folders are read again.
	usualInterval = time.Second
	// maxFiles bounds the files of all folders.
	maxFiles = 10_000
	// maxFolders bounds the bytes of all of them.
	maxFolders = 256 << 20
	// FolderPrefix begins the keys of documents from folders: their path and # follow.
	FolderPrefix = "folder/"
)

// Files are the contents of folders at one moment.
type Files struct {
	// Documents are the policies and exceptions.
	Documents []Document
	// Others are objects of other kinds, such as ConfigMaps, Secrets and
	// Namespaces.
	Others []workload.Object
	// Hash names the content.
	Hash string
}

// Folder reads policies from files.
type Folder struct {
	paths    []string
	interval time.Duration
	catalog  *Catalog
	others   func([]workload.Object) error
	last     string
}

// FolderOptions are the settings of a Folder.
type FolderOptions struct {
	// Paths are files, and folders that are read with all below them; required.
	Paths []string
	// Interval is how often they are read again; zero means every second.
	Interval time.Duration
	// Catalog takes the documents; required.
	Catalog *Catalog
	// Others takes the objects of other kinds, before the policies that may name
	// them become active; nil drops them. If it refuses, nothing is swapped.
	Others func([]workload.Object) error
}

// NewFolder refuses options without paths or a catalog.
func NewFolder(o FolderOptions) (*Folder, error) {
	if len(o.Paths) == 0 || o.Catalog == nil {
		return nil, errors.New("a folder of policies wants paths and a catalog")
	}
	if o.Interval == 0 {
		o.Interval = usualInterval
	}
	if o.Interval < 0 {
		return nil, fmt.Errorf("a folder of policies cannot be read every %s", o.Interval)
	}
	return &Folder{paths: o.Paths, interval: o.Interval, catalog: o.Catalog, others: o.Others}, nil
}

// Load reads the files and, if they changed, replaces the catalog's documents. Unreadable
// files change nothing: the active policies stay.
func (f *Folder) Load() (changed bool, err error) {
	files, err := readAgain(f.read)
	if err != nil || files.Hash == f.last {
		return false, err
	}
	if f.others != nil {
		if err := f.others(files.Others); err != nil {
			return false, err
		}
	}
	f.catalog.Replace(FolderPrefix, files.Documents)
	f.last = files.Hash
	return true, nil
}

// Watch loads again at each interval until the context ends, and reports each change and
// each new error.
func (f *Folder) Watch(ctx context.Context, tell func(changed bool, err error)) {
	ticker := time.NewTicker(f.interval)
	defer ticker.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		changed, err := f.Load()
		now := ""
		if err != nil {
			now = err.Error()
		}
		if changed || err != nil && now != said {
			tell(changed, err)
		}
		said = now
	}
}

// readAgain reads once more if a file went away after it was listed, as a ConfigMap's do when it
// changes.
func readAgain(read func() (Files, error)) (Files, error) {
	files, err := read()
	if errors.Is(err, fs.ErrNotExist) {
		return read()
	}
	return files, err
}

func (f *Folder) read() (Files, error) {
	h := sha256.New()
	total := 0
	var contents [][2]string
	names, err := f.names()
	if err != nil {
		return Files{}, err
	}
	for _, name := range names {
		text, err := limit.ReadRegular(name, int64(maxFolders-total), name)
		if _, exceeded := errors.AsType[*limit.ExceededError](err); exceeded {
			err = fmt.Errorf("%s: the files exceed the bound of %d bytes", name, maxFolders)
		}
		if err != nil {
			return Files{}, fmt.Errorf("policies: %w", err)
		}
		total += len(text)
		fmt.Fprintf(h, "%q %d\n", name, len(text))
		h.Write(text)
		contents = append(contents, [2]string{name, string(text)})
	}
	files := Files{Hash: hex.EncodeToString(h.Sum(nil))}
	if files.Hash == f.last {
		return files, nil
	}
	for _, c := range contents {
		if err := f.split(&files, c[0], []byte(c[1])); err != nil {
			return Files{}, err
		}
	}
	return files, nil
}

// split takes the objects out of a file.
func (f *Folder) split(files *Files, name string, text []byte) error {
	objects, err := workload.Read(bytes.NewReader(text), name)
	if err != nil {
		return fmt.Errorf("policies: %w", err)
	}
	for i, o := range objects {
		if !f.catalog.recognises(o.APIVersion(), o.Kind()) {
			files.Others = append(files.Others, o)
			continue
		}
		document, err := json.Marshal(o.Content())
		if err != nil {
			return fmt.Errorf("policies: %s: %w", o.Source(), err)
		}
		files.Documents = append(files.Documents, Document{
			Key: fmt.Sprintf("%s%s#%06d", FolderPrefix, name, i), Text: document, Source: o.Source(),
		})
	}
	return nil
}

func (c *Catalog) recognises(apiVersion, kind string) bool {
	return c.isRoot(apiVersion, kind) || c.options.Overrides != nil && c.options.Overrides.Recognises(apiVersion, kind) ||
		slices.ContainsFunc(c.options.Dialects, func(d Dialect) bool { return d.Recognises(apiVersion, kind) }) ||
		slices.ContainsFunc(c.options.Exceptions, func(e Exceptions) bool { return e.Recognises(apiVersion, kind) })
}

// names returns the files, each once, in order. Links are followed, for that is
// how a mounted ConfigMap is laid out; its hidden folders are not entered.
func (f *Folder) names() ([]string, error) {
	var names []string
	for _, path := range f.paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("policies: %w", err)
		}
		if !info.IsDir() {
			names = append(names, path)
			continue
		}
		// The separator has a folder that is a link entered; a walk would stop at it.
		root := filepath.Clean(path) + string(filepath.Separator)
		err = filepath.WalkDir(root, func(at string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			hidden := at != root && entry.Name()[0] == '.'
			switch {
			case entry.IsDir() && hidden:
				return filepath.SkipDir
			case entry.IsDir() || hidden || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(at)):
				return nil
			case len(names) >= maxFiles:
				return fmt.Errorf("more than %d files", maxFiles)
			}
			names = append(names, at)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("policies in %s: %w", path, err)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// asJSON reads JSON or YAML.
func asJSON(text []byte) ([]byte, error) {
	if json.Valid(text) {
		return text, nil
	}
	return yaml.YAMLToJSON(text)
}
