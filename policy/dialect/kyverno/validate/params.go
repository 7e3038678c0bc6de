package validate

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/parameter"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// params are the parameters of a rule.
type params struct {
	parameter.Reference
	deniesNone bool
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
	p := &params{Reference: parameter.Reference{
		APIVersion: kind.APIVersion, Kind: kind.Kind, Namespace: ref.Namespace, Name: ref.Name, Confined: namespace != "",
	}}
	if ref.Selector != nil {
		p.Labels = ref.Selector.MatchLabels
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
	list, err := p.Find(ctx, resources, s.Home())
	if err == nil && len(list) == 0 && p.deniesNone {
		return nil, fmt.Errorf("%s %s: no object has the labels of paramRef.selector; create one, or set parameterNotFoundAction: Allow", p.APIVersion, p.Kind)
	}
	return list, err
}
