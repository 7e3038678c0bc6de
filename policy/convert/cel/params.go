package cel

import (
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// paramsName is the name of the parameter in expressions, and that of the variable in its place.
const paramsName = "params"

// paramKind and paramRef name the parameter of a rule.
type paramKind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

type paramRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Selector  any    `json:"selector"`
}

// withParams returns the expressions of a rule with a variable in place of its parameter, an object that the rule
// names. A parameter that cannot be read is an error of each expression, whether it reads the parameter or not.
func withParams(v *celExpressions) (*celExpressions, error) {
	get, err := v.lookup()
	if err != nil {
		return nil, err
	}
	named := func(text string) string { return celtext.Rename(text, paramsName, "variables."+paramsName) }
	out := &celExpressions{Variables: []admission.Variable{{Name: paramsName, Expression: get}}}
	for i, one := range v.Variables {
		if one.Name == paramsName {
			return nil, &source.Unsupported{Path: source.Index("validate.cel.variables", i), Found: "a variable with the name of the parameter"}
		}
		one.Expression = named(one.Expression)
		out.Variables = append(out.Variables, one)
	}
	for _, one := range v.Expressions {
		text := named(one.Expression)
		if text == one.Expression || strings.ContainsAny(text, "&|?{") {
			text = "has(variables." + paramsName + ".metadata) ? (" + text + ") : false"
		}
		one.Expression, one.MessageExpression = text, named(one.MessageExpression)
		out.Expressions = append(out.Expressions, one)
	}
	for _, one := range v.AuditAnnotations {
		one.ValueExpression = named(one.ValueExpression)
		out.AuditAnnotations = append(out.AuditAnnotations, one)
	}
	return out, nil
}

// lookup writes the request of the parameter. That it may be missing decides nothing for one with a name.
func (v *celExpressions) lookup() (string, error) {
	kind, ref := v.ParamKind, v.ParamRef
	if kind == nil || ref == nil || ref.Name == "" || ref.Selector != nil {
		return "", &source.Unsupported{Path: "validate.cel.paramRef", Found: "parameters by their labels"}
	}
	group, _, hasGroup := strings.Cut(kind.APIVersion, "/")
	if !hasGroup {
		group = ""
	}
	all := builtin.Resources()
	at := slices.IndexFunc(all, func(r builtin.Resource) bool { return r.Group == group && r.Kind == kind.Kind })
	switch {
	case at < 0:
		return "", &source.Unsupported{Path: "validate.cel.paramKind", Found: "parameters of a kind that is not Kubernetes' own"}
	case all[at].Cluster != (ref.Namespace == ""):
		return "", &source.Unsupported{Path: "validate.cel.paramRef.namespace", Found: "a parameter in the namespace of the object"}
	}
	return "resource.Get(" + celtext.String(kind.APIVersion) + ", " + celtext.String(all[at].Name) + ", " + celtext.String(ref.Namespace) + ", " +
		celtext.String(ref.Name) + ")", nil
}
