package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/gateway/native/record"
)

const nativeRules = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: natives-owner}
spec:
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [Secret], namespaces: [natives-rules], operations: [CREATE, UPDATE]}}]}
    validate:
      failureAction: Enforce
      message: name an owner
      cel: {expressions: [{expression: "has(object.metadata.annotations) && 'owner' in object.metadata.annotations"}]}
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: natives-label}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: natives-rules}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [secrets], operations: [CREATE, UPDATE]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'team': 'shop'}}}"}
`

// ruled is a Secret that the rules admit.
func ruled(name string) *core.Secret {
	return &core.Secret{ObjectMeta: meta.ObjectMeta{Name: name, Annotations: map[string]string{"owner": "shop"}}}
}

// holds reports an admitted Secret without an owner, or one that has not got its label.
func (n *natives) holds(ctx context.Context) error {
	api, dry := n.client.CoreV1().Secrets("natives-rules"), meta.CreateOptions{DryRun: []string{meta.DryRunAll}}
	_, err := api.Create(ctx, &core.Secret{ObjectMeta: meta.ObjectMeta{Name: "violating"}}, dry)
	if err == nil || !strings.Contains(err.Error(), "name an owner") {
		return fmt.Errorf("a Secret without an owner: %w", err)
	}
	made, err := api.Create(ctx, ruled("right"), dry)
	if err != nil || made.Labels["team"] != "shop" || len(made.Labels) != 1 {
		return fmt.Errorf("the labels are %v, error %w", made.Labels, err)
	}
	return nil
}

// hasMutatingPolicies reports whether the API server serves MutatingAdmissionPolicies: the oldest does not, and
// the policy stays in the webhook.
func hasMutatingPolicies() bool { return os.Getenv(oldestVariable) == "" }

// awaitSecrets waits until both kinds of policies are native, or both are not, and webhooks for Secrets say so.
func (n *natives) awaitSecrets(t *testing.T, native bool) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		have, err := n.client.CoreV1().ConfigMaps(releaseNamespace).Get(ctx, record.Enforced, meta.GetOptions{})
		if err != nil {
			return err
		}
		states, err := record.DecodeStates(have.Data)
		if err != nil {
			return err
		}
		mutating := native && hasMutatingPolicies()
		for id, want := range map[string]bool{"ClusterPolicy/natives-owner": native, "MutatingPolicy/natives-label": mutating} {
			if states[id].Native != want {
				return fmt.Errorf("%s: %+v", id, states[id])
			}
		}
		changing, err := n.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "quaymaster", meta.GetOptions{})
		if err != nil {
			return err
		}
		validating, err := n.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "quaymaster", meta.GetOptions{})
		if err != nil {
			return err
		}
		changes, checks := false, false
		for _, w := range changing.Webhooks {
			for _, r := range w.Rules {
				changes = changes || slices.Contains(r.Resources, "secrets")
			}
		}
		for _, w := range validating.Webhooks {
			for _, r := range w.Rules {
				checks = checks || slices.Contains(r.Resources, "secrets")
			}
		}
		if changes == mutating || checks == native {
			return fmt.Errorf("the webhooks for Secrets: mutating %t, validating %t", changes, checks)
		}
		return nil
	})
}

// TestNativeRules: a ClusterPolicy in CEL and a MutatingPolicy go to the API server and back, and hold all the time. An
// object from before the policies can be deleted meanwhile.
func TestNativeRules(t *testing.T) {
	n := enforcedNatively(t, "natives-rules", "auto")
	api := n.client.CoreV1().Secrets("natives-rules")
	old := &core.Secret{ObjectMeta: meta.ObjectMeta{Name: "old", Finalizers: []string{"natives.example/hold"}}}
	_, err := api.Create(t.Context(), old, meta.CreateOptions{})
	must(t, err)
	free := []byte(`{"metadata": {"finalizers": null}}`)
	t.Cleanup(func() {
		_, _ = api.Patch(context.WithoutCancel(t.Context()), "old", types.MergePatchType, free, meta.PatchOptions{})
	})
	n.put(t, nativeRules)
	eventually(t, n.holds)

	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var failed []error
	tried := 0
	all.Go(func() {
		for ctx.Err() == nil {
			err := n.holds(ctx)
			tried++
			if err != nil && ctx.Err() == nil {
				failed = append(failed, err)
			}
		}
	})
	n.awaitSecrets(t, true)
	eventually(t, func(ctx context.Context) error {
		_, err := api.Create(ctx, &core.Secret{ObjectMeta: meta.ObjectMeta{Name: "violating"}}, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return fmt.Errorf("want a denial of the API server itself: %w", err)
		}
		return nil
	})
	must(t, api.Delete(t.Context(), "old", meta.DeleteOptions{}))
	if _, err := api.Patch(t.Context(), "old", types.MergePatchType, []byte(`{"data": {"a": "Yg=="}}`), meta.PatchOptions{}); err == nil {
		t.Error("a change of an object in deletion is not evaluated")
	}
	if _, err := api.Patch(t.Context(), "old", types.MergePatchType, free, meta.PatchOptions{}); err != nil {
		t.Errorf("an object in deletion keeps its finalizers: %v", err)
	}
	n.writer.Kill()
	n.endLead(t)
	n.write(t, "off")
	n.awaitSecrets(t, false)
	eventually(t, func(ctx context.Context) error {
		if !hasMutatingPolicies() {
			return nil
		}
		left, err := n.client.AdmissionregistrationV1().MutatingAdmissionPolicies().List(ctx, meta.ListOptions{LabelSelector: "quaymaster.dev/native"})
		if err != nil || len(left.Items) > 0 {
			return errors.Join(err, errors.New("native policies are left"))
		}
		return nil
	})
	cancel()
	all.Wait()
	if len(failed) > 0 || tried < 20 {
		t.Errorf("%d of %d tries: %v", len(failed), tried, errors.Join(failed[:min(len(failed), 3)]...))
	}
}
