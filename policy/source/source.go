// Package source reads the objects that generate rules copy, and makes copies of them.
//
// It is the common part of `clone` and `cloneList` of kyverno.io/v1, and of resource.Get and resource.List in
// a GeneratingPolicy of policies.kyverno.io (Kyverno 1.19). A rule is evaluated with the rights of the gateway,
// and the author of its trigger may choose names. So a policy of a namespace reads its own namespace alone, a
// Secret has to be named in the policy itself, and the tokens of service accounts are never copied.
package source

import (
	"context"
	"errors"
	"strings"
)

// Ref names an object, or with an empty Name the objects that Labels selects.
type Ref struct {
	APIVersion string
	// Either Kind or Resource, the plural as expressions write it, is set.
	Kind, Resource string
	// Namespace is empty for an object in none, and for a selection in all of them.
	Namespace, Name string
	// Labels is a label selector, as the API server accepts it; empty means all.
	Labels string
}

// IsSecret reports whether it names Secrets of the core group.
func (r Ref) IsSecret() bool {
	resource, _, _ := strings.Cut(r.Resource, "/")
	return !strings.Contains(r.APIVersion, "/") && (r.Kind == "Secret" || resource == "secrets")
}

// String returns the kind or resource, with the namespace, and the name or the selector.
func (r Ref) String() string {
	what := r.Kind + r.Resource
	switch {
	case r.Name != "":
		return what + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
	case r.Namespace != "":
		what += " of namespace " + r.Namespace
	}
	if r.Labels != "" {
		what += " with " + r.Labels
	}
	return what
}

// Read are the objects from which a result was read.
type Read struct {
	// Sources are all of them, and Missing those that do not exist.
	Sources, Missing []Ref
}

// ErrMissing is of an object that does not exist. Any other error means that this is unknown.
var ErrMissing = errors.New("it does not exist")

// Objects reads objects with the rights of the process.
type Objects interface {
	// Source returns one object, which the caller may change; ErrMissing.
	Source(ctx context.Context, of Ref) (map[string]any, error)
	// EachSource calls do for each object of a selection, in pages, until it returns an error.
	EachSource(ctx context.Context, of Ref, do func(object map[string]any) error) error
}
