package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// copiesPolicies are a ClusterPolicy and a GeneratingPolicy with copies of one Secret, and a policy that lets the
// author of a trigger choose one. Triggers are ConfigMaps.
const copiesPolicies = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: copies}
spec:
  rules:
    - name: pull
      match: {any: [{resources: {kinds: [ConfigMap], names: [trigger], namespaces: [copies]}}]}
      generate: {apiVersion: v1, kind: Secret, name: regcred, namespace: copies, synchronize: true, clone: {name: regcred, namespace: copies-source}}
    - name: chosen
      match: {any: [{resources: {kinds: [ConfigMap], names: [chooses], namespaces: [copies]}}]}
      generate: {apiVersion: v1, kind: Secret, name: chosen, namespace: copies, clone: {name: "{{request.object.data.pick}}", namespace: copies-source}}
---
apiVersion: policies.kyverno.io/v1
kind: GeneratingPolicy
metadata: {name: copies-generated}
spec:
  evaluation: {synchronize: {enabled: true}}
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: copies}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps], resourceNames: [generates]}]
  generate:
    - expression: generator.Apply("copies-into", [resource.Get("v1", "secrets", "copies-source", "regcred")])
    - template:
        interpolate: cel
        value: |
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: made, namespace: copies-into}
          data: {of: (( object.metadata.name ))}
`

// TestCopiedSecrets: copies follow their source, also over a restart, and are deleted with it or their policy. get
// on Secrets is no permission to copy them, and the author of a trigger cannot choose one.
func TestCopiedSecrets(t *testing.T) {
	rights := strings.NewReplacer("name: others", "name: copies", "verbs: [get, list, watch, create, update, patch, delete]}]",
		"verbs: [get, list, watch, create, update, patch, delete]}, {apiGroups: [\"\"], resources: [secrets], verbs: [get, create, update, delete]}]").Replace(othersRights)
	must(t, plane(t).Namespace(t.Context(), "copies"), plane(t).Namespace(t.Context(), "copies-source"), plane(t).Namespace(t.Context(), "copies-into"),
		plane(t).ApplyYAML(t.Context(), rights))
	s := guard(t, "copies", gateway.Configuration{})
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = s.client.RbacV1().ClusterRoleBindings().Delete(ctx, "copies", meta.DeleteOptions{})
		_ = s.client.RbacV1().ClusterRoles().Delete(ctx, "copies", meta.DeleteOptions{})
	})
	sources, triggers := s.client.CoreV1().Secrets("copies-source"), s.client.CoreV1().ConfigMaps("copies")
	for _, name := range []string{"regcred", "private"} {
		_, err := sources.Create(t.Context(), &core.Secret{ObjectMeta: meta.ObjectMeta{Name: name}, StringData: map[string]string{"a": "one"}}, meta.CreateOptions{})
		must(t, err)
	}
	change := func(to string) {
		t.Helper()
		one, err := sources.Get(t.Context(), "regcred", meta.GetOptions{})
		must(t, err)
		one.Data["a"] = []byte(to)
		_, err = sources.Update(t.Context(), one, meta.UpdateOptions{})
		must(t, err)
	}
	copied := func(namespace, want string) { // empty: there is none
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			one, err := s.client.CoreV1().Secrets(namespace).Get(ctx, "regcred", meta.GetOptions{})
			if want == "" {
				if err == nil {
					return fmt.Errorf("%s has a copy", namespace)
				}
				if apierrors.IsNotFound(err) {
					return nil
				}
			}
			if err == nil && string(one.Data["a"]) != want {
				err = fmt.Errorf("the copy in %s has %q", namespace, one.Data["a"])
			}
			return err
		})
	}
	reported := func(text string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			list, err := s.client.EventsV1().Events("copies").List(ctx, meta.ListOptions{})
			if err != nil {
				return err
			}
			for i := range list.Items {
				if strings.Contains(list.Items[i].Note, text) {
					return nil
				}
			}
			return fmt.Errorf("none of %d events has %q", len(list.Items), text)
		})
	}
	var drops []func()
	for _, text := range strings.Split(copiesPolicies, "---\n") {
		drops = append(drops, s.put(t, text))
	}
	for _, name := range []string{"trigger", "generates", "chooses"} {
		_, err := triggers.Create(t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name}, Data: map[string]string{"pick": "private"}}, meta.CreateOptions{})
		must(t, err)
	}
	reported("cannot list resource \"secrets\"")
	reported("which the policy does not name")
	copied("copies", "")
	must(t, plane(t).ApplyYAML(t.Context(), strings.Replace(rights, "verbs: [get, create, update, delete]", "verbs: [get, list, watch, create, update, delete]", 1)))
	copied("copies", "one")
	copied("copies-into", "one")
	change("two")
	copied("copies", "two")
	copied("copies-into", "two")
	s.loseGateway(t)
	change("three")
	s.gateway = s.start(t, gateway.Configuration{})
	must(t, s.gateway.Ready(t.Context()))
	copied("copies", "three")
	copied("copies-into", "three")
	must(t, sources.Delete(t.Context(), "regcred", meta.DeleteOptions{}))
	copied("copies", "")
	copied("copies-into", "")
	_, err := s.client.CoreV1().ConfigMaps("copies-into").Get(t.Context(), "made", meta.GetOptions{})
	must(t, err)
	_, err = sources.Create(t.Context(), &core.Secret{ObjectMeta: meta.ObjectMeta{Name: "regcred"}, StringData: map[string]string{"a": "four"}}, meta.CreateOptions{})
	must(t, err)
	copied("copies", "four")
	copied("copies-into", "four")
	for _, drop := range drops {
		drop()
	}
	copied("copies", "")
	eventually(t, func(ctx context.Context) error {
		_, err := s.client.CoreV1().ConfigMaps("copies-into").Get(ctx, "made", meta.GetOptions{})
		if err == nil {
			return fmt.Errorf("an object of a deleted policy is there")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	copied("copies-into", "four") // stays, as in Kyverno
	if _, err := s.client.CoreV1().Secrets("copies").Get(t.Context(), "chosen", meta.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the author of a trigger has a Secret of their choice: %v", err)
	}
}

// appliedPolicy generates a ConfigMap for a trigger that was there before, by server-side apply.
func appliedPolicy(name string, orphan bool) string {
	return fmt.Sprintf(`apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: %[1]s}
