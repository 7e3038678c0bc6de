package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

var validatingPolicyResource = schema.GroupVersionResource{Group: "policies.kyverno.io", Version: "v1", Resource: "validatingpolicies"}

// natives is a scene with a second process, which writes native policies.
type natives struct {
	*scene
	writer        *gateway.Gateway
	configuration gateway.Configuration
	others        *scene // as the writer's user
}

// enforcedNatively starts both processes, each with its own account.
func enforcedNatively(t *testing.T, namespace, mode string) *natives {
	t.Helper()
	n := &natives{scene: unguarded(t, namespace)}
	rights, err := os.ReadFile(filepath.Join("testdata", "native.yaml"))
	must(t, err, n.plane.ApplyYAML(t.Context(), string(rights)))
	n.endLead(t)
	n.configuration.Policies.NativePolicies, n.configuration.Exceptions.Namespaces = mode, []string{namespace}
	n.gateway = n.start(t, n.configuration)
	must(t, n.gateway.Ready(t.Context()))
	other := *n.scene
	n.others = &other
	n.others.identity, err = n.plane.ServiceAccount(t.Context(), releaseNamespace, "quaymaster-native")
	must(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, name := range []string{"quaymaster-native", "quaymaster-native-webhooks"} {
			_ = n.client.CoreV1().ConfigMaps(releaseNamespace).Delete(ctx, name, meta.DeleteOptions{})
		}
		own := meta.ListOptions{LabelSelector: "quaymaster.dev/native"}
		_ = n.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, meta.DeleteOptions{}, own)
		_ = n.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().DeleteCollection(ctx, meta.DeleteOptions{}, own)
		_ = n.client.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().DeleteCollection(ctx, meta.DeleteOptions{}, own)
		_ = n.client.AdmissionregistrationV1().MutatingAdmissionPolicies().DeleteCollection(ctx, meta.DeleteOptions{}, own)
	})
	n.write(t, mode)
	return n
}

// write starts the writer in place of one that was killed.
func (n *natives) write(t *testing.T, mode string) {
	t.Helper()
	c := n.configuration
	c.Roles, c.Policies.NativePolicies = []string{"native"}, mode
	n.writer = n.others.start(t, c)
	must(t, n.writer.Ready(t.Context()))
}

// attack creates pods that the policy denies, until end is called, which reports those that were admitted.
func (n *natives) attack(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	tried := 0
	var admitted []string
	all.Go(func() {
		for ctx.Err() == nil {
			_, err := n.dryRun(ctx, pod("violating", "registry.example/web:latest"))
			tried++
			if err == nil {
				admitted = append(admitted, time.Now().Format("15:04:05.000"))
			}
		}
	})
	return func() {
		t.Helper()
		cancel()
		all.Wait()
		if len(admitted) > 0 || tried < 20 {
			t.Errorf("%d of %d violating pods were admitted, at %v", len(admitted), tried, admitted)
		}
	}
}

// awaitSide waits until a violating pod is denied by the API server itself, or by the webhook.
func (n *natives) awaitSide(t *testing.T, native bool) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		_, err := n.dryRun(ctx, pod("violating", "registry.example/web:latest"))
		if err == nil || strings.Contains(err.Error(), "ValidatingAdmissionPolicy") != native {
			return fmt.Errorf("want a denial, native: %t; got %w", native, err)
		}
		return nil
	})
}

// isAsked reports whether the API server calls the gateway about pods.
func (n *natives) isAsked(ctx context.Context) (bool, error) {
	have, err := n.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "quaymaster", meta.GetOptions{})
	if err != nil {
		return false, err
	}
	for _, w := range have.Webhooks {
		for _, r := range w.Rules {
			if strings.Contains(strings.Join(r.Resources, " ")+" ", "pods ") {
				return true, nil
			}
		}
	}
	return false, nil
}

func (n *natives) awaitAsked(t *testing.T, want bool) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		if asked, err := n.isAsked(ctx); err != nil || asked != want {
			return errors.Join(err, fmt.Errorf("the API server asks about pods: %t, want %t", asked, want))
		}
		return nil
	})
}

