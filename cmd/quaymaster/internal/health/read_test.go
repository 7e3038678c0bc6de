package health_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/diagnosis"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/health"
)

// TestReadHealthy: the state of a healthy gateway is complete, and has no finding.
func TestReadHealthy(t *testing.T) {
	server := healthyServer(t)
	list := server.objects[podsPath].(core.PodList)
	evicted := podOf("c", false)
	evicted.Status.Phase, evicted.Status.Reason = core.PodFailed, "Evicted" // it is kept, and others replace it
	list.Items = append(list.Items, evicted)
	server.objects[podsPath] = list
	s, err := readFrom(t, server)
	ok(t, err)
	if c := diagnosis.Count(diagnosis.Of(s)); c != (diagnosis.Counts{OK: 12}) {
		t.Errorf("%+v", diagnosis.Of(s))
	}
	if s.Kubernetes != "v1.37.0" || s.Settings.Mode != "enforce" || len(s.Replicas.Items) != 2 || s.Replicas.Items[0].Version != "v1.0.0" || s.Replicas.Items[0].State != health.Ready {
		t.Errorf("%+v", s)
	}
	if len(s.Leaders.Items) != 1 || s.Leaders.Items[0].Holder != "a" || len(s.Clocks.Replicas) != 2 || s.Clocks.Replicas[0].AheadSeconds != -0.5 {
		t.Errorf("%+v %+v", s.Leaders, s.Clocks)
	}
	if want := []health.PolicyKind{{Kind: "ClusterPolicy", Ready: 2}}; !slices.Equal(s.Policies.Kinds, want) {
		t.Errorf("%+v", s.Policies)
	}
	if s.Permissions.Checked != server.reviews || server.reviews < 80 || !s.Certificate.AuthorityExpires.Equal(now().Add(300*24*time.Hour)) {
		t.Errorf("%d permissions in %d reviews; %+v", s.Permissions.Checked, server.reviews, s.Certificate)
	}
}

