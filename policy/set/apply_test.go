package set_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// ruling is a rule about objects that returns a fixed result.
type ruling struct {
	name    string
	kinds   []string
	says    policy.Validated
	changes func(map[string]any) map[string]any
	asked   *int
}

func (r ruling) Name() string { return r.name }

func (r ruling) Targets() []policy.Target {
	var targets []policy.Target
	for _, kind := range r.kinds {
		targets = append(targets, policy.Target{Group: "*", Version: "*", Kind: kind})
	}
	return targets
}

func (r ruling) Validate(context.Context, policy.Case) policy.Validated {
	if r.asked != nil {
		*r.asked++
	}
	return r.says
}

func (r ruling) Mutate(_ context.Context, about policy.Case) policy.Mutated {
	m := policy.Mutated{Result: r.says.Result, Reasons: r.says.Reasons}
	if r.changes != nil {
		m.Object = r.changes(about.Subject.Object.Map())
	}
	return m
}

func violated(message string) policy.Validated {
	return policy.Validated{Result: policy.Fail, Action: policy.Enforce, Reasons: []policy.Reason{{Code: policy.Violated, Message: message}}}
}

func setOf(t *testing.T, policies ...*policy.Policy) *set.Set {
	t.Helper()
	set, err := set.New(policies...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func configMap(namespace string, data map[string]any) *policy.Subject {
	return &policy.Subject{
		Version: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "settings", Operation: "CREATE",
		Object: policy.ContentOf(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}),
	}
}

func none([]policy.Extractor) ([]policy.Image, error) { return nil, nil }

// TestValidate: which rules are evaluated, and how their results are reported.
func TestValidate(t *testing.T) {
	for _, row := range []struct {
		reason    string
		policy    policy.Policy
		namespace string
		results   []policy.Result // of Ruling; Skipped for Skip
	}{
		{"a pass is a result", policy.Policy{ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", kinds: []string{"ConfigMap"}, says: policy.Validated{Result: policy.Pass}}}}}, "shop", []policy.Result{policy.Pass}},
		{"a failure is one", policy.Policy{ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", kinds: []string{"ConfigMap"}, says: violated("no")}}}}, "shop", []policy.Result{policy.Fail}},
		{"another kind is not asked about", policy.Policy{ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", kinds: []string{"Secret"}, says: violated("no")}}}}, "shop", nil},
		{"a pattern for kinds means all", policy.Policy{ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", kinds: []string{"*"}, says: violated("no")}}}}, "shop", []policy.Result{policy.Fail}},
		{"a rule that names no kind is asked", policy.Policy{ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", says: violated("no")}}}}, "shop", []policy.Result{policy.Fail}},
		{"one that does not apply is not reported", policy.Policy{ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a"}}}}, "shop", nil},
		{"a condition leaves it alone", policy.Policy{ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", says: policy.Validated{Result: policy.Skipped}}}}}, "shop", []policy.Result{policy.Skipped}},
		{"a policy of another namespace", policy.Policy{Namespace: "bank", ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", says: violated("no")}}}}, "shop", nil},
		{"a policy of its own", policy.Policy{Namespace: "shop", ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", says: violated("no")}}}}, "shop", []policy.Result{policy.Fail}},
		{"all rules count", policy.Policy{ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", says: policy.Validated{Result: policy.Pass}}, ruling{name: "b", says: violated("no")}}}}, "shop", []policy.Result{policy.Pass, policy.Fail}},
		{"or the first that applies", policy.Policy{Settings: policy.Settings{FirstRuleOnly: true}, ObjectRules: policy.ObjectRules{Validations: []policy.Validation{
			ruling{name: "a", says: policy.Validated{Result: policy.Skipped}}, ruling{name: "b", says: policy.Validated{Result: policy.Pass}}, ruling{name: "c", says: violated("no")},
		}}}, "shop", []policy.Result{policy.Skipped, policy.Pass}},
		{"one under audit ends no rule that denies", policy.Policy{Settings: policy.Settings{FirstRuleOnly: true}, ObjectRules: policy.ObjectRules{Validations: []policy.Validation{
			ruling{name: "a", says: policy.Validated{Result: policy.Pass, Action: policy.Audit}}, ruling{name: "b", says: violated("no")},
		}}}, "shop", []policy.Result{policy.Pass, policy.Fail}},
		{"and one that denies ends no audit", policy.Policy{Settings: policy.Settings{FirstRuleOnly: true}, ObjectRules: policy.ObjectRules{Validations: []policy.Validation{
			ruling{name: "a", says: policy.Validated{Result: policy.Pass, Action: policy.Enforce}}, ruling{name: "b", says: policy.Validated{Result: policy.Fail, Action: policy.Audit}},
		}}}, "shop", []policy.Result{policy.Pass, policy.Fail}},
		{"but the next one under audit", policy.Policy{Settings: policy.Settings{FirstRuleOnly: true}, ObjectRules: policy.ObjectRules{Validations: []policy.Validation{
			ruling{name: "a", says: policy.Validated{Result: policy.Pass, Action: policy.Audit}}, ruling{name: "b", says: policy.Validated{Result: policy.Fail, Action: policy.Warn}},
		}}}, "shop", []policy.Result{policy.Pass}},
		{"one that may not apply has not, and the next has", policy.Policy{Settings: policy.Settings{FirstRuleOnly: true}, ObjectRules: policy.ObjectRules{Validations: []policy.Validation{
			ruling{name: "a", says: policy.Validated{Result: policy.Pass, Doubtful: true}}, ruling{name: "b", says: policy.Validated{Result: policy.Pass}}, ruling{name: "c", says: violated("no")},
		}}}, "shop", []policy.Result{policy.Pass, policy.Pass}},
		{"one that could not be evaluated has not applied", policy.Policy{Settings: policy.Settings{FirstRuleOnly: true}, ObjectRules: policy.ObjectRules{Validations: []policy.Validation{
			ruling{name: "a", says: policy.Validated{Result: policy.Indeterminate, Action: policy.Audit}}, ruling{name: "b", says: violated("no")},
		}}}, "shop", []policy.Result{policy.Indeterminate, policy.Fail}},
		{"an unknown result could not be evaluated", policy.Policy{ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", says: policy.Validated{Result: "perhaps"}}}}}, "shop", []policy.Result{policy.Indeterminate}},
	} {
		row.policy.Kind, row.policy.Name = "ClusterPolicy", "p"
		var got []policy.Result
		for _, r := range setOf(t, &row.policy).Validate(t.Context(), configMap(row.namespace, nil), none) {
			result := r.Ruling.Result
			if r.Skip != "" {
				result = policy.Skipped
			}
			if !r.Ruling.Passes() && (len(r.Ruling.Reasons) == 0 || r.Ruling.Reasons[0].Path != r.Policy.ID()+"/a" && r.Ruling.Reasons[0].Path != r.Policy.ID()+"/b") {
				t.Errorf("%s: reasons %+v", row.reason, r.Ruling.Reasons)
			}
			got = append(got, result)
		}
		if !slices.Equal(got, row.results) {
			t.Errorf("%s: got %v, want %v", row.reason, got, row.results)
		}
	}
}

// TestANamespaceIsNotItsOwn: the policies of a namespace are not evaluated for the Namespace, or
// their authors could label it when another user changes it, or prevent its
// deletion. Cluster policies are evaluated for it, and its own for the objects in it.
func TestANamespaceIsNotItsOwn(t *testing.T) {
	labels := func(object map[string]any) map[string]any {
		return map[string]any{"kind": object["kind"], "labelled": true}
	}
	rule := ruling{name: "a", says: violated("no"), changes: labels}
	passes := ruling{name: "a", says: policy.Validated{Result: policy.Pass}, changes: labels}
	image := fixed{plans: always(policy.RulePlan{Skip: "whatever"}, false)}
	for _, row := range []struct {
		reason                string
		group, kind, own      string
		namespaced, spokenFor bool
	}{
		{"the Namespace itself", "", "Namespace", "shop", true, false},
		{"an object in it", "", "ConfigMap", "shop", true, true},
		{"a kind of that name that is in it", "example.com", "Namespace", "shop", true, true},
		{"the Namespace, by a policy of the cluster", "", "Namespace", "", true, true},
	} {
		p := &policy.Policy{
			Kind: "Policy", Name: "p", Namespace: row.own, Rules: []policy.Rule{image},
			ObjectRules: policy.ObjectRules{Validations: []policy.Validation{rule}, Mutations: []policy.Mutation{passes}, Generations: []policy.Generation{making{name: "a", says: policy.Pass, requester: true, selects: true, targets: kindTargets(row.kind)}}, Alterations: []policy.Alteration{making{name: "a", says: policy.Pass, selects: true, targets: kindTargets(row.kind)}}},
		}
		set := setOf(t, p)
		s := &policy.Subject{
			Group: row.group, Version: "v1", Kind: row.kind, Namespace: "shop", Name: "shop", Operation: "UPDATE", Time: now,
			Object: policy.ContentOf(map[string]any{"kind": row.kind}),
		}
		changed, _ := set.Mutate(t.Context(), s, func(*policy.Subject) policy.Finder { return none })
		for what, is := range map[string]bool{
			"changes it":          changed != nil,
			"judges it":           len(set.Validate(t.Context(), s, none)) > 0,
			"judges its images":   len(set.Plan(t.Context(), s, none).Results) > 0,
			"generates because":   len(set.Generate(t.Context(), policy.Case{Subject: s, Find: none})) > 0,
			"alters because":      len(set.Alterations(t.Context(), s, none)) > 0,
			"may change it":       set.MayMutate(s),
			"may judge it":        set.MayValidate(s),
			"has it as a trigger": set.HasDownstream(s),
			"needs the user":      set.NeedsRequester(s),
		} {
			if is != row.spokenFor {
				t.Errorf("%s: %s: %t", row.reason, what, is)
			}
		}
	}
}

// TestMutateInOrder: each mutation gets the object as changed by the previous ones, and one that
// could not be evaluated changes nothing.
func TestMutateInOrder(t *testing.T) {
	add := func(key, from string) func(map[string]any) map[string]any {
		return func(object map[string]any) map[string]any {
			data, _ := object["data"].(map[string]any)
			value, _ := data[from].(string)
			return map[string]any{"data": map[string]any{"a": data["a"], key: value + "!"}}
		}
	}
	set := setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", ObjectRules: policy.ObjectRules{Mutations: []policy.Mutation{
		ruling{name: "first", says: policy.Validated{Result: policy.Pass}, changes: add("b", "a")},
		ruling{name: "broken", says: policy.Validated{Result: policy.Indeterminate}, changes: add("b", "nothing")},
		ruling{name: "second", says: policy.Validated{Result: policy.Pass}, changes: add("c", "b")},
		ruling{name: "idle", says: policy.Validated{Result: policy.Pass}},
	}}})
	subject := configMap("shop", map[string]any{"a": "x"})
	changed, results := set.Mutate(t.Context(), subject, func(*policy.Subject) policy.Finder { return none })
	if data, _ := changed["data"].(map[string]any); data["c"] != "x!!" {
		t.Errorf("it became %v", changed)
	}
	if subject.Object.Map()["data"].(map[string]any)["c"] != nil {
		t.Error("the object itself was changed")
	}
	var did []bool
	for _, r := range results {
		did = append(did, r.Changed)
	}
	if !slices.Equal(did, []bool{true, false, true, false}) || results[1].Ruling.Result != policy.Indeterminate {
		t.Errorf("changed %v, %+v", did, results[1].Ruling)
	}
}

// TestExceptedObject: an exception leaves an object out of a rule, and one for some
// images or for a part of the Pod Security Standards does not.
func TestExceptedObject(t *testing.T) {
	excepting := func(rule string, change func(*policy.Exception)) *policy.Exception {
		e := &policy.Exception{Namespace: "shop", Name: "e", Rules: []policy.ExceptedRule{{Policy: "p", Rules: []string{rule}}}}
		change(e)
		return e
	}
	for _, row := range []struct {
		reason    string
		exception *policy.Exception
		skipped   bool
	}{
		{"for the rule", excepting("a", func(*policy.Exception) {}), true},
		{"for another rule", excepting("b", func(*policy.Exception) {}), false},
		{"for some images", excepting("a", func(e *policy.Exception) { e.Images = []string{"*"} }), false},
		{"for a control", excepting("a", func(e *policy.Exception) {
			e.PodSecurity = []policy.PodSecurityExemption{{Control: "Capabilities"}}
		}), false},
	} {
		asked := 0
		set, err := setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", says: violated("no"), asked: &asked}}}}).With(row.exception)
		if err != nil {
			t.Fatal(err)
		}
		results := set.Validate(t.Context(), configMap("shop", nil), none)
		if len(results) != 1 || (results[0].Skip != "") != row.skipped || (results[0].Exception != nil) != row.skipped || results[0].Ruling.Passes() != row.skipped {
			t.Errorf("%s: %+v", row.reason, results)
		}
		if asked != 1 {
			t.Errorf("%s: asked %d times; whether an exception was needed is known by the rule alone", row.reason, asked)
		}
	}
}

// TestExemptedControls: a rule that holds only without the controls that exceptions exclude is
// skipped, and the result names all of these exceptions. A rule that holds with them passes.
func TestExemptedControls(t *testing.T) {
	excluding := func(name string) *policy.Exception {
		return &policy.Exception{
			Namespace: "shop", Name: name, Rules: []policy.ExceptedRule{{Policy: "p", Rules: []string{"a"}}},
			PodSecurity: []policy.PodSecurityExemption{{Control: "Capabilities"}},
		}
	}
	exempted := policy.Validated{Result: policy.Pass, Exempted: true}
	for _, row := range []struct {
		reason     string
		exceptions []*policy.Exception
		says       policy.Validated
		want       string // the named exceptions
	}{
		{"an exception excludes what fails", []*policy.Exception{excluding("x")}, exempted, "shop/x"},
		{"two of them together", []*policy.Exception{excluding("x"), excluding("y")}, exempted, "shop/x shop/y"},
		{"nothing fails", []*policy.Exception{excluding("x")}, policy.Validated{Result: policy.Pass}, ""},
		{"the rest fails", []*policy.Exception{excluding("x")}, violated("no"), ""},
		{"there is none", nil, policy.Validated{Result: policy.Pass}, ""},
	} {
		set, err := setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "a", says: row.says}}}}).With(row.exceptions...)
		if err != nil {
			t.Fatal(err)
		}
		results := set.Validate(t.Context(), configMap("shop", nil), none)
		if len(results) != 1 {
			t.Fatalf("%s: %+v", row.reason, results)
		}
		var named []string
		for _, e := range append([]*policy.Exception{results[0].Exception}, results[0].Others...) {
			if e != nil {
				named = append(named, e.ID())
				if !strings.Contains(results[0].Skip, e.ID()) {
					t.Errorf("%s: skipped because of %q, want the name %s", row.reason, results[0].Skip, e.ID())
				}
			}
		}
		if strings.Join(named, " ") != row.want || (results[0].Skip != "") != (row.want != "") || results[0].Ruling.Passes() != (row.says.Result == policy.Pass) {
			t.Errorf("%s: exceptions %q, want %q, %+v", row.reason, named, row.want, results[0])
		}
	}
}

// TestExceptedMutation: an exempt object is not changed, and a rule that does not match it has no
// result, exempt or not.
func TestExceptedMutation(t *testing.T) {
	change := func(map[string]any) map[string]any { return map[string]any{"data": map[string]any{"a": "y"}} }
	for _, row := range []struct {
		reason          string
		exempts         string
		says            policy.Result
		changes         bool
		results         int
		skips, succeeds bool
	}{
		{"exempt", "a", policy.Pass, false, 1, true, true},
		{"exempt from another rule", "b", policy.Pass, true, 1, false, true},
		{"exempt, and the rule cannot be evaluated", "a", policy.Indeterminate, false, 1, true, true},
		{"not exempt, and the rule cannot be evaluated", "b", policy.Indeterminate, false, 1, false, false},
		{"exempt, and the rule does not match", "a", "", false, 0, false, false},
		{"not exempt, and the rule does not match", "b", "", false, 0, false, false},
	} {
		set, err := setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", ObjectRules: policy.ObjectRules{Mutations: []policy.Mutation{
			ruling{name: "a", says: policy.Validated{Result: row.says}, changes: change},
		}}}).With(&policy.Exception{Namespace: "shop", Name: "e", Rules: []policy.ExceptedRule{{Policy: "p", Rules: []string{row.exempts}}}})
		if err != nil {
			t.Fatal(err)
		}
		changed, results := set.Mutate(t.Context(), configMap("shop", nil), func(*policy.Subject) policy.Finder { return none })
		if (changed != nil) != row.changes || len(results) != row.results {
			t.Errorf("%s: changed to %v, %+v", row.reason, changed, results)
		}
		for _, r := range results {
			if (r.Skip != "") != row.skips || (r.Exception != nil) != row.skips || r.Ruling.Passes() != row.succeeds {
				t.Errorf("%s: %+v", row.reason, r)
			}
		}
	}
}

// TestMay: objects without images are evaluated only where a rule may match them.
func TestMay(t *testing.T) {
	targeting := func(target policy.Target) *set.Set {
		return setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", ObjectRules: policy.ObjectRules{Validations: []policy.Validation{targeted{target: target}}}})
	}
	base := policy.Subject{Version: "v1", Kind: "Pod", Namespace: "shop", Operation: "DELETE"}
	exec := base
	exec.Operation, exec.Subresource = "CONNECT", "exec"
	for _, row := range []struct {
		reason  string
		target  policy.Target
		subject policy.Subject
		may     bool
	}{
		{"a rule about deletions", policy.Target{Version: "*", Kind: "Pod", Operations: []string{"DELETE"}}, base, true},
		{"one that names no operation", policy.Target{Version: "*", Kind: "Pod"}, base, false},
		{"one of another kind", policy.Target{Version: "*", Kind: "Secret", Operations: []string{"DELETE"}}, base, false},
		{"one of another group", policy.Target{Group: "apps", Version: "*", Kind: "Pod", Operations: []string{"DELETE"}}, base, false},
		{"exec by its name", policy.Target{Version: "*", Kind: "Pod", Subresource: "exec"}, exec, true},
		{"exec is no pod", policy.Target{Version: "*", Kind: "Pod", Operations: []string{"CONNECT"}}, exec, false},
	} {
		if may := targeting(row.target).MayValidate(&row.subject); may != row.may {
			t.Errorf("%s: %t", row.reason, may)
		}
		if targeting(row.target).MayMutate(&row.subject) {
			t.Errorf("%s: no mutation is there", row.reason)
		}
	}
}

type targeted struct {
	ruling
	target policy.Target
}

func (t targeted) Targets() []policy.Target { return []policy.Target{t.target} }
