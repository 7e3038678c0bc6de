package set_test

import (
	"reflect"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// TestFirstMutationOnly: of a policy with FirstRuleOnly, the second rule changes nothing;
// and an excepted rule changes nothing either.
func TestFirstMutationOnly(t *testing.T) {
	put := func(key string) ruling {
		return ruling{name: key, says: policy.Validated{Result: policy.Pass}, changes: func(object map[string]any) map[string]any {
			data, _ := object["data"].(map[string]any)
			changed := map[string]any{key: "x"}
			for k, v := range data {
				changed[k] = v
			}
			return map[string]any{"data": changed}
		}}
	}
	for _, c := range []struct {
		reason    string
		first     bool
		exception string // the rule that it is for
		want      map[string]any
	}{
		{"all", false, "", map[string]any{"a": "x", "b": "x"}},
		{"the first", true, "", map[string]any{"a": "x"}},
		{"but one that is excepted", false, "a", map[string]any{"b": "x"}},
		{"the first that is not excepted", true, "a", map[string]any{"b": "x"}},
	} {
		set := setOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "p", Settings: policy.Settings{FirstRuleOnly: c.first}, ObjectRules: policy.ObjectRules{Mutations: []policy.Mutation{put("a"), put("b")}}})
		if c.exception != "" {
			var err error
			set, err = set.With(&policy.Exception{Namespace: "shop", Name: "e", Rules: []policy.ExceptedRule{{Policy: "p", Rules: []string{c.exception}}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		changed, _ := set.Mutate(t.Context(), configMap("shop", nil), func(*policy.Subject) policy.Finder { return none })
		if !reflect.DeepEqual(changed["data"], c.want) {
			t.Errorf("%s: got %v, want %v", c.reason, changed["data"], c.want)
		}
	}
}

// TestExceptionOfNamespacedPolicy: a policy of a namespace is named with it, and is none of
// that name for the cluster.
func TestExceptionOfNamespacedPolicy(t *testing.T) {
	base := setOf(t, &policy.Policy{Kind: "Policy", Namespace: "team", Name: "p", ObjectRules: policy.ObjectRules{Validations: []policy.Validation{ruling{name: "signed", says: violated("no")}}}})
	for _, c := range []struct {
		policy, kind string
		excepted     bool
	}{
		{"team/p", "", true}, {"team/p", "Policy", true}, {"team/p", "ClusterPolicy", false}, {"p", "", false}, {"other/p", "", false},
	} {
		set, err := base.With(exception("x", func(e *policy.Exception) { e.Rules[0].Policy, e.Rules[0].Kind = c.policy, c.kind }))
		if err != nil {
			t.Fatal(err)
		}
		results := set.Validate(t.Context(), configMap("team", nil), none)
		if len(results) != 1 || (results[0].Exception != nil) != c.excepted {
			t.Errorf("%q of kind %q: %+v, want it to be excepted: %t", c.policy, c.kind, results, c.excepted)
		}
	}
}
