package condition

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// operator judges a key and a value.
type operator func(p pair) judgement

// judgement is what an operator says; unsure says why it cannot judge.
type judgement struct {
	held   bool
	unsure string
	// either says that it would hold in one reading and not in another.
	either bool
}

const (
	foreignWildcard = "it hinges on a wildcard that arrived with the data, and only one that the policy spells out is one"
	outsideOfOrder  = "the key cannot be ordered within the range"
)

func judge(held bool) judgement { return judgement{held: held} }

func unsure(why string) judgement { return judgement{unsure: why} }

type pair struct {
	key, value any
	// keyIsPattern allows wildcards in the key. Only a key that the policy
	// itself spells out may have them: a `*` that arrives in a label or an
	// attestation would else be a member of every set.
	keyIsPattern bool
	// spelled says the same of the value.
	spelled spelling
}

// Operators are the names of all operators, in Kyverno's order.
func Operators() []string {
	return []string{
		"Equal", "Equals", "NotEqual", "NotEquals", "In", "AnyIn", "AllIn", "NotIn", "AnyNotIn", "AllNotIn",
		"GreaterThanOrEquals", "GreaterThan", "LessThanOrEquals", "LessThan",
		"DurationGreaterThanOrEquals", "DurationGreaterThan", "DurationLessThanOrEquals", "DurationLessThan",
	}
}

func operatorOf(name string) operator {
	switch name {
	case "Equal", "Equals":
		return pair.equals
	case "NotEqual", "NotEquals":
		return notEqual
	case "In", "AllIn":
		return member(func(in, all int) bool { return in == all })
	case "AnyIn":
		return member(func(in, _ int) bool { return in > 0 })
	case "NotIn", "AnyNotIn":
		return member(func(in, all int) bool { return in < all })
	case "AllNotIn":
		return member(func(in, _ int) bool { return in == 0 })
	case "GreaterThan", "GreaterThanOrEquals", "LessThan", "LessThanOrEquals":
		return ordered(name, order)
	case "DurationGreaterThan", "DurationGreaterThanOrEquals", "DurationLessThan", "DurationLessThanOrEquals":
		return ordered(strings.TrimPrefix(name, "Duration"), orderDurations)
	}
	return nil
}

// equal compares durations and quantities by what they are worth, lists and
// objects by their content, and other strings with value as a pattern of
// wildcards.
func (p pair) equal() (bool, string) {
	switch k := p.key.(type) {
	case string, float64:
		if o, ok := orderDurationStrings(p.key, p.value); ok {
			return o == 0, ""
		}
		if o, ok := orderQuantities(p.key, p.value); ok {
			return o == 0, ""
		}
		text, isText := k.(string)
		pattern, isPattern := p.value.(string)
		if isText && isPattern {
			return match(pattern, text, p.spelled.own)
		}
		return p.key == p.value, ""
	}
	return reflect.DeepEqual(p.key, p.value), ""
}

// match matches a pattern, of whose wildcards own are the policy's. With others
// in it a match that is not to the letter may be none: it is in doubt. What does
// not match the whole pattern does not match in any other reading either.
func match(pattern, text string, own int) (bool, string) {
	switch {
	case pattern == text:
		return true, ""
	case !wildcard.Match(pattern, text):
		return false, ""
	case wildcards(pattern) > own:
		return false, foreignWildcard
	}
	return true, ""
}

func (p pair) equals() judgement {
	same, doubt := p.equal()
	return judgement{held: same, unsure: doubt, either: doubt != ""}
}

// notEqual does not hold for a null key: nothing is known that could differ.
func notEqual(p pair) judgement {
	if p.key == nil && p.value != nil {
		return unsure("the key is null")
	}
	same, doubt := p.equal()
	return judgement{held: !same && doubt == "", unsure: doubt, either: doubt != ""}
}

// member makes a set operator: decide gets how many keys are in the values,
// and how many keys there are. Keys that may or may not be in them make it
// unsure only if they matter.
func member(decide func(in, all int) bool) operator {
	return func(p pair) judgement {
		var keys []any
		switch k := p.key.(type) {
		case nil:
			return unsure("the key is null")
		case map[string]any:
			return unsure("the key is an object")
		case []any:
			keys = k
		default:
			keys = []any{k}
		}
		contains, why := p.set()
		if why != "" {
			return unsure(why)
		}
		in, maybe, doubt := 0, 0, ""
		for _, k := range keys {
			switch is, why := contains(k); {
			case why != "":
				maybe, doubt = maybe+1, why
			case is:
				in++
			}
		}
		held := decide(in, len(keys))
		if held != decide(in+maybe, len(keys)) {
			return judgement{unsure: doubt, either: true}
		}
		return judge(held)
	}
}

// set reads the value of a set operator: a list; a string that is a range, a
// list in JSON, or one pattern; or one number or boolean. What it returns says
// whether a key is in the set, or why that is in doubt.
func (p pair) set() (contains func(key any) (in bool, doubt string), unsure string) {
	switch v := p.value.(type) {
	case nil:
		return nil, "the value is null"
	case map[string]any:
		return nil, "the value is an object"
	case []any:
		return func(key any) (bool, string) { return p.inList(key, v, p.spelled.item) }, ""
	case string:
		if low, high, not, ok := parseRange(v); ok {
			return func(key any) (bool, string) {
				in, ok := inRange(key, low, high)
				if !ok {
					return false, outsideOfOrder
				}
				return in != not, ""
			}, ""
		}
		var items []any
		if strings.HasPrefix(strings.TrimSpace(v), "[") && json.Unmarshal([]byte(v), &items) == nil {
			own := 0
			if wildcards(v) <= p.spelled.own {
				own = p.spelled.own
			}
			items = append(items, v)
			return func(key any) (bool, string) { return p.inList(key, items, func(int) int { return own }) }, ""
		}
	}
	return func(key any) (bool, string) { return p.matches(key, p.value, p.spelled.own) }, ""
}

