package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// counted are the figures of reports.
type counted struct {
	pods, objects, bytes int
	writes               int64
	// created is how long the pods took to come, and settled how long after the last
	// of them the last report was written.
	created, settled time.Duration
}

// countTimeout bounds a count on a busy machine; quietTime is how long nothing must have
// been written for the reports to be settled: longer than a change waits.
const (
	countTimeout = 10 * time.Minute
	quietTime    = 20 * time.Second
)

// TestReportsCount: what reports cost the API server, as etcd has it. With
// QUAYMASTER_TEST_REPORTS=full and the Pod Security policies of QUAYMASTER_SAMPLES it is 1,000
// pods, of workloads and alone; else a tenth of that of workloads, under policies of our
// own.
func TestReportsCount(t *testing.T) {
	full := os.Getenv("QUAYMASTER_TEST_REPORTS") == "full"
	workloads, pods := 10, 10
	if full {
		workloads = 100
	}
	define(t, plane(t))
	for _, row := range []struct {
		reason, namespace string
		workloads, each   int // 0 workloads: lone pods
		countPasses       bool
		bytes             int // at most for 1,000 pods
	}{
		{"pods of workloads", "count-workloads", workloads, pods, false, 1_000_000},
		{"lone pods", "count-lone", 0, workloads * pods, false, 6_000_000},
		{"lone pods, passes counted", "count-passes", 0, workloads * pods, true, 1_500_000},
	} {
		if !full && row.workloads == 0 {
			continue
		}
		t.Run(row.reason, func(t *testing.T) {
			c := gateway.Configuration{}
			c.Reports.CountPasses = row.countPasses
			s := guard(t, row.namespace, c)
			s.putAll(t, countedPolicies(t, full))
			s.awaitScan(t)
			got := s.counts(t, row.workloads, row.each)
			t.Logf("%s: %d pods, %d reports of %d bytes, %d writes, %v to create, settled %v after", row.reason, got.pods, got.objects, got.bytes, got.writes, got.created.Round(time.Millisecond), got.settled.Round(time.Millisecond))
			reports := row.workloads * 2
			if row.workloads == 0 {
				reports = got.pods
			}
			if got.objects == 0 || got.objects > reports {
				t.Errorf("%d reports, want at most %d", got.objects, reports)
			}
			most := row.bytes / 1000 * got.pods
			if !full {
				most *= 2 // one of five policies fails, as none of the 18 does
			}
			if got.bytes > most {
				t.Errorf("%d bytes, want at most %d", got.bytes, most)
			}
			// Pods that come over a longer time than a change waits are written in several.
			if most := int64(got.objects) * 12 / 10; got.writes > most && got.created < 10*time.Second {
				t.Errorf("%d writes of %d reports, want at most %d", got.writes, got.objects, most)
			}
			if got.settled > 30*time.Second {
				t.Errorf("settled after %v, want 30 s at most", got.settled)
			}
			s.scansWithoutAWrite(t, c, got.objects)
			s.clear(t)
		})
	}
}

// countedPolicies returns the policies that are counted under.
func countedPolicies(t *testing.T, full bool) []string {
	t.Helper()
	var all []string
	if !full {
		for i := range 5 {
			wants := labelled(fmt.Sprint("counted-", i), "'count-*'")
			if i == 0 { // one that all pods fail
				wants = strings.ReplaceAll(wants, "team: ", "owner: ")
			}
			all = append(all, wants)
		}
		return all
	}
	samples := os.Getenv("QUAYMASTER_SAMPLES")
	if samples == "" {
		t.Skip("QUAYMASTER_SAMPLES is not set")
	}
	for _, level := range []string{"baseline", "restricted"} {
		must(t, filepath.WalkDir(filepath.Join(samples, "kyverno-tests", level), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || strings.Contains(path, "/.") {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil && strings.Contains(string(text), "kind: ClusterPolicy") {
				all = append(all, strings.ReplaceAll(string(text), "validationFailureAction: Enforce", "validationFailureAction: Audit"))
			}
			return err
		}))
	}
	if len(all) != 18 {
		t.Fatalf("%d policies, want 18", len(all))
	}
	return all
}

// putAll applies policies until the test ends, and returns when the gateway has all.
func (s *scene) putAll(t *testing.T, policies []string) {
	t.Helper()
	before, err := s.documents()
	must(t, err)
	for _, text := range policies {
		s.put(t, text)
	}
	if now, err := s.documents(); err != nil || now != before+len(policies) {
		t.Fatalf("the gateway has %d documents, want %d (%v)", now, before+len(policies), err)
	}
}

// awaitScan waits for the end of a scan of the gateway's policies. One that runs while pods
// are created writes reports of the part that it found.
func (s *scene) awaitScan(t *testing.T) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		said, err := s.taken()
		if err != nil {
			return err
		}
		lease, err := s.client.CoordinationV1().Leases("quaymaster").Get(ctx, scanLease, meta.GetOptions{})
		if err != nil {
			return err
		}
		var at scan.Position
		if err := json.Unmarshal([]byte(lease.Annotations["quaymaster.dev/scan-position"]), &at); err != nil {
			return err
		}
		if at.Ended.IsZero() || !strings.HasSuffix(said, at.Basis.Policies) {
			return fmt.Errorf("the scan is at %+v, the policies are %s", at, said)
		}
		return nil
	})
}

