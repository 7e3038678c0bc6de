package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadDocuments(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	write("b.yaml", object+"---\n"+object)
	write("below/a.yml", object)
	write(".hidden/a.yaml", "{")
	write(".hidden.yaml", "{")
	write("notes.txt", "{")
	if objects, err := ReadDocuments([]string{folder, filepath.Join(folder, "b.yaml")}); err != nil || len(objects) != 3 {
		t.Errorf("%d objects, %v", len(objects), err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	if objects, err := ReadDocuments([]string{link}); err != nil || len(objects) != 3 {
		t.Errorf("a link to the folder: %d objects, %v", len(objects), err)
	}
	write("c.json", "{")
	for reason, path := range map[string]string{"a file that is none": folder, "a file that is not there": filepath.Join(folder, "d.yaml")} {
		if _, err := ReadDocuments([]string{path}); err == nil {
			t.Errorf("%s is read", reason)
		}
	}
	if objects, err := ReadDocuments([]string{folder}); err == nil || len(objects) != 3 || !strings.Contains(err.Error(), "c.json") {
		t.Errorf("the other files of the folder: %d objects, %v", len(objects), err)
	}
}
