package health

import (
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/election"
	"github.com/quaymaster/quaymaster/gateway/native/record"
)

// rule is a permission that a process with some of the roles needs, as the chart grants it
// (deploy/helm/quaymaster, docs/roles.md).
type rule struct {
	group            string
	resources, verbs []string
	// own is set for the gateway's namespace, and namespace for another one; neither means the cluster.
	own       bool
	namespace string
	names     []string
	// roles need it; nil means every process.
	roles []string
	// lost is the consequence without it. A rule that is optional may be left out on purpose.
	lost     string
	optional bool
}

// snapshots is the number of Secrets that hold cached verifications.
const snapshots = 8

func readVerbs() []string { return []string{"get", "list", "watch"} }

// rulesOf are all rules for the settings of a gateway.
func rulesOf(c *config.Configuration) []rule {
	return slices.Concat(documentRules(c), admissionRules(c), ownRules(c), workloadRules(c), reviewRules(c), nativeRules(c))
}

// documentRules are for the documents that every decision depends on.
func documentRules(c *config.Configuration) []rule {
	const policies = "the policies of this kind are not read, and the gateway does not get ready"
	const deleting = "policies that delete objects are not read, and delete nothing"
	list := []rule{
		{group: "kyverno.io", resources: []string{"clusterpolicies", "policies", "policyexceptions", "globalcontextentries"}, verbs: readVerbs(), lost: policies},
		{group: "policies.kyverno.io", resources: []string{
			"imagevalidatingpolicies", "namespacedimagevalidatingpolicies", "validatingpolicies", "namespacedvalidatingpolicies",
			"mutatingpolicies", "namespacedmutatingpolicies", "generatingpolicies", "namespacedgeneratingpolicies", "policyexceptions",
		}, verbs: readVerbs(), lost: policies},
		{group: "kyverno.io", resources: []string{"cleanuppolicies", "clustercleanuppolicies"}, verbs: readVerbs(), lost: deleting, optional: true},
		{group: "policies.kyverno.io", resources: []string{"deletingpolicies", "namespaceddeletingpolicies"}, verbs: readVerbs(), lost: deleting, optional: true},
		{group: "policy.sigstore.dev", resources: []string{"clusterimagepolicies", "trustroots"}, verbs: readVerbs(), lost: policies},
		{group: "quaymaster.dev", resources: []string{"imageoverrides", "registrymirrors"}, verbs: readVerbs(),
			lost: "overrides and mirrors are not read, and the gateway does not get ready"},
		{group: "apiextensions.k8s.io", resources: []string{"customresourcedefinitions"}, verbs: readVerbs(),
			lost: "the gateway does not find out which kinds of policies exist"},
		{resources: []string{"namespaces"}, verbs: readVerbs(), lost: "policies that select namespaces by labels cannot be evaluated"},
	}
	if c.Mirrors.OpenShift {
		list = append(list, rule{group: "config.openshift.io", resources: []string{"imagedigestmirrorsets", "imagetagmirrorsets"}, verbs: readVerbs(),
			lost: "OpenShift's mirrors are not read (mirrors.openShift)"})
	}
	if !c.Events.Disabled {
		list = append(list, rule{group: "events.k8s.io", resources: []string{"events"}, verbs: []string{"create", "patch"}, lost: "no Events are written"})
	}
	return list
}

