package mutating

import (
	"cmp"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/condition"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutation"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/requirement"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/selection"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/triggers"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

// targetDocument are existing objects that a rule changes.
type targetDocument struct {
	APIVersion    string          `json:"apiVersion"`
	Kind          string          `json:"kind"`
	Name          string          `json:"name"`
	Namespace     string          `json:"namespace"`
	Selector      *match.Selector `json:"selector"`
	Context       []any           `json:"context"`
	Preconditions any             `json:"preconditions"`
}

// targets converts a rule that changes existing objects: each of its targets.
func (c Converter) targets(r Rule, from *mutateDocument) ([]*Made, error) {
	onUpdate := r.OnPolicyUpdate
	if own := from.Mutate.OnPolicyUpdate; own != nil {
		onUpdate = *own
	}
	switch {
	case onUpdate:
		return nil, &source.Unsupported{Path: "mutate.mutateExistingOnPolicyUpdate", Found: "a change of objects when the policy changes"}
	case strings.Contains(string(r.Text), "request.oldObject"):
		return nil, &source.Unsupported{Path: "mutate", Found: "the old object of a request, in a rule about other objects"}
	}
	selected, err := selection.Of(from.Match, from.Exclude, []string{"CREATE", "UPDATE"})
	if err != nil {
		return nil, err
	}
	kinds, err := triggers.Kinds(from.Match)
	if err != nil {
		return nil, err
	}
	scope := triggers.Scope(c.Schemas, selected.Resources, kinds)
	// In a policy about existing objects the object is the target in all expressions but match conditions.
	scope.ObjectName = "request.object"
	variables, scope, err := requirement.Entries(from.Context, scope, r.Namespaced)
	if err != nil {
		return nil, err
	}
	selected.Conditions, err = triggers.Require(selected.Conditions, from.Preconditions, scope, condition.CompileExempting)
	if err != nil {
		return nil, err
	}
	var all []*Made
	for i := range from.Mutate.Targets {
		m := &Made{Name: from.Name, Selection: selected, Controllers: []string{}, Variables: variables}
		of, within, err := c.target(m, r, &from.Mutate.Targets[i], scope)
		if err != nil {
			return nil, source.Located(source.Index("mutate.targets", i), err)
		}
		m.Written, err = c.patch(from, of, within)
		if err != nil {
			return nil, err
		}
		if err := m.evaluatedOnce(); err != nil {
			return nil, err
		}
		if from.SkipBackground != nil && !*from.SkipBackground {
			m.Existing.SkipBackground = from.SkipBackground
		}
		all = append(all, m)
	}
	return all, nil
}

// target converts one target, and returns the scope of its patch. Expressions about it read the object of the trigger
// as request.object.
func (c Converter) target(m *Made, r Rule, t *targetDocument, scope jmespath.Scope) (of patched, within jmespath.Scope, err error) {
	if len(t.Context) > 0 {
		return of, scope, &source.Unsupported{Path: "context", Found: "has no form yet that is known to be equal"}
	}
	kind := schema.FromAPIVersionAndKind(t.APIVersion, t.Kind)
	types, _ := c.Schemas.Types([]schema.GroupVersionKind{kind})
	of = patched{kinds: []schema.GroupVersionKind{kind}, shape: shape.Of(types), isKnown: len(types) > 0}
	scope = scope.With("target", jmespath.Binding{Text: "object", Shape: of.shape})
	resource, guessed, err := selection.Resource(kind.Group, kind.Kind)
	if err != nil {
		return of, scope, err
	}
	if guessed {
		m.Selection.Guessed = append(slices.Clip(m.Selection.Guessed), resource)
	}
	m.Existing = &Existing{}
	m.Existing.Targets.ResourceRules = []admission.NamedRuleWithOperations{{RuleWithOperations: admission.RuleWithOperations{
		Operations: []admission.OperationType{admission.Create, admission.Update},
		Rule:       admission.Rule{APIGroups: []string{kind.Group}, APIVersions: []string{kind.Version}, Resources: []string{resource}},
	}}}
	if r.Namespaced { // which changes objects of its own namespace alone
		t.Namespace = ""
	}
	err = cmp.Or(
		m.Existing.named("name", t.Name, scope), m.Existing.named("namespace", t.Namespace, scope), m.Existing.choose(t.Selector),
	)
	if err != nil {
		return of, scope, err
	}
	m.Existing.Conditions, err = triggers.Require(m.Existing.Conditions, t.Preconditions, scope, condition.CompileExempting)
	return of, scope, err
}

// Existing are the objects that a policy changes besides those of requests.
type Existing struct {
	mutation.Existing
}

func (e *Existing) require(name, expression string) {
	e.Conditions = append(e.Conditions, admission.MatchCondition{Name: name, Expression: expression})
}

// named selects objects by a member of their metadata.
func (e *Existing) named(field, text string, scope jmespath.Scope) error {
	value := "object.metadata." + field
	if field == "namespace" {
		value = "object.metadata.?namespace.orValue('')"
	}
	switch {
	case text == "":
	case field == "name" && !strings.ContainsAny(text, "*?{"):
		e.Targets.ResourceRules[0].ResourceNames = []string{text}
	case !strings.Contains(text, "{{"):
		e.require(field, celtext.Any(value, []string{text}))
	case strings.ContainsAny(text, "*?"):
		return &source.Unsupported{Path: field, Found: "a wildcard beside a variable"}
	default:
		written, err := jmespath.Template(text, scope)
		if err != nil || written.Type != jmespath.String || written.Optional {
			return source.Located(field, cmp.Or(err, error(&source.Unsupported{Found: "a value that may be no text"})))
		}
		e.require(field, value+" == "+written.Text)
	}
	return nil
}

// choose selects objects by their labels.
func (e *Existing) choose(by *match.Selector) error {
	if by == nil {
		return nil
	}
	selector := &meta.LabelSelector{MatchLabels: by.MatchLabels}
	for key, value := range by.MatchLabels {
		if strings.ContainsAny(key+value, "*?{") {
			return &source.Unsupported{Path: "selector.matchLabels", Found: "a wildcard or a variable"}
		}
	}
	for _, r := range by.MatchExpressions {
		if strings.ContainsAny(r.Key+strings.Join(r.Values, ""), "*?{") {
			return &source.Unsupported{Path: "selector.matchExpressions", Found: "a wildcard or a variable"}
		}
		selector.MatchExpressions = append(selector.MatchExpressions,
			meta.LabelSelectorRequirement{Key: r.Key, Operator: meta.LabelSelectorOperator(r.Operator), Values: r.Values})
	}
	e.Targets.ObjectSelector = selector
	return nil
}
