package suite_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestDocumentation runs the suites that docs/testing-policies.md shows.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/testing-policies.md")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for _, block := range regexp.MustCompile("(?s)`([a-z./-]+)`:\n\n```(?:yaml|json)\n(.*?)```").FindAllSubmatch(page, -1) {
		path := filepath.Join(folder, string(block[1]))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, block[2], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, folder, 3, 7)
}
