package pointer_test

import (
	"fmt"
	"slices"
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

func ExampleOfList() {
	fmt.Println(pointer.OfList("object.spec.steps.map(s, s.image)"))
	// Output: [/spec/steps/*/image] <nil>
}
