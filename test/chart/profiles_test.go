package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/peers"
)

// everything turns on what can be turned on.
const everything = `
replicas: 5
roles: {separate: true}
failurePolicy: Ignore
imagePullSecrets: [pull]
policies: {selector: team=platform, configMaps: [company], writeStatus: true, exceptionNamespaces: [exceptions]}
configuration: {policies: {folders: [/more]}, cleanup: {limit: 7}, endpoints: {api: {tokenReview: true, users: [ci]}}, limits: {requests: 9}}
certificates: {mode: certManager}
rbac: {users: {aggregatePolicies: true, aggregateExceptions: true, aggregateOverrides: true}}
pullSecrets: {namespaces: [shop, bank]}
expressions: {accessReviews: true}
cleanup: {separate: true, replicas: 2, ttl: true}
manifests: {dryRuns: [{apiGroups: [""], resources: [configmaps, services]}, {apiGroups: [apps], resources: [deployments]}], dryRunNamespaces: [kyverno-dryrun, try]}
metrics:
  service: {type: LoadBalancer, loadBalancerSourceRanges: [192.0.2.0/24]}
  serviceMonitor: {enabled: true, labels: {release: prometheus}}
  prometheusRule: {enabled: true}
  grafanaDashboard: {enabled: true}
dashboard: {expose: true, ingress: {enabled: true, host: q.example, className: nginx, tlsSecretName: q}}
networkPolicy: {endpointsFrom: [{ipBlock: {cidr: 192.0.2.0/24}}], dashboardFrom: [{podSelector: {}}]}
podLabels: {team: platform}
podAnnotations: {note: x}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {}}
extraEnv: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
extraVolumes: [{name: ca, configMap: {name: ca}}]
extraVolumeMounts: [{name: ca, mountPath: /ca}]
serviceAccount: {annotations: {eks.amazonaws.com/role-arn: "arn:x"}}
`