// counts creates so many pods of each workload, or lone ones, and returns what their
// reports came to.
func (s *scene) counts(t *testing.T, workloads, each int) counted {
	t.Helper()
	const image = "registry.example/app:v1"
	labels := map[string]string{"team": "shop"}
	ctx, cancel := context.WithTimeout(t.Context(), countTimeout)
	defer cancel()
	began := time.Now()
	if workloads == 0 {
		for i := range each {
			lone := pod(fmt.Sprintf("lone-%04d", i), image)
			lone.Labels = labels
			restrict(&lone.Spec)
			_, err := s.create(t, lone)
			must(t, err)
		}
	}
	for i := range workloads {
		made := deployment(fmt.Sprintf("web-%03d", i), image, int32(each), labels) //nolint:gosec // a few
		if i%2 == 1 {                                                              // half of them are bare, and fail four policies
			restrict(&made.Spec.Template.Spec)
		}
		_, err := s.client.AppsV1().Deployments(s.namespace).Create(ctx, made, meta.CreateOptions{})
		must(t, err)
	}
	got := counted{pods: max(1, workloads) * each}
	must(t, process.Eventually(ctx, func(ctx context.Context) error {
		there, err := s.plane.Stored(ctx, "/registry/pods/"+s.namespace+"/")
		if err == nil && len(there) < got.pods {
			err = fmt.Errorf("%d pods are there, want %d", len(there), got.pods)
		}
		return err
	}))
	last := time.Now()
	got.created = last.Sub(began)
	var revision int64
	changed := last
	must(t, process.Eventually(ctx, func(ctx context.Context) error {
		stored, err := s.reportsStored(ctx)
		if err != nil {
			return err
		}
		if now := newest(stored); now != revision {
			revision, changed = now, time.Now()
		}
		if quiet := time.Since(changed); quiet < quietTime || len(stored) == 0 {
			return fmt.Errorf("%d reports, and nothing written for %v", len(stored), quiet)
		}
		got.objects, got.bytes, got.writes = len(stored), 0, 0
		for _, each := range stored {
			got.bytes += each.Bytes
			got.writes += each.Writes
		}
		return nil
	}))
	got.settled = changed.Sub(last)
	return got
}

// clear removes the pods and their reports, so that the next count has the gateway to
// itself: its scan would say all of them anew in that count's form.
func (s *scene) clear(t *testing.T) {
	t.Helper()
	now, background := int64(0), meta.DeletePropagationBackground
	gone := meta.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background}
	must(t, s.client.AppsV1().Deployments(s.namespace).DeleteCollection(t.Context(), gone, meta.ListOptions{}))
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	must(t, process.Eventually(t.Context(), func(ctx context.Context) error {
		for prefix, remove := range map[string]func() error{
			"/registry/pods/": func() error {
				return s.client.CoreV1().Pods(s.namespace).DeleteCollection(ctx, gone, meta.ListOptions{})
			},
			"/registry/wgpolicyk8s.io/policyreports/": func() error {
				return client.Resource(policyReports).Namespace(s.namespace).DeleteCollection(ctx, gone, meta.ListOptions{})
			},
		} {
			left, err := s.plane.Stored(ctx, prefix+s.namespace+"/")
			if err != nil {
				return err
			}
			if len(left) > 0 {
				return errors.Join(remove(), fmt.Errorf("%d are left under %s", len(left), prefix))
			}
		}
		return nil
	}))
}

// restrict makes pods that meet the Pod Security Standards.
func restrict(of *core.PodSpec) {
	yes, no := true, false
	of.SecurityContext = &core.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault}}
	of.Containers[0].SecurityContext = &core.SecurityContext{
		AllowPrivilegeEscalation: &no, Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}},
	}
}

// reportsStored returns the reports of the namespace as etcd has them.
func (s *scene) reportsStored(ctx context.Context) ([]controlplane.Stored, error) {
	return s.plane.Stored(ctx, "/registry/wgpolicyk8s.io/policyreports/"+s.namespace+"/")
}

// newest returns when the last of them was written.
func newest(stored []controlplane.Stored) int64 {
	var last int64
	for _, each := range stored {
		last = max(last, each.Revision)
	}
	return last
}

// scansWithoutAWrite has another gateway look at everything, and fails the test if
// it writes anything.
func (s *scene) scansWithoutAWrite(t *testing.T, c gateway.Configuration, reports int) {
	t.Helper()
	before, err := s.reportsStored(t.Context())
	must(t, err)
	s.gateway.Kill()
	s.endLead(t)
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), countTimeout)
	defer cancel()
	must(t, process.Eventually(ctx, func(context.Context) error {
		if now := s.looked(t); now < float64(reports) {
			return fmt.Errorf("the scan has looked at %v of %d reports", now, reports)
		}
		return nil
	}))
	now, err := s.reportsStored(t.Context())
	must(t, err)
	if newest(now) != newest(before) || len(now) != len(before) {
		t.Errorf("a scan that changes nothing wrote reports")
	}
}