// TestRead: each change of the cluster is a finding.
func TestRead(t *testing.T) {
	pods := func(s *apiServer, edit func(*core.Pod)) {
		b := podOf("b", false)
		edit(&b)
		s.objects[podsPath] = core.PodList{Items: []core.Pod{podOf("a", true), b}}
		list := s.objects[deploymentsPath].(apps.DeploymentList)
		list.Items[0].Status.ReadyReplicas = 1
	}
	leases := func(s *apiServer, all ...coordination.Lease) {
		s.objects[leasesPath] = coordination.LeaseList{Items: all}
	}
	for _, row := range []struct {
		reason  string
		change  func(*apiServer)
		check   string
		result  diagnosis.Result
		message string
	}{
		{"settings of another user", func(s *apiServer) { s.refused[settingsPath] = true }, diagnosis.CheckSettings, diagnosis.Unknown, "get configmaps"},
		{"permissions by unknown settings", func(s *apiServer) { s.refused[settingsPath] = true }, diagnosis.CheckPermissions, diagnosis.Unknown, "settings of the gateway could not be read"},
		{"webhooks by unknown settings", func(s *apiServer) { s.refused[settingsPath] = true }, diagnosis.CheckWebhooks, diagnosis.Unknown, "settings of the gateway could not be read"},
		{"more pods than are read", func(s *apiServer) {
			list := s.objects[podsPath].(core.PodList)
			list.Continue = "next"
			s.objects[podsPath] = list
		}, diagnosis.CheckReplicas, diagnosis.Unknown, "more than 100 pods"},
		{"no settings", func(s *apiServer) { delete(s.objects, settingsPath) }, diagnosis.CheckSettings, diagnosis.Unknown, "no ConfigMap"},
		{"settings with a mistake", func(s *apiServer) {
			s.objects[settingsPath] = core.ConfigMap{Data: map[string]string{"gateway.yaml": "{apiVersion: quaymaster.dev/v1alpha1, kind: Configuration, mod: x}"}}
		}, diagnosis.CheckSettings, diagnosis.Unknown, "mod"},
		{"Deployments of another user", func(s *apiServer) { s.refused[deploymentsPath] = true }, diagnosis.CheckReplicas, diagnosis.Unknown, "list deployments.apps"},
		{"pods of another user", func(s *apiServer) { s.refused[podsPath] = true }, diagnosis.CheckReplicas, diagnosis.Unknown, "list pods"},
		{"no gateway", func(s *apiServer) {
			s.objects[deploymentsPath], s.objects[podsPath] = apps.DeploymentList{}, core.PodList{}
			leases(s)
		}, diagnosis.CheckReplicas, diagnosis.Problem, "no gateway"},
		{"a process with a Lease", func(s *apiServer) {
			s.objects[deploymentsPath], s.objects[podsPath] = apps.DeploymentList{}, core.PodList{}
		}, diagnosis.CheckReplicas, diagnosis.Unknown, "only the Leases"},
		{"a replica that is not ready", func(s *apiServer) {
			pods(s, func(*core.Pod) {})
			s.texts[proxyPath("b", "readyz")] = "503 ok: drain\nnot ready: policies: clusterpolicies are not listed\n"
		}, diagnosis.CheckReplicas, diagnosis.Warning, "policies: clusterpolicies are not listed"},
		{"an image that cannot be pulled", func(s *apiServer) {
			pods(s, func(p *core.Pod) {
				p.Status.Phase = core.PodPending
				p.Status.ContainerStatuses = []core.ContainerStatus{{State: core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
			})
		}, diagnosis.CheckReplicas, diagnosis.Warning, "ImagePullBackOff: no such image"},
		{"a pod without a node", func(s *apiServer) {
			pods(s, func(p *core.Pod) {
				p.Status = core.PodStatus{Phase: core.PodPending, Conditions: []core.PodCondition{{Type: core.PodScheduled, Status: core.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes"}}}
			})
		}, diagnosis.CheckMetrics, diagnosis.Unknown, "does not run"},
		{"no access to pods/proxy", func(s *apiServer) {
			s.refused[proxyPath("a", "metrics")], s.refused[proxyPath("b", "metrics")] = true, true
		}, diagnosis.CheckMetrics, diagnosis.Unknown, "get pods/proxy"},
		{"the trust without metrics", func(s *apiServer) {
			s.refused[proxyPath("a", "metrics")], s.refused[proxyPath("b", "metrics")] = true, true
		}, diagnosis.CheckTrust, diagnosis.Unknown, "metrics of no replica"},
		{"a replica that does not answer", func(s *apiServer) { s.texts[proxyPath("b", "metrics")] = "503 connection refused" }, diagnosis.CheckMetrics, diagnosis.Unknown, "metrics of b"},
		{"another program's metrics", func(s *apiServer) { s.texts[proxyPath("b", "metrics")] = "up 1\n" }, diagnosis.CheckMetrics, diagnosis.Unknown, "not those of a gateway"},
		{"another version", func(s *apiServer) {
			s.texts[proxyPath("b", "metrics")] = strings.ReplaceAll(replicaMetrics(false), "v1.0.0", "v1.1.0")
		}, diagnosis.CheckVersions, diagnosis.Warning, "v1.1.0: b"},
		{"Leases of another user", func(s *apiServer) { s.refused[leasesPath] = true }, diagnosis.CheckLeader, diagnosis.Unknown, "list leases.coordination.k8s.io"},
		{"no leader", func(s *apiServer) { leases(s) }, diagnosis.CheckLeader, diagnosis.Problem, "does not exist"},
		{"a leader that is gone, by the API server's time", func(s *apiServer) {
			leases(s, leaseOf("quaymaster", "a", now(), now().Add(-time.Minute), nil))
		}, diagnosis.CheckLeader, diagnosis.Problem, "a has not renewed"},
		{"no leader of the scans", func(s *apiServer) {
			list := s.objects[deploymentsPath].(apps.DeploymentList)
			list.Items[0].Spec.Template.Spec.Containers[0].Args = []string{"serve", "--roles=scan,report"}
			leases(s, leaseOf("quaymaster", "a", now(), now(), nil))
		}, diagnosis.CheckLeader, diagnosis.Problem, "does not exist"},
		{"the clock of the leader", func(s *apiServer) {
			leases(s, leaseOf("quaymaster", "a", now().Add(-2*time.Minute), now(), nil))
		}, diagnosis.CheckClocks, diagnosis.Problem, "min behind"},
		{"webhooks of another user", func(s *apiServer) { s.refused[validatingPath] = true }, diagnosis.CheckWebhooks, diagnosis.Unknown, "get validatingwebhookconfigurations"},
		{"deleted webhooks", func(s *apiServer) { delete(s.objects, mutatingPath) }, diagnosis.CheckWebhooks, diagnosis.Problem, "does not exist"},
		{"edited webhooks", func(s *apiServer) {
			c := s.objects[validatingPath].(*admission.ValidatingWebhookConfiguration)
			c.Webhooks = c.Webhooks[1:]
		}, diagnosis.CheckWebhooks, diagnosis.Problem, "another client"},
		{"an authority that expired", func(s *apiServer) {
			_, s.objects[validatingPath] = webhooksOf(t, now().Add(-time.Hour))
		}, diagnosis.CheckCertificate, diagnosis.Problem, "expired"},
		{"reviews of another user", func(s *apiServer) { s.refused[reviewsPath] = true }, diagnosis.CheckPermissions, diagnosis.Unknown, "create subjectaccessreviews.authorization.k8s.io"},
		{"a missing permission", func(s *apiServer) { s.lacks = "watch clusterpolicies" }, diagnosis.CheckPermissions, diagnosis.Problem, "watch on clusterpolicies.kyverno.io"},
		{"an optional permission", func(s *apiServer) { s.lacks = "list jobs" }, diagnosis.CheckPermissions, diagnosis.Warning, "list on jobs.batch"},
		{"the clock of this machine", func(s *apiServer) { s.date = now().Add(-10 * time.Second) }, diagnosis.CheckClocks, diagnosis.Warning, "ahead of"},
	} {
		server := healthyServer(t)
		row.change(server)
		s, err := readFrom(t, server)
		ok(t, err)
		findings := diagnosis.Of(s)
		i := slices.IndexFunc(findings, func(f diagnosis.Finding) bool {
			return f.Check == row.check && strings.Contains(f.Message, row.message)
		})
		if i < 0 || findings[i].Result != row.result || findings[i].Fix == "" {
			t.Errorf("%s: no finding of %s is %s with %q: %+v", row.reason, row.check, row.result, row.message, findings)
		}
		if strings.HasPrefix(row.reason, "reviews") && server.reviews != 0 {
			t.Errorf("%s: %d reviews", row.reason, server.reviews)
		}
	}
}

// TestNoAPIServer: an API server that does not accept the user is an error, and an empty cluster is not healthy.
func TestNoAPIServer(t *testing.T) {
	unauthorized := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	if s, err := readFrom(t, unauthorized); err == nil {
		t.Errorf("%+v", s)
	}
	s, err := readFrom(t, &apiServer{date: now()})
	ok(t, err)
	if c := diagnosis.Count(diagnosis.Of(s)); c.OK > 1 { // of the policies, which are read elsewhere
		t.Errorf("an empty cluster: %+v", diagnosis.Of(s))
	}
}
