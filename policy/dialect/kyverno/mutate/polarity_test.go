package mutate_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// TestIndeterminate: where a precondition is indeterminate, nothing is changed, and the
// object is not admitted unless it would be the same in either reading.
func TestIndeterminate(t *testing.T) {
	const (
		doubt = "{key: '{{ request.object.metadata.labels.team }}', operator: GreaterThan, value: 5}"
		holds = "{key: '{{ request.object.metadata.labels.team }}', operator: Equals, value: a}"
		fails = "{key: '{{ request.object.metadata.labels.team }}', operator: Equals, value: b}"
		add   = "mutate: {patchStrategicMerge: {metadata: {labels: {x: y}}}}"
		same  = "mutate: {patchStrategicMerge: {metadata: {labels: {team: a}}}}"
	)
	each := func(condition, patch string) string {
		return "mutate: {foreach: [{list: request.object.spec.containers, preconditions: {all: [" + condition + "]}, patchStrategicMerge: " + patch + "}]}"
	}
	for _, c := range []struct {
		body   string
		want   policy.Result
		reason string
	}{
		{"preconditions: {all: [" + holds + "]}, " + add, policy.Pass, "it holds"},
		{"preconditions: {all: [" + fails + "]}, " + add, policy.Skipped, "it does not"},
		{"preconditions: {all: [" + doubt + "]}, " + add, policy.Indeterminate, "it is in doubt"},
		{"preconditions: {all: [" + doubt + "]}, " + same, policy.Skipped, "nothing would change"},
		{"preconditions: {all: [" + doubt + ", " + fails + "]}, " + add, policy.Skipped, "another condition decides"},
		{"preconditions: {any: [" + doubt + ", " + holds + "]}, " + add, policy.Pass, "another condition decides"},
		{each(holds, "{metadata: {labels: {x: y}}}"), policy.Pass, "in a loop, it holds"},
		{each(fails, "{metadata: {labels: {x: y}}}"), policy.Skipped, "in a loop, it does not"},
		{each(doubt, "{metadata: {labels: {x: y}}}"), policy.Indeterminate, "in a loop, it is in doubt"},
		{each(doubt, "{metadata: {labels: {team: a}}}"), policy.Skipped, "in a loop, nothing would change"},
		{"mutate: {patchStrategicMerge: {metadata: {labels: {(team): '>5', x: y}}}}", policy.Indeterminate, "a condition of the patch in doubt"},
		{"mutate: {patchStrategicMerge: {metadata: {labels: {(team): '{{ request.object.metadata.name }}', x: y}}}}", policy.Skipped, "one that does not hold"},
	} {
		r, err := compile(t, c.body)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if got := r.Mutate(t.Context(), policy.Case{Subject: subject(t)}); got.Result != c.want || (got.Object != nil) != (c.want == policy.Pass) {
			t.Errorf("%s: %s: %q %v; want %q", c.reason, c.body, got.Result, got.Reasons, c.want)
		}
	}
}
