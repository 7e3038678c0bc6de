package pointer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/internal/pointer"
)

func TestOfList(t *testing.T) {
	for _, row := range []struct {
		reason, expression string
		want               []string // nil: unknown
	}{
		{"a field of each element", "object.spec.steps.map(s, s.image)", []string{"/spec/steps/*/image"}},
		{"a list of texts", "object.spec.images", []string{"/spec/images/*"}},
		{"a written list", "[object.spec.image, object.spec.debug.image]", []string{"/spec/image", "/spec/debug/image"}},
		{"joined lists", "object.spec.a + object.spec.b", []string{"/spec/a/*", "/spec/b/*"}},
		{"a filter does not move elements", "object.spec.steps.filter(s, s.enabled).map(s, s.image)", []string{"/spec/steps/*/image"}},
		{"either of two", "has(object.spec.a) ? object.spec.a : [object.spec.b]", []string{"/spec/a/*", "/spec/b"}},
		{"an optional field", "object.spec.?image.optMap(i, [i]).orValue([])", []string{"/spec/image"}},
		{"an escaped name", "[object.metadata.annotations['example.com/image']]", []string{"/metadata/annotations/example.com~1image"}},
		{"a written text", "['registry.example/app:1']", nil},
		{"a text that is changed", "object.spec.images.map(i, 'registry.example/' + i)", nil},
		{"of another variable", "[request.name]", nil},
		{"no expression", "object.spec.", nil},
	} {
		got, err := pointer.OfList(row.expression)
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, %v, want %q", row.reason, got, err, row.want)
		}
	}
}

// TestCost: the places of a short expression are few, or unknown, and found at once.
func TestCost(t *testing.T) {
	const steps = 24
	list := "object.metadata.annotations.map(k, object.metadata.annotations[k])"
	for reason, row := range map[string]struct {
		expression string
		most       int
	}{
		"lists in lists":               {list + strings.Repeat(".flatten()", steps), steps + 1},
		"mapped lists in lists":        {list + strings.Repeat(".map(x, x).flatten()", steps), 2 * steps},
		"a value or another":           {"object.spec.containers" + strings.Repeat(".map(x, x.?image.orValue(x))", steps), steps + 1},
		"either of two":                {"object.a" + strings.Repeat(".map(x, true ? x.a : x.b)", steps), 0},
		"a list of both":               {"[object.a]" + strings.Repeat(".map(x, [x.a, x.b]).flatten()", steps), 0},
		"some of too many":             {"([[object.c]] + [object.a" + strings.Repeat(".map(x, true ? x.a : x.b)", steps) + "]).flatten()", 0},
		"more than places are kept of": {"[" + strings.Repeat("object.a, ", 300) + "object.b]", 2},
	} {
		got, err := pointer.OfList(row.expression)
		if err != nil || len(got) > row.most || row.most == 0 && got != nil || row.most == 2 && len(got) != 2 {
			t.Errorf("%s: %d places, %v", reason, len(got), err)
		}
	}
}

func ExampleOfList() {
	fmt.Println(pointer.OfList("object.spec.steps.map(s, s.image)"))
	// Output: [/spec/steps/*/image] <nil>
}

// TestCostOfPlaces: what a step returns counts, not the steps alone: long lists in one another and long
// names are over at once, and what is short is read.
func TestCostOfPlaces(t *testing.T) {
	list := func(of string, n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("%s%d", of, i))
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	for _, c := range []struct {
		reason, expression string
		places             int
	}{
		{"a list of lists", list("object.a", 256) + ".map(x, " + list("x.b", 800) + ").flatten()", 0},
		{"a longer one", list("object.a", 256) + ".map(x, " + list("x.b", 3000) + ").flatten()", 0},
		{"long names", list("object."+strings.Repeat("a", 2000), 20), 0},
		{"many long names", list("object"+strings.Repeat("."+strings.Repeat("a", 100), 9), 60), 60},
		{"a list of lists that is short", list("object.a", 16) + ".map(x, " + list("x.b", 3) + ").flatten()", 48},
		{"a list", list("object.a", 256), 256},
	} {
		began := time.Now()
		got, err := pointer.OfList(c.expression)
		if took := time.Since(began); err != nil || len(got) != c.places || took > 10*time.Second {
			t.Errorf("%s: %d places after %s, %v", c.reason, len(got), took, err)
		}
	}
}
