package kinds

import (
	"slices"
	"testing"
)

// TestKindsLeftAlone: documents of kinds that are not implemented are watched, so that they
// are counted and listed, and nothing waits for them or asks about them.
func TestKindsLeftAlone(t *testing.T) {
	var left []string
	for _, kind := range Policies() {
		if kind.Status == NotImplemented {
			left = append(left, kind.Resource)
		}
	}
	if len(left) != 6 {
		t.Fatalf("left alone: %v", left)
	}
	watched := 0
	for _, kind := range Watched() {
		if slices.Contains(left, kind.Resource) {
			watched++
			if kind.Awaited {
				t.Errorf("the gateway waits for %s", kind.Resource)
			}
		}
	}
	if watched != len(left) {
		t.Errorf("%d of %d kinds are watched", watched, len(left))
	}
	for _, resource := range Validated() {
		if slices.Contains(left, resource.Resource) {
			t.Errorf("the webhook for policies is called for %s", resource)
		}
	}
}
