package audit

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/scan"
)

// TestUnservedReportsAreNoFailure: their definitions are installed apart, and a
// line for each kind of each round would bury what matters.
func TestUnservedReportsAreNoFailure(t *testing.T) {
	kind := schema.GroupResource{Group: "wgpolicyk8s.io", Resource: "policyreports"}
	for _, row := range []struct {
		reason string
		answer error
		fails  int
	}{
		{"they are not served", apierrors.NewGenericServerResponse(404, "list", kind, "", "404 page not found", 0, true), 0},
		{"they may not be listed", apierrors.NewForbidden(kind, "", nil), 1},
	} {
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
			{Group: "wgpolicyk8s.io", Version: "v1alpha2", Resource: "policyreports"}:        "PolicyReportList",
			{Group: "wgpolicyk8s.io", Version: "v1alpha2", Resource: "clusterpolicyreports"}: "ClusterPolicyReportList",
		})
		client.PrependReactor("list", "*", func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, row.answer })
		store, err := reports.NewStore(client, policyreport.PolicyReports)
		if err != nil {
			t.Fatal(err)
		}
		failures := 0
		f := reportCleaner{stores: []*reports.Store{store}, failed: func(error) { failures++ }}
		f.Passed(t.Context(), scan.Pass{})
		if failures != row.fails {
			t.Errorf("%s: reported %d times, want %d", row.reason, failures, row.fails)
		}
	}
}
