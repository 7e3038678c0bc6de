package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestDeletedTriggers: rules with the operation DELETE apply to objects that were deleted, in their last
// state, and also to those that were deleted while no replica led. A dry run and a refused deletion are
// none, nor is a deletion in another namespace.
func TestDeletedTriggers(t *testing.T) {
	must(t, plane(t).Namespace(t.Context(), "deletions"), plane(t).ApplyYAML(t.Context(), strings.ReplaceAll(othersRights, "name: others", "name: deletions")))
	s := guard(t, "deletions", gateway.Configuration{})
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = s.client.RbacV1().ClusterRoleBindings().Delete(ctx, "deletions", meta.DeleteOptions{})
		_ = s.client.RbacV1().ClusterRoles().Delete(ctx, "deletions", meta.DeleteOptions{})
	})
	s.put(t, `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: deletions}
spec:
  validationFailureAction: Enforce
  rules:
    - name: made
      match: {any: [{resources: {kinds: [ConfigMap], names: ["trigger*"], namespaces: [deletions], operations: [DELETE]}}]}
      generate:
        apiVersion: v1
        kind: ConfigMap
        name: "was-{{request.object.metadata.name}}"
        namespace: deletions
        data: {data: {state: "{{request.oldObject.data.state}}"}}
    - name: kept
      match: {any: [{resources: {kinds: [ConfigMap], names: [trigger-kept], namespaces: [deletions], operations: [DELETE]}}]}
      validate: {message: it is kept, deny: {}}
`)
	s.put(t, `apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: deletions-altered}
spec:
  evaluation: {mutateExisting: {enabled: true}}
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: deletions}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [DELETE], resources: [configmaps], resourceNames: [trigger]}]
  targetMatchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: deletions}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], resourceNames: [target]}]
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: "Object{metadata: Object.metadata{annotations: {'after': request.oldObject.metadata.name}}}"}
`)
	maps := s.client.CoreV1().ConfigMaps("deletions")
	create := func(name string) {
		t.Helper()
		one, err := maps.Create(t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name}, Data: map[string]string{"state": "first"}}, meta.CreateOptions{})
		must(t, err)
		one.Data["state"] = "last"
		_, err = maps.Update(t.Context(), one, meta.UpdateOptions{})
		must(t, err)
	}
	made := func(name string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			one, err := maps.Get(ctx, "was-"+name, meta.GetOptions{})
			if err == nil && one.Data["state"] != "last" {
				err = fmt.Errorf("the state is %v", one.Data)
			}
			return err
		})
	}
	for _, name := range []string{"target", "trigger", "trigger-dry", "trigger-kept", "trigger-last", "trigger-alone"} {
		create(name)
	}
	eventually(t, func(ctx context.Context) error { // until the webhooks match, and the refusal is in force
		err := maps.Delete(ctx, "trigger-kept", meta.DeleteOptions{DryRun: []string{meta.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "it is kept") {
			return fmt.Errorf("the deletion is not refused: %w", err)
		}
		return nil
	})
	probes := 0
	eventually(t, func(ctx context.Context) error { // until the controller watches
		probes++
		name := fmt.Sprintf("trigger-probe-%d", probes)
		_, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name}, Data: map[string]string{"state": "last"}}, meta.CreateOptions{})
		if err == nil {
			err = maps.Delete(ctx, name, meta.DeleteOptions{})
		}
		if err != nil {
			return err
		}
		list, err := maps.List(ctx, meta.ListOptions{})
		if err == nil && !slices.ContainsFunc(list.Items, func(m core.ConfigMap) bool { return strings.HasPrefix(m.Name, "was-trigger-probe-") }) {
			err = errors.New("no deletion was followed yet")
		}
		return err
	})
	must(t, maps.Delete(t.Context(), "trigger-dry", meta.DeleteOptions{DryRun: []string{meta.DryRunAll}}))
	if err := maps.Delete(t.Context(), "trigger-kept", meta.DeleteOptions{}); err == nil {
		t.Fatal("a deletion that a rule refuses was admitted")
	}
	must(t, maps.Delete(t.Context(), "trigger", meta.DeleteOptions{}))
	made("trigger")
	eventually(t, func(ctx context.Context) error {
		one, err := maps.Get(ctx, "target", meta.GetOptions{})
		if err == nil && one.Annotations["after"] != "trigger" {
			err = fmt.Errorf("the annotations are %v", one.Annotations)
		}
		return err
	})
	must(t, maps.Delete(t.Context(), "trigger-last", meta.DeleteOptions{}))
	made("trigger-last") // so that the earlier requests were seen
	for _, name := range []string{"trigger-dry", "trigger-kept"} {
		if _, err := maps.Get(t.Context(), "was-"+name, meta.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s was not deleted, and the rule was applied: %v", name, err)
		}
	}
	// The position is saved within half a minute. Until then a new leader would not know where to begin.
	eventually(t, func(ctx context.Context) error {
		lease, err := s.client.CoordinationV1().Leases("quaymaster").Get(ctx, "quaymaster-background", meta.GetOptions{})
		if err == nil && !strings.Contains(lease.Annotations["quaymaster.dev/deletion-positions"], "ConfigMap") {
			err = fmt.Errorf("the annotations are %v", lease.Annotations)
		}
		return err
	})
	s.loseGateway(t)
	must(t, maps.Delete(t.Context(), "trigger-alone", meta.DeleteOptions{}))
	s.gateway = s.start(t, gateway.Configuration{})
	must(t, s.gateway.Ready(t.Context()))
	made("trigger-alone")
}