const noLatest = `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: natives-no-latest, labels: {app.kubernetes.io/instance: deployed}}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAMESPACE}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE, UPDATE]}]
  validations:
    - expression: object.spec.containers.all(c, !c.image.endsWith(':latest'))
      message: TEXT
`

const noLatestException = `apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: natives-exception, namespace: NAMESPACE}
spec:
  policyRefs: [{kind: ValidatingPolicy, name: natives-no-latest}]
  matchConditions: [{name: named, expression: "object.metadata.name == 'excepted'"}]
`

// TestNativeEnforcement: a policy goes to the API server and back, while violating pods are created all the time.
func TestNativeEnforcement(t *testing.T) {
	n := enforcedNatively(t, "natives", "auto")
	written := func(text string) string {
		return strings.NewReplacer("NAMESPACE", "natives", "TEXT", text).Replace(noLatest)
	}
	n.put(t, written("pin the tag"))
	n.awaitCondition(t, validatingPolicyResource, "natives-no-latest", "True", "Active", "")
	end := n.attack(t)
	n.awaitSide(t, true)
	n.awaitAsked(t, false)
	n.awaitCondition(t, validatingPolicyResource, "natives-no-latest", "True", "Active", "the API server evaluates it itself")
	n.isListed(t, `API server +\S+\n(?s:.*)Denials by the API server are in its audit log`)
	eventually(t, func(ctx context.Context) error { // until the API server has loaded the configurations
		before := countsOf(t, n.gateway, "quaymaster_requests_total")
		for range 20 {
			_, err := n.dryRun(ctx, pod("violating", "registry.example/web:latest"))
			if err == nil || !strings.Contains(err.Error(), "pin the tag") {
				return fmt.Errorf("the denial does not have the policy's message: %w", err)
			}
		}
		if _, err := n.dryRun(ctx, pod("right", "registry.example/web:1.0")); err != nil {
			return fmt.Errorf("a right pod: %w", err)
		}
		if after := countsOf(t, n.gateway, "quaymaster_requests_total"); after != before {
			return fmt.Errorf("the gateway answered %v requests", after-before)
		}
		return nil
	})

	must(t, n.plane.ApplyYAML(t.Context(), written("name a version")))
	eventually(t, func(ctx context.Context) error {
		_, err := n.dryRun(ctx, pod("violating", "registry.example/web:latest"))
		if err == nil || !strings.Contains(err.Error(), "name a version") || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return fmt.Errorf("the changed policy is not native yet: %w", err)
		}
		return nil
	})
	n.awaitAsked(t, false)

	drop := n.put(t, strings.ReplaceAll(noLatestException, "NAMESPACE", "natives"))
	n.awaitAsked(t, true)
	n.awaitSide(t, false)
	n.awaitCondition(t, validatingPolicyResource, "natives-no-latest", "True", "Active", "PolicyException natives/natives-exception is about it")
	n.isListed(t, `webhook +\S+\n +it stays in the webhook: the PolicyException natives/natives-exception is about it`)
	if _, err := n.dryRun(t.Context(), pod("excepted", "registry.example/web:latest")); err != nil {
		t.Errorf("what the exception covers: %v", err)
	}
	drop()
	n.awaitSide(t, true)
	n.awaitAsked(t, false)
	end()

	n.tryDrift(t)
	n.tryAccounts(t)
	n.tryOff(t)
	for name, g := range map[string]*gateway.Gateway{"the gateway": n.gateway, "the writer": n.writer} {
		for line := range strings.Lines(g.Log()) {
			if strings.Contains(line, "forbidden") {
				t.Errorf("%s lacks a right: %s", name, line)
			}
		}
	}
}

// isListed looks for the policy in the output of quaymaster policy list.
func (n *natives) isListed(t *testing.T, want string) {
	t.Helper()
	folder := t.TempDir()
	must(t, controlplane.WriteKubeconfig(filepath.Join(folder, "kubeconfig"), n.plane.Admin()))
	status, said, told := command(t, folder, "policy", "list")
	if status != 0 || !regexp.MustCompile(`(?m)^ValidatingPolicy/natives-no-latest +enforce +True +3 +`+want).MatchString(said) {
		t.Errorf("policy list: exit status %d, want %s:\n%s%s", status, want, said, told)
	}
}

