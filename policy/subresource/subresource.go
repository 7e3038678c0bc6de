// Package subresource derives requests for subresources from the states of their objects (Kubernetes
// 1.37): a watch returns objects alone, and some requests show in them.
package subresource

import (
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// The subresources that show in their objects.
const (
	approval  = "approval"
	binding   = "binding"
	ephemeral = builtin.Ephemeral
	resize    = "resize"
	scale     = "scale"
	status    = "status"
)

func shows(name string) bool {
	return slices.Contains([]string{approval, binding, ephemeral, resize, scale, status}, name)
}

// Of returns the subresources of a kind of which requests are derived.
func Of(group, kind string) []string {
	r, known := builtin.Find(group, kind)
	if !known {
		return []string{status}
	}
	return slices.DeleteFunc(r.Subresources(), func(name string) bool { return !shows(name) })
}

// Check returns why no requests for a subresource are derived; nil if they are. The group may be a pattern.
func Check(group, kind, name string) error {
	isBuiltin := slices.ContainsFunc(builtin.Resources(), func(r builtin.Resource) bool { return r.Kind == kind && wildcard.Match(group, r.Group) })
	switch {
	case wildcard.Contains(name):
		return errors.New("name the subresources: only some of them show in the objects of a watch")
	case name == "finalize":
		return errors.New("it is requested for an object that is being deleted, which is no trigger")
	case isBuiltin && shows(name), name == status:
		return nil
	case name == scale:
		return errors.New("the definition of the kind chooses the field of its replicas, which a watch does not show")
	case isBuiltin:
		return errors.New("a request for it leaves nothing in the object that a watch would return")
	}
	return errors.New("of a kind outside of Kubernetes only the status is known to be written by its subresource alone")
}

// Operation returns the operation of requests for a subresource that shows.
func Operation(name string) string {
	if name == binding {
		return "CREATE"
	}
	return "UPDATE"
}

// Subject returns the request for a subresource of the object of a subject. The state before it is unknown.
func Subject(of *policy.Subject, name string) policy.Subject {
	s := *of
	s.Subresource, s.Operation, s.OldObject = name, Operation(name), policy.Content{}
	if name == binding || name == scale {
		s.Object = of.Object.Rewrite(func(object map[string]any) map[string]any { return body(object, name) })
	}
	return s
}

// Any reports whether a selection holds for a derived request for some subresource of the object of a subject.
func Any(of *policy.Subject, selects func(request *policy.Subject) bool) bool {
	return slices.ContainsFunc(Of(of.Group, of.Kind), func(name string) bool {
		s := Subject(of, name)
		return selects(&s)
	})
}

// Requested returns the subresources that requests wrote, of those of which Part differs between two states of
// an object. Next: the states follow one another, so that one request made the difference.
func Requested(object map[string]any, differing []string, next bool) []string {
	if next && slices.Contains(differing, binding) {
		return []string{binding} // which also sets the condition PodScheduled in the status
	}
	return slices.DeleteFunc(slices.Clone(differing), func(name string) bool { return !mayHaveWritten(object, name) })
}

// mayHaveWritten reports whether a subresource wrote its part last. An update of the object itself changes the
// replicas, too, and the status of a custom kind without that subresource.
func mayHaveWritten(object map[string]any, name string) bool {
	entries := managed(object)
	switch name {
	case scale:
		owners := slices.DeleteFunc(entries, func(e map[string]any) bool { return !owns(e, "f:spec", "f:replicas") })
		return len(owners) == 0 || slices.ContainsFunc(owners, isBy(scale))
	case status:
		_, known := builtin.Find(groupKind(object))
		return known || slices.ContainsFunc(entries, isBy(status))
	}
	return true
}
