// Package sbom reads the packages of bills of materials: SPDX 2.2, 2.3 and 3.0, and CycloneDX 1.4 to 1.6,
// as JSON. It matches them with package URLs, version ranges and licences.
package sbom

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/attest/document"
	"github.com/quaymaster/quaymaster/attest/license"
	"github.com/quaymaster/quaymaster/attest/purl"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// Document is a bill of materials.
type Document struct {
	// Format is SPDX or CycloneDX, Version that of the format, as in 2.3.
	Format, Version string
	Packages        []Package
}

// Package is a part of the image. It is immutable.
type Package struct {
	Name, Version string
	// URL is the package URL as the document has it; empty if it has none.
	URL string
	// License is the licence expression, or a name that is none; empty if the document has none.
	License string

	urls     []purl.URL
	urlErr   error
	licenses *licenses
}

// licenses is a licence expression, which packages share.
type licenses struct {
	text       string
	expression license.Expression
	err        error
}

// String returns the name and the version for messages.
func (p *Package) String() string {
	return limit.Text(strings.TrimSpace(p.Name+" "+p.Version), 200)
}

// ErrUnknown means that the document does not have the data that an answer depends on.
var ErrUnknown = errors.New("the bill of materials does not tell")

// Matches reports whether a pattern means the package; see purl.URL.Matches. It is an error if the package
// has no version and the pattern bounds it, if the document has two versions and only one is meant, if the
// package URL is none, and if there is none and the name is that of the pattern.
func (p *Package) Matches(pattern purl.URL) (bool, error) {
	if p.urlErr != nil {
		return false, fmt.Errorf("package %s: %w", p, p.urlErr)
	}
	if len(p.urls) == 0 {
		if name := p.Name[strings.LastIndexAny(p.Name, "/:")+1:]; strings.EqualFold(name, pattern.Name) {
			return false, fmt.Errorf("package %s has no package URL to compare with %s: %w", p, limit.Text(pattern.String(), 200), ErrUnknown)
		}
		return false, nil
	}
	var failed error
	for _, url := range p.urls {
		switch holds, err := p.means(pattern, url); {
		case err != nil:
			failed = err
		case holds:
			return true, nil
		}
	}
	return false, failed
}

// means compares a pattern with one package URL.
func (p *Package) means(pattern, url purl.URL) (bool, error) {
	every := pattern
	every.Version, every.Range = "", nil
	holds, err := every.Matches(url)
	if err != nil || !holds || pattern.Version == "" && pattern.Range == nil {
		return holds, err
	}
	own := p.Version
	if url.Version == "" {
		url.Version, own = p.Version, ""
	}
	if url.Version == "" {
		return false, fmt.Errorf("package %s has no version to compare with %s: %w", p, limit.Text(pattern.String(), 200), ErrUnknown)
	}
	holds, err = pattern.Matches(url)
	if err != nil || own == "" || isSame(own, url.Version) {
		return holds, err
	}
	url.Version = own
	if other, err := pattern.Matches(url); err != nil || other != holds {
		return false, fmt.Errorf("package %s has another version in its package URL %s: %w", p, limit.Text(url.String(), 200), ErrUnknown)
	}
	return holds, nil
}

// isSame reports whether two spellings of a version are equal: with and without an epoch or the letter v,
// which generators write in one place and not in the other.
func isSame(a, b string) bool {
	return a == b || bare(a) == b || a == bare(b)
}

func bare(version string) string {
	_, rest, ok := strings.Cut(version, ":")
	if ok {
		return rest
	}
	return strings.TrimPrefix(version, "v")
}

// Licensed reports whether the licences of a list suffice for the package; see license.List.Suffices. It is an
// error if the licence is not known.
func (p *Package) Licensed(list license.List) (bool, error) { return p.answer(list.Suffices) }

// Requires reports whether a licence of a list applies to the package whatever alternative is chosen; see
// license.List.Required. It is an error if the licence is not known.
func (p *Package) Requires(list license.List) (bool, error) { return p.answer(list.Required) }