// inList tries every item, for one that matches beyond doubt settles it.
func (p pair) inList(key any, items []any, own func(int) int) (bool, string) {
	doubt := ""
	for i, item := range items {
		switch in, why := p.matches(key, item, own(i)); {
		case in:
			return true, ""
		case why != "":
			doubt = why
		}
	}
	return false, doubt
}

// matches compares as text; the item may be a pattern, and the key where it is
// the policy's own.
func (p pair) matches(key, item any, own int) (bool, string) {
	k, i := plain(key), plain(item)
	if p.keyIsPattern && wildcard.Match(k, i) {
		return true, ""
	}
	return match(i, k, own)
}

// plain is a scalar as a policy would write it.
func plain(value any) string {
	if number, ok := value.(float64); ok {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return jmespath.Text(value)
}

// parseRange reads "1-10", "1Gi!-2Gi" (outside of) and the like.
func parseRange(s string) (low, high string, not, ok bool) {
	const maxRange = 100
	if len(s) > maxRange {
		return "", "", false, false
	}
	for i := 1; i < len(s); i++ {
		if s[i] != '-' {
			continue
		}
		low, high = s[:i], s[i+1:]
		if low, not = strings.CutSuffix(low, "!"); isAmount(low) && isAmount(high) {
			return low, high, not, true
		}
	}
	return "", "", false, false
}

// isAmount reports whether s is a number with an optional sign and unit.
func isAmount(s string) bool {
	s = strings.TrimLeft(s, "+-")
	unit := strings.TrimLeft(s, "0123456789.")
	number := s[:len(s)-len(unit)]
	if _, err := strconv.ParseFloat(number, 64); err != nil {
		return false
	}
	return !strings.ContainsFunc(unit, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
}

// inRange says whether low <= key <= high; not ok means that they have no order.
func inRange(key any, low, high string) (in, ok bool) {
	atLeast, ok1 := order(key, low)
	atMost, ok2 := order(key, high)
	return atLeast >= 0 && atMost <= 0, ok1 && ok2
}

// ordered makes an operator of an order.
func ordered(name string, order func(key, value any) (int, bool)) operator {
	return func(p pair) judgement {
		o, ok := order(p.key, p.value)
		if !ok {
			return unsure("they cannot be ordered")
		}
		switch name {
		case "GreaterThan":
			return judge(o > 0)
		case "GreaterThanOrEquals":
			return judge(o >= 0)
		case "LessThan":
			return judge(o < 0)
		}
		return judge(o <= 0)
	}
}

// order tries durations, quantities and numbers, and semantic versions.
func order(key, value any) (int, bool) {
	if o, ok := orderDurationStrings(key, value); ok {
		return o, true
	}
	if o, ok := orderQuantities(key, value); ok {
		return o, true
	}
	k, ok1 := key.(string)
	v, ok2 := value.(string)
	if !ok1 || !ok2 {
		return 0, false
	}
	kv, err1 := semver.Parse(k)
	vv, err2 := semver.Parse(v)
	return kv.Compare(vv), err1 == nil && err2 == nil
}

// orderDurationStrings needs one duration that is written as such; a number
// beside it counts seconds. "0" alone is none.
func orderDurationStrings(key, value any) (int, bool) {
	isDuration := func(side any) bool {
		s, ok := side.(string)
		if !ok || s == "0" {
			return false
		}
		_, err := time.ParseDuration(s)
		return err == nil
	}
	if !isDuration(key) && !isDuration(value) {
		return 0, false
	}
	return orderDurations(key, value)
}

func orderDurations(key, value any) (int, bool) {
	k, ok1 := secondsOf(key)
	v, ok2 := secondsOf(value)
	switch {
	case !ok1 || !ok2:
		return 0, false
	case k < v:
		return -1, true
	case k > v:
		return 1, true
	}
	return 0, true
}

func secondsOf(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, !math.IsNaN(v)
	case string:
		d, err := time.ParseDuration(v)
		return d.Seconds(), err == nil
	}
	return 0, false
}

// orderQuantities orders numbers, strings that are quantities, and mixtures.
func orderQuantities(key, value any) (int, bool) {
	k, isNumber1 := key.(float64)
	v, isNumber2 := value.(float64)
	if isNumber1 && isNumber2 {
		switch {
		case k < v:
			return -1, true
		case k > v:
			return 1, true
		}
		return 0, k == v
	}
	if !scalar(key) || !scalar(value) {
		return 0, false
	}
	kq, err1 := jmespath.ParseQuantity(plain(key))
	vq, err2 := jmespath.ParseQuantity(plain(value))
	if err1 != nil || err2 != nil {
		return 0, false
	}
	return kq.Cmp(vq), true
}

func scalar(value any) bool {
	switch value.(type) {
	case string, float64:
		return true
	}
	return false
}
