package diagnosis

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/health"
	"github.com/quaymaster/quaymaster/gateway/native/record"
)

// now is the time of the API server in these tests.
func now() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// healthy is a state without a finding.
func healthy(t *testing.T) *health.State {
	t.Helper()
	settings, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	return &health.State{
		Namespace: "quaymaster", Time: now(), Kubernetes: "v1.37.0", Settings: health.Settings{Mode: "enforce", Value: settings},
		Replicas: health.Replicas{
			Deployments: []health.Deployment{{Name: "quaymaster", Ready: 2, Wanted: 2}},
			Items:       []health.Replica{{Name: "a", State: health.Ready, Version: "v1.0.0"}, {Name: "b", State: health.Ready, Version: "v1.0.0"}},
		},
		Leaders:     health.Leaders{Items: []health.Leader{{Lease: "quaymaster", Holder: "a", Renewed: now().Add(-2 * time.Second), Duration: 12 * time.Second}}},
		Certificate: health.Certificate{Expires: now().Add(60 * 24 * time.Hour), Replica: "a", AuthorityExpires: now().Add(300 * 24 * time.Hour)},
		Webhooks: health.Webhooks{Confirmed: now().Add(-20 * time.Second), Items: []health.Webhook{
			{Kind: "MutatingWebhookConfiguration", Name: "quaymaster", State: health.Intact, Count: 2}, {Kind: "ValidatingWebhookConfiguration", Name: "quaymaster", State: health.Intact, Count: 3},
		}},
		Policies:    health.Policies{Items: []health.Policy{{Kind: "ClusterPolicy", Name: "signed", Ready: "True", Reason: "Active", EnforcedBy: record.InServer}}},
		Trust:       health.Trust{AgeSeconds: 3600, Expires: map[string]time.Time{"fulcio": now().Add(400 * 24 * time.Hour)}},
		Registries:  health.Registries{Items: []health.Registry{{Host: "registry.example", Requests: 100, Unanswered: 2}}},
		Permissions: health.Permissions{Accounts: []string{"system:serviceaccount:quaymaster:quaymaster"}, Checked: 120},
		Clocks:      health.Clocks{AheadSeconds: 0.2, AccuracySeconds: 0.5, Replicas: []health.ReplicaClock{{Name: "a", AheadSeconds: -0.3}, {Name: "b"}}},
	}
}

// TestHealthy: each check of a healthy gateway has one finding, ok and without a fix.
func TestHealthy(t *testing.T) {
	findings := Of(healthy(t))
	for _, f := range findings {
		if f.Result != OK || f.Fix != "" || f.Message == "" || f.Subject != "" {
			t.Errorf("%+v", f)
		}
	}
	if len(findings) != 12 || Count(findings) != (Counts{OK: 12}) {
		t.Errorf("%d findings, want one for each of 12 checks", len(findings))
	}
}

