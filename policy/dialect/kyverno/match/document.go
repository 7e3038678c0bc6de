package match

import "slices"

// Document is a match or exclude block as it is written: any, all, or the old form without either.
type Document struct {
	Any []Filter `json:"any"`
	All []Filter `json:"all"`
	Filter
}

// Filter is a filter as it is written. An object must match all fields that are there.
type Filter struct {
	Resources    Resources `json:"resources"`
	Subjects     []subject `json:"subjects"`
	Roles        []string  `json:"roles"`
	ClusterRoles []string  `json:"clusterRoles"`
}

// Resources is the part of a Filter about the object and the operation.
type Resources struct {
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
	return slices.ContainsFunc(m.filters(), func(f Filter) bool { return len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) > 0 })
}

// SameForPodsOfControllers reports whether a rule that selects a controller selects the pods
// which the controller creates as well. A pod shares only the namespace with its controller:
// its user, name, labels and annotations differ, and it is created whenever the controller
// is updated. Exclude may be nil.
func SameForPodsOfControllers(match Document, exclude *Document) bool {
	differs := func(f Filter) bool {
		d := &f.Resources
		return d.Name != nil || len(d.Names)+len(d.Annotations) > 0 || d.Selector != nil
	}
	isPartial := func(f Filter) bool {
		return differs(f) || len(f.Resources.Operations) > 0 && !slices.Contains(f.Resources.Operations, "CREATE")
	}
	if match.SelectsUsers() || slices.ContainsFunc(match.filters(), isPartial) {
		return false
	}
	byOperation := func(f Filter) bool { return differs(f) || len(f.Resources.Operations) > 0 }
	return exclude == nil || !exclude.SelectsUsers() && !slices.ContainsFunc(exclude.filters(), byOperation)
}

// filters returns the filters of every form.
func (m Document) filters() []Filter {
	return slices.Concat([]Filter{m.Filter}, m.Any, m.All)
}

// OldForm reports whether the block is written without any and all.
func (m Document) OldForm() bool { return !m.empty() }
