package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// subresourceRights are those of the gateway for the triggers and targets of subresourceTriggers.
const subresourceRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: subresources}
rules:
  - {apiGroups: [""], resources: [configmaps, pods], verbs: [get, list, watch, patch]}
  - {apiGroups: [""], resources: [nodes], verbs: [get, list, watch]}
  - {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: subresources}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: subresources}
subjects: [{kind: ServiceAccount, name: quaymaster, namespace: quaymaster}]
`

// subresourceTriggers annotate a pod with the zone of its node, and a ConfigMap with the replicas of a Deployment,
// the container that was added to a pod and the state of a node.
const subresourceTriggers = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: subresources}
spec:
  background: false
  validationFailureAction: Enforce
  rules:
    - name: zone
      match: {any: [{resources: {kinds: [Pod/binding], namespaces: [subresources]}}]}
      context:
        - name: zone
          apiCall: {urlPath: "/api/v1/nodes/{{request.object.target.name}}", jmesPath: metadata.labels.zone}
      mutate:
        targets: [{apiVersion: v1, kind: Pod, namespace: "{{request.namespace}}", name: "{{request.name}}"}]
        patchStrategicMerge: {metadata: {annotations: {zone: "{{zone}} by {{request.operation}} {{request.kind.kind}}"}}}
    - name: debugged
      match: {any: [{resources: {kinds: [Pod/ephemeralcontainers], namespaces: [subresources]}}]}
      mutate:
        targets: [{apiVersion: v1, kind: ConfigMap, namespace: subresources, name: log}]
        patchStrategicMerge: {data: {debugged: "{{request.name}} {{request.object.spec.ephemeralContainers[0].name}}"}}
    - name: unbound
      match: {any: [{resources: {kinds: [Pod/binding], names: [refused], namespaces: [subresources]}}]}
      validate: {message: it stays unbound, deny: {}}
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: subresources-scaled}
spec:
  evaluation: {mutateExisting: {enabled: true}}
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: subresources}}
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [UPDATE], resources: [deployments/scale]}]
  targetMatchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: subresources}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], resourceNames: [log]}]
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: "Object{data: {'scaled': request.object.kind + ' ' + request.name + ' ' + string(request.object.spec.replicas)}}"}
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: subresources-node}
spec:
  evaluation: {mutateExisting: {enabled: true}}
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [nodes/status], resourceNames: [subresources]}]
  targetMatchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: subresources}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], resourceNames: [log]}]
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: "Object{data: {'node': request.subResource + ' ' + request.object.status.nodeInfo.kubeletVersion}}"}
`

// TestSubresourceTriggers: rules about other objects apply to requests for the subresources that they name, also to
// those that were made while no replica led. A dry run, a refused request and an update of the object itself are none.
func TestSubresourceTriggers(t *testing.T) {
	must(t, plane(t).Namespace(t.Context(), "subresources"), plane(t).ApplyYAML(t.Context(), subresourceRights))
	s := guard(t, "subresources", gateway.Configuration{})
	t.Cleanup(func() {
		ctx, now := context.WithoutCancel(t.Context()), int64(0) // no kubelet ends the pods of the node
		_ = s.client.CoreV1().Pods(s.namespace).DeleteCollection(ctx, meta.DeleteOptions{GracePeriodSeconds: &now}, meta.ListOptions{})
		_ = s.client.RbacV1().ClusterRoleBindings().Delete(ctx, "subresources", meta.DeleteOptions{})
		_ = s.client.RbacV1().ClusterRoles().Delete(ctx, "subresources", meta.DeleteOptions{})
		_ = s.client.CoreV1().Nodes().Delete(ctx, "subresources", meta.DeleteOptions{})
	})
	for _, text := range strings.Split(subresourceTriggers, "---\n") {
		s.put(t, text)
	}
	image := s.env.Unsigned("shop/bare", "1.0").Name
	_, err := s.client.CoreV1().Nodes().Create(t.Context(), &core.Node{ObjectMeta: meta.ObjectMeta{Name: "subresources", Labels: map[string]string{"zone": "a"}}}, meta.CreateOptions{})
	must(t, err)
	_, err = s.client.CoreV1().ConfigMaps(s.namespace).Create(t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "log"}}, meta.CreateOptions{})
	must(t, err)
	_, err = s.client.AppsV1().Deployments(s.namespace).Create(t.Context(), deployment("web", image, 0, map[string]string{"app": "web"}), meta.CreateOptions{})
	must(t, err)
	for _, name := range []string{"bound", "dry", "refused", "alone"} {
		_, err := s.create(t, pod(name, image))
		must(t, err)
	}

	eventually(t, func(ctx context.Context) error { // until the webhooks match, and the refusal is in force
		err := s.bind(ctx, "refused", meta.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "it stays unbound") {
			return fmt.Errorf("the binding is not refused: %w", err)
		}
		return nil
	})
	must(t, s.bind(t.Context(), "dry", meta.DryRunAll))
	if err := s.bind(t.Context(), "refused"); err == nil {
		t.Fatal("a binding that a rule refuses was admitted")
	}
	must(t, s.bind(t.Context(), "bound"))
	s.wantZone(t, "bound")
	for _, name := range []string{"dry", "refused", "alone"} {
		if got, err := s.client.CoreV1().Pods(s.namespace).Get(t.Context(), name, meta.GetOptions{}); err != nil || got.Annotations["zone"] != "" {
			t.Errorf("%s: %v %v", name, got.Annotations, err)
		}
	}
	s.trySubresources(t, image)

	// The progress is saved within half a minute. Until then a new leader would not know where to begin.
	eventually(t, func(ctx context.Context) error {
		lease, err := s.client.CoordinationV1().Leases("quaymaster").Get(ctx, "quaymaster-background", meta.GetOptions{})
		if err == nil && lease.Spec.RenewTime == nil {
			err = fmt.Errorf("the lease has no time: %v", lease.Spec)
		}
		return err
	})
	s.loseGateway(t)
	must(t, s.bind(t.Context(), "alone"))
	s.gateway = s.start(t, gateway.Configuration{})
	must(t, s.gateway.Ready(t.Context()))
	s.wantZone(t, "alone")
}

