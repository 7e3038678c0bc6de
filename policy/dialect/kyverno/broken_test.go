package kyverno_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
)

// TestOnlyBackground distinguishes documents that deny nothing at admission from those with
// a rule for admission.
func TestOnlyBackground(t *testing.T) {
	const (
		clone = "{name: a, generate: {kind: Secret, clone: {name: a}}}"
		alter = "{name: b, mutate: {targets: [{kind: Secret}], patchStrategicMerge: {}}}"
	)
	for _, row := range []struct {
		reason, rules string
		only          bool
	}{
		{"generate", clone, true},
		{"a misspelt generate", "{name: a, generat: {kind: Secret}}", true},
		{"mutate with targets", alter, true},
		{"both", clone + ", " + alter, true},
		{"a validation next to it", clone + ", {name: c, validate: {deny: {}}}", false},
		{"a misspelt validation next to it", clone + ", {name: c, validat: {deny: {}}}", false},
		{"images", "{name: c, verifyImages: []}", false},
		{"mutate without targets", "{name: c, mutate: {targets: []}}", false},
		{"a validation in the same rule", "{name: c, mutate: {targets: [{kind: Secret}]}, validate: {deny: {}}}", false},
		{"no kind of rules", clone + ", {name: c, other: {}}", false},
		{"no rules", "", false},
		{"no rule", "7", false},
	} {
		text := "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [" + row.rules + "]}}"
		if only := (kyverno.Policies{}).OnlyBackground([]byte(text)); only != row.only {
			t.Errorf("%s: %t", row.reason, only)
		}
	}
	if kyverno.OnlyBackground([]byte("a: [")) {
		t.Error("text that is no document")
	}
}
