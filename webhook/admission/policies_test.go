package admission_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/webhook/admission"
)

// checker refuses documents with the word broken in their spec.
type checker struct{}

func (checker) Check(raw []byte) error {
	if bytes.Contains(raw, []byte(`"broken"`)) {
		return errors.Join(errors.New("spec.rules[0].verifyImages[0].atestors: unknown field"), errors.New("spec.rules[1].name: is empty"))
	}
	return nil
}

// advice warns of the documents that checker refuses.
type advice struct{}

func (advice) Check(raw []byte) error {
	if err := (checker{}).Check(raw); err != nil {
		return &admission.Advice{Err: err}
	}
	return nil
}

func (advice) Warnings([]byte) []string { return nil }

func (checker) Warnings(raw []byte) []string {
	if bytes.Contains(raw, []byte(`"doubtful"`)) {
		return []string{"spec.rules: it can admit nothing"}
	}
	return nil
}

func clusterPolicy(word string) object {
	return object{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": object{"name": "signed"}, "spec": object{"rules": word}}
}

func TestPolicies(t *testing.T) {
	sub := func(name string) func(object) { return func(r object) { r["subResource"] = name } }
	note := func(o object) { annotate(o, map[string]string{"a": "b"}) }
	gone := func(o object) { o["metadata"].(object)["deletionTimestamp"] = "2026-11-21T03:30:01Z" }
	held := func(o object) {
		gone(o)
		o["metadata"].(object)["finalizers"] = []any{"example.com/keep"}
	}
	for name, row := range map[string]struct {
		reason   string
		op       string
		now, old object
		change   func(object)
		allowed  bool
	}{
		"good":                  {"it compiles", "CREATE", clusterPolicy("good"), nil, nil, true},
		"broken":                {"it does not", "CREATE", clusterPolicy("broken"), nil, nil, false},
		"becomes broken":        {"the same", "UPDATE", clusterPolicy("broken"), clusterPolicy("good"), nil, false},
		"is mended":             {"it compiles now", "UPDATE", clusterPolicy("good"), clusterPolicy("broken"), nil, true},
		"broken goes":           {"good riddance", "DELETE", nil, clusterPolicy("broken"), nil, true},
		"broken is going":       {"its finalizer goes first", "UPDATE", with(t, clusterPolicy("broken"), gone), clusterPolicy("broken"), nil, true},
		"broken is let go":      {"nothing but its finalizer changes", "UPDATE", with(t, clusterPolicy("broken"), gone), with(t, clusterPolicy("broken"), held), nil, true},
		"breaks while held":     {"it counts until it is gone", "UPDATE", with(t, clusterPolicy("broken"), held), with(t, clusterPolicy("good"), held), nil, false},
		"breaks as it is freed": {"the same: another finalizer may be there", "UPDATE", with(t, clusterPolicy("broken"), gone), with(t, clusterPolicy("good"), held), nil, false},
		"changes while held":    {"it compiles", "UPDATE", with(t, clusterPolicy("better"), held), with(t, clusterPolicy("good"), held), nil, true},
		"annotated while held":  {"annotations can mean something", "UPDATE", with(t, with(t, clusterPolicy("broken"), held), note), with(t, clusterPolicy("broken"), held), nil, false},
		"broken stays":          {"nothing gets worse", "UPDATE", clusterPolicy("broken"), clusterPolicy("broken"), nil, true},
		"broken is annotated":   {"annotations can mean something", "UPDATE", with(t, clusterPolicy("broken"), note), clusterPolicy("broken"), nil, false},
		"status":                {"not the policy", "UPDATE", clusterPolicy("broken"), clusterPolicy("good"), sub("status"), true},
		"of another kind":       {"not the kind of the request", "CREATE", clusterPolicy("good"), nil, func(r object) { r["kind"] = object{"group": "kyverno.io", "version": "v1", "kind": "Policy"} }, false},
		"an unknown operation":  {"it is not supported", "PATCH", clusterPolicy("good"), nil, nil, false},
		"created as if deleted": {"the mark counts at an update alone", "CREATE", with(t, clusterPolicy("broken"), gone), nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &recorder{}
			handler, err := newPolicies(checker{}, func(c *admission.PolicyConfig) { c.Recorder = seen })
			if err != nil {
				t.Fatal(err)
			}
			a := send(t, handler, review(t, row.op, row.now, row.old, row.change))
			if a.Response.Allowed != row.allowed || a.Response.UID != "u-1" || a.Response.PatchType != nil {
				t.Errorf("%s: %+v", row.reason, a.Response)
			}
			if got := seen.Last(t); got.Allowed != row.allowed || got.Endpoint != admission.Policies {
				t.Errorf("%s: recorded %+v", row.reason, got)
			}
			if got := seen.Last(t); !row.allowed && got.Cause == admission.Decided {
				golden(t, "policy-broken", a.Response.Status.Message)
			}
		})
	}
	advising, err := newPolicies(advice{})
	if err != nil {
		t.Fatal(err)
	}
	if a := send(t, advising, review(t, "CREATE", clusterPolicy("broken"), nil, nil)); !a.Response.Allowed || len(a.Response.Warnings) != 1 || !strings.Contains(a.Response.Warnings[0], "unknown field") {
		t.Errorf("advice: %+v", a.Response)
	}
	if _, err := newPolicies(nil); err == nil {
		t.Error("no checker was taken for one")
	}
	handler, err := newPolicies(broken{})
	if err != nil {
		t.Fatal(err)
	}
	if a := send(t, handler, review(t, "CREATE", clusterPolicy("good"), nil, nil)); a.Response.Allowed || !strings.Contains(a.Response.Status.Message, "could not be checked") {
		t.Errorf("a check that panics: %+v", a.Response)
	}
}

// TestBrokenDocumentIsNamedByKind: an error in a mirror names a mirror, not a policy.
func TestBrokenDocumentIsNamedByKind(t *testing.T) {
	for kind, row := range map[string]struct{ version, is string }{
		"ClusterPolicy":   {"kyverno.io/v1", "policy"},
		"Policy":          {"kyverno.io/v1", "policy"},
		"PolicyException": {"kyverno.io/v2", "policy exception"},
		"RegistryMirror":  {"quaymaster.dev/v1alpha1", "mirror"},
	} {
		t.Run(kind, func(t *testing.T) {
			document := object{"apiVersion": row.version, "kind": kind, "metadata": object{"name": "hub"}, "spec": object{"rules": "broken"}}
			for want, checker := range map[string]admission.Checker{
				kind + " hub: the " + row.is + " is broken\n":            checker{},
				"no part of a " + row.is + " is ignored":                 checker{},
				kind + " hub: the " + row.is + " could not be checked\n": broken{},
			} {
				handler, err := newPolicies(checker)
				if err != nil {
					t.Fatal(err)
				}
				a := send(t, handler, review(t, "CREATE", document, nil, nil))
				if message := a.Response.Status.Message; a.Response.Allowed || !strings.Contains(message, want) {
					t.Errorf("%q, want %q in it", message, want)
				}
			}
		})
	}
}

// TestPolicyWarnings: the author is warned of a policy that compiles but can never admit.
func TestPolicyWarnings(t *testing.T) {
	endpoint, err := newPolicies(checker{})
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]int{"fine": 0, "doubtful": 1} {
		got := send(t, endpoint, review(t, "CREATE", clusterPolicy(word), nil, nil))
		if !got.Response.Allowed || len(got.Response.Warnings) != want {
			t.Errorf("%s: %+v", word, got.Response)
		}
	}
}
