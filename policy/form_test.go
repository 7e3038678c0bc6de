package policy_test

import (
	"errors"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// TestForm: policies compiled of one document differ by their error and their unserved resources.
func TestForm(t *testing.T) {
	tasks, runs := policy.Unserved{Err: errors.New("no tasks")}, policy.Unserved{Err: errors.New("no runs")}
	seen := map[string]string{}
	for reason, p := range map[string]policy.Policy{
		"whole":                       {Hash: "a"},
		"another document":            {Hash: "b"},
		"broken":                      {Hash: "a", Problems: policy.Problems{Broken: errors.New("no field")}},
		"broken by something else":    {Hash: "a", Problems: policy.Problems{Broken: errors.New("no kind")}},
		"something is not there":      {Hash: "a", Problems: policy.Problems{Unserved: []policy.Unserved{tasks}}},
		"something else is not there": {Hash: "a", Problems: policy.Problems{Unserved: []policy.Unserved{runs}}},
		"both are not there":          {Hash: "a", Problems: policy.Problems{Unserved: []policy.Unserved{tasks, runs}}},
	} {
		if other, known := seen[p.Form()]; known {
			t.Errorf("%s: as %s", reason, other)
		}
		seen[p.Form()] = reason
		if again := p; again.Form() != p.Form() {
			t.Errorf("%s: not the same twice", reason)
		}
	}
}
