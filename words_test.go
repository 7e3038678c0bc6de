package quaymaster_test

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// frequencies are words that make sentences hard to read where there are many of them.
var frequencies = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"who, whom, whoever, whose", regexp.MustCompile(`(?i)\b(who|whom|whoever|whose)\b`)},
	{"nobody, somebody, anybody", regexp.MustCompile(`(?i)\b(nobody|somebody|anybody)\b`)},
	{"said, told, says, tells, tell, speaks", regexp.MustCompile(`(?i)\b(said|told|says|tells|tell|speaks?)\b`)},
	{"what is, was, it, they, the, are, were", regexp.MustCompile(`(?i)\bwhat (is|was|it|they|the|are|were)\b`)},
}

// prose is text with the number of its lines.
type prose struct {
	text  string
	lines int
}

func per1000(n, lines int) float64 { return float64(n) * 1000 / float64(max(lines, 1)) }

// comments are those of the measured files.
func (s *source) comments() prose {
	var b strings.Builder
	for _, file := range s.files {
		for _, group := range file.ast.Comments {
			for _, c := range group.List {
				b.WriteString(c.Text + "\n")
			}
		}
	}
	return prose{b.String(), strings.Count(b.String(), "\n")}
}

// strings are those of the files that hold prose, one a line.
func (s *source) strings() string {
	var b strings.Builder
	for _, file := range s.files {
		ast.Inspect(file.ast, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				if text, err := strconv.Unquote(literal.Value); err == nil && strings.Contains(text, " ") {
					b.WriteString(text + "\n")
				}
			}
			return true
		})
	}
	return b.String()
}

// docs are Markdown files, and the strings of the measured files that hold prose.
func docs(t *testing.T, s *source) prose {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := filepath.Base(path); entry.IsDir() && (base == "testdata" || base == "node_modules" || base == "bin" || base == "dist" || base != "." && strings.HasPrefix(base, ".")) {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b.Write(text)
			b.WriteString("\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString(s.strings())
	return prose{b.String(), strings.Count(b.String(), "\n")}
}

// TestFrequencies bounds the words of frequencies in comments and in docs, per 1,000 lines.
func TestFrequencies(t *testing.T) {
	s, tests := load(t), loadTests(t)
	inTests := tests.strings()
	for _, part := range []struct {
		name string
		text prose
		most [4]float64 // in the order of frequencies
	}{
		{"comments", s.comments(), [4]float64{3, 3, 3, 3}},
		{"docs", docs(t, s), [4]float64{3, 3, 3, 3}},
		{"comments of tests", tests.comments(), [4]float64{3, 3, 3, 3}},
		{"strings of tests", prose{inTests, strings.Count(inTests, "\n")}, [4]float64{6, 6, 6, 6}},
	} {
		for i, f := range frequencies {
			if got := per1000(len(f.pattern.FindAllString(part.text.text, -1)), part.text.lines); got > part.most[i] {
				t.Errorf("%s: %.1f of %s per 1,000 lines, want at most %v", part.name, got, f.name, part.most[i])
			}
		}
	}
}
