package audit

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	ktesting "k8s.io/client-go/testing"
)

// noReports is a cluster without the reports' definitions.
func noReports() dynamic.Interface {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "wgpolicyk8s.io", Version: "v1alpha2", Resource: "policyreports"}:        "PolicyReportList",
		{Group: "wgpolicyk8s.io", Version: "v1alpha2", Resource: "clusterpolicyreports"}: "ClusterPolicyReportList",
		{Group: "openreports.io", Version: "v1alpha1", Resource: "reports"}:              "ReportList",
		{Group: "openreports.io", Version: "v1alpha1", Resource: "clusterreports"}:       "ClusterReportList",
	})
	client.PrependReactor("list", "*", func(action ktesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
	})
	return client
}

type noMetrics struct{}

func (noMetrics) SetDryVerdicts(int, int) {}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestUnwrittenVerdictsAreLogged: their reader would take an empty file for no difference.
func TestUnwrittenVerdictsAreLogged(t *testing.T) {
	for _, row := range []struct {
		reason string
		output io.Writer
		logged bool
	}{
		{"written", &strings.Builder{}, false},
		{"the disk is full", full{}, true},
	} {
		var log strings.Builder
		DryVerdicts{
			Limit: time.Minute, Output: row.output, Metrics: noMetrics{}, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Reports: noReports(),
			Open:    func() (Source, error) { return Source{Close: func() {}}, errors.New("no cluster") },
		}.Run(t.Context())
		if logged := strings.Contains(log.String(), "no space left on device"); logged != row.logged {
			t.Errorf("%s: logged %t: %s", row.reason, logged, log.String())
		}
	}
}