// TestFindings: each change of the healthy state is one finding, with its result and its fix.
func TestFindings(t *testing.T) {
	denied := health.Unread{Unknown: "your user has no permission to list x", Fix: "grant your user list on x"}
	override := health.Policy{Kind: "ImageOverride", Name: "o", Ready: "False", Message: "it ended at 2026-01-01T00:00:00Z"}
	policy := func(ready, reason, message string) func(*health.State) {
		return func(s *health.State) {
			s.Policies.Items = append(s.Policies.Items, health.Policy{Kind: "ClusterPolicy", Name: "p", Ready: ready, Reason: reason, Message: message})
		}
	}
	for _, row := range []struct {
		reason  string
		change  func(*health.State)
		check   string
		subject string
		result  Result
		message string
		fix     string
	}{
		{"settings that may not be read", func(s *health.State) { s.Settings.Unread = denied }, CheckSettings, "", Unknown, "no permission", "grant"},

		{"Deployments that may not be read", func(s *health.State) { s.Replicas.Unread = denied }, CheckReplicas, "", Unknown, "no permission", "grant"},
		{"no gateway", func(s *health.State) { s.Replicas.Deployments, s.Replicas.Items = nil, nil }, CheckReplicas, "", Problem, "no gateway in the namespace quaymaster", "-n"},
		{"a process", func(s *health.State) { s.Replicas.Deployments = nil }, CheckReplicas, "", Unknown, "only the Leases", "/readyz"},
		{"fewer replicas", func(s *health.State) { s.Replicas.Deployments[0].Ready = 1 }, CheckReplicas, "Deployment/quaymaster", Warning, "1 of 2", "describe deployment quaymaster"},
		{"none ready", func(s *health.State) { s.Replicas.Deployments[0].Ready = 0 }, CheckReplicas, "Deployment/quaymaster", Problem, "0 of 2", "logs"},
		{"scaled down", func(s *health.State) { s.Replicas.Deployments[0].Ready, s.Replicas.Deployments[0].Wanted = 0, 0 }, CheckReplicas, "Deployment/quaymaster", Problem, "scaled to 0", "scale deployment"},
		{"a pod that is not ready", func(s *health.State) {
			s.Replicas.Items[1].State, s.Replicas.Items[1].Reasons = health.NotReady, []string{"policies: not read"}
		}, CheckReplicas, "Pod/b", Warning, "policies: not read", "kubectl -n quaymaster logs b"},
		{"a pod that ends again and again", func(s *health.State) {
			s.Replicas.Items[1].State, s.Replicas.Items[1].Reasons = health.NotReady, []string{"CrashLoopBackOff: back-off"}
		}, CheckReplicas, "Pod/b", Warning, "CrashLoopBackOff", "--previous"},

		{"metrics that may not be read", func(s *health.State) { s.Replicas.Items[0].Metrics = denied }, CheckMetrics, "", Unknown, "no permission", "grant"},
		{"metrics that are not served", func(s *health.State) {
			s.Replicas.Items[0].Metrics = health.Unread{Unknown: "connection refused", Fix: "NetworkPolicy"}
		}, CheckMetrics, "a", Unknown, "refused", "NetworkPolicy"},

		{"two versions", func(s *health.State) { s.Replicas.Items[1].Version = "v1.1.0" }, CheckVersions, "", Warning, "v1.0.0: a; v1.1.0: b", "rollout status"},

		{"Leases that may not be read", func(s *health.State) { s.Leaders.Unread = denied }, CheckLeader, "", Unknown, "no permission", "grant"},
		{"no Lease", func(s *health.State) { s.Leaders.Items[0] = health.Leader{Lease: "quaymaster"} }, CheckLeader, "Lease/quaymaster", Problem, "does not exist", "logs"},
		{"no holder", func(s *health.State) { s.Leaders.Items[0].Holder = "" }, CheckLeader, "Lease/quaymaster", Problem, "no holder", "logs"},
		{"a leader that is gone", func(s *health.State) { s.Leaders.Items[0].Renewed = now().Add(-16 * time.Second) }, CheckLeader, "Lease/quaymaster", Problem, "a has not renewed", "logs"},

		{"an unknown certificate", func(s *health.State) { s.Certificate.Unread = denied }, CheckCertificate, "", Unknown, "no permission", "grant"},
		{"no certificate", func(s *health.State) { s.Certificate.Expires = time.Time{} }, CheckCertificate, "Pod/a", Problem, "no serving certificate", "certificate"},
		{"a certificate that expires", func(s *health.State) { s.Certificate.Expires = now().Add(6 * 24 * time.Hour) }, CheckCertificate, "Pod/a", Warning, "renewal is overdue", "cert-manager"},
		{"a certificate that expires today", func(s *health.State) { s.Certificate.Expires = now().Add(23 * time.Hour) }, CheckCertificate, "Pod/a", Problem, "in 23 h", "cert-manager"},
		{"an expired certificate", func(s *health.State) { s.Certificate.Expires = now() }, CheckCertificate, "Pod/a", Problem, "expired", "cert-manager"},
		{"an expired authority", func(s *health.State) { s.Certificate.AuthorityExpires = now() }, CheckCertificate, "authority", Problem, "expired", "log"},

		{"configurations that may not be read", func(s *health.State) { s.Webhooks.Unread = denied }, CheckWebhooks, "", Unknown, "no permission", "grant"},
		{"a configuration that is missing", func(s *health.State) { s.Webhooks.Items[1].State = health.Missing }, CheckWebhooks, "ValidatingWebhookConfiguration/quaymaster", Problem, "does not exist", "leader"},
		{"a configuration that was edited", func(s *health.State) { s.Webhooks.Items[0].State = health.Changed }, CheckWebhooks, "MutatingWebhookConfiguration/quaymaster", Problem, "another client", "audit log"},
		{"never confirmed", func(s *health.State) { s.Webhooks.Confirmed = time.Time{} }, CheckWebhooks, "", Problem, "no replica has confirmed", "leader"},
		{"confirmed long ago", func(s *health.State) { s.Webhooks.Confirmed = now().Add(-6 * time.Minute) }, CheckWebhooks, "", Problem, "6 min ago", "log"},
		{"confirmed by a replica without metrics", func(s *health.State) {
			s.Webhooks.Confirmed, s.Replicas.Items[0].Metrics = time.Time{}, denied
		}, CheckWebhooks, "", Unknown, "not checked for a", "metrics"},
		{"versions of some replicas", func(s *health.State) { s.Replicas.Items[0].Metrics = denied }, CheckVersions, "", Unknown, "not checked for a", "metrics"},
		{"certificates of some replicas", func(s *health.State) { s.Replicas.Items[0].Metrics = denied }, CheckCertificate, "", Unknown, "not checked for a", "metrics"},
		{"trust of some replicas", func(s *health.State) { s.Replicas.Items[0].Metrics = denied }, CheckTrust, "", Unknown, "not checked for a", "metrics"},
		{"registries of some replicas", func(s *health.State) { s.Replicas.Items[0].Metrics = denied }, CheckRegistries, "", Unknown, "not checked for a", "metrics"},
		{"configurations of others", func(s *health.State) { s.Settings.Value.Webhooks.Disabled = true }, CheckWebhooks, "", Unknown, "webhooks.disabled", "compare"},

		{"policies that may not be read", func(s *health.State) { s.Policies.Unread = denied }, CheckPolicies, "", Unknown, "no permission", "grant"},
		{"no policies", func(s *health.State) { s.Policies.Items = nil }, CheckPolicies, "", Warning, "every image is admitted", "start.md"},
		{"a broken policy", policy("False", "Broken", "spec.rules: unknown field"), CheckPolicies, "ClusterPolicy/p", Problem, "Broken: spec.rules", "correct the field"},
		{"a broken policy without a condition", policy("False", "", "spec.rules: unknown field"), CheckPolicies, "ClusterPolicy/p", Problem, "spec.rules", "correct the field"},
		{"a withheld policy", policy("False", "Withheld", "guard"), CheckPolicies, "ClusterPolicy/p", Warning, "Withheld", "policy-guard.md"},
		{"kinds that are not served", policy("False", "KindNotServed", "x"), CheckPolicies, "ClusterPolicy/p", Warning, "KindNotServed", "definitions"},
		{"excluded namespaces", policy("False", "NamespacesExcluded", "x"), CheckPolicies, "ClusterPolicy/p", Warning, "NamespacesExcluded", "excludedNamespaces"},
		{"a trust root that is not read", policy("False", "NotRead", "x"), CheckPolicies, "ClusterPolicy/p", Problem, "NotRead", "repository"},
		{"webhooks that do not hold it yet", policy("Unknown", "WebhookNotConfigured", "x"), CheckPolicies, "ClusterPolicy/p", Unknown, "WebhookNotConfigured", "in a minute"},
		{"webhooks that are not used yet", policy("Unknown", "WebhookNotObserved", "x"), CheckPolicies, "ClusterPolicy/p", Unknown, "WebhookNotObserved", "in a minute"},
		{"a probe without permission", policy("Unknown", "ProbeForbidden", "x"), CheckPolicies, "ClusterPolicy/p", Unknown, "ProbeForbidden", "create on configmaps"},
		{"no controller", policy("Unknown", "ControllerNotRunning", "x"), CheckPolicies, "ClusterPolicy/p", Unknown, "ControllerNotRunning", "background"},
		{"webhooks of others", policy("Unknown", "WebhookNotManaged", "x"), CheckPolicies, "ClusterPolicy/p", Unknown, "WebhookNotManaged", "webhooks.disabled"},
		{"no condition", policy("Unknown", "", ""), CheckPolicies, "ClusterPolicy/p", Unknown, "no condition Ready", "writeStatus"},
		{"native policies without their writer", func(s *health.State) { s.Policies.Items[0].EnforcedBy = record.InBoth }, CheckPolicies, "Lease/quaymaster-native-leader", Warning, "native form of 1 of", "native.policies"},
		{"an override that ended", func(s *health.State) { s.Policies.Items = append(s.Policies.Items, override) }, CheckPolicies, "ImageOverride/o", Warning, "it ended", "kubectl delete imageoverride o"},
		{"a broken policy of a folder", func(s *health.State) { s.Policies.Broken = []string{"ClusterPolicy/signed", "ClusterPolicy/folder"} }, CheckPolicies, "ClusterPolicy/folder", Problem, "broken", "policies.folders"},

		{"unknown trust", func(s *health.State) { s.Trust.Unread = denied }, CheckTrust, "", Unknown, "no permission", "grant"},
		{"a failed refresh", func(s *health.State) { s.Trust.RefreshFailed = true }, CheckTrust, "trusted root", Warning, "refresh failed", "TUF"},
		{"old trust", func(s *health.State) { s.Trust.RefreshFailed, s.Trust.AgeSeconds = true, 3*86400 }, CheckTrust, "trusted root", Problem, "3 days old", "TUF"},
		{"trust that ends", func(s *health.State) { s.Trust.Expires["fulcio"] = now().Add(29 * 24 * time.Hour) }, CheckTrust, "fulcio", Warning, "in 29 days", "trust.refresh"},
		{"trust that ended", func(s *health.State) { s.Trust.Expires["fulcio"] = now() }, CheckTrust, "fulcio", Problem, "expired", "trust.refresh"},
		{"stale keys", func(s *health.State) { s.Trust.StaleKeys = 1 }, CheckTrust, "keys", Warning, "1 key of", "logs"},
		{"repositories that are not read", func(s *health.State) { s.Trust.UnreadRepositories = 1 }, CheckTrust, "repositories", Warning, "1 TUF", "logs"},

		{"unknown registries", func(s *health.State) { s.Registries.Unread = denied }, CheckRegistries, "", Unknown, "no permission", "grant"},
		{"a registry that does not answer", func(s *health.State) { s.Registries.Items[0].Unanswered = 100 }, CheckRegistries, "registry.example", Problem, "none of 100", "curl -v https://registry.example/v2/"},
		{"a registry that often does not answer", func(s *health.State) { s.Registries.Items[0].Unanswered = 21 }, CheckRegistries, "registry.example", Warning, "21 of 100", "mirrors.md"},
		{"a mirror that rests", func(s *health.State) {
			s.Registries.Items = append(s.Registries.Items, health.Registry{Host: "m", Resting: true})
		}, CheckRegistries, "m", Problem, "suspended", "curl"},

		{"permissions that may not be reviewed", func(s *health.State) { s.Permissions.Unread = denied }, CheckPermissions, "", Unknown, "no permission", "grant"},
		{"a missing permission", func(s *health.State) {
			s.Permissions.Missing = []health.Permission{{Account: "x", Verb: "list", Resource: "pods", Lost: "no scans"}, {Account: "x", Verb: "watch", Resource: "pods", Lost: "no scans"}}
		}, CheckPermissions, "x", Problem, "it lacks list, watch on pods: no scans", "helm upgrade"},
		{"an optional permission", func(s *health.State) {
			s.Permissions.Missing = []health.Permission{{Account: "x", Verb: "get", Resource: "secrets", Namespace: "n", Name: "s", Lost: "c", Optional: true}}
		}, CheckPermissions, "x", Warning, "it lacks get on secrets s in the namespace n: c", "on purpose"},

		{"the clock of this machine", func(s *health.State) { s.Clocks.AheadSeconds = -90 }, CheckClocks, "this machine", Warning, "90 s behind", "NTP"},
		{"the clock of a replica", func(s *health.State) { s.Clocks.Replicas[1].AheadSeconds = 6 }, CheckClocks, "replica b", Warning, "6 s ahead of", "NTP"},
		{"a clock that is far off", func(s *health.State) { s.Clocks.Replicas[1].AheadSeconds = -61 }, CheckClocks, "replica b", Problem, "61 s behind", "NTP"},
		{"unknown clocks", func(s *health.State) { s.Clocks.Replicas = nil }, CheckClocks, "", Unknown, "unknown", "leader"},
	} {
		s := healthy(t)
		row.change(s)
		findings := Of(s)
		i := slices.IndexFunc(findings, func(f Finding) bool { return f.Check == row.check && f.Subject == row.subject })
		if i < 0 {
			t.Errorf("%s: no finding %s %s: %+v", row.reason, row.check, row.subject, findings)
			continue
		}
		if f := findings[i]; f.Result != row.result || !strings.Contains(f.Message, row.message) || !strings.Contains(f.Fix, row.fix) {
			t.Errorf("%s: %+v, want %s with %q, fixed by %q", row.reason, f, row.result, row.message, row.fix)
		}
		if worst := Worst(findings, row.check); worst != row.result {
			t.Errorf("%s: the check is %s, want %s", row.reason, worst, row.result)
		}
		for _, f := range findings {
			if f.Result != OK && (f.Fix == "" || f.Message == "") || f.Result == OK && f.Check == row.check {
				t.Errorf("%s: %+v", row.reason, f)
			}
		}
	}
}

