package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/workload"
)

// box is a container of a test's pod: its list, name and image.
type box struct{ list, name, image string }

func podOf(t testing.TB, kind string, boxes ...box) workload.Object {
	t.Helper()
	spec := map[string]any{}
	for _, b := range boxes {
		list, _ := spec[b.list].([]any)
		spec[b.list] = append(list, map[string]any{"name": b.name, "image": b.image})
	}
	version := "v1"
	if kind == "Deployment" {
		version, spec = "apps/v1", map[string]any{"template": map[string]any{"spec": spec}}
	}
	raw := must(json.Marshal(map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "test", "namespace": "default"}, "spec": spec,
	}))(t)
	return must(workload.Parse(raw))(t)
}

const (
	run   = "containers"
	first = "initContainers"
	debug = "ephemeralContainers"
)

// TestUpdateEvaluatesChanges has an unsigned image, which is denied wherever
// it is looked at.
func TestUpdateEvaluatesChanges(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	plain, signed := h.Build("bad", "v1", "bad"), h.Build("signed", "v1", "signed")
	must(0, h.SignBundle(signed, byKey(h.key), nil))(t)
	bad, good := plain.Name, signed.Name
	for _, c := range []struct {
		reason   string
		old, new []box
		want     gate.Result
	}{
		{"an identical object", []box{{run, "a", bad}}, []box{{run, "a", bad}}, gate.Allow},
		{"the image is another", []box{{run, "a", good}}, []box{{run, "a", bad}}, gate.Deny},
		{"the image is another and good", []box{{run, "a", bad}}, []box{{run, "a", good}}, gate.Allow},
		{"containers in another order", []box{{run, "a", bad}, {run, "b", good}}, []box{{run, "b", good}, {run, "a", bad}}, gate.Allow},
		{"images that changed places", []box{{run, "a", bad}, {run, "b", good}}, []box{{run, "a", good}, {run, "b", bad}}, gate.Deny},
		{"a container that became an init container", []box{{run, "a", bad}}, []box{{first, "a", bad}}, gate.Deny},
		{"a container of another name", []box{{run, "a", bad}}, []box{{run, "b", bad}}, gate.Deny},
		{"an ephemeral container is added", []box{{run, "a", bad}}, []box{{run, "a", bad}, {debug, "d", good}}, gate.Allow},
		{"an unsigned ephemeral container is added", []box{{run, "a", bad}}, []box{{run, "a", bad}, {debug, "d", bad}}, gate.Deny},
		{"a name twice, one with a new image", []box{{run, "a", good}}, []box{{run, "a", good}, {run, "a", bad}}, gate.Deny},
		{"a name twice, both as before", []box{{run, "a", good}, {run, "a", bad}}, []box{{run, "a", bad}, {run, "a", good}}, gate.Allow},
		{"a container is removed", []box{{run, "a", bad}, {run, "b", good}}, []box{{run, "a", bad}}, gate.Allow},
		{"an unreadable image stays", []box{{run, "a", "UPPER/x"}, {run, "b", bad}}, []box{{run, "a", "UPPER/x"}, {run, "b", good}}, gate.Allow},
		{"an unreadable image comes", []box{{run, "a", good}}, []box{{run, "a", "UPPER/x"}}, gate.Deny},
		{"an unreadable image is another", []box{{run, "a", "UPPER/y"}}, []box{{run, "a", "UPPER/x"}}, gate.Deny},
		{"the same image, written differently", []box{{run, "a", bad}}, []box{{run, "a", bad + "@" + plain.Manifest.Digest}}, gate.Deny},
	} {
		for _, kind := range []string{"Pod", "Deployment"} {
			t.Run(c.reason+"/"+kind, func(t *testing.T) {
				outcome := h.gate(t, signedBy(h.key)).Decide(t.Context(), gate.Request{
					Object: podOf(t, kind, c.new...), Old: podOf(t, kind, c.old...), Subject: policy.Subject{Operation: "UPDATE"},
				})
				if outcome.Result != c.want {
					t.Errorf("%s, want %s: %+v %+v", outcome.Result, c.want, outcome.Reasons, outcome.Verdicts)
				}
				if outcome.Subject.OldObject.IsZero() {
					t.Error("the policies do not see the former object")
				}
			})
		}
	}
}

