package file_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/internal/file"
)

func TestReplace(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "key")
	for _, content := range []string{"first", "second, which is longer", ""} {
		if err := file.Replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if got, _ := os.ReadFile(path); err != nil || string(got) != content || info.Mode() != 0o600 {
			t.Errorf("%q with mode %v, want %q: %v", got, info.Mode(), content, err)
		}
	}
}

// TestReplaceLeavesNothingBehind where it fails: a folder stands in the way, or there is
// none to write into.
func TestReplaceLeavesNothingBehind(t *testing.T) {
	folder := t.TempDir()
	taken := filepath.Join(folder, "taken", "by")
	if err := os.MkdirAll(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	for reason, path := range map[string]string{"a folder of that name": filepath.Dir(taken), "no folder to write into": filepath.Join(folder, "none", "key")} {
		if err := file.Replace(path, []byte("x")); err == nil {
			t.Errorf("%s: written", reason)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("%d entries are left: %v", len(left), err)
	}
}

func ExampleReplace() {
	err := file.Replace(filepath.Join(os.TempDir(), "no such folder", "key"), []byte("secret"))
	fmt.Println(err != nil)
	// Output: true
}
