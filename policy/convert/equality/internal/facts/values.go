package facts

import (
	"encoding/json"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/random"
)

// Absent means no value at a path.
type Absent struct{}

// basic are the values that each path gets: absent, null, empty, and those of each type.
func basic() []any {
	return []any{
		Absent{}, nil, "", "x", true, false, float64(0), float64(1), float64(-1), "1", "0",
		[]any{}, []any{"x"}, []any{"x", "y"}, []any{map[string]any{}}, map[string]any{}, map[string]any{"x": "y"},
	}
}

// Candidates are the values for paths: the basic ones, and those around the values that the policies compare.
func (f *Facts) Candidates(from *rand.Rand) []any {
	seen := map[string]bool{}
	var all []any
	add := func(values ...any) {
		for _, v := range values {
			key := "absent"
			if _, is := v.(Absent); !is {
				text, err := json.Marshal(v)
				if err != nil {
					continue
				}
				key = string(text)
			}
			if !seen[key] && len(all) < maxCandidates {
				seen[key], all = true, append(all, v)
			}
		}
	}
	add(basic()...)
	for _, value := range f.Values() {
		add(Around(value, from)...)
	}
	return all
}

// Values are the values that the policies compare, in a fixed order.
func (f *Facts) Values() []any {
	var all []any
	for _, key := range slices.Sorted(maps.Keys(f.values)) {
		all = append(all, f.values[key])
	}
	return all
}

// maxCandidates bounds the values for one path.
const maxCandidates = 2000

// Around returns a value and those next to it.
func Around(value any, from *rand.Rand) []any {
	switch value := value.(type) {
	case float64:
		return []any{value, value - 1, value + 1, strconv.FormatFloat(value, 'f', -1, 64)}
	case string:
		return aroundText(value, from)
	case []any:
		all := []any{value}
		for _, one := range value {
			all = append(all, Around(one, from)...)
		}
		return all
	case nil:
		return nil
	}
	return []any{value}
}

// Exactly returns the values that a comparison with a value separates: itself, those beside a number, and the alternatives
// and members of a pattern.
func Exactly(value any, from *rand.Rand) []any {
	text, ok := value.(string)
	if !ok {
		return Around(value, from)
	}
	var all []any
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == '&' }) {
		bare := operand.FindStringSubmatch(part)[2]
		if ends := between.FindStringSubmatch(bare); ends != nil {
			all = append(append(all, amounts(ends[1])...), amounts(ends[2])...)
			continue
		}
		if found := amounts(bare); found != nil {
			all = append(all, found...)
			continue
		}
		if bare == "true" || bare == "false" {
			all = append(all, bare == "true")
		}
		for _, member := range Members(bare) {
			all = append(all, member, []any{member})
		}
	}
	if strings.ContainsAny(text, `^$[\+`) {
		if made, err := random.Text(strings.Trim(text, "^$"), source{from}); err == nil {
			all = append(all, made)
		}
	}
	return all
}

var (
	operand = regexp.MustCompile(`(?s)^\s*(>=|<=|>|<|!)?\s*(.*?)\s*$`)
	amount  = regexp.MustCompile(`^(-?[0-9]+(?:\.[0-9]+)?)([A-Za-z]*)$`)
	between = regexp.MustCompile(`^(-?[0-9.]+[A-Za-z]*)!?-(-?[0-9.]+[A-Za-z]*)$`)
	version = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+$`)
)

// aroundText returns the values around a text of a policy, which may be a pattern with operators.
func aroundText(text string, from *rand.Rand) (all []any) {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == '|' || r == '&' }) {
		bare := operand.FindStringSubmatch(part)[2]
		if ends := between.FindStringSubmatch(bare); ends != nil {
			all = append(all, amounts(ends[1])...)
			all = append(all, amounts(ends[2])...)
		}
		all = append(all, amounts(bare)...)
		if version.MatchString(bare) {
			all = append(all, bare, "0.0.1", "999.0.0")
		}
		if bare == "true" || bare == "false" {
			all = append(all, true, false)
		}
		for _, member := range Members(bare) {
			all = append(all, member, []any{member}, []any{"x", member})
		}
		if bare != "" && len(bare) < 100 && !strings.ContainsAny(bare, "*?") {
			all = append(all, bare+"x", "x"+bare, bare+"/x", map[string]any{bare: "x"}, map[string]any{"x" + bare: "x"},
				map[string]any{bare + "x": "x"}, strings.ToUpper(bare))
		}
	}
	if strings.ContainsAny(text, `^$[\+`) {
		if made, err := random.Text(strings.Trim(text, "^$"), source{from}); err == nil {
			all = append(all, made, "x"+made)
		}
	}
	return append(all, text)
}

// source is a stream of repeatable bytes.
type source struct{ from *rand.Rand }

// Read implements io.Reader.
func (s source) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.from.Uint32())
	}
	return len(p), nil
}

var _ io.Reader = source{}

// amounts returns a number or a quantity with those next to it, as text and as a number.
func amounts(text string) []any {
	found := amount.FindStringSubmatch(text)
	if found == nil {
		return nil
	}
	number, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		return nil
	}
	var all []any
	for _, n := range []float64{number, number - 1, number + 1} {
		all = append(all, n, strconv.FormatFloat(n, 'f', -1, 64)+found[2])
	}
	if found[2] != "" {
		all = append(all, found[1])
	}
	return all
}

// Members returns texts that a pattern with wildcards matches, and one that it just does not.
func Members(pattern string) []string {
	if !strings.ContainsAny(pattern, "*?") {
		return []string{pattern}
	}
	short := strings.NewReplacer("*", "", "?", "x").Replace(pattern)
	long := strings.NewReplacer("*", "xy", "?", "x").Replace(pattern)
	missing := strings.NewReplacer("*", "", "?", "").Replace(pattern)
	all := []string{short, long, missing}
	if !strings.HasPrefix(pattern, "*") {
		all = append(all, "x"+long)
	}
	if !strings.HasSuffix(pattern, "*") {
		all = append(all, long+"x")
	}
	return slices.Compact(all)
}