// TestProfiles renders the chart with the values of several users, has Helm lint it, and
// checks the objects of each.
func TestProfiles(t *testing.T) {
	for _, row := range []struct {
		reason, values string
		check          func(t *testing.T, all []*unstructured.Unstructured)
	}{
		{"as it is", "", usual},
		{"one replica", "replicas: 1", func(t *testing.T, all []*unstructured.Unstructured) {
			if one(all, "PodDisruptionBudget", "quaymaster") != nil {
				t.Error("a budget keeps the node from being drained")
			}
			if at(one(all, "Deployment", "quaymaster"), "spec", "template", "spec", "topologySpreadConstraints") != nil {
				t.Error("one replica is spread")
			}
		}},
		{"the user that the image has", "", func(t *testing.T, all []*unstructured.Unstructured) {
			for _, field := range []string{"runAsUser", "runAsGroup", "fsGroup"} {
				equal(t, 65532, at(one(all, "Deployment", "quaymaster"), "spec", "template", "spec", "securityContext", field))
			}
		}},
		{"the cluster chooses the user", "fixedUser: false", func(t *testing.T, all []*unstructured.Unstructured) {
			who := at(one(all, "Deployment", "quaymaster"), "spec", "template", "spec", "securityContext")
			equal(t, any(map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}), who)
		}},
		{"the digest wins over the tag", "image: {tag: v1, digest: 'sha256:" + strings.Repeat("a", 64) + "'}", func(t *testing.T, all []*unstructured.Unstructured) {
			equal(t, "ghcr.io/quaymaster/quaymaster@sha256:"+strings.Repeat("a", 64), at(container(one(all, "Deployment", "quaymaster")), "image"))
		}},
		{"nothing that can be left out", `
pullSecrets: {enabled: false}
reports: {enabled: false}
scan: {enabled: false}
background: {enabled: false}
cleanup: {enabled: false}
rbac: {users: {create: false}}
ownNamespace: {guard: false}
breakGlass: {enabled: false}
crds: {install: false}
networkPolicy: {enabled: false}
metrics: {service: {enabled: false}}
dashboard: {enabled: false}
podDisruptionBudget: {enabled: false}
`, least},
		{"a playground at the pod alone", "dashboard: {playground: true}", func(t *testing.T, all []*unstructured.Unstructured) {
			equal(t, map[string]any{"playground": true}, configuration(t, all, "quaymaster")["dashboard"])
		}},
		{"a playground for readers", "dashboard: {expose: true, playground: true}", func(t *testing.T, all []*unstructured.Unstructured) {
			equal(t, map[string]any{"address": ":8001", "tokenReview": true, "playground": true}, configuration(t, all, "quaymaster")["dashboard"])
		}},
		{"a playground without a dashboard", "dashboard: {enabled: false, playground: true}", func(t *testing.T, all []*unstructured.Unstructured) {
			equal(t, map[string]any{"disabled": true}, configuration(t, all, "quaymaster")["dashboard"])
		}},
		{"a GiB of memory", "resources: {limits: {memory: 1Gi}}", func(t *testing.T, all []*unstructured.Unstructured) {
			equal(t, map[string]any{"name": "GOMEMLIMIT", "value": "880MiB"}, at(container(one(all, "Deployment", "quaymaster")), "env", 2))
		}},
		{"memory in other units", "{roles: {separate: true}, resources: {limits: {memory: 512M}}, controller: {resources: {limits: {memory: 536870912}}}}", func(t *testing.T, all []*unstructured.Unstructured) {
			equal(t, map[string]any{"name": "GOMEMLIMIT", "value": "419MiB"}, at(container(one(all, "Deployment", "quaymaster")), "env", 2))
			equal(t, map[string]any{"name": "GOMEMLIMIT", "value": "440MiB"}, at(container(one(all, "Deployment", "quaymaster-controller")), "env", 2))
		}},
		{"a part of a MiB", "resources: {limits: {memory: 512.5Mi}}", func(t *testing.T, all []*unstructured.Unstructured) {
			equal(t, map[string]any{"name": "GOMEMLIMIT", "value": "440MiB"}, at(container(one(all, "Deployment", "quaymaster")), "env", 2))
		}},
		{"changes are followed beside admission", "configuration: {scan: {follow: true}}", scans("get", "list", "watch")},
		{"changes are followed without admission", "roles: {separate: true}", scans("get", "list", "watch")},
		{"changes are not followed without admission", "{roles: {separate: true}, configuration: {scan: {follow: false}}}", scans("list")},
		{"dry runs of cluster-scoped resources", "manifests: {dryRuns: [{apiGroups: [''], resources: [namespaces]}], dryRunNamespaces: []}", func(t *testing.T, all []*unstructured.Unstructured) {
			equal(t, []string{"quaymaster"}, bound(one(all, "ClusterRoleBinding", "quaymaster-dryrun")))
			if one(all, "RoleBinding", "quaymaster-dryrun") != nil {
				t.Error("it is bound in a namespace, too")
			}
		}},
		{"the cleanup next to admission", "", cleanup("quaymaster", nil)},
		{"the cleanup next to the scan", "roles: {separate: true}", cleanup("quaymaster-controller", []any{"serve", "--config=/etc/quaymaster/gateway.yaml", "--roles=scan,report,background,cleanup"})},
		{"the cleanup alone", "cleanup: {separate: true}", cleanup("quaymaster-cleanup", []any{"serve", "--config=/etc/quaymaster/gateway.yaml", "--roles=cleanup"})},
		{"the cleanup alone beside the scan", "{cleanup: {separate: true}, roles: {separate: true}}", cleanup("quaymaster-cleanup", []any{"serve", "--config=/etc/quaymaster/gateway.yaml", "--roles=cleanup"})},
		{"no cleanup", "cleanup: {enabled: false, separate: true}", func(t *testing.T, all []*unstructured.Unstructured) {
			equal(t, []any{"serve", "--config=/etc/quaymaster/gateway.yaml", "--roles=admission,scan,report,background"}, at(container(one(all, "Deployment", "quaymaster")), "args"))
			if one(all, "ClusterRole", "quaymaster-cleanup") != nil || one(all, "Deployment", "quaymaster-cleanup") != nil || one(all, "ServiceAccount", "quaymaster-cleanup") != nil {
				t.Error("something may delete")
			}
		}},
		{"policies of the API server are left alone", "", func(t *testing.T, all []*unstructured.Unstructured) {
			for _, o := range all {
				if strings.HasSuffix(o.GetName(), "-native") || strings.Contains(fmt.Sprint(at(o, "rules")), "admissionpolic") {
					t.Errorf("%s %s is about native policies", o.GetKind(), o.GetName())
				}
			}
		}},
		{"policies that ask for it", "native: {policies: requested}", native("requested")},
		{"all policies beside all roles", "{native: {policies: auto}, roles: {separate: true}, cleanup: {separate: true}}", native("auto")},
		{"none any more", "native: {policies: off}", native("off")},
		{"the guard in a file", "ownNamespace: {suffix: .static.k8s.io}", func(t *testing.T, all []*unstructured.Unstructured) {
			const name = "quaymaster-own-images.static.k8s.io"
			equal(t, name, at(one(all, "ValidatingAdmissionPolicyBinding", name), "spec", "policyName"))
			if one(all, "ValidatingAdmissionPolicy", name) == nil || one(all, "ValidatingAdmissionPolicy", "quaymaster-own-images") != nil {
				t.Error("the policy has another name")
			}
		}},
		{"endpoints without a network policy of the chart", "networkPolicy: {endpoints: false}", func(t *testing.T, all []*unstructured.Unstructured) {
			if one(all, "NetworkPolicy", "quaymaster") == nil || one(all, "NetworkPolicy", "quaymaster-endpoints") != nil {
				t.Error("the endpoints are open to every peer besides")
			}
		}},
		{"definitions that go with the release", "crds: {keep: false}", func(t *testing.T, all []*unstructured.Unstructured) {
			if _, kept := one(all, "CustomResourceDefinition", "registrymirrors.quaymaster.dev").GetAnnotations()["helm.sh/resource-policy"]; kept {
				t.Error("they are kept")
			}
		}},
		{"cert-manager and an issuer that is there", "certificates: {mode: certManager, certManager: {issuerName: ca, issuerKind: ClusterIssuer}}", func(t *testing.T, all []*unstructured.Unstructured) {
			equal(t, map[string]any{"name": "ca", "kind": "ClusterIssuer", "group": "cert-manager.io"}, at(one(all, "Certificate", "quaymaster"), "spec", "issuerRef"))
			if one(all, "Issuer", "quaymaster") != nil {
				t.Error("there is an issuer more")
			}
		}},
		{"roles and an account of another owner", "rbac: {create: false}\nserviceAccount: {create: false, name: given}", func(t *testing.T, all []*unstructured.Unstructured) {
			equal(t, "given", at(one(all, "Deployment", "quaymaster"), "spec", "template", "spec", "serviceAccountName"))
			if one(all, "ClusterRole", "quaymaster") != nil || one(all, "ServiceAccount", "given") != nil {
				t.Error("they are made again")
			}
		}},
		{"everything", everything, all},
	} {
		t.Run(row.reason, func(t *testing.T) {
			values := file(t, row.values)
			lint(t.Context(), t, gatewayChart, values)
			row.check(t, objects(t, render(t, gatewayChart, values)))
		})
	}
	for _, other := range []string{definitionsChart, policiesChart} {
		lint(t.Context(), t, other)
	}
}