// admissionRules are for the processes that answer the API server.
func admissionRules(c *config.Configuration) []rule {
	const configurations, conditions = "the webhook configurations are not kept as policies require", "policies show no condition Ready"
	roles := []string{config.RoleAdmission}
	list := []rule{
		{group: "rbac.authorization.k8s.io", resources: []string{"rolebindings", "clusterrolebindings"}, verbs: []string{"list", "watch"},
			lost: "policies that match roles cannot be evaluated"},
		{group: "quaymaster.dev", resources: []string{"imageoverrides/status", "registrymirrors/status"}, verbs: []string{"patch"},
			lost: "overrides and mirrors show no status"},
	}
	if !c.Webhooks.Disabled {
		both := []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
		list = append(list,
			rule{group: "admissionregistration.k8s.io", resources: both, verbs: []string{"get", "list", "watch", "create"}, lost: configurations},
			rule{group: "admissionregistration.k8s.io", resources: both, names: []string{"quaymaster"}, verbs: []string{"update"}, lost: configurations},
			rule{group: "rbac.authorization.k8s.io", resources: []string{"clusterroles"}, names: []string{c.Webhooks.Owner}, verbs: []string{"get"},
				lost: configurations},
			rule{resources: []string{"configmaps"}, own: true, verbs: []string{"create"},
				lost: "policies are not Ready, because the webhook configurations are not probed"},
			rule{group: "discovery.k8s.io", resources: []string{"endpointslices"}, namespace: "default", names: []string{"kubernetes"}, verbs: []string{"get"},
				lost: "API servers are probed through their Service, and not each of them"})
	}
	if c.Policies.WriteStatus != config.StatusNever {
		list = append(list,
			rule{group: "apps", resources: []string{"deployments"}, verbs: []string{"list"},
				lost: "the gateway does not find out whether Kyverno or policy-controller writes the status of policies"},
			rule{group: "kyverno.io", resources: []string{
				"clusterpolicies/status", "policies/status", "cleanuppolicies/status", "clustercleanuppolicies/status", "globalcontextentries/status",
			}, verbs: []string{"patch"}, lost: conditions},
			rule{group: "policies.kyverno.io", resources: []string{
				"imagevalidatingpolicies/status", "namespacedimagevalidatingpolicies/status", "validatingpolicies/status",
				"namespacedvalidatingpolicies/status", "mutatingpolicies/status", "namespacedmutatingpolicies/status",
				"deletingpolicies/status", "namespaceddeletingpolicies/status",
				"generatingpolicies/status", "namespacedgeneratingpolicies/status",
			}, verbs: []string{"patch"}, lost: conditions},
			rule{group: "policy.sigstore.dev", resources: []string{"clusterimagepolicies/status", "trustroots/status"}, verbs: []string{"patch"}, lost: conditions})
	}
	if c.Webhooks.BreakGlass {
		list = append(list, rule{resources: []string{"namespaces"}, verbs: []string{"patch"},
			lost: "namespaces with break glass are not closed when their time is over"})
	}
	for i := range list {
		list[i].roles = roles
	}
	return list
}

// ownRules are for the gateway's own namespace.
func ownRules(c *config.Configuration) []rule {
	admission, others := []string{config.RoleAdmission}, []string{config.RoleScan, config.RoleReport, config.RoleBackground, config.RoleCleanup, config.RoleNative}
	const certificate, leaderless = "the gateway has no certificate", "no replica leads"
	list := []rule{
		{resources: []string{"secrets"}, own: true, verbs: []string{"create"}, roles: admission, lost: certificate},
		{resources: []string{"secrets"}, own: true, names: []string{c.Certificate.Secret}, verbs: append(readVerbs(), "update"), roles: admission, lost: certificate},
		{group: "coordination.k8s.io", resources: []string{"leases"}, own: true,
			verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}, roles: admission, lost: leaderless},
		{group: "coordination.k8s.io", resources: []string{"leases"}, own: true, verbs: []string{"create"}, roles: others, lost: leaderless},
		{group: "coordination.k8s.io", resources: []string{"leases"}, own: true, names: []string{election.Scan}, verbs: []string{"get", "update"},
			roles: []string{config.RoleScan}, lost: leaderless},
		{group: "coordination.k8s.io", resources: []string{"leases"}, own: true,
			names: []string{election.Cleanup, "quaymaster-cleanup", "quaymaster-cleanup-permissions"}, verbs: []string{"get", "update"},
			roles: []string{config.RoleCleanup}, lost: "nothing is cleaned up"},
		{group: "coordination.k8s.io", resources: []string{"leases"}, own: true, names: []string{election.Native}, verbs: []string{"get", "update"},
			roles: []string{config.RoleNative}, lost: "no native policies are written"},
		{resources: []string{"secrets"}, own: true, names: []string{c.Certificate.Secret}, verbs: readVerbs(), roles: others,
			lost: "the process has no key of the replicas, and does not get ready"},
	}
	if !c.Snapshot.Disabled && c.Snapshot.Folder == "" {
		list = append(list, rule{resources: []string{"secrets"}, own: true, names: snapshotNames(), verbs: []string{"get", "update"}, roles: admission,
			lost: "verified claims are lost when all replicas restart", optional: true})
	}
	if c.Guard == config.GuardEnabled {
		list = append(list, rule{resources: []string{"secrets"}, own: true, names: []string{"quaymaster-guard"}, verbs: append(readVerbs(), "update"),
			roles: admission, lost: "approved versions of policies are not stored (guard)"})
	}
	return list
}

func snapshotNames() []string {
	names := make([]string, snapshots)
	for i := range names {
		names[i] = "quaymaster-snapshot-" + strconv.Itoa(i)
	}
	return names
}

