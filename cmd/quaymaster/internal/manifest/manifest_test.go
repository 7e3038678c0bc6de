package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// folderOf makes a folder of files, by their paths; what begins with "-> " is a link.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		path := filepath.Join(folder, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if target, isLink := strings.CutPrefix(content, "-> "); err == nil && isLink {
			err = os.Symlink(target, path)
		} else if err == nil {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestFilesOfFolder: of manifests nothing is left out that kubectl applies; of policies,
// what a gateway leaves out.
func TestFilesOfFolder(t *testing.T) {
	t.Parallel()
	mounted := map[string]string{"..2026_01/a.yaml": "", "..data": "-> ..2026_01", "a.yaml": "-> ..data/a.yaml"}
	for _, c := range []struct {
		reason              string
		files               map[string]string
		manifests, policies []string
	}{
		{"by the extension of their names", map[string]string{"a.yaml": "", "b.yml": "", "c.json": "", "d.YAML": "", "e.txt": "", "yaml": ""}, []string{"a.yaml", "b.yml", "c.json", "d.YAML"}, []string{"a.yaml", "b.yml", "c.json", "d.YAML"}},
		{"further down", map[string]string{"a.yaml": "", "b/c/d.yaml": ""}, []string{"a.yaml", "b/c/d.yaml"}, []string{"a.yaml", "b/c/d.yaml"}},
		{"a hidden file", map[string]string{"a.yaml": "", ".b.yaml": "", ".c.txt": ""}, []string{".b.yaml", "a.yaml"}, []string{"a.yaml"}},
		{"a file that is nothing but hidden", map[string]string{"a.yaml": "", ".yaml": ""}, []string{".yaml", "a.yaml"}, []string{"a.yaml"}},
		{"a file that is named as volumes' data are", map[string]string{"a.yaml": "", "..b.yaml": ""}, []string{"..b.yaml", "a.yaml"}, []string{"a.yaml"}},
		{"a hidden folder", map[string]string{"a.yaml": "", ".b/c.yaml": "", ".b/d/e.yaml": ""}, []string{".b/c.yaml", ".b/d/e.yaml", "a.yaml"}, []string{"a.yaml"}},
		{"a mounted ConfigMap: each file once, by the name that it has for its readers", mounted, []string{"a.yaml"}, []string{"a.yaml"}},
		{"a folder named as one, without a link to its file", map[string]string{"..b/a.yaml": "", "..b/c/d.yaml": "", "a.yaml": ""}, []string{"..b/a.yaml", "..b/c/d.yaml", "a.yaml"}, []string{"a.yaml"}},
		{"a link to another file", map[string]string{"a.yaml": "", "b.yaml": "-> a.yaml"}, []string{"a.yaml", "b.yaml"}, []string{"a.yaml", "b.yaml"}},
		{"none", map[string]string{"a.txt": ""}, nil, nil},
		{"none that is not hidden", map[string]string{".a.yaml": ""}, []string{".a.yaml"}, nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			folder := folderOf(t, c.files)
			for _, of := range []struct {
				what string
				list func(string) ([]string, error)
				want []string
			}{{"manifests", Files, c.manifests}, {"policies", policyFiles, c.policies}} {
				paths, err := of.list(folder)
				var got []string
				for _, path := range paths {
					name, err := filepath.Rel(folder, path)
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, name)
				}
				if !slices.Equal(got, of.want) || (err == nil) != (len(of.want) > 0) {
					t.Errorf("%s: %q, %v; want %q", of.what, got, err, of.want)
				}
			}
		})
	}
}

// TestFilesOfFolderAskedFor: an explicit path is read, whatever its name.
func TestFilesOfFolderAskedFor(t *testing.T) {
	t.Parallel()
	folder := folderOf(t, map[string]string{".a/b.yaml": "", ".c": "", "..d/e.yaml": "", "f": "-> .a", "..g/h.yaml": "", "i.yaml": "-> none"})
	for _, c := range []struct{ reason, name, want string }{
		{"a hidden folder", ".a", ".a/b.yaml"},
		{"a folder named as volumes' data are", "..d", "..d/e.yaml"},
		{"a link to a folder", "f", ".a/b.yaml"},
		{"a file without an end", ".c", ".c"},
		{"nothing there", "none", ""},
		{"a link that leads nowhere", ".", ""},
	} {
		paths, err := Files(filepath.Join(folder, c.name))
		if c.want == "" {
			if _, isPath := errors.AsType[*fs.PathError](err); !isPath {
				t.Errorf("%s: %q, %v", c.reason, paths, err)
			}
			continue
		}
		if err != nil || !slices.Equal(paths, []string{filepath.Join(folder, c.want)}) {
			t.Errorf("%s: %q, %v", c.reason, paths, err)
		}
	}
}