// scans checks that the permissions of the scan are those that it uses.
func scans(verbs ...any) func(*testing.T, []*unstructured.Unstructured) {
	return func(t *testing.T, all []*unstructured.Unstructured) {
		rules, _ := at(one(all, "ClusterRole", "quaymaster-scan"), "rules").([]any)
		if len(rules) == 0 {
			t.Error("the scan may do nothing")
		}
		for _, rule := range rules {
			equal(t, verbs, rule.(map[string]any)["verbs"])
		}
	}
}

// native checks that one account, and no other, may write policies of the API server, and that its process has no other
// role.
func native(policies string) func(*testing.T, []*unstructured.Unstructured) {
	return func(t *testing.T, all []*unstructured.Unstructured) {
		for _, o := range all {
			if o.GetName() != "quaymaster-native" && strings.Contains(fmt.Sprint(at(o, "rules")), "admissionpolic") {
				t.Errorf("%s %s is about native policies, too", o.GetKind(), o.GetName())
			}
		}
		for _, kind := range []string{"ClusterRoleBinding", "RoleBinding"} {
			equal(t, []string{"quaymaster-native"}, bound(one(all, kind, "quaymaster-native")))
		}
		equal(t, []string{"quaymaster"}, bound(one(all, "RoleBinding", "quaymaster-native-webhooks")))
		equal(t, []string{"quaymaster", "quaymaster-native"}, bound(one(all, "RoleBinding", "quaymaster-api-servers")))
		deployment := one(all, "Deployment", "quaymaster-native")
		equal(t, "quaymaster-native", at(deployment, "spec", "template", "spec", "serviceAccountName"))
		equal(t, []any{"serve", "--config=/etc/quaymaster/gateway.yaml", "--roles=native"}, at(container(deployment), "args"))
		equal(t, any(map[string]any{"nativePolicies": policies}), configuration(t, all, "quaymaster")["policies"])
		for _, o := range all {
			if o.GetKind() == "Deployment" && o.GetName() != "quaymaster-native" && strings.Contains(fmt.Sprint(at(container(o), "args")), "native") {
				t.Errorf("%s has the role, too", o.GetName())
			}
		}
	}
}

