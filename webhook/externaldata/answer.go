package externaldata

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// shadowed returns the answers of a shadow instead of the decisions.
func (h *Handler) shadowed(items []item) []item {
	for i := range items {
		items[i] = item{Key: items[i].Key, Value: items[i].Key}
		if named, err := h.config.Keys.parse(items[i].Key); err == nil {
			items[i].Value = named.image
		}
	}
	return items
}

// itemOf converts the result for a key to an item.
func (h *Handler) itemOf(i *Item, image string) item {
	switch {
	case i.Cause == Malformed:
		return item{Key: i.Key, Error: review.Denied + ": " + review.Plain(i.Err.Error(), maxField) + " [" + string(policy.Malformed) + "]"}
	case i.Cause != Decided:
		return item{Key: i.Key, Error: review.Unverified + ": " + i.Cause.Sentence() + "; " + review.Next}
	case !i.Outcome.Result.Admits() || len(i.Outcome.Verdicts) > 1:
		return item{Key: i.Key, Error: denial(&i.Outcome)}
	}
	value := image
	if h.config.Endpoint == Mutate {
		value = written(&i.Outcome, image)
	} else if len(i.Outcome.Verdicts) == 1 && !i.Outcome.Verdicts[0].Pinned.IsZero() {
		value = i.Outcome.Verdicts[0].Pinned.Written()
	}
	return item{Key: i.Key, Value: value}
}

// pointer is the JSON pointer of the image in a request.
const pointer = "/spec/containers/0/image"

// written returns the gate's replacement for the image, or the image itself.
func written(o *gate.Outcome, image string) string {
	for _, operation := range o.Patch {
		if text, ok := operation.Value.(string); ok && operation.Op == "replace" && operation.Path == pointer {
			return text
		}
	}
	return image
}

// denial describes in one line why an image is denied, with the policy, the rule and the fix.
func denial(o *gate.Outcome) string {
	word := review.Word(o.Result)
	reasons := slices.Clone(o.Reasons)
	for i := range o.Verdicts {
		if !o.Verdicts[i].Result.Admits() {
			reasons = append(reasons, o.Verdicts[i].Reasons...)
		}
	}
	if len(reasons) == 0 {
		return word
	}
	first := reasons[0]
	parts := []string{word + ": " + review.Plain(first.Message, maxField) + " [" + string(first.Code) + "]" + ruleOf(o, first)}
	for _, detail := range []struct{ label, text string }{{"expected", first.Expected}, {"found", first.Found},
		{"next", review.Fix(first)}, {"also", codes(reasons)}} {
		if detail.text != "" {
			parts = append(parts, detail.label+": "+review.Plain(detail.text, maxField))
		}
	}
	return review.Plain(strings.Join(parts, "; "), maxError)
}

// codes returns the distinct codes of the other reasons.
func codes(reasons []policy.Reason) string {
	found := []string{string(reasons[0].Code)}
	for _, reason := range reasons[1:] {
		if !slices.Contains(found, string(reason.Code)) {
			found = append(found, string(reason.Code))
		}
	}
	return strings.Join(found[1:], ", ")
}

// ruleOf returns the policy and the rule of a reason; empty if there is none.
func ruleOf(o *gate.Outcome, reason policy.Reason) string {
	for i := range o.Verdicts {
		for j := range o.Verdicts[i].Decisions {
			d := &o.Verdicts[i].Decisions[j]
			if d.Check.Policy != nil && slices.Contains(d.Reasons, reason) {
				return " (" + review.RuleOf(d) + ")"
			}
		}
	}
	return ""
}
