package mutating

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/condition"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutation"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutation/jsonpatch"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/mutation/merge"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/requirement"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/selection"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/triggers"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	types "github.com/quaymaster/quaymaster/policy/internal/schema"
	merging "github.com/quaymaster/quaymaster/policy/lang/cel/mutation"
)

// mutateDocument is a rule that mutates.
type mutateDocument struct {
	Name           string                 `json:"name"`
	Match          match.Document         `json:"match"`
	Exclude        *match.Document        `json:"exclude"`
	Context        []rulecontext.Document `json:"context"`
	Preconditions  any                    `json:"preconditions"`
	SkipBackground *bool                  `json:"skipBackgroundRequests"`
	Mutate         struct {
		Targets             []targetDocument `json:"targets"`
		OnPolicyUpdate      *bool            `json:"mutateExistingOnPolicyUpdate"`
		PatchStrategicMerge any              `json:"patchStrategicMerge"`
		PatchesJSON6902     any              `json:"patchesJson6902"`
		ForEach             []jsonpatch.Loop `json:"foreach"`
	} `json:"mutate"`
}

// Converter converts rules. Both fields are required.
type Converter struct {
	// Types returns the merge rules of Kubernetes.
	Types func() *merging.Types
	// Schemas finds the types of kinds.
	Schemas *types.Finder
}

// Rule is a rule as it is written, and the settings of its policy.
type Rule struct {
	Text json.RawMessage
	// Namespaced: the policy is of a namespace, and changes its objects alone.
	Namespaced bool
	// OnPolicyUpdate is mutateExistingOnPolicyUpdate.
	OnPolicyUpdate bool
	// Controllers returns the resources of the controllers for which the source has a rule besides one of a name.
	Controllers func(name string) []string
}

// Made is a converted rule that mutates.
type Made struct {
	// Name is the name of the rule.
	Name      string
	Selection selection.Selection
	// Controllers are the resources of the controllers of pods that it changes, too; nil for the default.
	Controllers []string
	// Variables are the context of the rule.
	Variables []admission.Variable
	Written   *mutation.Written
	// Existing are objects that are changed in place of those of requests; nil for none.
	Existing *Existing
	touched  []string // fields
	reads    bool     // other fields
}

// Convert converts a rule, a rule with targets for each of them. What has no form is a *source.Unsupported with the path
// below the rule.
func (c Converter) Convert(r Rule) ([]*Made, error) {
	err := triggers.Known(r.Text, map[string][]string{
		"":       {"name", "match", "exclude", "context", "preconditions", "skipBackgroundRequests", "mutate"},
		"mutate": {"targets", "mutateExistingOnPolicyUpdate", "patchStrategicMerge", "patchesJson6902", "foreach"},
	})
	var from mutateDocument
	if err == nil {
		err = json.Unmarshal(r.Text, &from)
	}
	switch {
	case err != nil:
		return nil, err
	case len(from.Mutate.Targets) > 0:
		return c.targets(r, &from)
	}
	m, err := c.mutationOf(r, &from)
	if err != nil {
		return nil, err
	}
	return []*Made{m}, nil
}

// mutationOf converts a rule about the objects of requests.
func (c Converter) mutationOf(r Rule, from *mutateDocument) (*Made, error) {
	m := &Made{Name: from.Name}
	var err error
	m.Selection, err = selection.Of(from.Match, from.Exclude, []string{"CREATE", "UPDATE"})
	if err != nil {
		return nil, err
	}
	kinds, err := triggers.Kinds(from.Match)
	if err != nil {
		return nil, err
	}
	m.touched = touched(from.Mutate.PatchStrategicMerge)
	m.reads = from.Mutate.PatchStrategicMerge == nil
	if len(m.Selection.Conditions) > 0 {
		m.touched = append(m.touched, "metadata.labels", "metadata.annotations")
	}
	m.Controllers = r.Controllers(from.Name)
	if (m.Controllers == nil || len(m.Controllers) > 0) && !triggers.OfPods(m.Selection.Resources) {
		return nil, &source.Unsupported{Path: "match", Found: "pods of several filters, for whose controllers rules are generated"}
	}
	if err := m.byPointers(from); err != nil {
		return nil, err
	}
	scope := triggers.Scope(c.Schemas, m.Selection.Resources, kinds)
	m.reads = m.reads || strings.Contains(string(r.Text), "{{")
	if nameOfTemplate.Match(r.Text) && (m.Controllers == nil || len(m.Controllers) > 0) {
		return nil, &source.Unsupported{Found: "the name of the object, in a rule for controllers, too: templates of pods have none"}
	}
	m.Variables, scope, err = requirement.Entries(from.Context, scope, r.Namespaced)
	if err != nil {
		return nil, err
	}
	m.Selection.Conditions, err = triggers.Require(m.Selection.Conditions, from.Preconditions, scope, condition.Compile)
	if err != nil {
		return nil, err
	}
	_, isKnown := c.Schemas.Types(kinds)
	m.Written, err = c.patch(from, patched{kinds: kinds, shape: scope.Object, isKnown: isKnown}, scope)
	if err != nil {
		return nil, err
	}
	return m, m.evaluatedOnce()
}

