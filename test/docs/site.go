package docs

import (
	"bytes"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// Build writes the documentation as HTML into a folder: each page, and each file that a
// page links. A folder that is linked becomes a list of its files.
func (s *Site) Build(folder string) error {
	done := map[string]bool{}
	for _, name := range s.Names() {
		if err := s.buildPage(folder, s.Pages[name], done); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
	}
	return nil
}

func (s *Site) buildPage(folder string, p *Page, done map[string]bool) error {
	// The tree is changed, so it is one of its own.
	own, err := Parse(p.Path, p.source)
	if err != nil {
		return err
	}
	err = ast.Walk(own.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var destination *[]byte
		switch n := n.(type) {
		case *ast.Link:
			destination = &n.Destination
		case *ast.Image:
			destination = &n.Destination
		default:
			return ast.WalkContinue, nil
		}
		changed, err := s.built(folder, p.Path, string(*destination), done)
		*destination = []byte(changed)
		return ast.WalkContinue, err
	})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	if err := markdown().Renderer().Render(&body, own.source, own.tree); err != nil {
		return err
	}
	return write(folder, asHTML(p.Path), framed(p.Title, body.String()))
}

// built returns the link of a page as the built one has it, and copies files that are no
// pages.
func (s *Site) built(folder, page, link string, done map[string]bool) (string, error) {
	file, _, outside, err := target(page, link)
	if err != nil || outside || strings.HasPrefix(link, "#") {
		return link, err
	}
	u, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	if s.Pages[file] != nil {
		u.Path = asHTML(u.Path)
		return u.String(), nil
	}
	info, err := os.Stat(filepath.Join(s.Checkout, filepath.FromSlash(file)))
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		u.Path = path.Join(u.Path, "index.html")
	}
	if done[file] {
		return u.String(), nil
	}
	done[file] = true
	if info.IsDir() {
		return u.String(), s.list(folder, file)
	}
	return u.String(), s.copy(folder, file)
}

func (s *Site) list(folder, name string) error {
	root := filepath.Join(s.Checkout, filepath.FromSlash(name))
	var items []string
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		items = append(items, fmt.Sprintf("<li><a href=%q>%s</a></li>\n", (&url.URL{Path: below}).String(), html.EscapeString(below)))
		return s.copy(folder, path.Join(name, below))
	})
	if err != nil {
		return err
	}
	slices.Sort(items)
	return write(folder, path.Join(name, "index.html"), framed(name, "<h1>"+html.EscapeString(name)+"</h1>\n<ul>\n"+strings.Join(items, "")+"</ul>\n"))
}

func (s *Site) copy(folder, name string) error {
	content, err := os.ReadFile(filepath.Join(s.Checkout, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	return write(folder, name, string(content))
}

func write(folder, name, content string) error {
	file := filepath.Join(folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(content), 0o644)
}

func asHTML(page string) string { return strings.TrimSuffix(page, ".md") + ".html" }

func framed(title, body string) string {
	return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>` + html.EscapeString(title) + `</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem }
pre, table { overflow-x: auto; display: block }
pre { background: #f4f4f4; padding: .7rem }
td, th { border: 1px solid #ccc; padding: .2rem .5rem; text-align: left; vertical-align: top }
table { border-collapse: collapse }
img { max-width: 100% }
</style>
` + body + "</html>\n"
}
