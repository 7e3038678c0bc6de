package sbom

import (
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/attest/document"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// cycloneDX reads CycloneDX 1.4 to 1.6 (JSON): the components, those within them, and that of the metadata.
func (r *reader) cycloneDX(n document.Node) error {
	version := n.Get("specVersion").Text()
	if n.Get("bomFormat").Text() != "CycloneDX" || !slices.Contains([]string{"1.4", "1.5", "1.6"}, version) {
		return fmt.Errorf("CycloneDX version %q is not one of 1.4, 1.5 and 1.6", limit.Text(version, 100))
	}
	r.document.Format, r.document.Version = "CycloneDX", version
	if main := n.Get("metadata", "component"); main.Has() {
		if err := r.component("metadata.component", main); err != nil {
			return err
		}
	}
	return r.components("components", n)
}

// components reads the list of an object. Documents of statements are checked for their depth before.
func (r *reader) components(path string, n document.Node) error {
	if err := check(n, "components"); err != nil {
		return fmt.Errorf("%s: %w", limit.Text(path, 200), err)
	}
	for i, each := range n.Get("components").List() {
		if err := r.component(fmt.Sprintf("%s[%d]", path, i), each); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) component(path string, n document.Node) error {
	name := n.Get("name").Text()
	if name == "" {
		return fmt.Errorf("%s has no name", limit.Text(path, 200))
	}
	if err := check(n, "licenses", "group", "version", "purl", "type"); err != nil {
		return fmt.Errorf("%s: %w", limit.Text(path, 200), err)
	}
	if group := n.Get("group").Text(); group != "" {
		name = group + "/" + name
	}
	var urls []string
	if url := n.Get("purl").Text(); url != "" {
		urls = append(urls, url)
	}
	if err := r.add(n.Get("type").Text(), name, n.Get("version").Text(), urls, cycloneLicenses(n.Get("licenses").List())); err != nil {
		return err
	}
	return r.components(path+".components", n)
}

// cycloneLicenses are the licences of a component: each of the concluded ones applies, or each of all.
func cycloneLicenses(list []document.Node) []string {
	var all, concluded []string
	for _, n := range list {
		is, acknowledgement := n.Get("expression").Text(), n.Get("acknowledgement").Text()
		for _, name := range []string{"id", "name"} {
			if is == "" {
				is, acknowledgement = n.Get("license", name).Text(), n.Get("license", "acknowledgement").Text()
			}
		}
		if !isAssertion(is) {
			is = "NOASSERTION"
		}
		all = append(all, is)
		if acknowledgement == "concluded" {
			concluded = append(concluded, is)
		}
	}
	if len(concluded) > 0 {
		return concluded
	}
	return all
}
