package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestPolicies: a policy that changes is heeded by the next request, and each is
// in one of three states.
func TestPolicies(t *testing.T) {
	c := gateway.Configuration{}
	c.Policies.Selector = "engine!=other"
	s := guard(t, "policies", c)

	t.Run("a change counts from the next request on", s.tryChanges)
	t.Run("a policy that is left out", s.tryLeftOut)
	t.Run("a policy of other rules", s.tryOtherRules)
	t.Run("a broken policy does not get in", s.tryRefused)
	t.Run("a new kind is asked about", s.tryExtractor)
}

// tryChanges asks once after each change, without a second try: see effect for
// how it knows that the gateway took it.
func (s *scene) tryChanges(t *testing.T) {
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	foreign, err := s.env.SignedBy(s.env.Stranger, "shop/foreign", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	base := env.Policy{Name: "changes", Namespaces: []string{s.namespace}}
	s.enforce(t, base)
	audit, turned := base, *s.env
	audit.Action, audit.Rule = "Audit", audited()
	turned.Signer = s.env.Stranger
	write := func(h *env.Env, p env.Policy) func(context.Context) error {
		text, err := h.YAML(p)
		must(t, err)
		return func(ctx context.Context) error { return s.plane.ApplyYAML(ctx, text) }
	}
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	for _, row := range []struct {
		reason                string
		change                func(context.Context) error
		signed, foreign, bare string // why they are denied
	}{
		{"as it was", nil, "", "wrong-key", "unsigned"},
		{"now it audits", write(s.env, audit), "", "", ""},
		{"it enforces again", write(s.env, base), "", "wrong-key", "unsigned"},
		{"with another key", write(&turned, base), "wrong-key", "", "unsigned"},
		{"with the first key", write(s.env, base), "", "wrong-key", "unsigned"},
		{"it is gone", func(ctx context.Context) error {
			return client.Resource(clusterPolicies).Delete(ctx, "changes", meta.DeleteOptions{})
		}, "", "", ""},
	} {
		if row.change != nil {
			s.effect(t, row.change)
		}
		for _, ask := range []struct{ image, code string }{{signed.Name, row.signed}, {foreign.Name, row.foreign}, {bare.Name, row.bare}} {
			_, err := s.dryRun(t.Context(), pod("asked", ask.image))
			switch {
			case ask.code != "":
				denied(t, row.reason+": "+ask.image, err, ask.code)
			case err != nil:
				t.Errorf("%s: %s: %v", row.reason, ask.image, err)
			}
		}
	}
}

// tryLeftOut: the same policy, with and without the label that leaves it out.
func (s *scene) tryLeftOut(t *testing.T) {
	s = s.in(t, "policies-left")
	bare := s.env.Unsigned("shop/left", "1.0")
	policy := env.Policy{Name: "left", Namespaces: []string{s.namespace}, Labels: map[string]string{"engine": "other"}}
	text, err := s.env.YAML(policy)
	must(t, err)
	s.put(t, text)
	s.checkStates(t, 0, 1, 0)
	_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
	must(t, err)
	policy.Labels = map[string]string{"engine": "ours"}
	s.enforce(t, policy)
	s.checkStates(t, 1, 0, 0)
	_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "the policy that is ours", err, "unsigned")
	s.drop(t, "left")
}

// drop deletes a policy and waits until the gateway has dropped it, too.
func (s *scene) drop(t *testing.T, name string) {
	t.Helper()
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	s.effect(t, func(ctx context.Context) error {
		return client.Resource(clusterPolicies).Delete(ctx, name, meta.DeleteOptions{})
	})
}

// checkStates checks how many policies the metrics say are in which state.
func (s *scene) checkStates(t *testing.T, ours, notOurs, broken float64) {
	t.Helper()
	samples, err := s.gateway.Metrics(t.Context())
	must(t, err)
	for state, want := range map[string]float64{"ours": ours, "not-ours": notOurs, "broken": broken} {
		if got := gateway.Sum(samples, "quaymaster_policies", "state", state); got != want {
			t.Errorf("%v policies are %s, want %v", got, state, want)
		}
	}
}

const generating = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: generating}
spec:
  whatever: [is, unknown]
  rules:
    - name: quota
      match: {any: [{resources: {kinds: [Namespace]}}]}
      generate: {kind: ResourceQuota, apiVersion: v1, name: quota, namespace: "{{request.object.metadata.name", data: {}}
