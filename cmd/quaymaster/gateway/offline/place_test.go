package offline

import (
	"maps"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// TestPlace: -n is for objects that are in a namespace, as at admission.
func TestPlace(t *testing.T) {
	c, err := config.Parse([]byte("apiVersion: quaymaster.dev/v1alpha1\nkind: Configuration\n"))
	if err != nil {
		t.Fatal(err)
	}
	served := &Material{Kinds: []configuration.Resource{
		{Group: "example.org", Version: "v1", Name: "fleets", Kind: "Fleet"},
		{Group: "example.org", Version: "v1", Name: "ships", Kind: "Ship", Namespaced: true},
	}}
	for _, r := range []struct {
		reason, object, namespace string
		known                     bool
		labels                    map[string]string
	}{
		{"a workload", "{apiVersion: v1, kind: Pod, metadata: {name: a}}", "shop", true, map[string]string{"team": "a"}},
		{"a kind of the cluster that the API server serves", "{apiVersion: example.org/v1, kind: Fleet, metadata: {name: a}}", "", false, nil},
		{"one in namespaces beside it", "{apiVersion: example.org/v1, kind: Ship, metadata: {name: a}}", "shop", true, map[string]string{"team": "a"}},
		{"the same name in another group", "{apiVersion: other.org/v1, kind: Fleet, metadata: {name: a}}", "shop", true, map[string]string{"team": "a"}},
		{"a kind that Kubernetes itself has", "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}", "", false, nil},
		{
			"a Namespace is in itself, with its own labels", "{apiVersion: v1, kind: Namespace, metadata: {name: new, labels: {team: b}}}",
			"new", true, map[string]string{"team": "b", "kubernetes.io/metadata.name": "new"},
		},
	} {
		t.Run(r.reason, func(t *testing.T) {
			reader, err := NewReader(t.Context(), c, ReaderOptions{Version: "test", Material: served})
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			objects, err := workload.Read(strings.NewReader(r.object), "test")
			if err != nil {
				t.Fatal(err)
			}
			request := gate.Request{Object: stored.In(objects[0], "shop"), Subject: policy.Subject{Namespace: "shop", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true, NamespaceLabels: map[string]string{"team": "a"}}}}
			reader.Place(&request)
			if s := request.Subject; s.Namespace != r.namespace || s.NamespaceKnown != r.known || !maps.Equal(s.NamespaceLabels, r.labels) {
				t.Errorf("namespace %q, known %t: %v", s.Namespace, s.NamespaceKnown, s.NamespaceLabels)
			}
			if want := map[bool]string{false: "shop"}[request.ClusterScoped]; request.Object.Namespace() != want {
				t.Errorf("the object is in the namespace %q, want %q", request.Object.Namespace(), want)
			}
		})
	}
}
