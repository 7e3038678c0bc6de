package gate_test

import (
	"context"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/workload"
)

// finding denies an object of which it does not find so many images.
type finding struct {
	extractors []policy.Extractor
	want       int
}

func (finding) Name() string             { return "count" }
func (finding) Targets() []policy.Target { return nil }

func (c finding) Validate(_ context.Context, about policy.Case) policy.Validated {
	images, err := about.Find(c.extractors)
	switch {
	case err != nil:
		return policy.Validated{Result: policy.Indeterminate, Action: policy.Enforce, Reasons: []policy.Reason{{Code: policy.PolicyError, Message: err.Error()}}}
	case len(images) != c.want:
		return policy.Validated{Result: policy.Fail, Action: policy.Enforce, Reasons: []policy.Reason{{Code: policy.Violated, Message: "another number"}}}
	}
	return policy.Validated{Result: policy.Pass}
}

// TestUnreadableImagesOfRules: a rule about objects is not shown fewer images than the
// object has. One that cannot be read is the object's doing, so that failurePolicy Ignore
// does not admit it.
func TestUnreadableImagesOfRules(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	step := []policy.Extractor{{Name: "steps", Path: "/spec/steps/*/image"}}
	for _, c := range []struct {
		reason, first, second string
		want                  policy.Result
	}{
		{"both can be read", "registry.example/a:1", "registry.example/b:1", policy.Pass},
		{"the first begins with a space", " registry.example/a:1", "registry.example/b:1", policy.Indeterminate},
		{"the last is a parameter", "registry.example/a:1", "$(params.image)", policy.Indeterminate},
		{"one is in upper case", "registry.example/A:1", "registry.example/b:1", policy.Indeterminate},
	} {
		task := gate.Request{Object: must(workload.Parse([]byte(`{"apiVersion": "tekton.dev/v1", "kind": "Task", "metadata": {"name": "t"}, "spec": {"steps": [{"image": "` +
			c.first + `"}, {"image": "` + c.second + `"}]}}`)))(t)}
		for where, asked := range map[string]struct {
			request    gate.Request
			extractors []policy.Extractor
		}{"a pod": {pod(t, c.first, c.second), nil}, "an extractor": {task, step}} {
			p := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Settings: policy.Settings{FailOpen: true}, ObjectRules: policy.ObjectRules{Validations: []policy.Validation{finding{asked.extractors, 2}}}}
			out := h.gateWith(t, p).Decide(t.Context(), asked.request)
			if len(out.Rules) != 1 || out.Rules[0].Ruling.Result != c.want || (out.Result == gate.Allow) != (c.want == policy.Pass) {
				t.Errorf("%s, %s: %s %+v %+v", c.reason, where, out.Result, out.Reasons, out.Rules)
			}
		}
	}
}
