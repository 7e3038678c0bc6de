package endpoints

import (
	"errors"
	"testing"

	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// backgroundCheck returns the same error for each document.
type backgroundCheck struct{ err error }

func (b backgroundCheck) Check([]byte) error     { return b.err }
func (backgroundCheck) Warnings([]byte) []string { return nil }

// TestCheckerWithKyverno: a document that only Kyverno would run is admitted with a warning
// where Kyverno is installed, and every other broken one is refused.
func TestCheckerWithKyverno(t *testing.T) {
	is := func(installed bool) func() bool { return func() bool { return installed } }
	background := &catalog.BackgroundError{Err: errors.New("spec.rules[0].generate.clone: not supported")}
	for _, row := range []struct {
		reason          string
		err             error
		kyverno         func() bool
		refused, warned bool
	}{
		{"it compiles", nil, is(true), false, false},
		{"rules about other objects alone", background, is(true), false, true},
		{"the same without Kyverno", background, is(false), true, false},
		{"the same outside of a cluster", background, nil, true, false},
		{"a rule for admission is broken", errors.New("spec.rules[0].validate.patern: unknown field"), is(true), true, false},
	} {
		err := Checker{Policies: backgroundCheck{row.err}, Kyverno: row.kyverno}.Check([]byte(`{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy"}`))
		_, warned := errors.AsType[*admission.Advice](err)
		if warned != row.warned || (err != nil && !warned) != row.refused {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}
