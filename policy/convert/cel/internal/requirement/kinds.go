package requirement

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	types "github.com/quaymaster/quaymaster/policy/internal/schema"
)

// ShapeOf is the shape of the objects that a rule matches. Of a kind that is not Kubernetes' own, only the metadata
// are known.
func ShapeOf(finder *types.Finder, matched match.Document) shape.Shape {
	var kinds []schema.GroupVersionKind
	for _, f := range filtersOf(matched) {
		for _, text := range f.Resources.Kinds {
			found := kindsOf(text)
			if len(found) == 0 {
				return shape.Of(nil)
			}
			kinds = append(kinds, found...)
		}
	}
	known, ok := finder.Types(kinds)
	if !ok {
		return shape.Of(nil)
	}
	return shape.Of(known)
}

func filtersOf(m match.Document) []match.Filter {
	switch {
	case len(m.Any) > 0:
		return m.Any
	case len(m.All) > 0:
		return m.All
	}
	return []match.Filter{m.Filter}
}

// kindsOf returns the kinds of Kubernetes that a text names: Kind, version/Kind or group/version/Kind. The version
// is one with known types.
func kindsOf(text string) (all []schema.GroupVersionKind) {
	parts := strings.Split(text, "/")
	kind, version, group := parts[len(parts)-1], "*", "*"
	if len(parts) > 1 {
		version = parts[len(parts)-2]
	}
	if len(parts) > 2 {
		group = parts[0]
	}
	for _, r := range builtin.Resources() {
		if r.Kind != kind || group != "*" && r.Group != group {
			continue
		}
		if version == "*" && r.Group == "autoscaling" {
			return nil
		}
		of := version
		if of == "*" {
			of = "v1"
		}
		all = append(all, schema.GroupVersionKind{Group: r.Group, Version: of, Kind: kind})
	}
	return all
}
