package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// The Leases of leaders of a split.
const admissionLease, scanLeaderLease = "quaymaster", "quaymaster-scan-leader"

// split is a scene with two processes that share the roles, each with the rights of its
// own.
type split struct {
	*scene        // its gateway answers the API server
	controller    *gateway.Gateway
	configuration gateway.Configuration // of the controller
	reports       dynamic.Interface
	others        *scene // as the controller's user
}

// divided makes a scene in which admission runs, and nothing else yet.
func divided(t *testing.T, namespace string) *split {
	t.Helper()
	reports := define(t, plane(t))
	s := &split{scene: unguarded(t, namespace), reports: reports}
	rights, err := os.ReadFile(filepath.Join("testdata", "roles.yaml"))
	must(t, err, s.plane.ApplyYAML(t.Context(), string(rights)))
	other := *s.scene
	s.others = &other
	s.identity, err = s.plane.ServiceAccount(t.Context(), releaseNamespace, "quaymaster-admission")
	must(t, err)
	s.others.identity, err = s.plane.ServiceAccount(t.Context(), releaseNamespace, "quaymaster-controller")
	must(t, err)
	s.vacate(t)
	t.Cleanup(func() { // others lead by one of them
		_ = s.client.CoordinationV1().Leases(releaseNamespace).DeleteCollection(context.WithoutCancel(t.Context()), meta.DeleteOptions{}, meta.ListOptions{})
	})
	s.gateway = s.start(t, gateway.Configuration{Roles: []string{"admission"}})
	must(t, s.gateway.Ready(t.Context()))
	s.configuration.Roles = []string{"scan", "report", "background"}
	return s
}

// begin starts the controller.
func (s *split) begin(t *testing.T) {
	t.Helper()
	s.controller = s.others.start(t, s.configuration)
	must(t, s.controller.Ready(t.Context()))
}

// endControllerLead takes the lease of a controller that was killed away.
func (s *split) endControllerLead(t *testing.T) {
	t.Helper()
	err := s.client.CoordinationV1().Leases(releaseNamespace).Delete(t.Context(), scanLeaderLease, meta.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		must(t, err)
	}
}

// countsOf is what a process counts by the name of a metric and its labels.
func countsOf(t *testing.T, g *gateway.Gateway, name string, labels ...string) float64 {
	t.Helper()
	samples, err := g.Metrics(t.Context())
	must(t, err)
	return gateway.Sum(samples, name, labels...)
}

// TestRoles: two processes that share the roles do together what one does, each with no
// more rights than its roles need.
func TestRoles(t *testing.T) {
	s := divided(t, "roles")
	s.begin(t)
	s.enforce(t, env.Policy{Name: "roles-signed", Namespaces: []string{"roles"}})
	s.put(t, labelled("roles-labels", "roles"))
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")

	t.Run("admission admits, denies and keeps its configurations", func(t *testing.T) { s.tryAdmission(t, signed.Name, bare.Name) })
	t.Run("what comes is in reports within seconds", func(t *testing.T) { s.tryFollowing(t, signed.Name) })
	t.Run("a status costs nothing", func(t *testing.T) { s.tryStatus(t, signed.Name) })
	t.Run("rules about other objects", func(t *testing.T) { s.tryGenerate(t) })
	t.Run("the leader", func(t *testing.T) {
		for lease, want := range map[string]*gateway.Gateway{admissionLease: s.gateway, scanLeaderLease: s.controller} {
			got, err := s.client.CoordinationV1().Leases(releaseNamespace).Get(t.Context(), lease, meta.GetOptions{})
			must(t, err)
			if holder := *got.Spec.HolderIdentity; !strings.HasSuffix(holder, fmt.Sprintf("-%d", want.Pid())) {
				t.Errorf("by %s leads %s, want process %d", lease, holder, want.Pid())
			}
		}
	})
	t.Run("the controller has no endpoint", func(t *testing.T) {
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.controller.Configuration.Listen.Address)
		if err == nil {
			_ = connection.Close()
			t.Error("a listener has the address of its endpoints")
		}
	})
	t.Run("admission alone writes no reports and scans nothing", func(t *testing.T) { s.tryAlone(t, signed.Name) })

	for name, g := range map[string]*gateway.Gateway{"admission": s.gateway, "the controller": s.controller} {
		for line := range strings.Lines(g.Log()) {
			if strings.Contains(line, "forbidden") {
				t.Errorf("%s lacks a right: %s", name, line)
			}
		}
	}
}