// tryDrift: a deleted and a changed object are restored, and the policy is never lost for long.
func (n *natives) tryDrift(t *testing.T) {
	t.Helper()
	const name = "natives-no-latest.validatingpolicy.quaymaster.dev"
	api := n.client.AdmissionregistrationV1()
	have, err := api.ValidatingAdmissionPolicyBindings().Get(t.Context(), name, meta.GetOptions{})
	must(t, err)
	if have.Labels["app.kubernetes.io/instance"] != "" || len(have.OwnerReferences) != 1 || have.OwnerReferences[0].Name != "natives-no-latest" {
		t.Errorf("the binding is %v %v", have.Labels, have.OwnerReferences)
	}
	must(t, api.ValidatingAdmissionPolicyBindings().Delete(t.Context(), name, meta.DeleteOptions{}))
	n.awaitRepairs(t, 1)
	rule, err := api.ValidatingAdmissionPolicies().Get(t.Context(), name, meta.GetOptions{})
	must(t, err)
	rule.Spec.Validations[0].Expression = "true"
	_, err = api.ValidatingAdmissionPolicies().Update(t.Context(), rule, meta.UpdateOptions{})
	must(t, err)
	n.awaitRepairs(t, 2)
	rule, err = api.ValidatingAdmissionPolicies().Get(t.Context(), name, meta.GetOptions{})
	must(t, err)
	if rule.Spec.Validations[0].Expression == "true" {
		t.Error("the changed policy is not restored")
	}
	n.awaitSide(t, true)
	n.awaitAsked(t, false)
}

// awaitRepairs waits until some repairs are made, and the policy is native again.
func (n *natives) awaitRepairs(t *testing.T, want float64) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		repairs := countsOf(t, n.writer, "quaymaster_native_policies_restored_total") // counted once the loss is recorded
		have, err := n.client.CoreV1().ConfigMaps(releaseNamespace).Get(ctx, record.Enforced, meta.GetOptions{})
		if err != nil {
			return err
		}
		states, err := record.DecodeStates(have.Data)
		if err != nil {
			return err
		}
		state := states["ValidatingPolicy/natives-no-latest"]
		if repairs != want || !state.Native {
			return fmt.Errorf("%v repairs, want %v; the state is %+v", repairs, want, state)
		}
		return nil
	})
}

// tryAccounts: no account but the writer's may write native policies, and the writer may not write webhooks.
func (n *natives) tryAccounts(t *testing.T) {
	t.Helper()
	own := clientset(t, n.identity).AdmissionregistrationV1()
	all := meta.ListOptions{LabelSelector: "quaymaster.dev/native"}
	if err := own.ValidatingAdmissionPolicies().DeleteCollection(t.Context(), meta.DeleteOptions{}, all); !apierrors.IsForbidden(err) {
		t.Errorf("the gateway's account deletes native policies: %v", err)
	}
	writer := clientset(t, n.others.identity)
	if err := writer.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), "quaymaster", meta.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the writer deletes the webhooks: %v", err)
	}
	if _, err := writer.CoreV1().ConfigMaps(releaseNamespace).Update(t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "quaymaster-native-webhooks"}}, meta.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the writer says what the webhooks cover: %v", err)
	}
}

// tryOff: a writer that was killed leaves the policy with the API server; one with the mode off gives it back to the
// webhook.
func (n *natives) tryOff(t *testing.T) {
	t.Helper()
	end := n.attack(t)
	n.writer.Kill()
	n.endLead(t)
	must(t, n.gateway.Ready(t.Context()))
	n.write(t, "off")
	n.awaitSide(t, false)
	eventually(t, func(ctx context.Context) error {
		left, err := n.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, meta.ListOptions{LabelSelector: "quaymaster.dev/native"})
		if err != nil || len(left.Items) > 0 {
			return errors.Join(err, errors.New("native policies are left"))
		}
		return nil
	})
	n.awaitAsked(t, true)
	end()
}
