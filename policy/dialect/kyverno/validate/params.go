package validate

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// params are the parameters of a rule.
type params struct {
	apiVersion, kind, namespace, name string
	labels                            map[string]string
	selects, deniesNone               bool
	// confined: the rule is a Policy's, which reads its own namespace alone.
	confined bool
}

func compileParams(doc *celDocument, path, namespace string) (*params, error) {
	kind, ref := doc.ParamKind, doc.ParamRef
	switch {
	case kind == nil || kind.APIVersion == "" || kind.Kind == "":
		return nil, field.Fail(path+".paramKind", "want an apiVersion and a kind")
	case ref == nil:
		return nil, field.Fail(path+".paramRef", "is missing, and so no parameter would be found")
	case (ref.Name == "") == (ref.Selector == nil):
		return nil, field.Fail(path+".paramRef", "want one of name and selector")
	case ref.Selector != nil && len(ref.Selector.MatchExpressions) > 0:
		return nil, field.Fail(path+".paramRef.selector.matchExpressions", "is not supported in this version: write matchLabels")
	case namespace != "" && ref.Namespace != "" && ref.Namespace != namespace:
		return nil, field.Fail(path+".paramRef.namespace", "a Policy in namespace %s cannot read from namespace %s: use a ClusterPolicy", namespace, ref.Namespace)
	}
	p := &params{apiVersion: kind.APIVersion, kind: kind.Kind, namespace: ref.Namespace, name: ref.Name, confined: namespace != ""}
	if ref.Selector != nil {
		p.labels, p.selects = ref.Selector.MatchLabels, true
	}
	switch ref.ParameterNotFoundAction {
	case "", "Deny":
		p.deniesNone = true
	case "Allow":
	default:
		return nil, field.Fail(path+".paramRef.parameterNotFoundAction", "unknown action %q: want Allow or Deny", ref.ParameterNotFoundAction)
	}
	return p, nil
}

// find returns the parameters for an object. A missing named parameter is an error, as in Kyverno,
// and so are missing selected ones, unless parameterNotFoundAction is Allow.
func (p *params) find(ctx context.Context, resources cel.Resources, s *policy.Subject) ([]any, error) {
	what := p.apiVersion + " " + p.kind
	if resources == nil {
		return nil, fmt.Errorf("%s: there is no cluster to read it from", what)
	}
	defer waittime.Begin(ctx)()
	group, version, resource, err := resources.Kind(ctx, p.apiVersion, p.kind)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	ref := cel.ResourceRef{Group: group, Version: version, Resource: resource, Namespace: p.namespace, Name: p.name}
	ref.Namespace, err = p.place(ctx, resources, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	var list []any
	if p.selects {
		found, err := resources.List(ctx, ref, p.labels)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		list, _ = found["items"].([]any)
	} else {
		found, err := resources.Get(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", what, p.name, err)
		}
		list = []any{found}
	}
	if len(list) == 0 && p.deniesNone {
		return nil, fmt.Errorf("%s: no object has the labels of paramRef.selector; create one, or set parameterNotFoundAction: Allow", what)
	}
	return list, nil
}

// scopes reports which kinds are namespaced. Resources that do not implement it have no other
// kinds.
type scopes interface {
	Namespaced(ctx context.Context, apiVersion, kind string) (bool, error)
}

// place returns the namespace of the parameters: the rule's own, or the object's. An object
// of the cluster has no parameters in namespaces unless the rule names the namespace.
func (p *params) place(ctx context.Context, resources cel.Resources, s *policy.Subject) (string, error) {
	namespaced := true
	if known, ok := resources.(scopes); ok {
		var err error
		namespaced, err = known.Namespaced(ctx, p.apiVersion, p.kind)
		if err != nil {
			return "", err
		}
	}
	switch {
	case !namespaced && p.confined:
		return "", errors.New("its objects are in no namespace, and a Policy reads its own namespace alone; use a ClusterPolicy")
	case !namespaced && p.namespace != "":
		return "", fmt.Errorf("its objects are in no namespace, and paramRef.namespace is %s", p.namespace)
	case !namespaced || p.namespace != "":
		return p.namespace, nil
	case s.Home() == "":
		return "", errors.New("the object is in no namespace; set paramRef.namespace")
	}
	return s.Home(), nil
}
