package gate

import (
	"maps"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// TestClusterScoped: a cluster-scoped object is in no namespace, whatever namespace the caller or
// the object names, so that no exclusion of a namespace covers it.
func TestClusterScoped(t *testing.T) {
	shop := map[string]string{"team": "a"}
	for _, c := range []struct {
		reason, object string
		scoped, whole  bool
		namespace      string
		labels         map[string]string // nil: unknown
	}{
		{"a kind in namespaces", "{apiVersion: v1, kind: Pod, metadata: {name: a}}", false, false, "shop", shop},
		{"a kind of the cluster", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}", false, false, "", nil},
		{"one that names a namespace", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a, namespace: shop}}", false, false, "", nil},
		{"a Node", "{apiVersion: v1, kind: Node, metadata: {name: a}}", false, false, "", nil},
		{"a custom kind of the cluster", "{apiVersion: example.org/v1, kind: Fleet, metadata: {name: a, namespace: shop}}", true, false, "", nil},
		{"a custom kind of unknown scope", "{apiVersion: example.org/v1, kind: Fleet, metadata: {name: a}}", false, false, "shop", shop},
		{"a kind of the same name in another group", "{apiVersion: example.org/v1, kind: Node, metadata: {name: a}}", false, false, "shop", shop},
		{"a Namespace", "{apiVersion: v1, kind: Namespace, metadata: {name: b, labels: {team: b}}}", false, false, "b", map[string]string{"team": "b", "kubernetes.io/metadata.name": "b"}},
		{"a Namespace with a generated name", "{apiVersion: v1, kind: Namespace, metadata: {generateName: b-}}", false, false, "", nil},
		{"a request of the API server", "{apiVersion: v1, kind: Node, metadata: {name: a}}", false, true, "shop", shop},
	} {
		objects, err := workload.Read(strings.NewReader(c.object), "test")
		if err != nil {
			t.Fatal(err)
		}
		r := Request{Object: objects[0], ClusterScoped: c.scoped, Subject: policy.Subject{Namespace: "shop", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true, NamespaceLabels: shop}}}
		if c.whole {
			r.Subject.Request = policy.RequestFrom([]byte("{}"))
		}
		s := r.subject()
		if s.Namespace != c.namespace || s.NamespaceKnown != (c.labels != nil) || !maps.Equal(s.NamespaceLabels, c.labels) {
			t.Errorf("%s: namespace %q, labels %v (known: %t)", c.reason, s.Namespace, s.NamespaceLabels, s.NamespaceKnown)
		}
	}
}
