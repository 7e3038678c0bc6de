package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// cleanupRights permits the gateway to delete ConfigMaps; NAME is that of the test. The control plane of
// the tests does not aggregate ClusterRoles, so that this one is bound itself.
const cleanupRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: NAME, labels: {quaymaster.dev/aggregate-to-cleanup: "true"}}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list, delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: NAME}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: NAME}
subjects: [{kind: ServiceAccount, name: quaymaster, namespace: quaymaster}]
`

// permitCleanup grants cleanupRights until the test ends.
func (s *scene) permitCleanup(t *testing.T, name string) {
	t.Helper()
	must(t, s.plane.ApplyYAML(t.Context(), strings.ReplaceAll(cleanupRights, "NAME", name)))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = s.client.RbacV1().ClusterRoleBindings().Delete(ctx, name, meta.DeleteOptions{})
		_ = s.client.RbacV1().ClusterRoles().Delete(ctx, name, meta.DeleteOptions{})
	})
}

// configMap makes a ConfigMap with labels, as an administrator.
func (s *scene) configMap(t *testing.T, namespace, name string, labels map[string]string) *core.ConfigMap {
	t.Helper()
	made, err := s.client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name, Labels: labels}}, meta.CreateOptions{})
	must(t, err)
	return made
}

// left are the names of the ConfigMaps of a namespace, without those that Kubernetes makes.
func (s *scene) left(ctx context.Context, namespace string) ([]string, error) {
	list, err := s.client.CoreV1().ConfigMaps(namespace).List(ctx, meta.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, one := range list.Items {
		if !strings.HasPrefix(one.Name, "kube-") {
			names = append(names, one.Name)
		}
	}
	return names, nil
}

func (s *scene) awaitLeft(t *testing.T, namespace string, want ...string) {
	t.Helper()
	until(t, 3*time.Minute, func(ctx context.Context) error { // objects are looked through each minute
		got, err := s.left(ctx, namespace)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%s has %q, want %q", namespace, got, want)
		}
		return err
	})
}

// awaitCondition waits for the condition Ready of a policy.
func (s *scene) awaitCondition(t *testing.T, resource schema.GroupVersionResource, name, status, reason, says string) {
	t.Helper()
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		object, err := client.Resource(resource).Get(ctx, name, meta.GetOptions{})
		if err != nil {
			return err
		}
		list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		own, _, _ := unstructured.NestedSlice(object.Object, "status", "conditionStatus", "conditions") // of policies.kyverno.io
		list = append(list, own...)
		for _, each := range list {
			c, _ := each.(map[string]any)
			if c["type"] == "Ready" && c["status"] == status && c["reason"] == reason && strings.Contains(fmt.Sprint(c["message"]), says) {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %v, want %s %s", list, status, reason)
	})
}

// awaitEvent waits for an event of a reason about an object.
func (s *scene) awaitEvent(t *testing.T, namespace, name, reason, says string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		list, err := s.eventsIn(ctx, namespace)
		for _, e := range list {
			if e.Regarding.Name == name && e.Reason == reason && strings.Contains(e.Note, says) {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("no event %s about %s in %s", reason, name, namespace))
	})
}

var clusterCleanups = schema.GroupVersionResource{Group: "kyverno.io", Version: "v2", Resource: "clustercleanuppolicies"}

// everySecond is a schedule.
const everySecond = `"* * * * * * *"`

// TestCleanup: a policy deletes the objects that it selects and leaves their twins, once RBAC permits it; before that
// its condition and an event report the missing permission. A policy of a namespace deletes in that alone.
func TestCleanup(t *testing.T) {
	log := t.TempDir()
	settings := gateway.Configuration{}
	settings.DecisionLog.Folder = log
	s := guard(t, "cleanups", settings)
	other := s.in(t, "cleanups-other")
	old, young := map[string]string{"state": "old"}, map[string]string{"state": "young"}
	s.configMap(t, "cleanups", "old", old)
	s.configMap(t, "cleanups", "young", young)
	other.configMap(t, "cleanups-other", "old", old)
	s.configMap(t, "kube-system", "cleanups-old", old)
	t.Cleanup(func() {
		_ = s.client.CoreV1().ConfigMaps("kube-system").Delete(context.WithoutCancel(t.Context()), "cleanups-old", meta.DeleteOptions{})
	})
	s.put(t, `apiVersion: kyverno.io/v2
kind: ClusterCleanupPolicy
metadata: {name: cleanups}
spec:
  schedule: `+everySecond+`
  match: {any: [{resources: {kinds: [ConfigMap], namespaces: [cleanups, kube-system], selector: {matchLabels: {state: old}}}}]}
  deletionPropagationPolicy: Foreground
