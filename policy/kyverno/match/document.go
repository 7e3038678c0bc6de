package match

import "slices"

// Document is a match or exclude block as it is written: any, all, or the old form
// without either.
type Document struct {
	Any []resourceFilter `json:"any"`
	All []resourceFilter `json:"all"`
	resourceFilter
}

type resourceFilter struct {
	Resources    resourceDescription `json:"resources"`
	Subjects     []subject           `json:"subjects"`
	Roles        []string            `json:"roles"`
	ClusterRoles []string            `json:"clusterRoles"`
}

type resourceDescription struct {
	Kinds             []string          `json:"kinds"`
	Name              *string           `json:"name"` // nil for absent; empty matches nothing
	Names             []string          `json:"names"`
	Namespaces        []string          `json:"namespaces"`
	Annotations       map[string]string `json:"annotations"`
	Selector          *Selector         `json:"selector"`
	NamespaceSelector *Selector         `json:"namespaceSelector"`
	Operations        []string          `json:"operations"`
}

type subject struct {
	Kind      string `json:"kind"`
	APIGroup  string `json:"apiGroup"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// Selector selects by labels, as it is written.
type Selector struct {
	MatchLabels      map[string]string `json:"matchLabels"`
	MatchExpressions []requirement     `json:"matchExpressions"`
}

type requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// SelectsUsers reports whether the block selects by the user.
func (m Document) SelectsUsers() bool {
	users := func(f resourceFilter) bool { return len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) > 0 }
	return users(m.resourceFilter) || slices.ContainsFunc(m.Any, users) || slices.ContainsFunc(m.All, users)
}

// OldForm reports whether the block is written without any and all.
func (m Document) OldForm() bool { return !m.empty() }
