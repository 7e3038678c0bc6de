package suite

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/suite/document"
	"github.com/quaymaster/quaymaster/workload"
)

// selected returns the objects of a row, and the names without an object. A row that names none
// selects all objects of its kind.
func (t *compiledSuite) selected(r *document.Row, filter Filter) (objects []workload.Object, missing []string) {
	all := slices.Concat(t.targets, t.resources, t.payloads)
	add := func(name string, is func(workload.Object) bool) {
		if name != "" && !filter.resource(name) && !wildcard.Contains(name) {
			return
		}
		found := false
		for _, o := range all {
			if !is(o) {
				continue
			}
			found = true
			if filter.resource(o.Name()) || filter.resource(o.Namespace()+"/"+o.Name()) || filter.resource(name) {
				objects = append(objects, o)
			}
		}
		if !found && name != "" {
			missing = append(missing, name)
		}
	}
	for _, name := range r.Resources {
		add(name, func(o workload.Object) bool { return r.IsOfKind(o) && isNamed(o, name) })
	}
	for _, spec := range r.ResourceSpecs {
		add(spec.Name, spec.Is)
	}
	if !r.Names() {
		add("", r.IsOfKind)
	}
	return objects, missing
}

// isNamed reports whether a name matches an object: name or namespace/name, with wildcards; for
// a document, the name of its file.
func isNamed(o workload.Object, name string) bool {
	if o.IsDocument() {
		return strings.Contains(o.Source(), name)
	}
	if namespace, short, ok := strings.Cut(name, "/"); ok {
		return wildcard.Match(namespace, o.Namespace()) && wildcard.Match(short, o.Name())
	}
	return wildcard.Match(name, o.Name())
}
