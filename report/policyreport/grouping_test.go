package policyreport_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// TestPlace: the report of a result, and its owner.
func TestPlace(t *testing.T) {
	lone, web := pod("shop", "web-1", nil).resource(), named("apps/v1", "Deployment", "shop", "web").resource()
	node := report.Resource{APIVersion: "v1", Kind: "Node", Name: "n-1", UID: "node"}
	namespace := report.Resource{APIVersion: "v1", Kind: "Namespace", Namespace: "shop", Name: "shop", UID: "ns"}
	inNone := report.Resource{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "admin", UID: "role"}
	unsaved := report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web"}
	strange := report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web", UID: "../../Weird UID"}
	owned := lone
	owned.Owner = &report.Owner{Kind: "ReplicaSet", Name: "web-1"}
	for _, row := range []struct {
		reason   string
		by       policyreport.Grouping
		of       report.Resource
		workload report.Resource
		want     policyreport.Place
		none     bool
	}{
		{"a pod of an owner", policyreport.ByWorkload, owned, web, policyreport.Place{Namespace: "shop", Name: "quaymaster-" + web.UID, Scope: web}, false},
		{"a lone pod", policyreport.ByWorkload, lone, report.Resource{}, policyreport.Place{Namespace: "shop", Name: "quaymaster-" + lone.UID, Scope: lone}, false},
		{"a static pod", policyreport.ByWorkload, lone, node, policyreport.Place{Namespace: "shop", Name: "quaymaster-" + lone.UID, Scope: lone}, false},
		{"the owner itself", policyreport.ByWorkload, web, report.Resource{}, policyreport.Place{Namespace: "shop", Name: "quaymaster-" + web.UID, Scope: web}, false},
		{"each object", policyreport.ByResource, owned, web, policyreport.Place{Namespace: "shop", Name: "quaymaster-" + lone.UID, Scope: lone}, false},
		{"each policy", policyreport.ByPolicy, lone, web, policyreport.Place{Namespace: "shop", Name: "quaymaster-clusterpolicy-p"}, false},
		{"each namespace", policyreport.ByNamespace, lone, web, policyreport.Place{Namespace: "shop", Name: "quaymaster"}, false},
		{"a cluster-scoped object", policyreport.ByNamespace, inNone, web, policyreport.Place{Name: "quaymaster"}, false},
		{"a namespace is in none", policyreport.ByNamespace, namespace, web, policyreport.Place{Name: "quaymaster"}, false},
		{"an object in no namespace", policyreport.ByWorkload, inNone, report.Resource{}, policyreport.Place{Name: "quaymaster-role", Scope: inNone}, false},
		{"of a file", policyreport.ByResource, unsaved, report.Resource{}, policyreport.Place{Namespace: "shop", Name: "quaymaster-pod-web", Scope: unsaved}, false},
		{"an UID that is no name", policyreport.ByResource, strange, report.Resource{}, policyreport.Place{Namespace: "shop", Name: "quaymaster-0bb84fddd5263f7969651bcc", Scope: strange}, false},
		{"a name that is to be made up", policyreport.ByWorkload, report.Resource{Kind: "Pod", Namespace: "shop", Name: "web-*"}, report.Resource{}, policyreport.Place{}, true},
		{"no name", policyreport.ByWorkload, report.Resource{Kind: "Pod", Namespace: "shop"}, report.Resource{}, policyreport.Place{}, true},
	} {
		got, ok := row.by.Place(result.Result{Policy: result.Policy{Kind: "ClusterPolicy", Name: "p"}, Resource: row.of}, row.workload)
		if ok == row.none || got != row.want {
			t.Errorf("%s: %+v %t, want %+v", row.reason, got, ok, row.want)
		}
	}
}

// TestNames: every name is one that an API server takes, with a number behind it.
func TestNames(t *testing.T) {
	for _, name := range []string{"p", strings.Repeat("long", 60), "Capital", "with space", ""} {
		r := result.Result{Policy: result.Policy{Kind: "ClusterPolicy", Name: name}, Resource: pod("shop", "web", nil).resource()}
		at := place(t, policyreport.ByPolicy, r, report.Resource{})
		if last := policyreport.PartName(at.Name, policyreport.MaxParts); len(last) > 253 || strings.ToLower(last) != last || strings.ContainsAny(last, " _/") {
			t.Errorf("%q becomes %q", name, last)
		}
	}
}

// TestNamesOfParts: no report has the name of another one's part.
func TestNamesOfParts(t *testing.T) {
	named := func(policy string) string {
		r := result.Result{Policy: result.Policy{Kind: "ClusterPolicy", Name: policy}, Resource: pod("shop", "web", nil).resource()}
		return place(t, policyreport.ByPolicy, r, report.Resource{}).Name
	}
	for _, policy := range []string{"p-2", "p-500"} {
		number, err := strconv.Atoi(policy[2:])
		if err != nil || named(policy) == policyreport.PartName(named("p"), number) {
			t.Errorf("the report of %s is called %s, as a part of p's is (%v)", policy, named(policy), err)
		}
	}
	if got, want := named("p-501"), "quaymaster-clusterpolicy-p-501"; got != want {
		t.Errorf("where no part has such a number the name is %s, want %s", got, want)
	}
}

// TestAPIs: the names by which an API server knows the kinds.
func TestAPIs(t *testing.T) {
	for _, row := range []struct {
		api             policyreport.API
		namespace, want string
	}{
		{policyreport.PolicyReports, "shop", "wgpolicyk8s.io/v1alpha2, Resource=policyreports PolicyReport"},
		{policyreport.PolicyReports, "", "wgpolicyk8s.io/v1alpha2, Resource=clusterpolicyreports ClusterPolicyReport"},
		{policyreport.OpenReports, "shop", "openreports.io/v1alpha1, Resource=reports Report"},
		{policyreport.OpenReports, "", "openreports.io/v1alpha1, Resource=clusterreports ClusterReport"},
	} {
		if got := row.api.Resource(row.namespace).String() + " " + row.api.Kind(row.namespace); got != row.want {
			t.Errorf("%s, want %s", got, row.want)
		}
	}
}
