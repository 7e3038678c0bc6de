package gate_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/gate"
)

// TestFirst: the result of an object is the first of deny, error and allow, else unchecked. A
// result that is unknown is never better than an error.
func TestFirst(t *testing.T) {
	order := []gate.Result{gate.Deny, gate.Error, gate.Allow, gate.Unchecked, ""}
	for i, a := range order {
		for k, b := range order {
			if got, want := gate.First(a, b), order[min(i, k)]; got != want {
				t.Errorf("first of %q and %q: %q, want %q", a, b, got, want)
			}
		}
		if got, want := a.Admits(), a == gate.Allow || a == gate.Unchecked; got != want {
			t.Errorf("%q admits: %t", a, got)
		}
	}
	if unknown := gate.Result("maybe"); gate.First(unknown, gate.Allow) != unknown || unknown.Admits() {
		t.Error("an unknown result is hidden by allow, or admits")
	}
}