func TestAnUnchangedObjectCostsNothing(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	object := podOf(t, "Pod", box{run, "a", h.Build("bad", "v1", "bad").Name})
	h.Registry.Reset()
	outcome := h.gate(t, signedBy(h.key)).Decide(t.Context(), gate.Request{Object: object, Old: object})
	expect(t, outcome, gate.Allow, policy.Unchanged)
	if n := len(h.Registry.Requests()); n != 0 || len(outcome.Patch) != 0 {
		t.Errorf("%d requests and the patch %v", n, outcome.Patch)
	}
	v := outcome.Verdicts[0]
	if !v.Image.Unchanged || v.Matched() {
		t.Errorf("%+v", v)
	}
	// What another kind of object ran vouches for nothing.
	other := podOf(t, "Deployment", box{run, "a", "bad"})
	expect(t, h.gate(t, signedBy(h.key)).Decide(t.Context(), gate.Request{Object: object, Old: other}), gate.Deny, policy.Unsigned)
}

// unaskable is a rule with a failing lookup.
type unaskable struct{ rule }

func (unaskable) Plan(context.Context, *policy.Subject, []policy.Image) (policy.RulePlan, error) {
	return policy.RulePlan{}, errors.New("the namespace vanished")
}

func TestARuleThatCannotBeAskedHoldsUpNoOtherUpdate(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	g := h.gate(t, unaskable{signedBy(h.key)})
	a, b := podOf(t, "Pod", box{run, "a", "x:1"}), podOf(t, "Pod", box{run, "a", "x:1"}, box{debug, "d", "x:1"})
	expect(t, g.Decide(t.Context(), gate.Request{Object: a, Old: a}), gate.Allow, policy.Unchanged)
	if outcome := g.Decide(t.Context(), gate.Request{Object: b, Old: a}); outcome.Result != gate.Error {
		t.Errorf("%s: %+v", outcome.Result, outcome.Verdicts)
	}
	expect(t, g.Decide(t.Context(), gate.Request{Object: a}), gate.Error, policy.PolicyError)
}

func checkEvaluation(t testing.TB, image, other string) workload.Object {
	t.Helper()
	return must(workload.Parse(fmt.Appendf(nil,
		`{"apiVersion":"example.test/v1","kind":"Task","metadata":{"name":"x","namespace":"default","annotations":{"image":%q,"other":%q}}}`, image, other)))(t)
}

func TestExtractedImagesThatDidNotChange(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	bad := h.Build("bad", "v1", "bad").Name
	g := h.gate(t, extracting{signedBy(h.key), "default"})
	for _, c := range []struct {
		reason   string
		old, new workload.Object
		want     gate.Result
	}{
		{"something else changed", checkEvaluation(t, bad, "1"), checkEvaluation(t, bad, "2"), gate.Allow},
		{"the image changed", checkEvaluation(t, "x", "1"), checkEvaluation(t, bad, "1"), gate.Deny},
		{"the image is unreadable and stays", checkEvaluation(t, "$(x)", "1"), checkEvaluation(t, "$(x)", "2"), gate.Unchecked},
		{"the image becomes unreadable", checkEvaluation(t, bad, "1"), checkEvaluation(t, "$(x)", "1"), gate.Error},
	} {
		t.Run(c.reason, func(t *testing.T) {
			if outcome := g.Decide(t.Context(), gate.Request{Object: c.new, Old: c.old}); outcome.Result != c.want {
				t.Errorf("%s, want %s: %+v", outcome.Result, c.want, outcome)
			}
		})
	}
}
