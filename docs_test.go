package quaymaster_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	for _, page := range []string{"docs/kyverno-differences.md", "docs/policy-controller-differences.md", "docs/degradation.md", "docs/engineering/reliability.md", "docs/threat-model.md", "docs/engineering/attacks.md"} {
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

// shownBy are the last columns under which each row is to name a test.
func shownBy() []string { return []string{"shown by", "test"} }

// unshown returns the rows of a page's tables that claim something and name no test for
// it, and how many rows there are that do.
func unshown(page string) (bare []string, shown int) {
	named := regexp.MustCompile("`Test\\w+")
	claims := false
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case !strings.HasPrefix(line, "|"):
			claims = false
		case slices.Contains(shownBy(), last):
			claims = true
		case !claims || strings.Trim(last, "-") == "":
		case named.MatchString(last):
			shown++
		default:
			bare = append(bare, strings.TrimSpace(line))
		}
	}
	return bare, shown
}

// TestEveryClaimNamesATest: what a page claims in a table, a test shows.
func TestEveryClaimNamesATest(t *testing.T) {
	for page, least := range map[string]int{"docs/threat-model.md": 25, "docs/degradation.md": 30, "docs/engineering/reliability.md": 25, "docs/engineering/attacks.md": 5} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		bare, shown := unshown(string(text))
		if len(bare) > 0 {
			t.Errorf("%s claims, and names no test: %s", page, strings.Join(bare, "\n"))
		}
		if shown < least {
			t.Errorf("%s: %d rows name a test, want %d at least", page, shown, least)
		}
	}
	const table = "| tries | comes of it | shown by |\n|---|---|---|\n| a | b | `TestC` |\n| d | e | f |\n\n| a | b |\n|---|---|\n| c | d |\n"
	if bare, shown := unshown(table); shown != 1 || len(bare) != 1 || !strings.Contains(bare[0], "| d |") {
		t.Errorf("a row without a test is not found: %q, %d", bare, shown)
	}
}
