package deploy_test

import (
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
)

// forPeople reports whether a role is for users, and none of the gateway's.
func forPeople(role *rbac.ClusterRole) bool {
	return role.Labels["app.kubernetes.io/component"] == "users"
}

// TestRights refuses what would be more than the gateway needs.
func TestRights(t *testing.T) {
	for _, role := range all[rbac.ClusterRole](t) {
		if forPeople(role) {
			continue
		}
		for _, rule := range role.Rules {
			words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
			if slices.Contains(words, "*") {
				t.Errorf("%s: * in %v", role.Name, rule)
			}
			secret := slices.Contains(rule.Resources, "secrets")
			if secret && (role.Name != "quaymaster-pull-secrets" || !slices.Equal(rule.Verbs, []string{"get"})) {
				t.Errorf("%s: secrets of all namespaces: %v", role.Name, rule.Verbs)
			}
			if tokens := slices.Contains(rule.Resources, "tokenreviews"); tokens && (role.Name != "quaymaster-tokenreview" || !slices.Equal(rule.Verbs, []string{"create"})) {
				t.Errorf("%s: tokens: %v", role.Name, rule.Verbs)
			}
			if writes := slices.ContainsFunc(rule.Verbs, func(v string) bool { return v == "patch" || v == "update" || v == "create" }); writes && slices.Contains(rule.APIGroups, "config.openshift.io") {
				t.Errorf("%s: may write OpenShift's: %v", role.Name, rule)
			}
			// An admission policy limits the changes of a namespace.
			if writes := slices.Contains(rule.Resources, "namespaces") && !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}); writes && (role.Name != "quaymaster" || !slices.Equal(rule.Verbs, []string{"patch"})) {
				t.Errorf("%s: namespaces: %v", role.Name, rule.Verbs)
			}
			// Reports are made and taken away, and of these kinds there is nothing else.
			reports := role.Name == "quaymaster-reports" && (slices.Equal(rule.APIGroups, []string{"wgpolicyk8s.io"}) || slices.Equal(rule.APIGroups, []string{"openreports.io"}))
			for _, verb := range []string{"delete", "deletecollection", "escalate", "bind", "impersonate"} {
				if slices.Contains(rule.Verbs, verb) && (!reports || verb != "delete") {
					t.Errorf("%s: %s in %v", role.Name, verb, rule)
				}
			}
			if slices.Contains(rule.Verbs, "update") && len(rule.ResourceNames) == 0 && !reports {
				t.Errorf("%s: may update any of %v", role.Name, rule.Resources)
			}
		}
	}
}

// TestRolesForPeople: they are for policies and related kinds, and only explicit roles have more
// than read access.
func TestRolesForPeople(t *testing.T) {
	groups := []string{"kyverno.io", "policies.kyverno.io", "policy.sigstore.dev", "quaymaster.dev"}
	writers := map[string][]string{
		"quaymaster-policy-writer":    nil,
		"quaymaster-exception-writer": {"policyexceptions"},
		"quaymaster-override-writer":  {"imageoverrides"},
		"quaymaster-break-glass":      {"namespaces"},
		"quaymaster-viewer":           nil,
	}
	for _, role := range all[rbac.ClusterRole](t) {
		if !forPeople(role) {
			continue
		}
		only, known := writers[role.Name]
		if !known {
			t.Errorf("%s is not expected", role.Name)
		}
		delete(writers, role.Name)
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				if !slices.Contains(groups, group) {
					t.Errorf("%s has the group %s", role.Name, group)
				}
			}
			if only != nil && !slices.Equal(rule.Resources, only) {
				t.Errorf("%s has %v", role.Name, rule.Resources)
			}
			if open := slices.Contains(rule.Verbs, "break-glass"); open != (role.Name == "quaymaster-break-glass") || open && len(rule.Verbs) > 1 {
				t.Errorf("%s may %v", role.Name, rule.Verbs)
			}
			for _, kept := range []string{"policyexceptions", "imageoverrides"} {
				if role.Name == "quaymaster-policy-writer" && slices.Contains(rule.Resources, kept) {
					t.Errorf("the writer of policies may write %s as well", kept)
				}
			}
			if role.Name == "quaymaster-viewer" && !slices.Equal(rule.Verbs, []string{"get", "list", "watch"}) {
				t.Errorf("the viewer may %v", rule.Verbs)
			}
		}
		for label := range role.Labels {
			if strings.HasPrefix(label, "rbac.authorization.k8s.io/") && (role.Name != "quaymaster-viewer" || label != "rbac.authorization.k8s.io/aggregate-to-view") {
				t.Errorf("%s is added to %s", role.Name, label)
			}
		}
	}
	if len(writers) > 0 {
		t.Errorf("there is no %v", writers)
	}
}

// TestBindings makes sure that roles, accounts and bindings mean one another.
func TestBindings(t *testing.T) {
	account := all[core.ServiceAccount](t)[0]
	roles := make(map[string]bool)
	for _, r := range all[rbac.ClusterRole](t) {
		if !forPeople(r) {
			roles["ClusterRole "+r.Name] = true
		}
	}
	for _, r := range all[rbac.Role](t) {
		roles["Role "+r.Name] = true
	}
	check := func(ref rbac.RoleRef, subjects []rbac.Subject) {
		delete(roles, ref.Kind+" "+ref.Name)
		if len(subjects) != 1 || subjects[0].Name != account.Name || subjects[0].Namespace != account.Namespace || subjects[0].Kind != rbac.ServiceAccountKind {
			t.Errorf("%s is bound to %v", ref.Name, subjects)
		}
	}
	for _, b := range all[rbac.ClusterRoleBinding](t) {
		check(b.RoleRef, b.Subjects)
	}
	for _, b := range all[rbac.RoleBinding](t) {
		check(b.RoleRef, b.Subjects)
	}
	if len(roles) > 0 {
		t.Errorf("there is no binding of %v", roles)
	}
	if got := all[apps.Deployment](t)[0].Spec.Template.Spec.ServiceAccountName; got != account.Name {
		t.Errorf("the pods run as %q", got)
	}
}

// TestGatewayMayReadWatchedKinds: every kind of document that ships, and its status
// where it is ours.
func TestGatewayMayReadWatchedKinds(t *testing.T) {
	may := map[string]bool{}
	for _, role := range all[rbac.ClusterRole](t) {
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					may[role.Name+" "+verb+" "+resource+"."+rule.APIGroups[0]] = true
				}
			}
		}
	}
	var wanted []string
	for _, d := range all[definition](t) {
		for _, verb := range []string{"get", "list", "watch"} {
			wanted = append(wanted, verb+" "+d.Name)
		}
		if d.Spec.Group == "quaymaster.dev" {
			wanted = append(wanted, "patch "+d.Spec.Names.Plural+"/status."+d.Spec.Group)
		}
	}
	for _, right := range wanted {
		if !may["quaymaster "+right] {
			t.Errorf("the gateway may not %s", right)
		}
	}
}