// TestOtherLimits: the values next to those of TestFindings are good.
func TestOtherLimits(t *testing.T) {
	for reason, change := range map[string]func(*health.State){
		"a Lease that was renewed in time": func(s *health.State) { s.Leaders.Items[0].Renewed = now().Add(-15 * time.Second) },
		"a certificate of a week":          func(s *health.State) { s.Certificate.Expires = now().Add(7 * 24 * time.Hour) },
		"confirmed five minutes ago":       func(s *health.State) { s.Webhooks.Confirmed = now().Add(-5 * time.Minute) },
		"trust of a month":                 func(s *health.State) { s.Trust.Expires["fulcio"] = now().Add(30 * 24 * time.Hour) },
		"a fifth is not answered":          func(s *health.State) { s.Registries.Items[0].Unanswered = 20 },
		"no registry":                      func(s *health.State) { s.Registries.Items = nil },
		"old trust that is not refreshed":  func(s *health.State) { s.Trust.AgeSeconds = 400 * 86400 },
		"clocks within the limit": func(s *health.State) {
			s.Clocks.AheadSeconds, s.Clocks.Replicas[0].AheadSeconds = 5.5, -5
		},
	} {
		s := healthy(t)
		change(s)
		if c := Count(Of(s)); c != (Counts{OK: 12}) {
			t.Errorf("%s: %+v", reason, Of(s))
		}
	}
}