// trySubresources makes requests for other subresources than binding, each of which is in the log.
func (s *scene) trySubresources(t *testing.T, image string) {
	t.Helper()
	pods, nodes, merge := s.client.CoreV1().Pods(s.namespace), s.client.CoreV1().Nodes(), types.StrategicMergePatchType
	// The updates of the objects come first, and would overwrite nothing if they were in the log afterwards.
	_, err := s.client.AppsV1().Deployments(s.namespace).Patch(t.Context(), "web", merge, []byte(`{"spec":{"replicas":1}}`), meta.PatchOptions{})
	must(t, err)
	_, err = nodes.Patch(t.Context(), "subresources", merge, []byte(`{"metadata":{"labels":{"other":"a"}}}`), meta.PatchOptions{})
	must(t, err)
	_, err = pods.Patch(t.Context(), "bound", merge, []byte(`{"metadata":{"labels":{"other":"a"}}}`), meta.PatchOptions{})
	must(t, err)
	_, err = pods.Patch(t.Context(), "bound", merge, []byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"`+image+`"}]}}`), meta.PatchOptions{}, "ephemeralcontainers")
	must(t, err)
	s.wantLog(t, "debugged", "bound debug")
	log, err := s.client.CoreV1().ConfigMaps(s.namespace).Get(t.Context(), "log", meta.GetOptions{})
	must(t, err)
	if len(log.Data) != 1 {
		t.Errorf("after updates of the objects themselves: %v", log.Data)
	}
	_, err = s.client.AppsV1().Deployments(s.namespace).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":2}}`), meta.PatchOptions{}, "scale")
	must(t, err)
	s.wantLog(t, "scaled", "Scale web 2")
	_, err = nodes.Patch(t.Context(), "subresources", merge, []byte(`{"status":{"nodeInfo":{"kubeletVersion":"v1.37.0"}}}`), meta.PatchOptions{}, "status")
	must(t, err)
	s.wantLog(t, "node", "status v1.37.0")
}

func (s *scene) bind(ctx context.Context, name string, dryRun ...string) error {
	binding := &core.Binding{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: s.namespace}, Target: core.ObjectReference{Kind: "Node", Name: "subresources"}}
	return s.client.CoreV1().Pods(s.namespace).Bind(ctx, binding, meta.CreateOptions{DryRun: dryRun})
}

// wantZone waits until a pod is annotated with the zone of its node.
func (s *scene) wantZone(t *testing.T, name string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		got, err := s.client.CoreV1().Pods(s.namespace).Get(ctx, name, meta.GetOptions{})
		if err == nil && got.Annotations["zone"] != "a by CREATE Binding" {
			err = fmt.Errorf("the annotations are %v", got.Annotations)
		}
		return err
	})
}

// wantLog waits until the log has an entry.
func (s *scene) wantLog(t *testing.T, name, want string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		got, err := s.client.CoreV1().ConfigMaps(s.namespace).Get(ctx, "log", meta.GetOptions{})
		if err == nil && got.Data[name] != want {
			err = fmt.Errorf("the log is %v", got.Data)
		}
		return err
	})
}
