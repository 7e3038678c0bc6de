package health

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbac "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
)

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// granted are the rules of the gateway in the manifest of the release, by namespace; empty for the cluster.
func granted(t *testing.T) map[string][]rbac.PolicyRule {
	t.Helper()
	text, err := os.ReadFile("../../../../deploy/install.yaml")
	ok(t, err)
	rules := map[string][]rbac.PolicyRule{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var role rbac.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			continue // another kind
		}
		if role.Kind == "ClusterRole" && role.Labels["app.kubernetes.io/component"] != "users" || role.Kind == "Role" {
			rules[role.Namespace] = append(rules[role.Namespace], role.Rules...)
		}
	}
	if len(rules) != 3 {
		t.Fatalf("rules of %d namespaces, want those of the cluster, of quaymaster and of default", len(rules))
	}
	return rules
}

// covers reports whether a rule grants a permission.
func covers(r rbac.PolicyRule, p Permission) bool {
	return slices.Contains(r.APIGroups, p.group) && slices.Contains(r.Resources, p.plural) && slices.Contains(r.Verbs, p.Verb) &&
		(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, p.Name))
}

// TestRulesAreThoseOfTheChart: the manifest of the release grants every permission that is checked, and grants
// nothing that is not checked.
func TestRulesAreThoseOfTheChart(t *testing.T) {
	c, err := config.Load("")
	ok(t, err)
	c.Mirrors.OpenShift, c.Webhooks.BreakGlass, c.Guard = true, true, config.GuardEnabled
	c.Reports.APIs = &[]string{"policyreport", "openreports"}
	needed := neededBy("system:serviceaccount:quaymaster:quaymaster", "quaymaster", &c)
	rules := granted(t)
	for _, p := range needed {
		if !slices.ContainsFunc(slices.Concat(rules[""], rules[p.Namespace]), func(r rbac.PolicyRule) bool { return covers(r, p) }) {
			t.Errorf("the release does not grant %s on %s %s in %q", p.Verb, p.Resource, p.Name, p.Namespace)
		}
	}
	for namespace, list := range rules {
		for _, r := range list {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					is := func(p Permission) bool {
						return p.Namespace == namespace && p.Verb == verb && p.plural == resource && slices.Contains(r.APIGroups, p.group) && covers(r, p)
					}
					if !slices.ContainsFunc(needed, is) {
						t.Errorf("%s on %s %v in %q is granted and not checked", verb, resource, r.ResourceNames, namespace)
					}
				}
			}
		}
	}
}

// TestRulesFollowSettings: a permission is checked where the settings and the roles need it, and not elsewhere.
func TestRulesFollowSettings(t *testing.T) {
	for _, row := range []struct {
		reason, verb, resource string
		change                 func(*config.Configuration)
	}{
		{"OpenShift's mirrors", "list", "imagetagmirrorsets.config.openshift.io", func(c *config.Configuration) { c.Mirrors.OpenShift = true }},
		{"break glass", "patch", "namespaces", func(c *config.Configuration) { c.Webhooks.BreakGlass = true }},
		{"tokens of the API", "create", "tokenreviews.authentication.k8s.io", func(c *config.Configuration) { c.Endpoints.API.TokenReview = true }},
		{"users of the dashboard", "create", "subjectaccessreviews.authorization.k8s.io", func(c *config.Configuration) { c.Dashboard.TokenReview = true }},
		{"other reports", "create", "reports.openreports.io", func(c *config.Configuration) { c.Reports.APIs = &[]string{"openreports"} }},
	} {
		c, err := config.Load("")
		ok(t, err)
		is := func(p Permission) bool { return p.Verb == row.verb && p.Resource == row.resource }
		if slices.ContainsFunc(neededBy("system:serviceaccount:n:a", "n", &c), is) {
			t.Errorf("%s: checked without the setting", row.reason)
		}
		row.change(&c)
		if !slices.ContainsFunc(neededBy("system:serviceaccount:n:a", "n", &c), is) {
			t.Errorf("%s: not checked", row.reason)
		}
	}
	c, err := config.Load("")
	ok(t, err)
	count := func(resource string) int {
		return len(slices.DeleteFunc(neededBy("system:serviceaccount:n:a", "n", &c), func(p Permission) bool { return p.Resource != resource }))
	}
	for _, row := range []struct {
		roles                    []string
		webhooks, reports, scans bool
	}{
		{nil, true, true, true}, {[]string{"admission"}, true, false, false}, {[]string{"scan", "report"}, false, true, true}, {[]string{"background"}, false, false, false},
	} {
		c.Roles = row.roles
		if got := [3]bool{count("mutatingwebhookconfigurations.admissionregistration.k8s.io") > 0, count("policyreports.wgpolicyk8s.io") > 0, count("cronjobs.batch") > 0}; got != [3]bool{row.webhooks, row.reports, row.scans} {
			t.Errorf("roles %v: %v", row.roles, got)
		}
	}
	for _, roles := range [][]string{nil, {"admission", "cleanup"}, {"native"}} {
		c.Roles = roles
		if writes := count("validatingadmissionpolicies.admissionregistration.k8s.io") > 0; writes != (len(roles) == 1) {
			t.Errorf("roles %v: native policies are written: %t", roles, writes)
		}
	}
	c.Roles, c.Webhooks.Disabled, c.Policies.WriteStatus, c.Events.Disabled, c.Scan.Disabled, c.Snapshot.Disabled = nil, true, config.StatusNever, true, true, true
	c.Reports.APIs = &[]string{}
	for _, resource := range []string{
		"mutatingwebhookconfigurations.admissionregistration.k8s.io", "clusterpolicies.kyverno.io/status", "events.events.k8s.io", "cronjobs.batch", "policyreports.wgpolicyk8s.io",
	} {
		if n := count(resource); n > 0 {
			t.Errorf("%s: %d permissions are checked that are not needed", resource, n)
		}
	}
}