// evaluatedOnce refuses variables that would be evaluated again about a changed object.
func (m *Made) evaluatedOnce() error {
	for i, change := range m.Written.Mutations {
		if i == 0 {
			continue
		}
		text := ""
		if change.JSONPatch != nil {
			text = change.JSONPatch.Expression
		} else if change.Apply != nil {
			text = change.Apply.Expression
		}
		for _, v := range m.Variables {
			if strings.Contains(text, "variables."+v.Name) && strings.Contains(v.Expression, "object") {
				return &source.Unsupported{Path: "context", Found: "the entry " + v.Name + " about the object, in a rule that changes it in several steps"}
			}
		}
	}
	return nil
}

// byPointers leaves out controllers for loops in loops with operations by pointers. Kyverno generates rules for
// them, in which the pointers are still those of pods: removals find nothing.
func (m *Made) byPointers(from *mutateDocument) error {
	if m.Controllers != nil && len(m.Controllers) == 0 {
		return nil
	}
	for i, l := range from.Mutate.ForEach {
		switch l.Removes() {
		case jsonpatch.Nothing:
		case jsonpatch.All:
			m.Controllers = []string{}
		default:
			return &source.Unsupported{Path: source.Index("mutate.foreach", i), Found: "operations by pointers of pods, in a rule for controllers, too"}
		}
	}
	return nil
}

// patched describes the objects that a patch changes.
type patched struct {
	kinds   []schema.GroupVersionKind
	shape   shape.Shape
	isKnown bool // the kinds are Kubernetes' own
}

// patch writes the patch of a rule, or its loops.
func (c Converter) patch(from *mutateDocument, of patched, scope jmespath.Scope) (*mutation.Written, error) {
	object := jsonpatch.Object{Shape: of.shape, Known: of.isKnown}
	switch {
	case slices.ContainsFunc(of.kinds, func(k schema.GroupVersionKind) bool { return k.Kind == "*" }):
		return nil, &source.Unsupported{Path: "match", Found: "objects of every kind, in a rule that changes them"}
	case from.Mutate.ForEach != nil:
		written, err := c.loops(from.Mutate.ForEach, of, scope)
		return written, source.Located("mutate.foreach", err)
	case from.Mutate.PatchesJSON6902 != nil:
		written, err := jsonpatch.Operations(from.Mutate.PatchesJSON6902, scope, object)
		return written, source.Located("mutate.patchesJson6902", err)
	}
	written, err := merge.StrategicMerge(from.Mutate.PatchStrategicMerge, merge.Options{Kinds: of.kinds, Types: c.Types(), Value: values(scope)})
	return written, source.Located("mutate.patchStrategicMerge", err)
}

// loops writes loops, each as mutations of the result of those before it.
func (c Converter) loops(loops []jsonpatch.Loop, of patched, scope jmespath.Scope) (*mutation.Written, error) {
	out := &mutation.Written{}
	for i, l := range loops {
		write := c.eachMerge
		if l.PatchStrategicMerge == nil {
			write = func(l jsonpatch.Loop, of patched, scope jmespath.Scope) (*mutation.Written, error) {
				return jsonpatch.ForEach(l, scope, jsonpatch.Object{Shape: of.shape, Known: of.isKnown})
			}
		}
		one, err := write(l, of, scope)
		if err != nil {
			return nil, source.Located(source.Index("", i), err)
		}
		out.Mutations, out.ServerSide = append(out.Mutations, one.Mutations...), out.ServerSide || one.ServerSide
	}
	return out, nil
}

