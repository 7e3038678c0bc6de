package set_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
)

// making is a rule about other objects that returns a fixed result.
type making struct {
	name      string
	targets   []policy.Target
	says      policy.Result
	requester bool
	selects   bool
	idle      bool // it wants nothing
}

func (m making) Name() string                 { return m.name }
func (m making) Targets() []policy.Target     { return m.targets }
func (m making) NeedsRequester() bool         { return m.requester }
func (m making) Selects(*policy.Subject) bool { return m.selects }
func (m making) Terms() policy.Terms          { return policy.Terms{Synchronize: true} }
func (m making) OnPolicyChange() bool         { return true }
func (m making) SkipGenerated() bool          { return true }

func (m making) Generate(context.Context, policy.Case) policy.Generated {
	if m.idle {
		return policy.Generated{Result: m.says}
	}
	return policy.Generated{Result: m.says, Objects: []policy.Downstream{{Object: map[string]any{"kind": m.name}}}}
}

func (m making) Existing(context.Context, policy.Case) policy.Selected {
	if m.idle {
		return policy.Selected{Result: m.says}
	}
	return policy.Selected{
		Result: m.says, Selections: []policy.Selection{{Kind: m.name}},
		Alter: func(context.Context, policy.Selection, map[string]any) policy.Mutated {
			return policy.Mutated{Result: policy.Pass}
		},
	}
}

func kindTargets(kinds ...string) []policy.Target {
	var list []policy.Target
	for _, kind := range kinds {
		list = append(list, policy.Target{Group: "*", Version: "*", Kind: kind})
	}
	return list
}

func namespaceSubject(name string) *policy.Subject {
	return &policy.Subject{
		Version: "v1", Kind: "Namespace", Namespace: name, Name: name, Operation: "CREATE", Time: now,
		Object: policy.ContentOf(map[string]any{"kind": "Namespace"}),
	}
}

// TestRulesAboutOthers: which rules are evaluated for a trigger, and how their
// results are reported.
func TestRulesAboutOthers(t *testing.T) {
	of := func(name, namespace string, first bool, rules ...making) *policy.Policy {
		p := &policy.Policy{Kind: "ClusterPolicy", Name: name, Namespace: namespace, Settings: policy.Settings{FirstRuleOnly: first}}
		for _, m := range rules {
			p.Generations, p.Alterations = append(p.Generations, m), append(p.Alterations, m)
		}
		return p
	}
	pass := func(name string) making {
		return making{name: name, targets: kindTargets("ConfigMap"), says: policy.Pass, selects: true}
	}
	says := func(name string, r policy.Result) making {
		m := pass(name)
		m.says = r
		return m
	}
	idle := pass("a")
	idle.idle = true
	other := pass("other")
	other.targets = kindTargets("Pod")
	excepted := &policy.Exception{Namespace: "ops", Name: "e", Rules: []policy.ExceptedRule{{Policy: "p", Rules: []string{"a"}}}}
	ended := *excepted
	ended.Expires = now.Add(-time.Hour)
	for name, test := range map[string]struct {
		policies   []*policy.Policy
		exceptions []*policy.Exception
		want       []string // "rule result" of each
		objects    int
	}{
		"in the order of the document":          {policies: []*policy.Policy{of("p", "", false, pass("b"), pass("a"))}, want: []string{"b pass", "a pass"}, objects: 2},
		"a rule that wants nothing":             {policies: []*policy.Policy{of("p", "", false, idle, pass("b"))}, want: []string{"a pass", "b pass"}, objects: 1},
		"not of another kind":                   {policies: []*policy.Policy{of("p", "", false, other, pass("a"))}, want: []string{"a pass"}, objects: 1},
		"not of another namespace":              {policies: []*policy.Policy{of("p", "elsewhere", false, pass("a"))}},
		"of its own namespace":                  {policies: []*policy.Policy{of("p", "team", false, pass("a"))}, want: []string{"a pass"}, objects: 1},
		"the first alone":                       {policies: []*policy.Policy{of("p", "", true, says("s", policy.Skipped), pass("a"), pass("b"))}, want: []string{"s skip", "a pass"}, objects: 1},
		"silence is none":                       {policies: []*policy.Policy{of("p", "", false, says("a", ""))}},
		"nothing of an indeterminate rule":      {policies: []*policy.Policy{of("p", "", false, says("a", policy.Indeterminate))}, want: []string{"a indeterminate"}},
		"nothing where an exception is":         {policies: []*policy.Policy{of("p", "", false, pass("a"))}, exceptions: []*policy.Exception{excepted}, want: []string{"a skip"}},
		"something where one has ended":         {policies: []*policy.Policy{of("p", "", false, pass("a"))}, exceptions: []*policy.Exception{&ended}, want: []string{"a pass"}, objects: 1},
		"what no rule may say is undecided":     {policies: []*policy.Policy{of("p", "", false, says("a", "perhaps"))}, want: []string{"a indeterminate"}},
		"nothing where there are no such rules": {policies: []*policy.Policy{{Kind: "ClusterPolicy", Name: "p"}}},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := setOf(t, test.policies...).With(test.exceptions...)
			if err != nil {
				t.Fatal(err)
			}
			word := func(r policy.RuleResult) string {
				if r.Skip != "" {
					return r.Rule + " skip"
				}
				return r.Rule + " " + string(r.Ruling.Result)
			}
			var made, altered []string
			objects, selections := 0, 0
			trigger := configMap("team", nil)
			trigger.Time = now
			for _, r := range set.Generate(t.Context(), policy.Case{Subject: trigger}) {
				made, objects = append(made, word(r.RuleResult)), objects+len(r.Objects)
				if !r.Terms.Synchronize || r.Changed != (len(r.Objects) > 0) {
					t.Errorf("%+v", r)
				}
			}
			for _, r := range set.Alterations(t.Context(), trigger, nil) {
				altered, selections = append(altered, word(r.RuleResult)), selections+len(r.Selections)
				if !r.OnPolicyChange || !r.SkipGenerated || (r.Alter != nil) != (len(r.Selections) > 0) {
					t.Errorf("%+v", r)
				}
			}
			if !slices.Equal(made, test.want) || objects != test.objects {
				t.Errorf("generations say %q with %d objects, want %q with %d", made, objects, test.want, test.objects)
			}
			if !slices.Equal(altered, test.want) || selections != test.objects {
				t.Errorf("alterations say %q with %d selections, want %q with %d", altered, selections, test.want, test.objects)
			}
		})
	}
}

