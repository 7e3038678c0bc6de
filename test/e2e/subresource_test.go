package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// deniedUpdates denies updates of subresources and, by a CEL rule, of an object that violated
// the rule before. Each object named frozen-... has a twin named free-... that no rule selects.
const deniedUpdates = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: denied-updates}
spec:
  background: false
  rules:
    - name: no-scale
      match: {any: [{resources: {kinds: [StatefulSet/scale, Deployment/scale], names: [frozen-*], namespaces: [NAMESPACE]}}]}
      validate: {failureAction: Enforce, message: no scaling, deny: {}}
    - name: no-debug
      match: {any: [{resources: {kinds: [Pod/ephemeralcontainers], names: [frozen-*], namespaces: [NAMESPACE]}}]}
      validate: {failureAction: Enforce, message: no debugging, deny: {}}
    - name: no-changes
      match: {any: [{resources: {kinds: [ConfigMap], names: [frozen-*], namespaces: [NAMESPACE]}}]}
      validate: {failureAction: Enforce, cel: {expressions: [{expression: "false", message: no changes}]}}
`

// TestDeniedUpdates: an old object that violates a rule too is no reason to admit the update
// of a subresource, or an update under a CEL rule.
func TestDeniedUpdates(t *testing.T) {
	s := guard(t, "denied-updates", gateway.Configuration{})
	image := s.env.Unsigned("shop/bare", "1.0").Name
	for _, name := range []string{"frozen-a", "free-a"} {
		s.createUpdated(t, name, image)
	}
	s.put(t, strings.ReplaceAll(deniedUpdates, "NAMESPACE", s.namespace))
	s.awaitReady(t, "denied-updates")

	kubectl := s.kubectl(t)
	rows := []struct {
		want string // in the refusal
		args []string
	}{
		{"no scaling", []string{"scale", "statefulset/NAME", "--replicas=1"}},
		{"no scaling", []string{"scale", "deployment/NAME", "--replicas=1"}},
		{"no debugging", []string{"debug", "NAME", "--image=" + image, "--container=shell", "--profile=general"}},
		{"no changes", []string{"label", "configmap/NAME", "team=blue"}},
	}
	for _, row := range rows {
		for name, denied := range map[string]bool{"frozen-a": true, "free-a": false} {
			command := strings.ReplaceAll(strings.Join(row.args, " "), "NAME", name)
			output, err := kubectl(strings.Fields(command)...)
			if denied && (err == nil || !strings.Contains(output, row.want)) {
				t.Errorf("kubectl %s: %v, %s; want a refusal with %q", command, err, output, row.want)
			}
			if !denied && err != nil {
				t.Errorf("kubectl %s: %v, %s; want it admitted", command, err, output)
			}
		}
	}
	s.tryDeniedUpdates(t)
}

// createUpdated creates one object of each kind with updates that the policy denies.
func (s *scene) createUpdated(t *testing.T, name, image string) {
	t.Helper()
	labels := map[string]string{"app": name}
	d := deployment(name, image, 0, labels)
	stateful := &apps.StatefulSet{ObjectMeta: d.ObjectMeta}
	stateful.Spec.Replicas, stateful.Spec.Selector, stateful.Spec.Template = d.Spec.Replicas, d.Spec.Selector, d.Spec.Template
	config := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name}}
	_, err := s.client.AppsV1().Deployments(s.namespace).Create(t.Context(), d, meta.CreateOptions{})
	must(t, err)
	_, err = s.client.AppsV1().StatefulSets(s.namespace).Create(t.Context(), stateful, meta.CreateOptions{})
	must(t, err)
	_, err = s.client.CoreV1().ConfigMaps(s.namespace).Create(t.Context(), config, meta.CreateOptions{})
	must(t, err)
	_, err = s.create(t, pod(name, image))
	must(t, err)
}

// tryDeniedUpdates: a rule on a subresource selects that subresource alone: the rest of the
// object can be changed. The objects stay as they are.
func (s *scene) tryDeniedUpdates(t *testing.T) {
	merge, label := types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"blue"}}}`)
	sets, pods := s.client.AppsV1().StatefulSets(s.namespace), s.client.CoreV1().Pods(s.namespace)
	stateful, err := sets.Patch(t.Context(), "frozen-a", merge, label, meta.PatchOptions{})
	must(t, err)
	if *stateful.Spec.Replicas != 0 {
		t.Errorf("the StatefulSet has %d replicas, want 0", *stateful.Spec.Replicas)
	}
	got, err := pods.Patch(t.Context(), "frozen-a", merge, label, meta.PatchOptions{})
	must(t, err)
	if len(got.Spec.EphemeralContainers) != 0 {
		t.Errorf("the pod has ephemeral containers: %v", got.Spec.EphemeralContainers)
	}
}

// TestNamedControllers: a rule that names Deployment pins its template, since no rule on pods
// may follow; a rule on Pod leaves the template as it is.
func TestNamedControllers(t *testing.T) {
	s := guard(t, "named-controllers", gateway.Configuration{})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	text, err := s.env.YAML(env.Policy{Name: "named-controllers", Kinds: []string{"Deployment"}, Namespaces: []string{s.namespace}})
	must(t, err)
	s.put(t, text)
	s.awaitReady(t, "named-controllers")
	deployments := s.client.AppsV1().Deployments(s.namespace)
	create := func(name, image string) (string, error) {
		got, err := deployments.Create(t.Context(), deployment(name, image, 0, map[string]string{"app": name}), meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		if err != nil {
			return "", err
		}
		return got.Spec.Template.Spec.Containers[0].Image, nil
	}
	if image, err := create("web", signed.Name); err != nil || image != env.Pinned(signed) {
		t.Errorf("a signed image became %s (%v), want %s", image, err, env.Pinned(signed))
	}
	_, err = create("bare", s.env.Unsigned("shop/bare", "1.0").Name)
	denied(t, "a Deployment of an unsigned image", err, "unsigned")

	// The same policy, which may not pin, denies the tag and accepts the digest.
	text, err = s.env.YAML(env.Policy{
		Name: "named-controllers", Kinds: []string{"Deployment"}, Namespaces: []string{s.namespace}, Rule: map[string]any{"mutateDigest": false},
	})
	must(t, err)
	must(t, s.plane.ApplyYAML(t.Context(), text))
	eventually(t, func(context.Context) error {
		if image, err := create("web", signed.Name); err == nil || !strings.Contains(err.Error(), "[missing-digest]") {
			return fmt.Errorf("the tag became %s: %v", image, err)
		}
		return nil
	})
	if _, err := create("web", env.Pinned(signed)); err != nil {
		t.Errorf("the digest: %v", err)
	}
}
