// Package manifest reads the manifests and policies that a command line names: files, folders, and
// standard input.
package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// Files returns the file itself, or the manifests in a folder, recursively and sorted.
// Their names' suffixes identify them, as in kubectl, which reads hidden files too.
func Files(name string) ([]string, error) {
	return filesIn(name, func(string) bool { return true })
}

// policyFiles is Files for policies; as a gateway does, it skips hidden files.
func policyFiles(name string) ([]string, error) {
	return filesIn(name, func(name string) bool { return !strings.HasPrefix(name, ".") })
}

func filesIn(name string, isRead func(name string) bool) ([]string, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	name, err = filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	var paths, data []string
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != name && !isRead(entry.Name()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		}
		switch strings.ToLower(filepath.Ext(path)) {
		case ".yaml", ".yml", ".json":
			if isVolumeData(name, path) {
				data = append(data, path)
			} else {
				paths = append(paths, path)
			}
		}
		return nil
	})
	if err == nil {
		paths, err = withData(paths, data)
	}
	slices.Sort(paths)
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("no .yaml, .yml or .json file in it")
	}
	return paths, err
}

// isVolumeData reports whether a file is in a folder such as ..2026_01_31, the target of
// Kubernetes' links in a mounted ConfigMap.
func isVolumeData(folder, path string) bool {
	below, err := filepath.Rel(folder, filepath.Dir(path))
	return err == nil && slices.ContainsFunc(strings.Split(below, string(filepath.Separator)), func(name string) bool {
		return strings.HasPrefix(name, "..")
	})
}

// withData adds the files of volumes' data that no other path leads to.
func withData(paths, data []string) ([]string, error) {
	if len(data) == 0 {
		return paths, nil
	}
	linked := map[string]bool{}
	for _, path := range paths {
		at, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err
		}
		linked[at] = true
	}
	return append(paths, slices.DeleteFunc(data, func(path string) bool { return linked[path] })...), nil
}

// ReadPayload reads the documents of a file, or of standard input for -.
func ReadPayload(name string, in io.Reader) ([]workload.Object, error) {
	if name == "-" {
		return workload.ReadDocuments(in, StandardInput)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return workload.ReadDocuments(file, name)
}

// StandardInput is the source name of standard input.
const StandardInput = "standard input"

// Read reads the evaluated objects, as kubectl reads a file or a folder. Those of built-in kinds are
// as an API server has them.
func Read(name string, in io.Reader) ([]workload.Object, error) {
	objects, err := readObjects(name, in, Files)
	for i, o := range objects {
		objects[i] = stored.Object(o)
	}
	return objects, err
}

// ReadPolicies reads policies and their look-ups, as a gateway reads them. With an error about files of a
// folder it returns the objects of the others, for callers that report both.
func ReadPolicies(name string, in io.Reader) ([]workload.Object, error) {
	return readObjects(name, in, policyFiles)
}

// ReadSources is ReadPolicies for a conversion: documents of a folder that are no objects, such as an index of
// packages, are left out.
func ReadSources(name string, in io.Reader) ([]workload.Object, error) {
	objects, err := ReadPolicies(name, in)
	if err == nil || name == "-" || !errors.Is(err, workload.ErrNoKind) {
		return objects, err
	}
	paths, err := policyFiles(name)
	if err != nil || len(paths) == 1 && paths[0] == name {
		return ReadPolicies(name, in)
	}
	objects = nil
	var errs []error
	for _, path := range paths {
		read, err := readManifest(path)
		if errors.Is(err, workload.ErrNoKind) {
			read, err = ReadPayload(path, nil)
			read = slices.DeleteFunc(read, func(o workload.Object) bool { return o.Content()["kind"] == nil })
		}
		errs, objects = append(errs, err), append(objects, read...)
	}
	return objects, errors.Join(errs...)
}

// readObjects reads objects, without custom resource definitions that redefine the kinds of Kubernetes.
func readObjects(name string, in io.Reader, files func(name string) ([]string, error)) ([]workload.Object, error) {
	objects, err := readAll(name, in, files)
	objects, wrong := constraint.CheckDefinitions(objects, constraint.Known())
	return objects, errors.Join(err, wrong)
}

func readAll(name string, in io.Reader, files func(name string) ([]string, error)) ([]workload.Object, error) {
	if name == "-" && in == nil {
		return nil, errors.New("standard input is for manifests: give it with -f -")
	}
	if name == "-" {
		objects, err := workload.Read(in, StandardInput)
		if err == nil && len(objects) == 0 {
			err = errors.New("nothing was read: the command before may have failed")
		}
		return objects, err
	}
	paths, err := files(name)
	if err != nil {
		return nil, err
	}
	var objects []workload.Object
	var errs []error
	for _, path := range paths {
		read, err := readManifest(path)
		errs, objects = append(errs, err), append(objects, read...)
	}
	return objects, errors.Join(errs...)
}

func readManifest(path string) ([]workload.Object, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return workload.Read(file, path)
}