func (p *Package) answer(ask func(license.Expression) (bool, error)) (bool, error) {
	if p.licenses == nil {
		return false, fmt.Errorf("package %s has no licence: %w", p, ErrUnknown)
	}
	if p.licenses.err != nil {
		return false, fmt.Errorf("package %s: %w", p, p.licenses.err)
	}
	holds, err := ask(p.licenses.expression)
	if err != nil {
		return false, fmt.Errorf("package %s: %w", p, err)
	}
	return holds, nil
}

// Parse reads a bill of materials: a decoded predicate, or a statement with one. A document of another form is
// an error, as is one with more than document.MaxEntries packages.
func Parse(value any) (*Document, error) {
	n, err := document.Predicate(value)
	if err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	r := &reader{licenses: map[string]*licenses{}, left: maxLicenses}
	switch {
	case n.Get("spdxVersion").Has():
		err = r.spdx2(n)
	case n.Get("@graph").Has() || n.Get("@context").Has():
		err = r.spdx3(n)
	case n.Get("bomFormat").Has():
		err = r.cycloneDX(n)
	default:
		err = errors.New("it is no JSON of SPDX 2.2, 2.3 or 3.0, or of CycloneDX 1.4 to 1.6")
	}
	if err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	return &r.document, nil
}

const (
	// maxURLs bounds the package URLs of a package, which have some hundred bytes each.
	maxURLs = 64
	// maxLicenses bounds the different licence expressions of a document, in bytes: a parsed one is some twenty
	// times as large.
	maxLicenses = 1 << 20
)

// reader collects the packages of a document.
type reader struct {
	document Document
	licenses map[string]*licenses
	// left is the rest of maxLicenses.
	left int
}

// add appends a package. The image itself, its operating system and its files are none, by the purpose that the
// document gives them, unless they have the package URL of a package.
func (r *reader) add(purpose, name, version string, urls, expressions []string) error {
	switch strings.ToLower(purpose) {
	case "container", "operating-system", "operatingsystem", "file":
		if !slices.ContainsFunc(urls, isPackage) {
			return nil
		}
	}
	if err := document.Within("the packages of a bill of materials", len(r.document.Packages)+1); err != nil {
		return err
	}
	if len(urls) > maxURLs {
		return fmt.Errorf("package %s has more than %d package URLs", limit.Text(name, 200), maxURLs)
	}
	p := Package{Name: name, Version: version}
	for _, text := range urls {
		if p.URL == "" {
			p.URL = text
		}
		url, err := purl.Parse(text)
		if err == nil && url.Range != nil {
			err = fmt.Errorf("package URL %q has a range in place of a version", limit.Text(text, 200))
		}
		if err != nil {
			p.urlErr = err
			continue
		}
		p.urls = append(p.urls, url)
	}
	p.licenses = r.licensed(expressions)
	if r.left < 0 {
		return &limit.ExceededError{What: "the text of the licence expressions", Most: maxLicenses}
	}
	if p.licenses != nil {
		p.License = p.licenses.text
	}
	r.document.Packages = append(r.document.Packages, p)
	return nil
}

func isPackage(url string) bool {
	return !strings.HasPrefix(url, "pkg:oci/") && !strings.HasPrefix(url, "pkg:docker/")
}

// licensed joins licences, each of which applies. They are parsed each by itself: a name from the package's
// author cannot make an alternative of what another one is.
func (r *reader) licensed(expressions []string) *licenses {
	if len(expressions) == 0 {
		return nil
	}
	key := strings.Join(expressions, "\x00")
	if have, ok := r.licenses[key]; ok {
		return have
	}
	r.left -= len(key)
	is := &licenses{text: expressions[0]}
	if len(expressions) > 1 {
		is.text = "(" + strings.Join(expressions, ") AND (") + ")"
	}
	var parsed []license.Expression
	for _, each := range expressions {
		one, err := license.Parse(each)
		if err != nil {
			is.err = err
			break
		}
		parsed = append(parsed, one)
	}
	is.expression = license.All(parsed)
	r.licenses[key] = is
	return is
}

// check refuses members of another type: one that is a list, if it has a name, and texts.
func check(n document.Node, list string, texts ...string) error {
	types := document.Types{}
	if list != "" {
		types[list] = document.List
	}
	for _, name := range texts {
		types[name] = document.Text
	}
	return types.Check(n)
}

// isAssertion reports whether a document asserts a licence.
func isAssertion(text string) bool { return text != "" && text != "NOASSERTION" }
