package condition

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// member makes a set operator: decide gets how many keys are in the values,
// and how many keys there are. Keys that may or may not be in them make it
// unsure only if they matter.
func member(absence bool, decide func(in, all int) bool) operator {
	return func(p pair) judgement {
		p.absence = absence
		var keys []any
		switch k := p.key.(type) {
		case nil:
			return p.null("the key is null")
		case map[string]any:
			return indeterminate("the key is an object")
		case []any:
			keys = k
		default:
			keys = []any{k}
		}
		switch p.value.(type) {
		case nil:
			return p.null("the value is null")
		case map[string]any:
			return indeterminate("the value is an object")
		}
		contains := p.set()
		in, maybe, doubt := 0, 0, ""
		for i, k := range keys {
			switch is, why := contains(k, i); {
			case why != "":
				maybe, doubt = maybe+1, why
			case is:
				in++
			}
		}
		held := decide(in, len(keys))
		if held != decide(in+maybe, len(keys)) {
			return indeterminate(doubt)
		}
		return judge(held)
	}
}

// set reads the value of a set operator: a list; a string that is a range, a list in JSON, or one
// pattern; or one number or boolean. The returned function reports whether a key, the i-th, is in
// the set, or why that is in doubt.
func (p pair) set() (contains func(key any, i int) (in bool, doubt string)) {
	switch v := p.value.(type) {
	case []any:
		return func(key any, i int) (bool, string) { return p.inList(key, p.ownOfKey(i), v, p.spelled.item) }
	case string:
		if low, high, ok := parseRange(v); ok {
			return func(key any, _ int) (bool, string) { return p.inRange(key, low, high) }
		}
		var items []any
		if strings.HasPrefix(strings.TrimSpace(v), "[") && json.Unmarshal([]byte(v), &items) == nil {
			own := 0
			if wildcards(v) <= p.spelled.own {
				own = p.spelled.own
			}
			items = append(items, v)
			return func(key any, i int) (bool, string) {
				return p.inList(key, p.ownOfKey(i), items, func(int) int { return own })
			}
		}
	}
	return func(key any, i int) (bool, string) { return p.matches(key, p.value, p.ownOfKey(i), p.spelled.own) }
}

// ownOfKey is how many wildcards of the i-th key are the policy's own.
func (p pair) ownOfKey(i int) int {
	if _, several := p.key.([]any); several {
		return p.spelledKey.item(i)
	}
	return p.spelledKey.own
}

// inList tries every item, for one that matches beyond doubt settles it, as long as there
// is work left.
func (p pair) inList(key any, ownOfKey int, items []any, own func(int) int) (bool, string) {
	doubt := ""
	for i, item := range items {
		switch in, why := p.matches(key, item, ownOfKey, own(i)); {
		case in:
			return true, ""
		case why == tooMuch:
			return false, why
		case why != "":
			doubt = why
		}
	}
	return false, doubt
}

// matches compares as text; both may be patterns. Between unlike kinds a textual match is in
// doubt, and a mismatch does not prove absence.
func (p pair) matches(key, item any, ownOfKey, own int) (bool, string) {
	if *p.work == 0 {
		return false, tooMuch
	}
	k, i := plain(key), plain(item)
	in, doubt := p.both(k, i, ownOfKey, own)
	switch {
	case setKind(key) != setKind(item) && (in || p.absence):
		return false, unlikeKinds
	case doubtful(key, item) || !exact(key) && wildcards(i) > 0:
		return false, inexact
	}
	return in, doubt
}

// setKind distinguishes kinds that are never members of one set. Numbers and booleans may be, as
// text.
func setKind(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case []any:
		return "list"
	case map[string]any:
		return "object"
	}
	return "text"
}

// plain is a scalar as a policy would write it.
func plain(value any) string {
	if number, ok := value.(float64); ok {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return jmespath.Text(value)
}

// rangeForm is a range, such as 1-10 or 1Gi-2Gi: two numbers with a sign and a unit, as in Kyverno. It knows 1!-10 in
// patterns alone.
var rangeForm = regexp.MustCompile(`^([-|+]?\d+(?:\.\d+)?[A-Za-z]*)-([-|+]?\d+(?:\.\d+)?[A-Za-z]*)$`)

// maxRange bounds the bytes of a range, which may be data.
const maxRange = 100

func parseRange(s string) (low, high string, ok bool) {
	if len(s) > maxRange {
		return "", "", false
	}
	found := rangeForm.FindStringSubmatch(s)
	if found == nil {
		return "", "", false
	}
	return found[1], found[2], true
}

// inRange reports whether low <= key <= high. A value from the
// data may be a range or that very text.
func (p pair) inRange(key any, low, high string) (bool, string) {
	atLeast, ok1 := order(key, low)
	atMost, ok2 := order(key, high)
	in := atLeast >= 0 && atMost <= 0
	switch {
	case !ok1 || !ok2:
		return false, outsideOfOrder
	case doubtful(key, low) || doubtful(key, high):
		return false, inexact
	case !p.spelled.dash && in != (plain(key) == p.value):
		return false, foreignRange
	}
	return in, ""
}
