package quaymaster_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// phrases never occur in prose: in comments and strings of the code and its tests, in Markdown and
// in the YAML of deploy/. There the names of alerts, events and settings are prose as well.
var phrases = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\b(could|cannot)[ -]+(not[ -]+)?look\b`), "could not be verified; in three-valued logic, indeterminate"},
	{regexp.MustCompile(`(?i)\bunable\b`), "error"},
	{regexp.MustCompile(`(?i)\b(doors?|entrances?|(at|over|across|behind) the threshold|journeys?)\b`), "endpoint, batch"},
	{regexp.MustCompile(`(?i)\b(whoever|whom)\b`), "a user, a process, a caller"},
	{regexp.MustCompile(`(?i)\b((some|any)body else|a stranger|strangers|stranger['’]s)\b`), "signed with another key or identity"},
	{regexp.MustCompile(`(?i)\b(speaks? of|spoken of)\b`), "matches, selects, applies to"},
	{regexp.MustCompile(`(?i)\b(stands? for|stood for)\b`), "resolves to, means"},
	{regexp.MustCompile(`(?i)\bto be seen\b`), "visible"},
	{regexp.MustCompile(`(?i)\b(papers?|glass|roads?|nights?|house)\b`), "the term of the field"},
}

// ordinary are uses of words of phrases that are those of the field, and code spans: the changelog
// and the description of former formats quote earlier names.
var ordinary = regexp.MustCompile(`(?i)break[- ]glass|unable to|to whom the software|\x60[^\x60\n]*\x60`)

// wordBounds separate the words of a name such as QuaymasterNotDeciding.
var wordBounds = regexp.MustCompile(`([a-z])([A-Z])`)

// phrasesLeft is the number of phrases that remain; only ever lowered.
const phrasesLeft = 0

// TestPhrases holds the list of phrases.
func TestPhrases(t *testing.T) {
	var found []string
	check := func(name, text string) {
		for _, line := range strings.Split(ordinary.ReplaceAllString(text, "..."), "\n") {
			for _, p := range phrases {
				if hit := p.pattern.FindString(line); hit != "" {
					found = append(found, name+": "+hit+" (better: "+p.instead+"): "+strings.TrimSpace(line))
				}
			}
		}
	}
	for _, file := range slices.Concat(load(t).files, loadTests(t).files) {
		for _, group := range file.ast.Comments {
			check(file.path, group.Text())
		}
		ast.Inspect(file.ast, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, " ") {
					check(file.path, text)
				}
			}
			return true
		})
	}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := filepath.Base(file)
		if entry.IsDir() && (base == "testdata" || base == "node_modules" || base == "bin" || base == "dist" || base != "." && strings.HasPrefix(base, ".")) {
			return fs.SkipDir
		}
		if slashed := filepath.ToSlash(file); strings.HasSuffix(base, ".md") || strings.HasSuffix(base, ".yaml") && strings.HasPrefix(slashed, "deploy/") {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			check(slashed, wordBounds.ReplaceAllString(string(text), "$1 $2"))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < phrasesLeft {
		t.Errorf("%d phrases that are not used: lower the bound %d", len(found), phrasesLeft)
	}
	if len(found) > phrasesLeft {
		t.Errorf("%d phrases that are not used, want at most %d:\n\t%s", len(found), phrasesLeft, strings.Join(found, "\n\t"))
	}
}
