package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/report"
)

// isTerminal reports whether w is a terminal and not a file or a pipe.
func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// color reports whether output may be coloured (https://no-color.org).
func (t terminal) color() bool {
	return isTerminal(t.out) && t.env("NO_COLOR") == "" && t.env("TERM") != "dumb"
}

// progress is a progress line on a terminal.
type progress struct {
	t     terminal
	shown bool
}

// worthShowing is the number of references from which a progress line is shown.
const worthShowing = 3

func newProgress(t terminal) *progress { return &progress{t: t} }

func (p *progress) draw(done, total int) {
	if total >= worthShowing && isTerminal(p.t.err) {
		p.shown = true
		fmt.Fprintf(p.t.err, "\rverified %d of %d images", done, total)
	}
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.t.err, "\r\x1b[K")
	}
}

// manifestFiles returns the file itself, or the manifests in a folder, recursively and sorted.
// Their names' suffixes identify them, as in kubectl, which reads hidden files too.
func manifestFiles(name string) ([]string, error) {
	return filesIn(name, func(string) bool { return true })
}

// policyFiles is manifestFiles for policies; as a gateway does, it skips hidden files.
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

// commandLine returns the command that explains one image's verdict, with the same flags.
func commandLine(cmd *cobra.Command) func(report.Record, report.Image) string {
	var flags []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "output", "filename", "payload", "verbose", "require-match":
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, value := range list.GetSlice() {
				flags = append(flags, "--"+f.Name+" "+engine.Quote(value))
			}
			return
		}
		if f.Value.Type() == "bool" {
			flags = append(flags, "--"+f.Name+"="+f.Value.String())
			return
		}
		flags = append(flags, "--"+f.Name+" "+engine.Quote(f.Value.String()))
	})
	return func(record report.Record, image report.Image) string {
		words := append([]string{"quaymaster explain"}, flags...)
		file, _, ofFile := strings.Cut(record.Object.Source, ", document")
		switch {
		case ofFile && file == standardInput:
			file = "-"
		case !ofFile:
			return strings.Join(append(words, engine.Quote(image.Written)), " ")
		}
		if record.Object.Kind == "" {
			return strings.Join(append(words, "--payload", engine.Quote(file)), " ")
		}
		return strings.Join(append(words, "-f", engine.Quote(file)), " ") // policies match the object, not the image alone
	}
}
