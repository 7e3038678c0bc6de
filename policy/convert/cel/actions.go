package cel

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/selection"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/action"
)

// effect is the action of a rule, where it has another one in some namespaces.
type effect struct {
	enforced bool
	// usual: it is the action of the rule without the overrides.
	usual bool
	// where is the condition on the namespace; empty for every one.
	where string
}

func enforces(text string) bool { return strings.EqualFold(text, string(policy.Enforce)) }

// effectsOf returns the actions of a rule: one, or two with the namespaces of each. The rule's overrides come
// first, then its action, and without one the policy's.
func effectsOf(doc *document, from *ruleDocument) ([]effect, error) {
	v := &from.Validate
	usual, overrides := enforces(cmp.Or(v.FailureAction, doc.Spec.ValidationFailureAction)), v.FailureActionOverrides
	if v.FailureAction == "" {
		overrides = slices.Concat(overrides, doc.Spec.Overrides)
	}
	var all []effect
	for _, enforced := range []bool{usual, !usual} {
		where, err := whereOf(from, overrides, enforced, enforced == usual)
		if err != nil {
			return nil, err
		}
		if where == "false" {
			continue
		}
		all = append(all, effect{enforced: enforced, usual: enforced == usual, where: strings.TrimSuffix(where, "true")})
	}
	return all, nil
}

// whereOf writes the condition that the overrides give an action: the first that fits counts. Otherwise it is the
// action, or not.
func whereOf(from *ruleDocument, overrides []action.Override, enforced, otherwise bool) (string, error) {
	where := "false"
	if otherwise {
		where = "true"
	}
	of := selection.Rule{Match: from.Match, Exclude: from.Exclude}
	for _, o := range slices.Backward(overrides) {
		fits, err := "true", error(nil)
		if o.NamespaceSelector != nil || !slices.Contains(o.Namespaces, "*") {
			fits, err = selection.InNamespaces(of, o.Namespaces, o.NamespaceSelector, enforces(o.Action))
		}
		if err != nil {
			return "", err
		}
		gives := enforces(o.Action) == enforced
		switch {
		case fits == "true" && gives, fits != "true" && gives && where == "true":
			where = "true"
		case fits == "true", !gives && where == "false":
			where = "false"
		case gives && where == "false":
			where = fits
		case gives:
			where = celtext.Join([]string{fits, where}, " || ")
		case where == "true":
			where = celtext.Not(fits)
		default:
			where = celtext.And([]string{celtext.Not(fits), where})
		}
	}
	return where, nil
}