// cleanup checks that one account may delete, by a role that is empty, and that its Deployment has the role.
func cleanup(account string, args []any) func(*testing.T, []*unstructured.Unstructured) {
	return func(t *testing.T, all []*unstructured.Unstructured) {
		role := one(all, "ClusterRole", "quaymaster-cleanup")
		equal(t, nil, at(role, "rules"))
		equal(t, []any{map[string]any{"matchLabels": map[string]any{"quaymaster.dev/aggregate-to-cleanup": "true"}}}, at(role, "aggregationRule", "clusterRoleSelectors"))
		equal(t, []string{account}, bound(one(all, "ClusterRoleBinding", "quaymaster-cleanup")))
		deployment := one(all, "Deployment", account)
		equal(t, account, at(deployment, "spec", "template", "spec", "serviceAccountName"))
		if args != nil {
			equal(t, args, at(container(deployment), "args"))
			equal(t, []string{account}, bound(one(all, "RoleBinding", "quaymaster-cleanup")))
		}
		if one(all, "ClusterRole", "quaymaster-lifetimes") != nil || configuration(t, all, "quaymaster")["cleanup"] != nil {
			t.Error("labels for lifetimes have an effect, without a value that enables it")
		}
		for _, verb := range []string{"delete", "deletecollection"} {
			for _, o := range all {
				rules, _ := at(o, "rules").([]any)
				if o.GetKind() == "ClusterRole" && o.GetName() != "quaymaster-reports" && strings.Contains(fmt.Sprint(rules), "verbs:["+verb) {
					t.Errorf("%s may %s", o.GetName(), verb)
				}
			}
		}
	}
}

func usual(t *testing.T, all []*unstructured.Unstructured) {
	scans("list")(t, all)
	if one(all, "ClusterRole", "quaymaster-accessreview") != nil || one(all, "ClusterRoleBinding", "quaymaster-accessreview") != nil {
		t.Error("expressions may review access, without a value that enables it")
	}
	if one(all, "ClusterRole", "quaymaster-dryrun") != nil || one(all, "RoleBinding", "quaymaster-dryrun") != nil || one(all, "ClusterRoleBinding", "quaymaster-dryrun") != nil {
		t.Error("it may create objects of signed manifests, without a value that enables it")
	}
	if one(all, "NetworkPolicy", "quaymaster-endpoints") == nil {
		t.Error("the API server cannot reach the endpoints")
	}
	equal(t, map[string]any{
		"apiVersion": "quaymaster.dev/v1alpha1", "kind": "Configuration", "namespace": "quaymaster",
		"webhooks":    map[string]any{"service": "quaymaster", "owner": "quaymaster", "excludedNamespaces": []any{"kube-system"}, "breakGlass": true},
		"certificate": map[string]any{"secret": "quaymaster-certificate"}, "trust": map[string]any{"cacheFolder": "/var/cache/quaymaster"},
	}, configuration(t, all, "quaymaster"))
	for _, role := range []string{"policy-writer", "exception-writer", "override-writer"} {
		for label := range one(all, "ClusterRole", "quaymaster-"+role).GetLabels() {
			if strings.Contains(label, "aggregate") {
				t.Errorf("%s: %s, without a value that enables it", role, label)
			}
		}
	}
}

func least(t *testing.T, all []*unstructured.Unstructured) {
	want := []string{
		"ClusterRole/quaymaster", "ClusterRoleBinding/quaymaster", "ConfigMap/quaymaster", "Deployment/quaymaster",
		"Role/quaymaster", "Role/quaymaster-api-servers", "RoleBinding/quaymaster", "RoleBinding/quaymaster-api-servers", "Service/quaymaster", "ServiceAccount/quaymaster",
	}
	if got := names(all); !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
	c := configuration(t, all, "quaymaster")
	equal(t, map[string]any{"disabled": true}, c["scan"])
	equal(t, map[string]any{"apis": []any{}}, c["reports"])
	equal(t, nil, c["webhooks"].(map[string]any)["breakGlass"])
	if rules := fmt.Sprint(at(one(all, "ClusterRole", "quaymaster"), "rules")); strings.Contains(rules, "resources:[namespaces] verbs:[patch]") {
		t.Error("it may patch namespaces, without a policy that restricts it")
	}
	equal(t, map[string]any{"disabled": true}, c["dashboard"])
}

