package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// TestScan: workloads from before the gateway are scanned, their results are in one report
// with later ones of admission, and a new policy is evaluated on them.
func TestScan(t *testing.T) {
	client := define(t, plane(t))
	s := unguarded(t, "scans")
	s.endLead(t)
	bare := s.env.Unsigned("shop/bare", "1.0")
	old, err := s.create(t, pod("old", bare.Name))
	must(t, err)
	c := gateway.Configuration{}
	c.Scan.Interval = "1h"
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))
	s.enforce(t, env.Policy{Name: "scans-signed", Namespaces: []string{"scans"}})
	s.put(t, labelled("scans-labels", "scans"))

	s.awaitResults(t, client, old, map[string]string{"scans-signed": "fail background scan", "scans-labels": "fail background scan"})
	_, err = s.client.CoreV1().Pods("scans").Patch(t.Context(), "old", types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"}}}`), meta.PatchOptions{})
	must(t, err)
	s.awaitResults(t, client, old, map[string]string{"scans-signed": "fail background scan", "scans-labels": "pass"})
	s.put(t, labelled("scans-later", "scans"))
	s.awaitResults(t, client, old, map[string]string{
		"scans-signed": "fail background scan", "scans-labels": "pass", "scans-later": "pass",
	})
}

// awaitResults waits until the report of a pod has these results and no others: status and
// process by policy.
func (s *scene) awaitResults(t *testing.T, client dynamic.Interface, of *core.Pod, want map[string]string) {
	t.Helper()
	var last error // that is no end of the time
	eventually(t, func(ctx context.Context) error {
		if err := hasResults(ctx, client, of, want); err == nil || ctx.Err() == nil {
			last = err
		}
		return last
	})
}

func hasResults(ctx context.Context, client dynamic.Interface, of *core.Pod, want map[string]string) error {
	all, err := reportsIn(ctx, client, policyReports, of.Namespace)
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
		// A report has no process for the pass of an object.
		if got := strings.TrimSpace(e.Result + " " + e.Properties["process"]); got != want[e.Policy] {
			return fmt.Errorf("%s: %s, want %s", e.Policy, got, want[e.Policy])
		}
	}
	return nil
}

// TestScanIsKilled: a gateway that is killed in the middle of a scan, once it has saved its
// progress, leaves nothing out: the next one goes on there, and scans no more than the rest.
func TestScanIsKilled(t *testing.T) {
	peers.Long(t)
	const pods = 600 // three pages
	client := define(t, plane(t))
	s := unguarded(t, "scans-killed")
	s.endLead(t)
	s.endScan(t)
	var all []string
	for i := range pods {
		made, err := s.create(t, pod(fmt.Sprintf("p%03d", i), "registry.example/app:v1"))
		must(t, err)
		all = append(all, string(made.UID))
	}
	text := labelled("scans-killed", "scans-killed")
	must(t, s.plane.ApplyYAML(t.Context(), text))
	c := gateway.Configuration{}
	c.Scan.QPS = 0.03 // a position is kept once the reports are: later than a usual page follows
	killed := s.start(t, c)
	must(t, killed.Ready(t.Context()))
	s.waitsForPosition(t, 4*time.Minute)
	killed.Kill()
	if rounds := scanned(t, killed); len(rounds) > 0 {
		t.Fatalf("the scan was done before it was killed: %v", rounds)
	}
	s.endLead(t)
	s.gateway = s.start(t, gateway.Configuration{})
	must(t, s.gateway.Ready(t.Context()))
	objects, err := controlplane.ParseManifests([]byte(text))
	must(t, err)
	policies, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	t.Cleanup(func() { s.withdraw(t, policies, objects) })
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
	var rounds []map[string]any
	eventually(t, func(context.Context) error {
		rounds = scanned(t, s.gateway)
		if len(rounds) == 0 {
			return errors.New("no scan is done yet")
		}
		return nil
	})
	looked, _ := rounds[0]["objects"].(float64)
	if all := s.running(t); rounds[0]["resumed"] != true || looked == 0 || int(looked) > all-200 {
		t.Errorf("it did not go on where the other one was, with %d objects in all: %v", all, rounds[0])
	}
}

// running counts the objects of the cluster that a policy about Pods matches: other tests
// leave some.
func (s *scene) running(t *testing.T) int {
	t.Helper()
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	count := 0
	for _, kind := range []schema.GroupVersionResource{
		{Version: "v1", Resource: "pods"}, {Version: "v1", Resource: "replicationcontrollers"},
		{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "replicasets"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Group: "apps", Version: "v1", Resource: "daemonsets"},
		{Group: "batch", Version: "v1", Resource: "jobs"}, {Group: "batch", Version: "v1", Resource: "cronjobs"},
	} {
		list, err := client.Resource(kind).List(t.Context(), meta.ListOptions{})
		must(t, err)
		count += len(list.Items)
	}
	return count
}

// scanned returns a gateway's log lines of the rounds that it finished.
func scanned(t *testing.T, g *gateway.Gateway) []map[string]any {
	t.Helper()
	lines, err := g.Lines()
	must(t, err)
	return slices.DeleteFunc(lines, func(line map[string]any) bool { return line["msg"] != "a scan is done" })
}

const scanLease = "quaymaster-scan"

// endScan takes away how far the gateways of other tests have come.
func (s *scene) endScan(t *testing.T) {
	t.Helper()
	err := s.client.CoordinationV1().Leases("quaymaster").Delete(t.Context(), scanLease, meta.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		must(t, err)
	}
}

// waitsForPosition waits until it is kept that a scan is in the middle of a list.
func (s *scene) waitsForPosition(t *testing.T, most time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	must(t, process.Eventually(ctx, func(ctx context.Context) error {
		lease, err := s.client.CoordinationV1().Leases("quaymaster").Get(ctx, scanLease, meta.GetOptions{})
		if err != nil {
			return err
		}
		if at := lease.Annotations["quaymaster.dev/scan-position"]; !strings.Contains(at, `"continue":"`) {
			return fmt.Errorf("the scan is at %s", at)
		}
		return nil
	}))
}
