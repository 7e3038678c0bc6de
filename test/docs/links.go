package docs

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Site is all Markdown of a checkout.
type Site struct {
	Checkout string
	Pages    map[string]*Page
}

// skipped are folders without documentation: build results and golden files.
func skipped(name string) bool {
	return name == "bin" || name == "testdata" || name == "node_modules" || name != "." && strings.HasPrefix(name, ".")
}

// Load reads every Markdown file of a checkout.
func Load(checkout string) (*Site, error) {
	s := &Site{Checkout: checkout, Pages: map[string]*Page{}}
	err := filepath.WalkDir(checkout, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != checkout && skipped(d.Name()):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".md":
			return nil
		}
		name, err := filepath.Rel(checkout, file)
		if err != nil {
			return err
		}
		p, err := Read(checkout, filepath.ToSlash(name))
		if err != nil {
			return err
		}
		s.Pages[p.Path] = p
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the documentation: %w", err)
	}
	return s, nil
}

// Names of the pages, sorted.
func (s *Site) Names() []string {
	names := make([]string, 0, len(s.Pages))
	for name := range s.Pages {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// target splits a link of a page into a file below the checkout and an anchor; outside
// reports a link that leads elsewhere.
func target(page, link string) (file, anchor string, outside bool, err error) {
	u, err := url.Parse(link)
	if err != nil {
		return "", "", false, err
	}
	if u.Scheme != "" || u.Host != "" {
		return "", "", true, nil
	}
	file = page
	if u.Path != "" {
		file = path.Join(path.Dir(page), u.Path)
	}
	return file, u.Fragment, false, nil
}

// Broken returns the links of all pages that lead nowhere.
func (s *Site) Broken() []Mistake {
	var broken []Mistake
	for _, name := range s.Names() {
		for _, link := range s.Pages[name].Links {
			if why := s.follow(name, link.Target); why != "" {
				broken = append(broken, Mistake{name, link.Line, fmt.Sprintf("the link %s: %s", link.Target, why)})
			}
		}
	}
	return broken
}

func (s *Site) follow(page, link string) (why string) {
	file, anchor, outside, err := target(page, link)
	switch {
	case err != nil:
		return err.Error()
	case outside:
		return ""
	case !filepath.IsLocal(filepath.FromSlash(file)):
		return "it leads out of the repository"
	}
	if _, err := os.Stat(filepath.Join(s.Checkout, filepath.FromSlash(file))); err != nil {
		return "there is no such file"
	}
	if to, isPage := s.Pages[file]; anchor != "" && (!isPage || !to.Anchors[anchor]) {
		return "there is no such heading"
	}
	return ""
}

// Unreachable returns the pages of a folder to which no links lead from a page.
func (s *Site) Unreachable(from, folder string) []string {
	seen := map[string]bool{from: true}
	for next := []string{from}; len(next) > 0; next = next[1:] {
		page, isPage := s.Pages[next[0]]
		if !isPage {
			continue
		}
		for _, link := range page.Links {
			file, _, outside, err := target(page.Path, link.Target)
			if err == nil && !outside && !seen[file] {
				seen[file] = true
				next = append(next, file)
			}
		}
	}
	return slices.DeleteFunc(s.Names(), func(name string) bool { return seen[name] || path.Dir(name) != folder })
}
