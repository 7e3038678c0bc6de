package quaymaster_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedTestsExist keeps the pages that show a claim by the name of a test
// from naming one that is not there.
func TestDocumentedTestsExist(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	there := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, name := range declared.FindAllSubmatch(text, -1) {
			there[string(name[1])] = true
		}
		return err
	})
	if err != nil || len(there) == 0 {
		t.Fatalf("%d tests found: %v", len(there), err)
	}
	named := regexp.MustCompile("`(Test\\w+)")
	for _, page := range []string{"docs/kyverno-differences.md", "docs/policy-controller-differences.md", "docs/degradation.md", "docs/reliability.md", "docs/threat-model.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		names := named.FindAllSubmatch(text, -1)
		if len(names) == 0 {
			t.Errorf("%s names no test", page)
		}
		for _, name := range names {
			if !there[string(name[1])] {
				t.Errorf("%s: %s is nowhere", page, name[1])
			}
		}
	}
}