func all(t *testing.T, all []*unstructured.Unstructured) {
	endpoints, controller := one(all, "Deployment", "quaymaster"), one(all, "Deployment", "quaymaster-controller")
	equal(t, []any{"serve", "--config=/etc/quaymaster/gateway.yaml", "--roles=admission"}, at(container(endpoints), "args"))
	equal(t, []any{"serve", "--config=/etc/quaymaster/gateway.yaml", "--roles=scan,report,background"}, at(container(controller), "args"))
	equal(t, "quaymaster", at(endpoints, "spec", "template", "spec", "serviceAccountName"))
	equal(t, "quaymaster-controller", at(controller, "spec", "template", "spec", "serviceAccountName"))
	c := configuration(t, all, "quaymaster")
	equal(t, map[string]any{"selector": "team=platform", "writeStatus": true, "folders": []any{"/etc/quaymaster-policies/company", "/more"}}, c["policies"])
	equal(t, map[string]any{"namespaces": []any{"exceptions"}}, c["exceptions"])
	equal(t, map[string]any{"address": ":8001", "tokenReview": true}, c["dashboard"])
	equal(t, map[string]any{
		"secret": "quaymaster-certificate", "certificateFile": "/etc/quaymaster-certificate/tls.crt",
		"keyFile": "/etc/quaymaster-certificate/tls.key", "caFile": "/etc/quaymaster-certificate/ca.crt",
	}, c["certificate"])
	equal(t, "Ignore", c["webhooks"].(map[string]any)["failurePolicy"])
	equal(t, map[string]any{"limit": 7, "ttl": true}, c["cleanup"])
	// The dashboard is where reports are.
	equal(t, "controller", at(one(all, "Service", "quaymaster-dashboard"), "spec", "selector", "app.kubernetes.io/component"))
	equal(t, "admission", at(one(all, "Service", "quaymaster"), "spec", "selector", "app.kubernetes.io/component"))
	for name, accounts := range map[string][]string{
		"quaymaster": {"quaymaster"}, "quaymaster-controller": {"quaymaster-controller", "quaymaster-cleanup"},
		"quaymaster-cleanup": {"quaymaster-cleanup"}, "quaymaster-lifetimes": {"quaymaster"},
		"quaymaster-reports": {"quaymaster-controller"}, "quaymaster-scan": {"quaymaster-controller"}, "quaymaster-background": {"quaymaster-controller"},
		"quaymaster-tokenreview": {"quaymaster", "quaymaster-controller"}, "quaymaster-accessreview": {"quaymaster", "quaymaster-controller"},
	} {
		equal(t, accounts, bound(one(all, "ClusterRoleBinding", name)))
	}
	equal(t, any([]any{map[string]any{"apiGroups": []any{"authorization.k8s.io"}, "resources": []any{"subjectaccessreviews"}, "verbs": []any{"create"}}}),
		at(one(all, "ClusterRole", "quaymaster-accessreview"), "rules"))
	dryRuns(t, all)
	if one(all, "ClusterRoleBinding", "quaymaster-pull-secrets") != nil {
		t.Error("Secrets of all namespaces can be read")
	}
	equal(t, 2, len(slices.DeleteFunc(slices.Clone(all), func(o *unstructured.Unstructured) bool {
		return o.GetKind() != "RoleBinding" || o.GetName() != "quaymaster-pull-secrets" || (o.GetNamespace() != "shop" && o.GetNamespace() != "bank")
	})))
	for _, name := range []string{"Certificate/quaymaster", "Certificate/quaymaster-authority", "Issuer/quaymaster", "Issuer/quaymaster-self-signed", "ServiceMonitor/quaymaster", "PrometheusRule/quaymaster", "ConfigMap/quaymaster-grafana", "Ingress/quaymaster-dashboard"} {
		if !slices.Contains(names(all), name) {
			t.Errorf("there is no %s", name)
		}
	}
	if groups, _ := at(one(all, "PrometheusRule", "quaymaster"), "spec", "groups").([]any); len(groups) == 0 {
		t.Error("there is no alert")
	}
}