`)
	s.awaitCondition(t, clusterCleanups, "cleanups", "False", "PermissionMissing", "delete on configmaps")
	s.awaitEvent(t, "default", "cleanups", "PermissionMissing", "aggregate-to-cleanup")
	if got, err := s.left(t.Context(), "cleanups"); err != nil || len(got) != 2 {
		t.Errorf("without a permission %q are left, %v", got, err)
	}
	s.permitCleanup(t, "cleanups")
	s.awaitLeft(t, "cleanups", "young")
	s.awaitEvent(t, "cleanups", "old", "CleanedUp", "ClusterCleanupPolicy/cleanups")
	s.awaitEvent(t, "default", "cleanups", "CleanupCompleted", "protected")
	if got, err := other.left(t.Context(), "cleanups-other"); err != nil || !slices.Equal(got, []string{"old"}) {
		t.Errorf("in another namespace %q are left, %v", got, err)
	}
	if _, err := s.client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cleanups-old", meta.GetOptions{}); err != nil {
		t.Errorf("a protected object: %v", err)
	}
	s.put(t, `apiVersion: policies.kyverno.io/v1
kind: NamespacedDeletingPolicy
metadata: {name: cleanups, namespace: cleanups}
spec:
  schedule: `+everySecond+`
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: ["*"]}]}
  conditions: [{name: young, expression: "has(object.metadata.labels) && object.metadata.labels[?'state'].orValue('') != ''"}]
`)
	s.awaitLeft(t, "cleanups")
	if got, err := other.left(t.Context(), "cleanups-other"); err != nil || !slices.Equal(got, []string{"old"}) {
		t.Errorf("a policy of a namespace reaches beyond it: %q, %v", got, err)
	}
	eventually(t, func(context.Context) error {
		deleted := map[string]string{}
		err := eachDeletion(log, func(d *decisionlog.Deletion) {
			deleted[d.Object.Name] = d.Policy + " " + d.Outcome + " " + d.Propagation
		})
		want := map[string]string{"old": "ClusterCleanupPolicy/cleanups deleted Foreground", "young": "NamespacedDeletingPolicy/cleanups/cleanups deleted "}
		if err == nil && !maps.Equal(deleted, want) {
			err = fmt.Errorf("the decision log has %v", deleted)
		}
		return err
	})
	samples, err := s.gateway.Metrics(t.Context())
	must(t, err)
	if n := gateway.Sum(samples, "quaymaster_cleanup_objects_total", "cause", "policy", "outcome", "deleted"); n != 2 {
		t.Errorf("%v deletions are counted", n)
	}
}

// eachDeletion reads the deletions in the decision logs below a folder.
func eachDeletion(folder string, do func(*decisionlog.Deletion)) error {
	logs, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return err
	}
	for _, each := range logs {
		for line, err := range decisionlog.Read(each, 1) {
			if err != nil {
				return err
			}
			if line.Deletion != nil {
				do(line.Deletion)
			}
		}
	}
	return nil
}

// TestCleanupHandover: a process is killed in the middle of a run, and the next one continues it. Both
// together keep to the limit, and no object is deleted twice.
func TestCleanupHandover(t *testing.T) {
	const objects, limit = 60, 40
	log := t.TempDir()
	settings := gateway.Configuration{}
	settings.DecisionLog.Folder, settings.Cleanup.Limit, settings.Cleanup.QPS = log, limit, 8
	s := guard(t, "handover", settings)
	s.permitCleanup(t, "handover")
	for i := range objects {
		s.configMap(t, "handover", fmt.Sprintf("old-%02d", i), map[string]string{"state": "old"})
	}
	at := time.Now().UTC().Add(15 * time.Second)
	s.put(t, fmt.Sprintf(`apiVersion: kyverno.io/v2
kind: ClusterCleanupPolicy
metadata: {name: handover}
spec:
  schedule: "%d %d %d * * * *"
  match: {any: [{resources: {kinds: [ConfigMap], namespaces: [handover], selector: {matchLabels: {state: old}}}}]}
