package jmespath_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// TestQuantityDigits: text without a digit is no quantity, and not zero.
func TestQuantityDigits(t *testing.T) {
	for text, want := range map[string]bool{
		"-": false, "+": false, ".": false, "-.": false, "": false, "Ki": false, "-Ki": false, "k": false, "m": false, "E": false,
		"E5": false, "e3": false, ".m": false, "+.Gi": false,
		"0": true, "-0": true, "+1": true, ".5": true, "5.": true, "-.5Gi": true, "1E": true, "1e3": true, "100m": true, "1Ki": true,
	} {
		if quantity, err := jmespath.ParseQuantity(text); (err == nil) != want {
			t.Errorf("%q: %s, %v; want a quantity: %t", text, quantity.String(), err, want)
		}
	}
}
