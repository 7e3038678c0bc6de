package configuration

import (
	"slices"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
)

// exceptionalServed are resources that are asked about for rules alone that name them.
func exceptionalServed() []Resource {
	return append(served(),
		Resource{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false, []string{"status"}},
		Resource{"apiregistration.k8s.io", "v1", "apiservices", "APIService", false, []string{"status"}},
		Resource{"certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", false, []string{"approval", "status"}},
		Resource{"events.k8s.io", "v1", "events", "Event", true, nil},
		Resource{"kyverno.io", "v2", "policyexceptions", "PolicyException", true, nil},
		Resource{"wgpolicyk8s.io", "v1alpha2", "policyreports", "PolicyReport", true, nil},
	)
}

// TestNamed: kinds that keep a cluster running are asked about for a rule that names them,
// and a request without an answer is admitted.
func TestNamed(t *testing.T) {
	kind := func(kind string, more ...func(*policy.Target)) policy.Target {
		target := policy.Target{Group: "*", Version: "*", Kind: kind}
		for _, change := range more {
			change(&target)
		}
		return target
	}
	in := func(namespaces ...string) func(*policy.Target) {
		return func(t *policy.Target) { t.Namespaces = namespaces }
	}
	sub := func(name string) func(*policy.Target) { return func(t *policy.Target) { t.Subresource = name } }
	group := func(name string) func(*policy.Target) { return func(t *policy.Target) { t.Group = name } }
	for _, row := range []struct {
		reason      string
		target      policy.Target
		want        string // the lines of spelt, then the namespaces of the selector
		warned      string
		exceptionOf string
	}{
		{"a certificate request", kind("CertificateSigningRequest"), "Ignore certificatesigningrequests CREATE,UPDATE; NotIn kube-system,quaymaster", "", "CertificateSigningRequest without an answer is admitted"},
		{"its approval", kind("CertificateSigningRequest", sub("approval")), "Ignore certificatesigningrequests/approval CREATE,UPDATE,CONNECT; NotIn kube-system,quaymaster", "", "CertificateSigningRequest/approval without an answer"},
		{"by its group", kind("CertificateSigningRequest", group("certificates.k8s.io")), "Ignore certificatesigningrequests CREATE,UPDATE; NotIn kube-system,quaymaster", "", "without an answer"},
		{"by a pattern", kind("CertificateSigning*"), "", "never sends it", ""},
		{"every kind of its group", kind("*", group("certificates.k8s.io")), "", "never sends it", ""},
		{"a definition", kind("CustomResourceDefinition"), "Ignore customresourcedefinitions CREATE,UPDATE; NotIn kube-system,quaymaster", "", "without an answer"},
		{"an aggregated API", kind("APIService"), "Ignore apiservices CREATE,UPDATE; NotIn kube-system,quaymaster", "", "without an answer"},
		{"a node", kind("Node"), "Ignore nodes CREATE,UPDATE; NotIn kube-system,quaymaster", "", "without an answer"},
		{"a lease", kind("Lease"), "Ignore leases CREATE,UPDATE; NotIn kube-node-lease,kube-system,quaymaster", "", "requests in the gateway's namespace, in [kube-node-lease kube-system], and by the gateway itself are excluded"},
		{"a lease of one namespace", kind("Lease", in("shop")), "Ignore leases CREATE,UPDATE; In shop", "", "the gateway itself are excluded"},
		{"leases of nodes among others", kind("Lease", in("shop", "kube-node-lease")), "Ignore leases CREATE,UPDATE; In shop", "", "the gateway itself are excluded"},
		{"leases of nodes alone", kind("Lease", in("kube-node-lease")), "", "never sends it", "the gateway itself are excluded"},
		{"an event, in both groups", kind("Event"), "Ignore events CREATE,UPDATE Ignore events CREATE,UPDATE; NotIn kube-node-lease,kube-system,quaymaster", "", "the gateway itself are excluded"},
		{"a webhook configuration", kind("ValidatingWebhookConfiguration"), "", "never sends it", ""},
		{"a review", kind("TokenReview"), "", "never sends it", ""},
		{"an exception", kind("PolicyException"), "Ignore policyexceptions CREATE,UPDATE; NotIn kube-system,quaymaster", "", "requests for PolicyException by the gateway itself are excluded, and one without an answer is admitted"},
		{"an exception, by its group", kind("PolicyException", group("kyverno.io")), "Ignore policyexceptions CREATE,UPDATE; NotIn kube-system,quaymaster", "", "by the gateway itself are excluded"},
		{"exceptions of one namespace", kind("PolicyException", in("shop")), "Ignore policyexceptions CREATE,UPDATE; In shop", "", "by the gateway itself are excluded"},
		{"exceptions by a pattern", kind("PolicyExcept*"), "", "never sends it", ""},
		{"every kind of the group of exceptions", kind("*", group("kyverno.io")), "", "never sends it", ""},
		{"a report", kind("PolicyReport"), "", "never sends it", "never sends PolicyReport"},
		{"a kind without an exception", kind("ConfigMap"), "Fail configmaps CREATE,UPDATE; NotIn kube-system,quaymaster", "", ""},
	} {
		t.Run(row.reason, func(t *testing.T) {
			p := &policy.Policy{Kind: "ClusterPolicy", Name: "p", Settings: policy.Settings{Timeout: 20 * time.Second}}
			p.Mutations, p.Validations = []policy.Mutation{aboutObjects{row.target}}, []policy.Validation{aboutObjects{row.target}}
			given := input(t, p)
			given.Resources, given.Accounts = exceptionalServed(), []string{"system:serviceaccount:quaymaster:quaymaster", "gateway@example.com"}
			c, err := Build(given)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			selects := ""
			for _, w := range c.Validating.Webhooks {
				lines = append(lines, spelt(w.FailurePolicy, w.Rules)...)
				requirement := w.NamespaceSelector.MatchExpressions[0]
				selects = "; " + string(requirement.Operator) + " " + strings.Join(requirement.Values, ",")
				others, record := strings.Contains(row.exceptionOf, "the gateway itself are excluded"), !strings.Contains(row.reason, "exception") && strings.Contains(row.exceptionOf, "the gateway itself are excluded")
				if isOthers(w.MatchConditions) != others || record != (*w.TimeoutSeconds == recordSeconds) {
					t.Errorf("conditions %v, %d s", w.MatchConditions, *w.TimeoutSeconds)
				}
			}
			if got := strings.Join(lines, " ") + selects; got != row.want {
				t.Errorf("validating %q", got)
			}
			var changed []string
			for _, w := range c.Mutating.Webhooks {
				changed = append(changed, spelt(w.FailurePolicy, w.Rules)...)
			}
			if !slices.Equal(changed, lines) {
				t.Errorf("mutating %q", changed)
			}
			warned := ""
			for _, w := range c.Warnings {
				warned += w.Message
			}
			if (warned == "") != (row.warned == "") || !strings.Contains(warned, row.warned) {
				t.Errorf("warned %q", warned)
			}
			if exceptionOf := strings.Join(Deviations(p), "; "); (exceptionOf == "") != (row.exceptionOf == "") || !strings.Contains(exceptionOf, row.exceptionOf) {
				t.Errorf("stated %q", exceptionOf)
			}
		})
	}
}

func isOthers(conditions []admission.MatchCondition) bool {
	const want = `!request.userInfo.username.startsWith("system:serviceaccount:quaymaster:") && !(request.userInfo.username in ["gateway@example.com"])`
	return len(conditions) == 1 && conditions[0].Expression == want
}

// TestStatedOpen: a policy that fails open by itself has nothing to state of a request
// without an answer, and one about images names no kinds for themselves.
func TestStatedOpen(t *testing.T) {
	targets := []policy.Target{{Group: "*", Version: "*", Kind: "Node"}}
	for reason, p := range map[string]*policy.Policy{
		"it fails open":   {Settings: policy.Settings{FailOpen: true}, ObjectRules: policy.ObjectRules{Validations: []policy.Validation{aboutObjects(targets)}}},
		"nothing denies":  {Settings: policy.Settings{AuditOnly: true}, ObjectRules: policy.ObjectRules{Validations: []policy.Validation{aboutObjects(targets)}}},
		"it names images": {Targets: targets},
	} {
		if list := Deviations(p); len(list) > 0 {
			t.Errorf("%s: %q", reason, list)
		}
	}
}
