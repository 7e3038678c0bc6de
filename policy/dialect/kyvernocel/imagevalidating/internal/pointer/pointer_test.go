package pointer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
