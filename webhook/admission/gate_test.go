package admission_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// env has a real gate, with one rule.
type env struct {
	*gatetest.Env
	gate *gate.Gate
}

func newEnv(t testing.TB) *env {
	t.Helper()
	h := &env{Env: testkit.Must(gatetest.NewEnv())(t)}
	t.Cleanup(h.Close)
	h.gate = h.gateOf(t, &policy.Policy{Kind: "ClusterPolicy", Name: "signed", Hash: "1", Rules: []policy.Rule{h}})
	return h
}

// gateOf returns a gate with a memory of its own.
func (h *env) gateOf(t testing.TB, policies ...*policy.Policy) *gate.Gate {
	t.Helper()
	return testkit.Must(h.Gate(policies...))(t)
}

// Name, Extractors and Plan make the env a rule: every image is signed by its
// signer, and pinned.
func (h *env) Name() string                                  { return "check" }
func (h *env) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (h *env) Plan(_ context.Context, _ *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	var plan policy.RulePlan
	for _, found := range images {
		plan.Checks = append(plan.Checks, policy.Check{
			Entry: "verifyImages[0]", Image: found, Action: policy.Enforce, Pinning: policy.Pinning{MutateDigest: true, VerifyDigest: true}, Claims: policy.Claims{Required: true, Requirements: []policy.Requirement{{Name: "attestors[0]", Threshold: 1, Members: []policy.Member{{Authority: h.Authority}}}}},
		})
	}
	return plan, nil
}

func (h *env) signed(t testing.TB, name string) string {
	t.Helper()
	return testkit.Must(h.Signed(name))(t).Name
}

// TestRealGate sends a Pod to both endpoints.
func TestRealGate(t *testing.T) {
	h := newEnv(t)
	good, bad := h.signed(t, "good"), h.Build("shop/bad", "1", "bad").ByDigest()
	mutate, validate := endpoint(t, admission.Mutate, h.gate), endpoint(t, admission.Validate, h.gate)

	stored := admit(t, mutate, "CREATE", pod(good), nil)
	if got := texts(t, stored)["c0"]; !strings.HasPrefix(got, good+"@sha256:") {
		t.Errorf("stored %s", got)
	}
	var message map[string]string
	if err := json.Unmarshal([]byte(written(stored)), &message); err != nil || message["c0"] != good {
		t.Errorf("written %q: %v", written(stored), err)
	}
	if a := send(t, validate, review(t, "CREATE", stored, nil, nil)); !a.Response.Allowed {
		t.Errorf("pinned and signed: %s", a.Response.Status.Message)
	}
	if a := send(t, mutate, review(t, "CREATE", stored, nil, nil)); !a.Response.Allowed || a.Response.Patch != nil {
		t.Errorf("called again: %+v, patch %s", a.Response, a.Response.Patch)
	}
	for reason, handler := range map[string]http.Handler{"mutate": mutate, "validate, mutate bypassed": validate} {
		forged := with(t, pod(texts(t, stored)["c0"], bad), func(o object) { forge(o, `{"c1":"x"}`) })
		a := send(t, handler, review(t, "CREATE", forged, nil, nil))
		if a.Response.Allowed || !strings.Contains(a.Response.Status.Message, "container c1, "+bad+": denied") || !strings.Contains(a.Response.Status.Message, "[unsigned]") {
			t.Errorf("%s: %+v", reason, a.Response)
		}
	}
	again := with(t, stored, func(o object) { o["spec"] = pod(good)["spec"] })
	before := h.Registry.Requests()
	if updated := admit(t, mutate, "UPDATE", again, stored); string(encode(t, updated)) != string(encode(t, stored)) {
		t.Errorf("applied again: %s", encode(t, updated))
	}
	if after := h.Registry.Requests(); len(after) != len(before) {
		t.Errorf("%d registry requests for nothing new", len(after)-len(before))
	}
}

func BenchmarkRealGate(b *testing.B) {
	h := newEnv(b)
	for name, now := range map[string]object{"eight": stored(), "one": small()} {
		for i, entry := range now["spec"].(object)["containers"].([]any) {
			entry.(object)["image"] = h.signed(b, string(rune('a'+i)))
		}
		warm := admit(b, endpoint(b, admission.Mutate, h.gate), "CREATE", now, nil)
		b.Run(name+"/mutate", func(b *testing.B) {
			measure(b, endpoint(b, admission.Mutate, h.gate), review(b, "CREATE", now, nil, nil))
		})
		b.Run(name+"/validate", func(b *testing.B) {
			measure(b, endpoint(b, admission.Validate, h.gate), review(b, "CREATE", warm, nil, nil))
		})
	}
}
