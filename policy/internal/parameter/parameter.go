// Package parameter finds the objects that parameterise the expressions of a policy: paramKind and
// paramRef of ValidatingAdmissionPolicy (admissionregistration.k8s.io/v1, Kubernetes 1.37), which
// rules of Kyverno share.
package parameter

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// The contradictions between a reference and the scope of its kind.
var (
	ErrNamespace   = errors.New("its objects are in no namespace")
	ErrNoNamespace = errors.New("the object is in no namespace; set paramRef.namespace")
)

// Reference names objects of a kind, by their name or by their labels.
type Reference struct {
	// APIVersion and Kind are those of the objects; required.
	APIVersion, Kind string
	// Namespace is that of the objects; empty means that of the evaluated object.
	Namespace string
	// Name is that of one object; empty means those with the Labels that the Selector matches. A nil
	// Selector matches all of them.
	Name     string
	Labels   map[string]string
	Selector labels.Selector
	// Confined: objects that are in no namespace may not be read.
	Confined bool
}

// Find returns the objects for an evaluated object of a namespace, which is empty for none. The error
// of an object that is not there wraps cel.ErrNotFound; no object with the labels is no error.
func (r *Reference) Find(ctx context.Context, resources cel.Resources, namespace string) ([]any, error) {
	what := r.APIVersion + " " + r.Kind
	if resources == nil {
		return nil, fmt.Errorf("%s: %w", what, &cel.UnknownError{Gaps: []error{errors.New("there is no cluster to read it from")}})
	}
	defer waittime.Begin(ctx)()
	found, err := r.find(ctx, resources, namespace)
	switch {
	case err != nil && r.Name != "":
		return nil, fmt.Errorf("%s %s: %w", what, r.Name, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return found, nil
}

func (r *Reference) find(ctx context.Context, resources cel.Resources, namespace string) ([]any, error) {
	group, version, resource, err := resources.Kind(ctx, r.APIVersion, r.Kind)
	if err != nil {
		return nil, err
	}
	ref := cel.ResourceRef{Group: group, Version: version, Resource: resource, Name: r.Name}
	ref.Namespace, err = r.place(ctx, resources, namespace)
	if err != nil {
		return nil, err
	}
	if r.Name != "" {
		found, err := resources.Get(ctx, ref)
		if err != nil {
			return nil, err
		}
		return []any{found}, nil
	}
	found, err := resources.List(ctx, ref, r.Labels)
	if err != nil {
		return nil, err
	}
	items, _ := found["items"].([]any)
	if r.Selector == nil {
		return items, nil
	}
	var list []any
	for _, item := range items {
		if r.Selector.Matches(labelsOf(item)) {
			list = append(list, item)
		}
	}
	return list, nil
}

// labelsOf returns the labels of an object of an API server, where they are texts.
func labelsOf(item any) labels.Set {
	object, _ := item.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	written, _ := metadata["labels"].(map[string]any)
	set := labels.Set{}
	for key, value := range written {
		set[key], _ = value.(string)
	}
	return set
}

// scopes reports which kinds are namespaced. Resources that do not implement it have no other
// kinds.
type scopes interface {
	Namespaced(ctx context.Context, apiVersion, kind string) (bool, error)
}

// place returns the namespace of the objects. An evaluated object of the cluster has no parameters in
// namespaces unless the reference names the namespace.
func (r *Reference) place(ctx context.Context, resources cel.Resources, namespace string) (string, error) {
	namespaced := true
	if known, ok := resources.(scopes); ok {
		var err error
		namespaced, err = known.Namespaced(ctx, r.APIVersion, r.Kind)
		if err != nil {
			return "", err
		}
	}
	switch {
	case !namespaced && r.Confined:
		return "", errors.New("its objects are in no namespace, and a Policy reads its own namespace alone; use a ClusterPolicy")
	case !namespaced && r.Namespace != "":
		return "", fmt.Errorf("%w, and paramRef.namespace is %s", ErrNamespace, r.Namespace)
	case !namespaced || r.Namespace != "":
		return r.Namespace, nil
	case namespace == "":
		return "", ErrNoNamespace
	}
	return namespace, nil
}