func (s *split) tryAdmission(t *testing.T, signed, bare string) {
	got, err := s.create(t, pod("admitted", signed))
	must(t, err)
	if !strings.Contains(images(got)[0], "@sha256:") {
		t.Errorf("the image is %s, want it pinned", images(got)[0])
	}
	_, err = s.create(t, pod("denied", bare))
	denied(t, "an unsigned image", err, "unsigned")
	must(t, s.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(t.Context(), ownName, meta.DeleteOptions{}))
	s.awaitConfigurations(t, s.gateway)
}

// reportTime is how long a report may take after its object came: as long as publishing waits
// for more about the same, and a busy machine.
const reportTime = 30 * time.Second

func (s *split) tryFollowing(t *testing.T, signed string) {
	eventually(t, func(context.Context) error { // the first round is done, so that it is no round that finds it
		if !slices.ContainsFunc(scanned(t, s.controller), func(round map[string]any) bool { return round["kinds"] != 0.0 }) {
			return errNotYet
		}
		return nil
	})
	rounds := len(scanned(t, s.controller))
	began := time.Now()
	made, err := s.create(t, pod("followed", signed))
	must(t, err)
	s.awaitResults(t, s.reports, made, map[string]string{"roles-signed": "pass background scan", "roles-labels": "fail background scan"})
	if took := time.Since(began); took > reportTime {
		t.Errorf("the report took %s", took)
	} else {
		t.Logf("the report took %s", took)
	}
	if countsOf(t, s.controller, "quaymaster_scan_changes_total", "result", "judged") == 0 || len(scanned(t, s.controller)) > rounds {
		t.Error("a round found it, and not the watch")
	}
	_, err = s.client.CoreV1().Pods(s.namespace).Patch(t.Context(), made.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"a"}}}`), meta.PatchOptions{})
	must(t, err)
	s.awaitResults(t, s.reports, made, map[string]string{"roles-signed": "pass background scan", "roles-labels": "pass"})
}

func (s *split) tryStatus(t *testing.T, signed string) {
	made, err := s.create(t, pod("running", signed))
	must(t, err)
	s.awaitResults(t, s.reports, made, map[string]string{"roles-signed": "pass background scan", "roles-labels": "fail background scan"})
	judged := countsOf(t, s.controller, "quaymaster_scan_changes_total", "result", "judged")
	for i := range 5 {
		made.Status.Message = fmt.Sprint("the ", i, "th")
		made, err = s.client.CoreV1().Pods(s.namespace).UpdateStatus(t.Context(), made, meta.UpdateOptions{})
		must(t, err)
	}
	eventually(t, func(context.Context) error {
		if countsOf(t, s.controller, "quaymaster_scan_changes_total", "result", "unchanged") < 5 {
			return errNotYet
		}
		return nil
	})
	if now := countsOf(t, s.controller, "quaymaster_scan_changes_total", "result", "judged"); now != judged {
		t.Errorf("%v objects were looked at because of five changes of a status", now-judged)
	}
}

const rolesGenerate = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: roles-generate}
spec:
  rules:
    - name: notes
      match: {any: [{resources: {kinds: [Namespace], names: ["roles-team-*"]}}]}
      generate:
        apiVersion: v1
        kind: ConfigMap
        name: notes
        namespace: "{{request.object.metadata.name}}"
        data: {data: {welcome: "yes"}}
`

func (s *split) tryGenerate(t *testing.T) {
	s.put(t, rolesGenerate)
	eventually(t, func(context.Context) error { // the controller has it, too
		if !strings.Contains(s.controller.Log(), "roles-generate") {
			return errNotYet
		}
		return nil
	})
	tries := 0
	eventually(t, func(ctx context.Context) error {
		tries++
		name := fmt.Sprint("roles-team-", tries)
		must(t, s.plane.Namespace(ctx, name))
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return process.Eventually(limited, func(ctx context.Context) error {
			_, err := s.client.CoreV1().ConfigMaps(name).Get(ctx, "notes", meta.GetOptions{})
			return err
		})
	})
}