// eachMerge writes a merge for each element of a list.
func (c Converter) eachMerge(l jsonpatch.Loop, of patched, scope jmespath.Scope) (*mutation.Written, error) {
	e, err := jsonpatch.Each(l, scope)
	switch {
	case err != nil:
		return nil, err
	case l.Order == "Ascending":
		return nil, &source.Unsupported{Path: "order", Found: "Ascending, with a merge: the elements would be in the opposite order"}
	}
	one, err := merge.StrategicMerge(l.PatchStrategicMerge, merge.Options{
		Kinds: of.kinds, Types: c.Types(), Value: values(e.Scope),
		Each: &merge.Each{Path: e.Path, Name: e.Name, Condition: e.Condition, Fails: e.Fails},
	})
	if err == nil && len(one.Conditions) > 0 {
		err = &source.Unsupported{Found: "an anchor that decides about the whole patch, in a loop"}
	}
	return one, source.Located("patchStrategicMerge", err)
}

// Follows refuses a rule that depends on one before it, if its policy is applied before that one's: policies
// are applied in the order of their names.
func (m *Made) Follows(before []*Made) error {
	for _, other := range before {
		if m.Existing == nil && other.Existing == nil && other.Name > m.Name &&
			(m.reads || other.reads || slices.ContainsFunc(m.touched, func(at string) bool { return slices.Contains(other.touched, at) })) {
			return &source.Unsupported{Path: "name", Found: fmt.Sprintf("sorts before %s, a rule before it about the same field: policies are applied in the order of their names", other.Name)}
		}
	}
	return nil
}

// touched are the fields that a patch may read or write, as spec.containers.
func touched(patch any) (all []string) {
	members, _ := patch.(map[string]any)
	for first, inner := range members {
		members, _ := inner.(map[string]any)
		for second := range members {
			all = append(all, strings.Trim(first, "+<()")+"."+strings.Trim(second, "+<()"))
		}
	}
	return all
}

// nameOfTemplate finds the name of a pod, of which templates have none.
var nameOfTemplate = regexp.MustCompile(`request\.object\.metadata\.(name|generateName)\b`)

// values writes the texts of a patch.
func values(scope jmespath.Scope) func(text string) (merge.Value, error) {
	return func(text string) (merge.Value, error) {
		e, err := jmespath.Value(text, scope)
		if err != nil {
			return merge.Value{}, err
		}
		sample := map[jmespath.Type]any{jmespath.String: "x", jmespath.Number: 1.0, jmespath.Bool: true}[e.Type]
		if sample == nil || e.Optional {
			return merge.Value{}, &source.Unsupported{Found: fmt.Sprintf("the value %q, which may be null, a list or an object", text)}
		}
		return merge.Value{Text: e.Text, Sample: sample, Sure: !e.Missing}, nil
	}
}

// Spec writes the rule without the settings of its policy.
func (m *Made) Spec() *mutation.Spec {
	s := &mutation.Spec{Mutations: m.Written.Mutations, MatchConditions: m.Selection.Conditions, Variables: m.Variables}
	s.MatchConstraints.ResourceRules = m.Selection.Resources
	e := mutation.Evaluation{ServerSide: m.Written.ServerSide}
	conditions := &s.MatchConditions
	if m.Existing != nil { // the patch is about a target
		e.MutateExisting, e.SkipBackground = &mutation.Enabled{Enabled: true}, m.Existing.SkipBackground
		s.Targets, s.TargetConditions = &m.Existing.Targets, m.Existing.Conditions
		conditions = &s.TargetConditions
	}
	if e != (mutation.Evaluation{}) {
		s.Evaluation = &e
	}
	for _, condition := range m.Written.Conditions {
		name := condition.Name
		for n := 2; slices.ContainsFunc(*conditions, func(have admission.MatchCondition) bool { return have.Name == name }); n++ {
			name = fmt.Sprintf("%s-%d", condition.Name, n)
		}
		*conditions = append(slices.Clip(*conditions), admission.MatchCondition{Name: name, Expression: condition.Expression})
	}
	return s
}
