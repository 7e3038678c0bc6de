package docs

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// Page is a Markdown file.
type Page struct {
	// Path below the checkout, with slashes.
	Path   string
	Title  string
	Blocks []Block
	Links  []Link
	// Anchors are the names of its headings, as GitHub makes them.
	Anchors map[string]bool

	source []byte
	tree   ast.Node
}

// Block is a piece of code.
type Block struct {
	// Line of the file on which the code begins.
	Line int
	// Language that stands beside the fence; empty without one.
	Language string
	Text     string
	// RunBy names the test that runs the block in place of the page's own run, and NotRun is
	// the reason why no test does.
	RunBy, NotRun string
}

// Link leads from a page to somewhere.
type Link struct {
	Line   int
	Target string
}

// note is a comment that names the test that runs the block below it, or the reason why none
// does.
var note = regexp.MustCompile(`(?s)^\s*<!--\s*(run by|not run:)\s+(.+?)\s*-->\s*$`)

func markdown() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
}

// Read reads a page of the checkout.
func Read(checkout, name string) (*Page, error) {
	source, err := os.ReadFile(filepath.Join(checkout, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("read a page: %w", err)
	}
	return Parse(name, source)
}

// Parse reads a page from its text.
func Parse(name string, source []byte) (*Page, error) {
	p := &Page{Path: path.Clean(name), Anchors: map[string]bool{}, source: source}
	p.tree = markdown().Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(&anchors{p.Anchors}))))
	err := ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		return ast.WalkContinue, p.take(n)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

func (p *Page) take(n ast.Node) error {
	switch n := n.(type) {
	case *ast.Heading:
		if p.Title == "" {
			p.Title = string(n.Lines().Value(p.source))
		}
	case *ast.Link:
		p.Links = append(p.Links, Link{p.line(n), string(n.Destination)})
	case *ast.Image:
		p.Links = append(p.Links, Link{p.line(n), string(n.Destination)})
	case *ast.FencedCodeBlock:
		return p.block(n, string(n.Language(p.source)))
	case *ast.CodeBlock:
		return p.block(n, "")
	}
	return nil
}

func (p *Page) block(n ast.Node, language string) error {
	b := Block{Line: p.line(n), Language: language, Text: string(n.Lines().Value(p.source))}
	if before, ok := n.PreviousSibling().(*ast.HTMLBlock); ok {
		comment := before.Lines().Value(p.source)
		if before.HasClosure() {
			comment = append(bytes.Clone(comment), before.ClosureLine.Value(p.source)...)
		}
		if said := note.FindSubmatch(comment); said == nil {
			return fmt.Errorf("line %d: the comment before the block is neither \"run by TEST\" nor \"not run: REASON\"", b.Line)
		} else if string(said[1]) == "run by" {
			b.RunBy = string(said[2])
		} else {
			b.NotRun = strings.Join(strings.Fields(string(said[2])), " ")
		}
	}
	p.Blocks = append(p.Blocks, b)
	return nil
}

// line of the file on which a node's text, or that of the block around it, begins.
func (p *Page) line(n ast.Node) int {
	for ; n != nil; n = n.Parent() {
		if t, ok := n.FirstChild().(*ast.Text); ok && n.Type() == ast.TypeInline {
			return 1 + bytes.Count(p.source[:t.Segment.Start], []byte("\n"))
		}
		if n.Type() == ast.TypeBlock && n.Lines().Len() > 0 {
			return 1 + bytes.Count(p.source[:n.Lines().At(0).Start], []byte("\n"))
		}
	}
	return 1
}

// anchors names headings as GitHub does: letters, digits, "-" and "_" in lower case,
// "-" for a space, and a number behind a name that is there already.
type anchors struct{ taken map[string]bool }

func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	base := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || isWord(r):
			return r
		}
		return -1
	}, strings.ToLower(strings.TrimSpace(string(value))))
	name := base
	for i := 1; a.taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	a.Put([]byte(name))
	return []byte(name)
}

// Put implements parser.IDs.
func (a *anchors) Put(value []byte) { a.taken[string(value)] = true }