spec:
  useServerSideApply: true
  rules:
    - name: r
      match: {any: [{resources: {kinds: [ConfigMap], names: [before], namespaces: [applied]}}]}
      generate:
        {generateExisting: true, synchronize: true, orphanDownstreamOnPolicyDelete: %[2]t,
         apiVersion: v1, kind: ConfigMap, name: made-%[1]s, namespace: applied, data: {data: {ours: "yes"}}}
`, name, orphan)
}

// TestGeneratedByApply: a policy generates for triggers that were there before it, keeps the fields of other
// managers, and leaves the object when it is deleted, if it says so; its twin takes the object with it.
func TestGeneratedByApply(t *testing.T) {
	must(t, plane(t).Namespace(t.Context(), "applied"), plane(t).ApplyYAML(t.Context(), strings.ReplaceAll(othersRights, "name: others", "name: applied")))
	s := guard(t, "applied", gateway.Configuration{})
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = s.client.RbacV1().ClusterRoleBindings().Delete(ctx, "applied", meta.DeleteOptions{})
		_ = s.client.RbacV1().ClusterRoles().Delete(ctx, "applied", meta.DeleteOptions{})
	})
	objects := s.client.CoreV1().ConfigMaps("applied")
	_, err := objects.Create(t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "before"}}, meta.CreateOptions{})
	must(t, err)
	leaves, takes := s.put(t, appliedPolicy("leaves", true)), s.put(t, appliedPolicy("takes", false))
	has := func(name string, want map[string]string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			one, err := objects.Get(ctx, name, meta.GetOptions{})
			if want == nil && apierrors.IsNotFound(err) {
				return nil
			}
			if err == nil && (want == nil || !maps.Equal(one.Data, want)) {
				err = fmt.Errorf("%s has %v, want %v", name, one.Data, want)
			}
			return err
		})
	}
	for _, name := range []string{"made-leaves", "made-takes"} {
		has(name, map[string]string{"ours": "yes"})
		_, err := objects.Patch(t.Context(), name, types.MergePatchType, []byte(`{"data": {"ours": "no", "theirs": "yes"}}`), meta.PatchOptions{FieldManager: "another"})
		must(t, err)
		has(name, map[string]string{"ours": "yes", "theirs": "yes"})
	}
	takes()
	has("made-takes", nil)
	leaves()
	has("made-leaves", map[string]string{"ours": "yes", "theirs": "yes"})
}