`

// tryOtherRules: a document with rules about other objects alone is refused like any other
// one that is broken, and is active once it is corrected.
func (s *scene) tryOtherRules(t *testing.T) {
	if err := s.plane.ApplyYAML(t.Context(), generating); err == nil || !strings.Contains(err.Error(), "spec.whatever") {
		t.Errorf("rules about other objects with an unknown field: %v, want that spec.whatever is refused", err)
	}
	s.checkStates(t, 0, 0, 0)
	s.put(t, strings.NewReplacer("  whatever: [is, unknown]\n", "", "metadata.name\"", "metadata.name}}\"", "data: {}", "data: {spec: {hard: {pods: '9'}}}").Replace(generating))
	s.checkStates(t, 1, 0, 0)
	s.drop(t, "generating")
}

// misspelt is a policy that means to protect pods, and does not say how: a field
// is misspelt. It names kinds that must never be blocked as well.
const misspelt = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: misspelt}
spec:
  rules:
    - name: signed
      match: {any: [{resources: {kinds: [Pod, Namespace, Node, Lease, Event]}}]}
      verifyImages: [{imageReferencez: ["*"]}]
`

func (s *scene) tryRefused(t *testing.T) {
	kubectl := s.kubectl(t)
	file := t.TempDir() + "/policy.yaml"
	must(t, os.WriteFile(file, []byte(misspelt), 0o600))
	said, err := kubectl("apply", "-f", file)
	for _, word := range []string{"ClusterPolicy misspelt: the policy is broken", "spec.rules[0].verifyImages[0].imageReferencez", "next: "} {
		if err == nil || !strings.Contains(said, word) {
			t.Errorf("kubectl apply does not say %q: %v, %s", word, err, said)
		}
	}
	s.checkStates(t, 0, 0, 0)
	text, err := s.env.YAML(env.Policy{Name: "misspelt", Namespaces: []string{"nowhere"}})
	must(t, err, os.WriteFile(file, []byte(text), 0o600))
	s.effect(t, func(context.Context) error {
		_, err := kubectl("apply", "-f", file)
		return err
	})
	s.checkStates(t, 1, 0, 0)
	s.drop(t, "misspelt")
}

const berthDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: berths.boats.example}
spec:
  group: boats.example
  scope: Namespaced
  names: {plural: berths, singular: berth, kind: Berth, listKind: BerthList}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// tryExtractor: the webhooks match a kind when a policy does, and no sooner.
func (s *scene) tryExtractor(t *testing.T) {
	must(t, s.plane.ApplyYAML(t.Context(), berthDefinition))
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	t.Cleanup(func() {
		definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		_ = client.Resource(definitions).Delete(context.WithoutCancel(t.Context()), "berths.boats.example", meta.DeleteOptions{})
	})
	signed, err := s.env.Signed("shop/ship", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/wreck", "1.0")
	berths := client.Resource(schema.GroupVersionResource{Group: "boats.example", Version: "v1", Resource: "berths"}).Namespace(s.namespace)
	create := func(ctx context.Context, name, image string) (*unstructured.Unstructured, error) {
		return berths.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "boats.example/v1", "kind": "Berth", "metadata": map[string]any{"name": name}, "spec": map[string]any{"ship": image},
		}}, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
	}
	_, err = create(t.Context(), "before", bare.Name)
	must(t, err)
	if rules := s.asked(t); strings.Contains(rules, "berths") {
		t.Errorf("the webhooks match %s before a policy does", rules)
	}
	text, err := s.env.YAML(env.Policy{
		Name: "berths", Kinds: []string{"Berth"}, Namespaces: []string{s.namespace}, Rule: audited(),
		Extractors: map[string]any{"Berth": []any{map[string]any{"path": "/spec/ship"}}},
	})
	must(t, err)
	s.put(t, text)
	// The API server watches its webhook configurations as well.
	eventually(t, func(ctx context.Context) error {
		if _, err := create(ctx, "wreck", bare.Name); err == nil {
			return fmt.Errorf("an unsigned image in a Berth is admitted, while asked about are %s", s.asked(t))
		}
		return nil
	})
	_, err = create(t.Context(), "wreck", bare.Name)
	denied(t, "an unsigned image in a Berth", err, "unsigned")
	got, err := create(t.Context(), "ship", signed.Name)
	must(t, err)
	if image, _, _ := unstructured.NestedString(got.Object, "spec", "ship"); image != signed.Name {
		t.Errorf("the Berth has %s, want it unchanged", image)
	}
	if _, err := s.dryRun(t.Context(), pod("bare", bare.Name)); err != nil {
		t.Errorf("a Pod that no policy matches: %v", err)
	}
}

// asked returns the resources of the validating webhooks.
func (s *scene) asked(t *testing.T) string {
	t.Helper()
	configuration, err := s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "quaymaster", meta.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "nothing"
	}
	must(t, err)
	var resources []string
	for _, webhook := range configuration.Webhooks {
		for _, rule := range webhook.Rules {
			resources = append(resources, rule.Resources...)
		}
	}
	return strings.Join(resources, " ")
}

