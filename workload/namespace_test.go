package workload_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/workload"
)

// TestNamespaceLabel: a Namespace of a file has the label that the API server sets.
func TestNamespaceLabel(t *testing.T) {
	const label = "kubernetes.io/metadata.name"
	for _, c := range []struct {
		reason, object string
		want           map[string]string
	}{
		{"without labels", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}", map[string]string{label: "shop"}},
		{"with null", "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: null}}", map[string]string{label: "shop"}},
		{"with another label", "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: a}}}", map[string]string{label: "shop", "team": "a"}},
		{"with the label", "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {" + label + ": shop}}}", map[string]string{label: "shop"}},
		{"with the name of another", "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {" + label + ": kube-system}}}", map[string]string{label: "shop"}},
		{"as an item of a list", "{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Namespace, metadata: {name: shop}}]}", map[string]string{label: "shop"}},
		{"with a generated name", "{apiVersion: v1, kind: Namespace, metadata: {generateName: shop-}}", map[string]string{}},
		{"with labels that are no object", "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: a}}", map[string]string{}},
		{"of another group", "{apiVersion: example.org/v1, kind: Namespace, metadata: {name: shop}}", map[string]string{}},
		{"another kind", "{apiVersion: v1, kind: Node, metadata: {name: shop}}", map[string]string{}},
	} {
		objects, err := workload.Read(strings.NewReader(c.object), "test")
		if err != nil || len(objects) != 1 {
			t.Errorf("%s: %d objects: %v", c.reason, len(objects), err)
			continue
		}
		if got := objects[0].Root().Member("metadata").Member("labels").Texts(); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.reason, got, c.want)
		}
	}
}