// dryRuns checks that admission, and nothing else, may create the resources of the values in their
// namespaces, and nothing more.
func dryRuns(t *testing.T, all []*unstructured.Unstructured) {
	t.Helper()
	equal(t, any([]any{
		map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps", "services"}, "verbs": []any{"create"}},
		map[string]any{"apiGroups": []any{"apps"}, "resources": []any{"deployments"}, "verbs": []any{"create"}},
	}), at(one(all, "ClusterRole", "quaymaster-dryrun"), "rules"))
	if one(all, "ClusterRoleBinding", "quaymaster-dryrun") != nil {
		t.Error("dry runs are permitted in all namespaces")
	}
	var namespaces []string
	for _, o := range all {
		if o.GetKind() == "RoleBinding" && o.GetName() == "quaymaster-dryrun" {
			namespaces = append(namespaces, o.GetNamespace())
			equal(t, []string{"quaymaster"}, bound(o))
		}
	}
	slices.Sort(namespaces)
	equal(t, []string{"kyverno-dryrun", "try"}, namespaces)
}

// TestNames: whatever the release is called, the names in the configuration are those of
// the objects.
func TestNames(t *testing.T) {
	for _, row := range []struct{ release, namespace, override, want string }{
		{"quaymaster", "quaymaster", "", "quaymaster"},
		{"prod", "security", "", "prod-quaymaster"},
		{"my-quaymaster", "admission", "", "my-quaymaster"},
		{strings.Repeat("long", 13), "n", "", strings.Repeat("long", 7) + "l-quaymaster"},
		{"prod", "security", "gate", "gate"},
	} {
		all := objects(t, renderAs(t, row.release, gatewayChart, row.namespace, "--set=roles.separate=true,dashboard.expose=true,fullnameOverride="+row.override))
		c := configuration(t, all, row.want)
		equal(t, row.namespace, c["namespace"])
		webhooks, _ := c["webhooks"].(map[string]any)
		for kind, name := range map[string]any{"Service": webhooks["service"], "ClusterRole": webhooks["owner"]} {
			if one(all, kind, fmt.Sprint(name)) == nil {
				t.Errorf("%s: there is no %s %v", row.release, kind, name)
			}
		}
		secret := fmt.Sprint(c["certificate"].(map[string]any)["secret"])
		equal(t, []any{secret}, at(one(all, "Role", row.want), "rules", 1, "resourceNames"))
		for _, o := range all {
			if len(o.GetName()) > 63 {
				t.Errorf("%s %s: the name is too long", o.GetKind(), o.GetName())
			}
			apiServers := strings.HasSuffix(o.GetName(), "-api-servers") && o.GetNamespace() == "default" // it reads the addresses of the API servers there
			if namespace := o.GetNamespace(); namespace != "" && namespace != row.namespace && !apiServers {
				t.Errorf("%s %s is in %s", o.GetKind(), o.GetName(), namespace)
			}
		}
	}
}

// TestNotes: the uninstall instructions in the notes of helm install are correct.
func TestNotes(t *testing.T) {
	for _, row := range []struct{ values, says, not string }{
		{"rbac.create=true", "helm uninstall takes the webhook configurations along. RegistryMirrors and ImageOverrides stay.", "kubectl delete"},
		{"rbac.create=false", "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration quaymaster", "along"},
	} {
		said := peers.Get(t, peers.Helm).Must(t, "install", "quaymaster", folder(t, gatewayChart), "--namespace", "quaymaster", "--dry-run=client", "--set="+row.values)
		_, notes, _ := strings.Cut(said, "\nNOTES:\n")
		if !strings.Contains(notes, row.says) || strings.Contains(notes, row.not) {
			t.Errorf("%s: %s", row.values, notes)
		}
	}
}

// configuration is the gateway's configuration.
func configuration(t *testing.T, all []*unstructured.Unstructured, name string) map[string]any {
	t.Helper()
	text, _ := at(one(all, "ConfigMap", name), "data", "gateway.yaml").(string)
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil || len(content) == 0 {
		t.Fatalf("the configuration %q: %v", text, err)
	}
	return content
}

// bound returns the accounts of a binding.
func bound(binding *unstructured.Unstructured) []string {
	var accounts []string
	subjects, _ := at(binding, "subjects").([]any)
	for i := range subjects {
		accounts = append(accounts, fmt.Sprint(at(binding, "subjects", i, "name")))
	}
	return accounts
}

func equal(t *testing.T, want, got any) {
	t.Helper()
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("got %v, want %v", got, want)
	}
}
