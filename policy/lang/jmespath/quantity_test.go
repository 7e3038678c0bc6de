package jmespath_test

import (
	"errors"
	"strings"
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

// TestTextIsNoQuantity: only what has the form of a quantity is past its bounds.
func TestTextIsNoQuantity(t *testing.T) {
	for text, large := range map[string]bool{
		"c81d13246b9f5be37fe8e1bc9375f4bc7953fa01b5672bb671a8016b6d0ae464": false, "release25": false, "1.2.3-e99": false,
		strings.Repeat("a", 65): false, strings.Repeat("1", 65) + "abc": false,
		"1e99": true, "1E-99": true, strings.Repeat("1", 65): true, strings.Repeat("1", 64) + "Ki": true,
	} {
		if quantity, err := jmespath.ParseQuantity(text); err == nil || errors.Is(err, jmespath.ErrTooLarge) != large {
			t.Errorf("%q: %s, %v; want too large: %t", text, quantity.String(), err, large)
		}
	}
}