func (s *split) tryAlone(t *testing.T, signed string) {
	s.controller.Kill()
	made, err := s.create(t, pod("alone", signed))
	must(t, err)
	_, err = s.dryRun(t.Context(), pod("again", signed))
	must(t, err)
	for name, labels := range map[string][]string{
		"quaymaster_scan_objects_total": nil, "quaymaster_scan_rounds_total": nil, "quaymaster_report_writes_total": nil, "quaymaster_scan_changes_total": nil,
	} {
		if n := countsOf(t, s.gateway, name, labels...); n != 0 {
			t.Errorf("admission alone counts %v of %s", n, name)
		}
	}
	all, err := reportsIn(t.Context(), s.reports, policyReports, s.namespace)
	must(t, err)
	if _, err := owned(all, string(made.UID)); err == nil {
		t.Error("a report was written without the role")
	}
	s.endControllerLead(t)
	s.begin(t) // and now there is one
	s.awaitResults(t, s.reports, made, map[string]string{"roles-signed": "pass background scan", "roles-labels": "fail background scan"})
}

// TestScanDiesAndAdmissionGoesOn: a controller that is killed in the middle of a round delays
// no admission, and the next one scans the rest.
func TestScanDiesAndAdmissionGoesOn(t *testing.T) {
	peers.Long(t)
	const pods, budget = 400, 5 * time.Second // two pages; and what an admission may take on a busy machine
	s := divided(t, "roles-killed")
	s.enforce(t, env.Policy{Name: "roles-killed", Namespaces: []string{"roles-killed"}})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	for i := range pods {
		_, err := s.create(t, pod(fmt.Sprintf("p%03d", i), env.Pinned(signed)))
		must(t, err)
	}
	s.configuration.Scan.QPS = 0.2 // in the middle of its round for some seconds
	s.begin(t)

	admissions := s.admitting(t, signed.Name)
	eventually(t, func(context.Context) error {
		if n := countsOf(t, s.controller, "quaymaster_scan_objects_total"); n < 250 {
			return fmt.Errorf("%v objects were looked at: %w", n, errNotYet)
		}
		return nil
	})
	if rounds := scanned(t, s.controller); len(rounds) > 0 {
		t.Fatalf("the round was done before it was killed: %v", rounds)
	}
	s.controller.Kill()
	killed := time.Now()
	made, err := s.create(t, pod("meanwhile", signed.Name))
	must(t, err)
	eventually(t, func(context.Context) error { // for a while without it
		if time.Since(killed) < 5*time.Second {
			return errNotYet
		}
		return nil
	})
	took := admissions()
	if slowest := slices.Max(took); len(took) < 20 || slowest > budget {
		t.Errorf("%d admissions, the slowest in %s, want each within %s", len(took), slowest, budget)
	}
	t.Logf("%d admissions, the slowest in %s", len(took), slices.Max(took))

	s.endControllerLead(t)
	s.configuration.Scan.QPS = 0
	s.begin(t)
	eventually(t, func(ctx context.Context) error {
		found, err := reportsIn(ctx, s.reports, policyReports, s.namespace)
		if err != nil {
			return err
		}
		if _, err := owned(found, string(made.UID)); err != nil || len(found) < pods {
			return errors.Join(fmt.Errorf("%d reports for %d pods and one", len(found), pods), err)
		}
		return nil
	})
}

// admitting requests admission again and again until the function that it returns is called,
// which returns the time of each. A request without an answer fails the test.
func (s *split) admitting(t *testing.T, image string) func() []time.Duration {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var (
		all  sync.WaitGroup
		took []time.Duration
	)
	ask := func(p *core.Pod) {
		began := time.Now()
		if _, err := s.dryRun(context.WithoutCancel(ctx), p); err != nil {
			t.Errorf("an admission: %v", err)
		}
		took = append(took, time.Since(began))
	}
	all.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				ask(pod("asking", image))
			}
		}
	})
	return func() []time.Duration {
		stop()
		all.Wait()
		return took
	}
}
