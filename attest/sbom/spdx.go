package sbom

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/attest/document"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// spdx2 reads SPDX 2.2 and 2.3 (JSON). The concluded licence of a package counts before the declared one.
func (r *reader) spdx2(n document.Node) error {
	r.document.Format, r.document.Version = "SPDX", strings.TrimPrefix(n.Get("spdxVersion").Text(), "SPDX-")
	if v := n.Get("spdxVersion").Text(); v != "SPDX-2.2" && v != "SPDX-2.3" {
		return fmt.Errorf("SPDX version %q is not one of SPDX-2.2, SPDX-2.3 and 3.0", limit.Text(v, 100))
	}
	if err := check(n, "packages"); err != nil {
		return err
	}
	for i, p := range n.Get("packages").List() {
		if p.Get("name").Text() == "" {
			return fmt.Errorf("packages[%d] has no name", i)
		}
		if err := check(p, "externalRefs", "versionInfo", "licenseConcluded", "licenseDeclared", "primaryPackagePurpose"); err != nil {
			return fmt.Errorf("packages[%d]: %w", i, err)
		}
		var urls, expressions []string
		for _, external := range p.Get("externalRefs").List() {
			if err := check(external, "", "referenceType", "referenceLocator"); err != nil {
				return fmt.Errorf("packages[%d].externalRefs: %w", i, err)
			}
			if external.Get("referenceType").Text() == "purl" {
				urls = append(urls, external.Get("referenceLocator").Text())
			}
		}
		for _, text := range []string{p.Get("licenseConcluded").Text(), p.Get("licenseDeclared").Text()} {
			if isAssertion(text) {
				expressions = []string{text}
				break
			}
		}
		if err := r.add(p.Get("primaryPackagePurpose").Text(), p.Get("name").Text(), p.Get("versionInfo").Text(), urls, expressions); err != nil {
			return err
		}
	}
	return nil
}

// graph is what an SPDX 3.0 document has, by the identifiers of elements.
type graph struct {
	packages []document.Node
	// licenses are the expressions of licences; concluded and declared the licences of packages.
	licenses            map[string]string
	concluded, declared map[string][]document.Node
}

// spdx3 reads SPDX 3.0 (JSON-LD with the context of the specification, as its serialisation requires).
func (r *reader) spdx3(n document.Node) error {
	version, ok := strings.CutPrefix(n.Get("@context").Text(), "https://spdx.org/rdf/")
	version, _, found := strings.Cut(version, "/")
	if !ok || !found || version != "3.0" && !strings.HasPrefix(version, "3.0.") {
		return fmt.Errorf("@context %q is not that of SPDX 3.0", limit.Text(n.Get("@context").Text(), 200))
	}
	if err := check(n, "@graph"); err != nil {
		return err
	}
	r.document.Format, r.document.Version = "SPDX", version
	g := graph{licenses: map[string]string{}, concluded: map[string][]document.Node{}, declared: map[string][]document.Node{}}
	g.collect(n.Value())
	for _, p := range g.packages {
		id := p.Get("spdxId").Text()
		if id == "" || p.Get("name").Text() == "" {
			return fmt.Errorf("a package has no spdxId or no name: %q", limit.Text(id, 200))
		}
		if err := check(p, "externalIdentifier", "software_packageUrl", "software_packageVersion", "software_primaryPurpose"); err != nil {
			return fmt.Errorf("package %q: %w", limit.Text(id, 200), err)
		}
		var urls []string
		if url := p.Get("software_packageUrl").Text(); url != "" {
			urls = append(urls, url)
		}
		for _, external := range p.Get("externalIdentifier").List() {
			if err := check(external, "", "externalIdentifierType", "identifier"); err != nil {
				return fmt.Errorf("package %q: externalIdentifier: %w", limit.Text(id, 200), err)
			}
			if external.Get("externalIdentifierType").Text() == "packageUrl" {
				urls = append(urls, external.Get("identifier").Text())
			}
		}
		err := r.add(p.Get("software_primaryPurpose").Text(), p.Get("name").Text(), p.Get("software_packageVersion").Text(), urls, g.of(id))
		if err != nil {
			return err
		}
	}
	return nil
}

// collect finds elements wherever they are: one may be in a member of another one, in place of its identifier.
// Documents of statements are checked for their depth before.
func (g *graph) collect(value any) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			g.collect(each)
		}
	case map[string]any:
		g.element(document.Of(value))
		for _, each := range value {
			switch each.(type) {
			case []any, map[string]any:
				g.collect(each)
			}
		}
	}
}

func (g *graph) element(n document.Node) {
	switch n.Get("type").Text() {
	case "software_Package", "ai_AIPackage", "dataset_DatasetPackage":
		g.packages = append(g.packages, n)
	case "simplelicensing_LicenseExpression":
		g.licenses[n.Get("spdxId").Text()] = n.Get("simplelicensing_licenseExpression").Text()
	case "Relationship":
		from := n.Get("from").Text()
		if from == "" {
			from = n.Get("from", "spdxId").Text()
		}
		switch n.Get("relationshipType").Text() {
		case "hasConcludedLicense":
			g.concluded[from] = append(g.concluded[from], several(n.Get("to"))...)
		case "hasDeclaredLicense":
			g.declared[from] = append(g.declared[from], several(n.Get("to"))...)
		}
	}
}

// several are the values of a member, of which JSON-LD may have one without a list.
func several(n document.Node) []document.Node {
	if n.Has() && !n.IsList() {
		return []document.Node{n}
	}
	return n.List()
}

// of returns the licences of a package, each of which applies.
func (g *graph) of(id string) []string {
	for _, list := range []map[string][]document.Node{g.concluded, g.declared} {
		var expressions []string
		for _, to := range list[id] {
			if text := g.expression(to); isAssertion(text) {
				expressions = append(expressions, text)
			}
		}
		if len(expressions) > 0 {
			return expressions
		}
	}
	return nil
}

// expression returns the expression of a licence: an element, its identifier, or a licence of the SPDX list by its
// address. Another form, such as a set of expanded licences, is returned as it is named, which is no licence.
func (g *graph) expression(to document.Node) string {
	id := to.Text()
	if id == "" {
		id = to.Get("spdxId").Text()
	}
	if text, ok := g.licenses[id]; ok {
		return text
	}
	if name, ok := strings.CutPrefix(id, "https://spdx.org/licenses/"); ok {
		return name
	}
	if strings.HasSuffix(id, "/NoAssertion") || strings.HasSuffix(id, "/NoAssertionLicense") {
		return "NOASSERTION"
	}
	return "NOASSERTION OF " + id
}
