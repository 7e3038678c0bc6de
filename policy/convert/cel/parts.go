package cel

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/selection"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// textsOf returns the rules of a policy, each in the parts that become policies of their own.
func (c *converter) textsOf(doc *document, compiled *policy.Policy) []ruleText {
	var all []ruleText
	for i, raw := range doc.Spec.Rules {
		text := ruleText{raw: raw, at: source.Index("spec.rules", i)}
		if hasField(raw, "validate") {
			text.err = json.Unmarshal(raw, &text.from)
		}
		if !hasField(raw, "validate") || text.err != nil {
			all = append(all, text)
			continue
		}
		effects, err := effectsOf(doc, &text.from)
		if err != nil {
			text.err = err
			effects = []effect{{}}
		}
		for _, part := range partsOf(compiled, text) {
			for _, e := range effects {
				part.effect = e
				if doc.Spec.ApplyRules == "One" && part.err == nil {
					part.err = c.follow(doc, compiled, &part, all)
				}
				all = append(all, part)
			}
		}
	}
	return all
}

// follow adds the condition that no earlier rule of the same effect applies.
func (c *converter) follow(doc *document, compiled *policy.Policy, text *ruleText, earlier []ruleText) error {
	for _, one := range earlier {
		if !hasField(one.raw, "validate") || one.at == text.at || one.effect.enforced != text.effect.enforced || one.part != text.part {
			continue
		}
		fails := doc.Spec.FailurePolicy
		if w := doc.Spec.WebhookConfiguration; w != nil && w.FailurePolicy != "" {
			fails = w.FailurePolicy
		}
		excused := one.effect.enforced && excuses(compiled, one.from.Name) && c.options.ExistingViolations != Drop
		if fails == "Ignore" || excused || one.effect.where != "" || mayLeave(one.raw) {
			return &source.Unsupported{
				Path: "name", Found: "applyRules: One, after the rule " + one.from.Name + ", which may match an object and not be evaluated for it",
			}
		}
		applies, err := selection.Among(one.from.selected(), text.from.selected(), text.from.operations())
		switch {
		case err != nil:
			return err
		case applies == "true":
			return &source.Unsupported{Path: "name", Found: "applyRules: One, after the rule " + one.from.Name + ", which applies to all of its objects"}
		case applies != "":
			text.after = append(text.after, celtext.Not(applies))
		}
	}
	return nil
}

// mayLeave reports whether a rule may match an object and leave it alone: by preconditions, or a conditional anchor.
func mayLeave(raw json.RawMessage) bool {
	return hasField(raw, "preconditions") || hasField(raw, "celPreconditions") || strings.Contains(string(raw), `"foreach"`) ||
		strings.Contains(string(raw), `"(`) || strings.Contains(string(raw), `"<(`)
}

// partsOf splits a rule with filters of pods and of other kinds, if rules for the controllers of pods follow: the result
// generates such rules for a policy about pods alone.
func partsOf(compiled *policy.Policy, text ruleText) []ruleText {
	whole := []ruleText{text}
	var fields map[string]json.RawMessage
	var written struct {
		Match struct {
			Any []json.RawMessage `json:"any"`
		} `json:"match"`
	}
	if json.Unmarshal(text.raw, &fields) != nil || json.Unmarshal(text.raw, &written) != nil {
		return whole
	}
	if made := controllers(compiled, text.from.Name); made != nil && len(made) == 0 {
		return whole
	}
	// A part of a rule has other indices, so that a construct without a form is reported for the whole.
	if _, err := selection.Of(text.from.Match, text.from.Exclude, text.from.operations()); err != nil {
		return whole
	}
	var pods, others []int
	for i, f := range text.from.Match.Any {
		if selection.OfPods(f) {
			pods = append(pods, i)
			continue
		}
		others = append(others, i)
	}
	if len(pods) == 0 || len(others) == 0 {
		return whole
	}
	var parts []ruleText
	for n, indices := range [][]int{pods, others} {
		var filters []json.RawMessage
		for _, i := range indices {
			filters = append(filters, written.Match.Any[i])
		}
		match, err := json.Marshal(map[string]any{"any": filters})
		if err != nil {
			return whole
		}
		fields["match"] = match
		part := ruleText{at: text.at, part: n}
		part.raw, err = json.Marshal(fields)
		if err != nil || json.Unmarshal(part.raw, &part.from) != nil {
			return whole
		}
		parts = append(parts, part)
	}
	return parts
}

// nameOf names the policy of a part: after the policy, with the rule's name where rules become several, and with
// the action where a rule does.
func nameOf(base string, parts []part, p part, made []Policy) string {
	name := base
	if slices.ContainsFunc(parts, func(other part) bool { return other.label() != p.label() }) {
		name += "-" + p.label()
	}
	if g, is := p.(*group); is && !g.first.usual {
		name += "-" + strings.ToLower(string(g.first.actions[0]))
	}
	return unused(name, made)
}
