package bundle

import (
	"fmt"
	"slices"
	"strings"
)

// Item is one document of a bundle.
type Item struct {
	// Name is unique in its list, and orders it; required.
	Name string
	// Source is the origin of the document, for people; may be empty.
	Source string
	// Text is the document's content; required.
	Text []byte
}

// Contents are the contents of a bundle. Lists are sorted by name when they are written.
type Contents struct {
	// Gateway is the gateway's configuration (JSON): policies are evaluated as at admission.
	// Without it they are evaluated as files.
	Gateway []byte
	// TrustedRoot is a trusted_root.json in place of the public-good instance's.
	TrustedRoot []byte
	// Kinds are the resources that the API server serves (JSON), for policies that name them.
	Kinds []byte
	// Keys are public keys (PEM); every image requires a signature by one of them.
	Keys []Item
	// Policies are policies, exceptions, overrides and TrustRoots (JSON).
	Policies []Item
	// Mirrors are mappings of registries (JSON).
	Mirrors []Item
	// Resources are ConfigMaps, Secrets and Namespaces that policies look up (JSON).
	Resources []Item
	// Roots are the trusted roots of the TUF repositories that policies name, by the
	// repository's name.
	Roots []Item
	// Globals are GlobalContextEntries with their values (JSON).
	Globals []Item
	// Notes list content that could not be included, and the consequence.
	Notes []string
}

// Entry is one file of a bundle.
type Entry struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Name   string `json:"name,omitempty"`
	Source string `json:"source,omitempty"`
}

// manifest is the first file.
type manifest struct {
	Format  string   `json:"format"`
	Version int      `json:"version"`
	Notes   []string `json:"notes,omitempty"`
	Entries []Entry  `json:"entries"`
}

// The format.
const (
	Format  = "quaymaster.dev/bundle"
	Version = 1

	manifestPath = "manifest.json"
)

// single is a part that occurs once, list a part with many items.
type single struct {
	path string
	text *[]byte
}

type list struct {
	folder, extension string
	items             *[]Item
}

// singles and lists are all parts, in the order in which they are written.
func (c *Contents) singles() []single {
	return []single{{"gateway.json", &c.Gateway}, {"kinds.json", &c.Kinds}, {"trusted_root.json", &c.TrustedRoot}}
}

func (c *Contents) lists() []list {
	return []list{
		{"globals", ".json", &c.Globals},
		{"keys", ".pem", &c.Keys},
		{"mirrors", ".json", &c.Mirrors},
		{"policies", ".json", &c.Policies},
		{"resources", ".json", &c.Resources},
		{"roots", ".json", &c.Roots},
	}
}

// path is the path of the item at a position.
func (l list) path(place int) string { return fmt.Sprintf("%s/%06d%s", l.folder, place, l.extension) }

// sorted returns the items by name. Duplicate names are refused: their order would be undefined.
func (l list) sorted() ([]Item, error) {
	items := slices.SortedFunc(slices.Values(*l.items), func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	for i, item := range items {
		switch {
		case item.Name == "" || len(item.Text) == 0:
			return nil, fmt.Errorf("%s: an item without a name or without text", l.folder)
		case i > 0 && items[i-1].Name == item.Name:
			return nil, fmt.Errorf("%s: %s is there twice", l.folder, item.Name)
		}
	}
	return items, nil
}