`, at.Second(), at.Minute(), at.Hour()))
	count := func(ctx context.Context) (int, error) {
		left, err := s.left(ctx, "handover")
		return len(left), err
	}
	eventually(t, func(ctx context.Context) error {
		n, err := count(ctx)
		if err == nil && n > objects-5 {
			err = fmt.Errorf("%d are left", n)
		}
		return err
	})
	s.loseGateway(t)
	first, err := count(t.Context())
	must(t, err)
	if first < objects-limit {
		t.Fatalf("%d are left: the run was not interrupted", first)
	}
	s.gateway = s.start(t, settings)
	must(t, s.gateway.Ready(t.Context()))
	s.awaitEvent(t, "default", "handover", "CleanupIncomplete", "the limit of deletions")
	last, err := count(t.Context())
	must(t, err)
	// The reservations of the first process without a deletion count: ten at most.
	if last < objects-limit || last > objects-limit+10 || last >= first {
		t.Errorf("%d of %d are left after the first process, and %d after the second; the limit is %d", first, objects, last, limit)
	}
	seen := map[string]int{} // a process that is killed may not have written its last lines
	must(t, eachDeletion(log, func(d *decisionlog.Deletion) {
		if d.Outcome == "deleted" {
			seen[d.Object.UID]++
		}
	}))
	if len(seen) < first-last {
		t.Errorf("the decision log has %d deletions, and the second process made %d", len(seen), first-last)
	}
	for uid, n := range seen {
		if n > 1 {
			t.Errorf("%s was deleted %d times", uid, n)
		}
	}
}

// lifetimeRights permits users of the test, and the gateway to ask about them.
const lifetimeRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: writer, namespace: lifetimes}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, create, update, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: writer, namespace: lifetimes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: writer}
subjects: [{kind: User, name: writer, apiGroup: rbac.authorization.k8s.io}, {kind: User, name: owner, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: owner, namespace: lifetimes}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [delete]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: owner, namespace: lifetimes}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: owner}
subjects: [{kind: User, name: owner, apiGroup: rbac.authorization.k8s.io}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: lifetimes-review}
rules: [{apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: lifetimes-review}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: lifetimes-review}
subjects: [{kind: ServiceAccount, name: quaymaster, namespace: quaymaster}]
`

// TestLifetimes: the label of a user that may delete has its object deleted. That of another user is
// refused, and a label that was there before the webhook, or with a copied grant, has no effect.
func TestLifetimes(t *testing.T) {
	const label, grant = "cleanup.kyverno.io/ttl", "quaymaster.dev/ttl-granted"
	must(t, plane(t).Namespace(t.Context(), "lifetimes"), plane(t).ApplyYAML(t.Context(), lifetimeRights))
	before := clientset(t, plane(t).Admin()).CoreV1().ConfigMaps("lifetimes")
	_, err := before.Create(t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "unseen", Labels: map[string]string{label: "1s"}}}, meta.CreateOptions{})
	must(t, err)
	settings := gateway.Configuration{}
	settings.Cleanup.TTL = true
	s := unguarded(t, "lifetimes")
	s.permitCleanup(t, "lifetimes") // before the first pass, which would find nothing to delete
	s.endLead(t)
	s.gateway = s.start(t, settings)
	must(t, s.gateway.Ready(t.Context()))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = s.client.RbacV1().ClusterRoleBindings().Delete(ctx, "lifetimes-review", meta.DeleteOptions{})
		_ = s.client.RbacV1().ClusterRoles().Delete(ctx, "lifetimes-review", meta.DeleteOptions{})
	})
	user := func(name string) *kubernetes.Clientset {
		identity, err := s.plane.User(name)
		must(t, err)
		return clientset(t, identity)
	}
	writer, owner := user("writer").CoreV1().ConfigMaps("lifetimes"), user("owner").CoreV1().ConfigMaps("lifetimes")
	object := func(name, value string) *core.ConfigMap {
		return &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{label: value}}}
	}
	eventually(t, func(ctx context.Context) error { // until the webhook is called
		_, err := writer.Create(ctx, object("refused", "1h"), meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "may not delete") {
			return fmt.Errorf("the label is not refused: %w", err)
		}
		return nil
	})
	if _, err := writer.Create(t.Context(), object("refused", "1h"), meta.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a user without permission to delete sets the label: %v", err)
	}
	plain, err := writer.Create(t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "plain"}}, meta.CreateOptions{})
	must(t, err)
	plain.Labels = map[string]string{label: "1s"}
	if _, err := writer.Update(t.Context(), plain, meta.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("or later: %v", err)
	}
	granted, err := owner.Create(t.Context(), object("granted", "1s"), meta.CreateOptions{})
	must(t, err)
	if granted.Annotations[grant] == "" {
		t.Errorf("there is no grant: %v", granted.Annotations)
	}
	_, err = owner.Create(t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{GenerateName: "generated-", Labels: map[string]string{label: "1s"}}}, meta.CreateOptions{})
	if !apierrors.IsForbidden(err) && err != nil {
		t.Errorf("an object with a generated name: %v", err)
	}
	stays, err := owner.Create(t.Context(), object("stays", "1h"), meta.CreateOptions{})
	must(t, err)
	stays.Labels[label] = "1s"
	_, err = writer.Update(t.Context(), stays, meta.UpdateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a user without permission to delete shortens a lifetime: %v", err)
	}
	copied, err := writer.Create(t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "copied", Annotations: map[string]string{grant: granted.Annotations[grant]}}}, meta.CreateOptions{})
	must(t, err)
	copied.Data = map[string]string{"a": "b"}
	_, err = writer.Update(t.Context(), copied, meta.UpdateOptions{})
	must(t, err)
	s.awaitLeft(t, "lifetimes", "copied", "plain", "stays", "unseen")
	s.awaitEvent(t, "lifetimes", "granted", "CleanedUp", label)
	s.awaitEvent(t, "lifetimes", "unseen", "LifetimeIgnored", "no effect")
}
