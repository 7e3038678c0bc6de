package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/workload"
)

// Bounds of the files of documents.
const (
	// maxDocumentFiles bounds the files of all folders.
	maxDocumentFiles = 1000
	// maxDocumentBytes bounds their total bytes: hundreds of times the mapping of a large site.
	maxDocumentBytes = 64 << 20
)

// ReadDocuments reads the objects in files, and in folders recursively: the names that end in
// .yaml, .yml or .json, and are not hidden. It follows links, because mounted ConfigMaps consist
// of links. With an error about files it returns the objects of the others, for callers that report
// both.
func ReadDocuments(paths []string) ([]workload.Object, error) {
	return readDocuments(paths, limit.ReadRegular)
}

// ReadArguments is ReadDocuments for the paths of a command line, where a path may be a pipe, as of a
// shell's process substitution. It ends at the same bounds.
func ReadArguments(paths []string) ([]workload.Object, error) {
	return readDocuments(paths, func(name string, most int64, what string) ([]byte, error) {
		if slices.Contains(paths, name) {
			return limit.ReadFile(name, most, what)
		}
		return limit.ReadRegular(name, most, what)
	})
}

func readDocuments(paths []string, read func(name string, most int64, what string) ([]byte, error)) ([]workload.Object, error) {
	names, err := documentNames(paths)
	if err != nil {
		return nil, err
	}
	var objects []workload.Object
	var errs []error
	total := 0
	for _, name := range names {
		text, err := read(name, int64(maxDocumentBytes-total), name)
		if _, exceeded := errors.AsType[*limit.ExceededError](err); exceeded {
			return nil, fmt.Errorf("%s: the files exceed the bound of %d bytes", name, maxDocumentBytes)
		}
		total += len(text)
		var found []workload.Object
		if err == nil {
			found, err = workload.Read(bytes.NewReader(text), name)
		}
		errs, objects = append(errs, err), append(objects, found...)
	}
	return objects, errors.Join(errs...)
}

// documentNames returns the files, each once, in order.
func documentNames(paths []string) ([]string, error) {
	var names []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			names = append(names, path)
			continue
		}
		path, err = filepath.EvalSymlinks(path)
		if err != nil { // WalkDir follows no link
			return nil, err
		}
		err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			hidden := at != path && entry.Name()[0] == '.'
			switch {
			case entry.IsDir() && hidden:
				return filepath.SkipDir
			case entry.IsDir() || hidden || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(at)):
				return nil
			}
			names = append(names, at)
			if len(names) > maxDocumentFiles {
				return errors.New("too many files")
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if len(names) > maxDocumentFiles {
		return nil, fmt.Errorf("more than %d files", maxDocumentFiles)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
