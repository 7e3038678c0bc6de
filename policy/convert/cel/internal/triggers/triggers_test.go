package triggers_test

import (
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/triggers"
)

// TestTruth: a condition that may have a value of any type is compared with true.
func TestTruth(t *testing.T) {
	for _, c := range []struct{ reason, text, want string }{
		{"a value", "object.spec.hostNetwork", "object.spec.hostNetwork == true"},
		{"a value that may be missing", "object.spec.?hostNetwork.orValue(false)", "object.spec.?hostNetwork.orValue(false) == true"},
		{"a value by its key", "object.metadata.labels['a b'].x", "object.metadata.labels['a b'].x == true"},
		{"a comparison", "object.spec.replicas == 1", "object.spec.replicas == 1"},
		{"a negation", "!object.spec.hostNetwork", "!object.spec.hostNetwork"},
		{"one of two values", "a ? object.x : false", "(a ? object.x : false) == true"},
		{"a comparison of one of two values", "(a ? object.x : 'y') == 'z'", "(a ? object.x : 'y') == 'z'"},
		{"a question mark in a text", "object.x == 'a ? b' && \"\\\" ? \" == object.y", "object.x == 'a ? b' && \"\\\" ? \" == object.y"},
	} {
		if got := triggers.Truth(c.text); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}

func ExampleTruth() {
	fmt.Println(triggers.Truth("object.spec.hostNetwork"))
	// Output: object.spec.hostNetwork == true
}
