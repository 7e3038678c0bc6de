package triggers

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/selection"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	types "github.com/quaymaster/quaymaster/policy/internal/schema"
)

// Known refuses fields of a rule that are not converted.
func Known(raw json.RawMessage, names map[string][]string) error {
	for _, place := range slices.Sorted(maps.Keys(names)) {
		var all map[string]json.RawMessage
		err := json.Unmarshal(raw, &all)
		if err == nil && place != "" {
			inner := all[place]
			all = nil
			err = json.Unmarshal(inner, &all)
		}
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !slices.Contains(names[place], name) && string(all[name]) != "null" {
				return &source.Unsupported{Path: source.Below(place, name), Found: "has no form yet that is known to be equal"}
			}
		}
	}
	return nil
}

// Kinds are those of a match, those of Kubernetes' own with a version.
func Kinds(matched match.Document) ([]schema.GroupVersionKind, error) {
	kinds, err := selection.Kinds(matched)
	for i := range kinds {
		if kinds[i].Group == "*" { // of a custom kind, or the same objects in several groups
			kinds[i].Group = ""
			at := slices.IndexFunc(builtin.Resources(), func(b builtin.Resource) bool { return b.Kind == kinds[i].Kind })
			if at >= 0 {
				kinds[i].Group = builtin.Resources()[at].Group
			}
		}
		if kinds[i].Version == "*" {
			kinds[i].Version = "v1"
		}
	}
	return kinds, err
}

// Scope has the meaning of the names in a rule about kinds.
func Scope(schemas *types.Finder, rules []admission.RuleWithOperations, kinds []schema.GroupVersionKind) jmespath.Scope {
	var operations []string
	for _, r := range rules {
		for _, o := range r.Operations {
			operations = append(operations, string(o))
		}
	}
	found, _ := schemas.Types(kinds)
	return jmespath.Scope{Object: shape.Of(found), Operations: operations}
}

// Require adds the preconditions of a rule to match conditions.
func Require(
	to []admission.MatchCondition, conditions any, scope jmespath.Scope, compile func(any, jmespath.Scope) (string, error),
) ([]admission.MatchCondition, error) {
	if conditions == nil {
		return to, nil
	}
	text, err := compile(conditions, scope)
	if err != nil || text == "true" {
		return to, source.Located("preconditions", err)
	}
	return append(slices.Clip(to), admission.MatchCondition{Name: "preconditions", Expression: Truth(text)}), nil
}

// value is an expression that reads a value, perhaps with another one for a missing value.
var value = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.?]*(\[[^\]]*\][A-Za-z0-9_.?]*)*(\.orValue\((true|false)\))?$`)

// Truth writes a condition that is known to be true or false: a value of an object has any type.
func Truth(text string) string {
	switch {
	case celtext.Has(text, " ? "):
		return "(" + text + ") == true"
	case value.MatchString(text):
		return text + " == true"
	}
	return text
}

// OfPods reports whether resources are of the form for which rules about controllers are generated.
func OfPods(rules []admission.RuleWithOperations) bool {
	return len(rules) == 1 && slices.Equal(rules[0].APIGroups, []string{""}) && slices.Equal(rules[0].APIVersions, []string{"v1"}) &&
		slices.Equal(rules[0].Resources, []string{"pods"})
}