// TestTriggers: which objects need the requesting user, and which are triggers.
func TestTriggers(t *testing.T) {
	target := func(change func(*policy.Target)) []policy.Target {
		one := policy.Target{Group: "", Version: "v1", Kind: "Namespace"}
		change(&one)
		return []policy.Target{one}
	}
	same := func(*policy.Target) {}
	for name, test := range map[string]struct {
		rule             making
		namespace        string
		needs, isTrigger bool
	}{
		"a rule that needs it":      {making{targets: target(same), requester: true, selects: true}, "", true, true},
		"a rule that does not":      {making{targets: target(same), selects: true}, "", false, true},
		"a rule that selects other": {making{targets: target(same), requester: true}, "", true, false},
		"another group":             {making{targets: target(func(t *policy.Target) { t.Group = "apps" }), requester: true}, "", false, false},
		"another version":           {making{targets: target(func(t *policy.Target) { t.Version = "v2" }), requester: true}, "", true, false},
		"another namespace":         {making{targets: target(func(t *policy.Target) { t.Namespaces = []string{"a", "b*"} }), requester: true}, "", false, false},
		"a pattern of namespaces":   {making{targets: target(func(t *policy.Target) { t.Namespaces = []string{"a", "t*"} }), requester: true}, "", true, false},
		"a Policy of another":       {making{targets: target(same), requester: true, selects: true}, "elsewhere", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, p := range map[string]*policy.Policy{
				"generation": {Kind: "ClusterPolicy", Name: "p", Namespace: test.namespace, ObjectRules: policy.ObjectRules{Generations: []policy.Generation{test.rule}}},
				"alteration": {Kind: "ClusterPolicy", Name: "p", Namespace: test.namespace, ObjectRules: policy.ObjectRules{Alterations: []policy.Alteration{test.rule}}},
			} {
				set := setOf(t, p)
				if got := set.NeedsRequester(namespaceSubject("team")); got != test.needs {
					t.Errorf("%s: the requester is needed: %v", kind, got)
				}
				if got := set.HasDownstream(namespaceSubject("team")); got != test.isTrigger {
					t.Errorf("%s: it is a trigger: %v", kind, got)
				}
			}
		})
	}
}
