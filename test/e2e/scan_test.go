package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/harbour"
)

// TestScan: what was there before the gateway is looked at, stands in one report with what
// admission says later, and a policy that comes is asked about it.
func TestScan(t *testing.T) {
	client := define(t, plane(t))
	s := unguarded(t, "scans")
	s.endLead(t)
	bare := s.harbour.Unsigned("shop/bare", "1.0")
	old, err := s.create(t, pod("old", bare.Name))
	must(t, err)
	c := gateway.Configuration{}
	c.Scan.Interval = "1h"
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))
	s.enforce(t, harbour.Policy{Name: "scans-signed", Namespaces: []string{"scans"}})
	s.put(t, labelled("scans-labels", "scans"))

	s.says(t, client, old, map[string]string{"scans-signed": "fail background scan", "scans-labels": "fail background scan"})
	_, err = s.client.CoreV1().Pods("scans").Patch(t.Context(), "old", types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"}}}`), meta.PatchOptions{})
	must(t, err)
	s.says(t, client, old, map[string]string{"scans-signed": "fail background scan", "scans-labels": "pass admission review"})
	s.put(t, labelled("scans-later", "scans"))
	s.says(t, client, old, map[string]string{
		"scans-signed": "fail background scan", "scans-labels": "pass admission review", "scans-later": "pass background scan",
	})
}

// says waits until the report of a pod has these results and no others: status and process
// by policy.
func (s *scene) says(t *testing.T, client dynamic.Interface, of *core.Pod, want map[string]string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		all, err := reportsIn(ctx, client, policyReports, s.namespace)
		if err != nil {
			return err
		}
		r, err := owned(all, string(of.UID))
		if err != nil {
			return err
		}
		if len(r.Results) != len(want) {
			return fmt.Errorf("%d results, want %d: %+v", len(r.Results), len(want), r.Results)
		}
		for _, e := range r.Results {
			if got := e.Result + " " + e.Properties["process"]; got != want[e.Policy] {
				return fmt.Errorf("%s: %s, want %s", e.Policy, got, want[e.Policy])
			}
		}
		return nil
	})
}

// TestScanIsKilled: a gateway that is killed in the middle of a scan leaves nothing out.
func TestScanIsKilled(t *testing.T) {
	const pods = 300 // more than a page has
	client := define(t, plane(t))
	s := unguarded(t, "scans-killed")
	s.endLead(t)
	var all []string
	for i := range pods {
		made, err := s.create(t, pod(fmt.Sprintf("p%03d", i), "registry.example/app:v1"))
		must(t, err)
		all = append(all, string(made.UID))
	}
	c := gateway.Configuration{}
	c.Scan.QPS = 1
	g := s.start(t, c)
	must(t, g.Ready(t.Context()))
	s.gateway = g
	s.put(t, labelled("scans-killed", "scans-killed"))
	eventually(t, func(ctx context.Context) error {
		samples, err := g.Metrics(ctx)
		if err == nil && gateway.Sum(samples, "quaymaster_scan_objects_total") == 0 {
			err = fmt.Errorf("nothing is looked at yet")
		}
		return err
	})
	g.Kill()
	s.endLead(t)
	s.gateway = s.start(t, gateway.Configuration{})
	must(t, s.gateway.Ready(t.Context()))
	eventually(t, func(ctx context.Context) error {
		found, err := reportsIn(ctx, client, policyReports, "scans-killed")
		if err != nil {
			return err
		}
		for _, uid := range all {
			r, err := owned(found, uid)
			if err != nil || !slices.ContainsFunc(r.Results, func(e entry) bool { return e.Policy == "scans-killed" && e.Result == "fail" }) {
				return fmt.Errorf("%d reports for %d pods: %w", len(found), pods, err)
			}
		}
		return nil
	})
}
