package outcome_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/background/internal/outcome"
	"github.com/quaymaster/quaymaster/policy"
)

func object(kind, name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop", "uid": "u-" + name}, "data": map[string]any{"a": "b"}}
}

// word is the result as text.
func word(r policy.RuleResult) string {
	switch {
	case r.Err != nil:
		return "error " + r.Err.Error()
	case r.Skip != "":
		return "skip " + r.Skip
	}
	return string(r.Ruling.Result)
}

// TestGenerated: a rule passes only if all of its objects exist.
func TestGenerated(t *testing.T) {
	forbidden := errors.New("forbidden")
	for _, c := range []struct {
		reason string
		do     func(g *outcome.Generated)
		want   string // empty: no result
	}{
		{"all exist", func(g *outcome.Generated) {
			g.There(object("Secret", "a"), true)
			g.There(object("Secret", "b"), false)
		}, "pass"},
		{"it requires none", func(*outcome.Generated) {}, "pass"},
		{"one is not there", func(g *outcome.Generated) { g.There(object("Secret", "a"), true); g.Absent() }, ""},
		{"one could not be made", func(g *outcome.Generated) { g.Fail(forbidden, true); g.There(object("Secret", "a"), true) }, "error forbidden"},
		{"the first error counts", func(g *outcome.Generated) { g.Fail(forbidden, true); g.Fail(errors.New("later"), true) }, "error forbidden"},
		{"one is tried again soon", func(g *outcome.Generated) { g.Fail(forbidden, false); g.There(object("Secret", "a"), true) }, ""},
		{"one is tried again, and one could not be made", func(g *outcome.Generated) { g.Fail(forbidden, true); g.Fail(errors.New("conflict"), false); g.Absent() }, "error forbidden"},
	} {
		var g outcome.Generated
		c.do(&g)
		r, ok := g.Result(policy.RuleResult{Rule: "r", Ruling: policy.Ruling{Result: policy.Pass}})
		if ok != (c.want != "") || ok && word(r) != c.want {
			t.Errorf("%s: %t, %s; want %q", c.reason, ok, word(r), c.want)
		}
	}
}

// TestNamedObjects: a property names the objects, a bounded number of them, and replaces none of the
// author's.
func TestNamedObjects(t *testing.T) {
	var g outcome.Generated
	for i := range 30 {
		g.There(object("Secret", fmt.Sprint("s", i)), true)
	}
	r, _ := g.Result(policy.RuleResult{Properties: map[string]string{"team": "a"}})
	named := r.Properties["generated-resources"]
	if !strings.HasPrefix(named, "/v1, Kind=Secret Name=s0 Namespace=shop; ") || !strings.HasSuffix(named, "; and 10 more") || r.Properties["team"] != "a" {
		t.Errorf("%v", r.Properties)
	}
	r, _ = g.Result(policy.RuleResult{Properties: map[string]string{"generated-resources": "mine"}})
	if r.Properties["generated-resources"] != "mine" {
		t.Errorf("%v", r.Properties)
	}
}

// TestAltered: of several results for one object the worst counts, and the trigger's is an error if one
// of a target is.
func TestAltered(t *testing.T) {
	pass, skip := policy.Mutated{Result: policy.Pass}, policy.Mutated{Result: policy.Skipped, Reasons: []policy.Reason{{Message: "excluded"}}}
	forbidden := errors.New("forbidden")
	type step struct {
		name     string
		is       policy.Mutated
		err      error
		reported bool
	}
	for _, c := range []struct {
		reason string
		steps  []step
		fail   error // of no target
		want   []string
	}{
		{"no targets", nil, nil, []string{"t: pass"}},
		{"one is as required, one is excluded", []step{{"a", pass, nil, true}, {"b", skip, nil, true}}, nil, []string{"a: pass", "b: skip excluded", "t: pass"}},
		{"one cannot be changed", []step{{"a", pass, forbidden, true}, {"b", pass, nil, true}}, nil, []string{"a: error forbidden", "b: pass", "t: error a: forbidden"}},
		{"one is tried again soon", []step{{"a", pass, forbidden, false}, {"b", pass, nil, true}}, nil, []string{"b: pass"}},
		{"the targets cannot be listed", nil, forbidden, []string{"t: error forbidden"}},
		{"excluded by one selection, changed by another", []step{{"a", pass, nil, true}, {"a", skip, nil, true}}, nil, []string{"a: pass", "t: pass"}},
		{"failed in one, changed by another", []step{{"a", pass, forbidden, true}, {"a", pass, nil, true}}, nil, []string{"a: error forbidden", "t: error a: forbidden"}},
		{"it is no target any more", []step{{"a", policy.Mutated{}, nil, true}}, nil, []string{"t: pass"}},
		{"the trigger is a target", []step{{"t", pass, nil, true}}, nil, []string{"t: pass"}},
		{"the trigger is a target that is excluded", []step{{"t", skip, nil, true}}, nil, []string{"t: pass"}},
		{"the trigger is a target that cannot be changed", []step{{"t", pass, forbidden, true}}, nil, []string{"t: error t: forbidden"}},
	} {
		var a outcome.Altered
		for _, s := range c.steps {
			a.Target(s.name, object("Secret", s.name), s.is, s.err, s.reported)
		}
		if c.fail != nil {
			a.Fail(c.fail, true)
		}
		var got []string
		a.Each("t", object("Secret", "t"), policy.RuleResult{Rule: "r", Kind: policy.AlterRule}, func(of map[string]any, r policy.RuleResult) {
			metadata := of["metadata"].(map[string]any)
			got = append(got, fmt.Sprint(metadata["name"], ": ", word(r)))
			if r.Rule != "r" || r.Kind != policy.AlterRule || metadata["uid"] == nil {
				t.Errorf("%s: %+v of %v", c.reason, r, of)
			}
		})
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestPatchedTargets: the trigger's result names the targets that are as the rule makes them.
func TestPatchedTargets(t *testing.T) {
	var a outcome.Altered
	a.Target("b", object("Secret", "b"), policy.Mutated{Result: policy.Pass, Properties: map[string]string{"own": "b"}}, nil, true)
	a.Target("a", object("Secret", "a"), policy.Mutated{Result: policy.Skipped}, nil, true)
	a.Each("t", object("ConfigMap", "t"), policy.RuleResult{Properties: map[string]string{"team": "x"}}, func(of map[string]any, r policy.RuleResult) {
		switch of["metadata"].(map[string]any)["name"] {
		case "t":
			if r.Properties["patched-target"] != "/v1, Kind=Secret Name=b Namespace=shop" || r.Properties["team"] != "x" {
				t.Errorf("the trigger: %v", r.Properties)
			}
		case "b":
			if r.Properties["own"] != "b" || len(r.Properties) != 1 || of["data"] != nil {
				t.Errorf("the target: %v, %v", r.Properties, of)
			}
		}
	})
}