// nativeRules are for the policies that the API server evaluates itself: those of their writer, and those of the process
// that leaves them out of the webhook configurations.
func nativeRules(c *config.Configuration) []rule {
	const written, read = "no native policies are written (docs/native-policies.md)", "policies that the API server evaluates itself keep their webhooks"
	writer, keeper := []string{config.RoleNative}, []string{config.RoleAdmission}
	configMap := func(roles []string, name, lost string, verbs ...string) rule {
		return rule{resources: []string{"configmaps"}, own: true, names: []string{name}, verbs: verbs, roles: roles, lost: lost}
	}
	list := []rule{
		{group: "admissionregistration.k8s.io", roles: writer, lost: written, resources: []string{
			"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		}, verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
		{resources: []string{"configmaps"}, own: true, verbs: []string{"create"}, roles: writer, lost: written},
		configMap(writer, record.Enforced, written, "get", "update"),
		configMap(writer, record.Covered, "native policies that are not wanted any more are not removed", readVerbs()...),
	}
	if c.Policies.NativePolicies != "" {
		list = append(list,
			configMap(keeper, record.Enforced, read, readVerbs()...),
			configMap(keeper, record.Covered, "native policies that are not wanted any more are not removed", "get", "update"))
	}
	return list
}

// workloadRules are for credentials, scans and reports.
func workloadRules(c *config.Configuration) []rule {
	list := []rule{{
		resources: []string{"secrets", "serviceaccounts", "configmaps"}, verbs: []string{"get"}, optional: true,
		roles: []string{config.RoleAdmission, config.RoleScan},
		lost:  "in namespaces without a RoleBinding of their own, private images and the keys that policies name cannot be read (pullSecrets of the chart)",
	}}
	if !c.Scan.Disabled {
		const scans = "running workloads of this kind are not scanned (scan of the chart)"
		for _, of := range []struct {
			group     string
			resources []string
		}{
			{"", []string{"pods", "podtemplates", "replicationcontrollers", "services", "serviceaccounts"}},
			{"apps", []string{"deployments", "daemonsets", "statefulsets", "replicasets"}},
			{"batch", []string{"jobs", "cronjobs"}},
			{"networking.k8s.io", []string{"ingresses", "networkpolicies"}},
		} {
			list = append(list, rule{group: of.group, resources: of.resources, verbs: []string{"list"}, roles: []string{config.RoleScan}, lost: scans, optional: true})
		}
	}
	reports := []string{config.RoleReport}
	verbs := []string{"get", "list", "create", "update", "delete"}
	const lost = "reports are not written (reports of the chart)"
	if c.Reports.APIs == nil || len(*c.Reports.APIs) == 0 {
		return list
	}
	list = append(list,
		rule{group: "apps", resources: []string{"replicasets"}, verbs: []string{"get"}, roles: reports, lost: lost, optional: true},
		rule{group: "batch", resources: []string{"jobs"}, verbs: []string{"get"}, roles: reports, lost: lost, optional: true})
	if slices.Contains(*c.Reports.APIs, "policyreport") {
		list = append(list, rule{group: "wgpolicyk8s.io", resources: []string{"policyreports", "clusterpolicyreports"}, verbs: verbs, roles: reports,
			lost: lost, optional: true})
	}
	if slices.Contains(*c.Reports.APIs, "openreports") {
		list = append(list, rule{group: "openreports.io", resources: []string{"reports", "clusterreports"}, verbs: verbs, roles: reports, lost: lost, optional: true})
	}
	return list
}

// reviewRules are for tokens of callers.
func reviewRules(c *config.Configuration) []rule {
	var list []rule
	tokens := func(role, lost string) {
		list = append(list, rule{group: "authentication.k8s.io", resources: []string{"tokenreviews"}, verbs: []string{"create"}, roles: []string{role}, lost: lost})
	}
	if c.Endpoints.API.TokenReview {
		tokens(config.RoleAdmission, "the API refuses its callers (endpoints.api.tokenReview)")
	}
	if c.HasLifetimes() {
		list = append(list, rule{group: "authorization.k8s.io", resources: []string{"subjectaccessreviews"}, verbs: []string{"create"},
			roles: []string{config.RoleAdmission}, lost: "labels with the lifetime of objects are refused (cleanup.ttl)"})
	}
	if c.Dashboard.TokenReview {
		const lost = "the dashboard refuses its users (dashboard.tokenReview)"
		tokens(config.RoleReport, lost)
		list = append(list, rule{group: "authorization.k8s.io", resources: []string{"subjectaccessreviews"}, verbs: []string{"create"},
			roles: []string{config.RoleReport}, lost: lost})
	}
	return list
}
