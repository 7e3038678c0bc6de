package status

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy/catalog"
)

// TestRemedy: the status of the gateway's own kinds is always written, so no setting is the remedy.
func TestRemedy(t *testing.T) {
	reporter := Reporter{Writes: func(string) bool { return true }}
	for _, row := range []struct {
		reason string
		of     schema.GroupVersionResource
		want   string
	}{
		{"a kind of another engine", schema.GroupVersionResource{Group: kinds.KyvernoGroup, Version: "v1", Resource: "clusterpolicies"}, "set policies.writeStatus: never"},
		{"an own kind", schema.GroupVersionResource{Group: kinds.OwnGroup, Version: "v1alpha1", Resource: "imageoverrides"}, ""},
	} {
		object := Object{Object: documents.Object{Object: record.Object{Resource: row.of, Name: "a", UID: "u"}}}
		desired, written := reporter.Desired(catalog.Entry{State: catalog.Broken, Why: "spec.x: unknown field"}, object)
		if !written || desired.Remedy != row.want {
			t.Errorf("%s: remedy %q, written %t; want %q", row.reason, desired.Remedy, written, row.want)
		}
	}
}