// TestBroken: a broken policy that was created while the webhook was away denies the objects
// that it names, and never those that keep a cluster alive.
func TestBroken(t *testing.T) {
	s := unguarded(t, "broken")
	s.endLead(t)
	must(t, s.plane.ApplyYAML(t.Context(), misspelt))
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	t.Cleanup(func() {
		_ = client.Resource(clusterPolicies).Delete(context.WithoutCancel(t.Context()), "misspelt", meta.DeleteOptions{})
	})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	c := gateway.Configuration{}
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))
	eventually(t, func(ctx context.Context) error {
		if _, err := s.dryRun(ctx, pod("web", signed.Name)); err == nil {
			return fmt.Errorf("a Pod is admitted, while asked about are %s", s.asked(t))
		}
		return nil
	})

	_, err = s.dryRun(t.Context(), pod("web", signed.Name))
	for _, word := range []string{"could not be verified", "misspelt", "imageReferencez"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal does not say %q: %v", word, err)
		}
	}
	s.checkStates(t, 0, 0, 1)
	samples, err := s.gateway.Metrics(t.Context())
	must(t, err)
	if gateway.Sum(samples, "quaymaster_policy_broken", "policy", "ClusterPolicy/misspelt") != 1 {
		t.Error("the metrics do not name the broken policy")
	}
	eventually(t, func(ctx context.Context) error {
		events, err := s.eventsIn(ctx, meta.NamespaceDefault)
		for _, e := range events {
			if e.Regarding.Name == "misspelt" && e.Reason == "PolicyError" && strings.Contains(e.Note, "spec.rules[0].verifyImages[0].imageReferencez") {
				return nil
			}
		}
		return fmt.Errorf("no event names the field among %v (%w)", events, err)
	})
	s.awaitStatus(t, "misspelt", "False", "spec.rules[0].verifyImages[0].imageReferencez")
	s.tryVital(t)

	text, err := s.env.YAML(env.Policy{Name: "misspelt", Namespaces: []string{s.namespace}})
	must(t, err)
	s.effect(t, func(ctx context.Context) error { return s.plane.ApplyYAML(ctx, text) })
	s.checkStates(t, 1, 0, 0)
	if _, err := s.dryRun(t.Context(), pod("web", signed.Name)); err != nil {
		t.Errorf("after the correction a signed image: %v", err)
	}
	_, err = s.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "after the correction an unsigned image", err, "unsigned")
	s.awaitStatus(t, "misspelt", "True", "active")
}

// awaitStatus waits until a policy's status has this readiness and reason.
func (s *scene) awaitStatus(t *testing.T, name, ready, why string) {
	t.Helper()
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		got, err := client.Resource(clusterPolicies).Get(ctx, name, meta.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		for _, item := range conditions {
			condition, _ := item.(map[string]any)
			if message, _ := condition["message"].(string); condition["type"] == "Ready" && condition["status"] == ready && strings.Contains(message, why) {
				return nil
			}
		}
		return fmt.Errorf("the status is %v, want Ready %s for %q", conditions, ready, why)
	})
}

// tryVital creates what keeps a cluster alive.
func (s *scene) tryVital(t *testing.T) {
	object, trial := meta.ObjectMeta{Name: "vital"}, meta.CreateOptions{DryRun: []string{meta.DryRunAll}}
	about := core.ObjectReference{Namespace: s.namespace, Name: "vital"}
	_, namespace := s.client.CoreV1().Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: object}, trial)
	_, node := s.client.CoreV1().Nodes().Create(t.Context(), &core.Node{ObjectMeta: object}, trial)
	_, lease := s.client.CoordinationV1().Leases(s.namespace).Create(t.Context(), &coordination.Lease{ObjectMeta: object}, trial)
	_, event := s.client.CoreV1().Events(s.namespace).Create(t.Context(), &core.Event{ObjectMeta: object, InvolvedObject: about}, trial)
	for kind, err := range map[string]error{"Namespace": namespace, "Node": node, "Lease": lease, "Event": event} {
		if err != nil {
			t.Errorf("under a broken policy, a %s: %v", kind, err)
		}
	}
	if rules := s.asked(t); !strings.HasPrefix(rules, "pods ") || strings.ContainsAny(rules, "*") || strings.Contains(rules, "nodes") || strings.Contains(rules, "namespaces") || strings.Contains(rules, "leases") || strings.Contains(rules, "events") {
		t.Errorf("the webhooks match %s", rules)
	}
}
