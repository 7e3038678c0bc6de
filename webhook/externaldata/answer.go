package externaldata

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// Words for the answers. A failed verification and a denial always have different words.
const (
	wordDenied = "denied"
	wordUnable = "could not be verified"
)

// sentences explain a missing decision to a person.
var sentences = map[Cause]string{
	QueueFull: "the gateway has reached its limit of concurrent requests",
	TimedOut:  "the evaluation timed out",
	Panicked:  "internal error; see the gateway's log",
}

// shadowed returns the answers of a shadow instead of the decisions.
func (h *Handler) shadowed(items []item) []item {
	for i := range items {
		items[i] = item{Key: items[i].Key, Value: items[i].Key}
		if named, err := h.keys.parse(items[i].Key); err == nil {
			items[i].Value = named.image
		}
	}
	return items
}

// answer converts the result for a key to an item.
func (h *Handler) answer(i *Item, image string) item {
	switch {
	case i.Cause == Malformed:
		return item{Key: i.Key, Error: wordDenied + ": " + plain(i.Err.Error(), maxField) + " [" + string(policy.Malformed) + "]"}
	case i.Cause != Decided:
		return item{Key: i.Key, Error: wordUnable + ": " + sentences[i.Cause] + "; next: retry; if it persists, contact the gateway's administrator"}
	case i.Outcome.Result != gate.Allow || len(i.Outcome.Verdicts) > 1:
		return item{Key: i.Key, Error: denial(&i.Outcome)}
	}
	value := image
	if h.config.Door == Mutate {
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
	word := wordDenied
	if o.Result == gate.Error {
		word = wordUnable
	}
	reasons := slices.Clone(o.Reasons)
	for i := range o.Verdicts {
		if o.Verdicts[i].Result != gate.Allow {
			reasons = append(reasons, o.Verdicts[i].Reasons...)
		}
	}
	if len(reasons) == 0 {
		return word
	}
	first := reasons[0]
	parts := []string{word + ": " + plain(first.Message, maxField) + " [" + string(first.Code) + "]" + ruleOf(o, first)}
	next := first.Hint
	if next == "" {
		next = report.Hint(first.Code)
	}
	for _, detail := range []struct{ label, text string }{{"expected", first.Expected}, {"found", first.Found}, {"next", next}, {"also", codes(reasons)}} {
		if detail.text != "" {
			parts = append(parts, detail.label+": "+plain(detail.text, maxField))
		}
	}
	return plain(strings.Join(parts, "; "), maxError)
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
				return " (" + plain(d.Check.Policy.ID(), maxField) + ", rule " + plain(d.Check.Rule, maxField) + ")"
			}
		}
	}
	return ""
}

// plain sanitises untrusted text for one line: without control characters, and of bounded length in
// bytes.
func plain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
	if len(s) <= most {
		return s
	}
	const mark = "..."
	cut := most - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}
