package deletion

import (
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	runtime "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/condition"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/requirement"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/selection"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/triggers"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
)

// Spec is the specification of a DeletingPolicy, with its fields in the order in which they are read.
type Spec struct {
	Schedule         string `json:"schedule"`
	Propagation      string `json:"deletionPropagationPolicy,omitempty"`
	MatchConstraints struct {
		ResourceRules []admission.RuleWithOperations `json:"resourceRules"`
	} `json:"matchConstraints"`
	Variables  []admission.Variable       `json:"variables,omitempty"`
	Conditions []admission.MatchCondition `json:"conditions,omitempty"`
}

// Document is the specification of a cleanup policy, which the compiler of the dialect has checked.
type Document struct {
	Schedule    string                 `json:"schedule"`
	Propagation string                 `json:"deletionPropagationPolicy"`
	Match       match.Document         `json:"match"`
	Exclude     *match.Document        `json:"exclude"`
	Context     []rulecontext.Document `json:"context"`
	Conditions  any                    `json:"conditions"`
}

// Of converts a specification, of a policy of a namespace or of the cluster. A construct without a form is a *source.Unsupported with the path below spec.
func Of(from Document, types *schema.Finder, namespaced bool) (*Spec, error) {
	s := &Spec{Schedule: from.Schedule, Propagation: from.Propagation}
	selected, err := selection.OfStored(from.Match, from.Exclude)
	if err != nil {
		return nil, err
	}
	namespace := s.match(selected.Resources)
	scope := jmespath.Scope{Object: shape.Of(known(s.MatchConstraints.ResourceRules, types))}
	scope = scope.With("target", jmespath.Binding{Text: "object", Shape: scope.Object})
	for _, c := range selected.Conditions {
		c.Expression = stored(c.Expression, namespace)
		if strings.Contains(c.Expression, "request.") {
			return nil, &source.Unsupported{Path: "match", Found: "a condition about a request"}
		}
		s.Conditions = append(s.Conditions, c)
	}
	s.Variables, scope, err = requirement.Entries(from.Context, scope, namespaced)
	if err != nil {
		return nil, err
	}
	for i := range s.Variables {
		v := &s.Variables[i]
		v.Expression = stored(v.Expression, namespace)
		if strings.Contains(v.Expression, "request.") {
			return nil, &source.Unsupported{Path: source.Index("context", i), Found: "an entry about a request"}
		}
	}
	return s, s.require(from.Conditions, scope, namespace)
}

// match writes the resources, and returns an expression for the namespace of their objects.
func (s *Spec) match(rules []admission.RuleWithOperations) (namespace string) {
	namespace = "object.metadata.namespace"
	for i := range rules {
		r := &rules[i]
		r.Operations = nil // a schedule has none
		r.Resources = slices.DeleteFunc(slices.Clone(r.Resources), func(name string) bool { return strings.Contains(name, "/") })
		for _, name := range r.Resources {
			at := slices.IndexFunc(builtin.Resources(), func(b builtin.Resource) bool {
				return b.Name == name && (r.APIGroups[0] == "*" || r.APIGroups[0] == b.Group)
			})
			if at < 0 || builtin.Resources()[at].Cluster {
				namespace = "object.metadata.?namespace.orValue('')"
			}
			if at >= 0 && r.APIGroups[0] == "*" { // the same objects are in every group of the kind
				r.APIGroups = []string{builtin.Resources()[at].Group}
			}
		}
	}
	s.MatchConstraints.ResourceRules = rules
	return namespace
}

// stored writes an expression about a request for an object that is there.
func stored(expression, namespace string) string {
	return strings.NewReplacer("request.?namespace.orValue('')", namespace, "request.namespace", namespace, "request.kind.kind", "object.kind").Replace(expression)
}

// require adds the conditions: of those that must all hold, each on its own.
func (s *Spec) require(conditions any, scope jmespath.Scope, namespace string) error {
	if conditions == nil {
		return nil
	}
	block, _ := conditions.(map[string]any)
	all, _ := block["all"].([]any)
	n := 0
	add := func(conditions any, where string) error {
		text, err := condition.CompileExempting(conditions, scope)
		if found, ok := errors.AsType[*source.Unsupported](err); ok {
			return &source.Unsupported{Path: source.Below("conditions", strings.Replace(found.Path, "all[0]", where, 1)), Found: found.Found}
		}
		if err != nil || text == "true" {
			return err
		}
		n++
		name := "condition"
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		s.Conditions = append(s.Conditions, admission.MatchCondition{Name: name, Expression: stored(triggers.Truth(text), namespace)})
		return nil
	}
	if block["any"] != nil {
		if err := add(map[string]any{"any": block["any"]}, ""); err != nil {
			return err
		}
	}
	for i, one := range all {
		if err := add(map[string]any{"all": []any{one}}, source.Index("all", i)); err != nil {
			return err
		}
	}
	return nil
}

// known are the types of the kinds of resources; none if one is not known.
func known(rules []admission.RuleWithOperations, types *schema.Finder) []reflect.Type {
	var kinds []runtime.GroupVersionKind
	for _, r := range rules {
		for _, b := range builtin.Resources() {
			if slices.Contains(r.Resources, b.Name) && r.APIGroups[0] == b.Group {
				kinds = append(kinds, runtime.GroupVersionKind{Group: b.Group, Version: "v1", Kind: b.Kind})
			}
		}
	}
	found, _ := types.Types(kinds)
	return found
}
