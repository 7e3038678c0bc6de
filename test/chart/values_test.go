package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/peers"
)

// TestValuesThatAreRefused: each wrong value is refused by the schema or by the chart, and
// its right twin is rendered.
func TestValuesThatAreRefused(t *testing.T) {
	const key = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
	for _, row := range []struct{ reason, chart, right, wrong, says string }{
		{"an unknown value", gatewayChart, "replicas: 3", "replica: 3", "replica"},
		{"one inside of another", gatewayChart, "image: {tag: v1}", "image: {tags: v1}", "tags"},
		{"no replica at all", gatewayChart, "replicas: 1", "replicas: 0", "/replicas"},
		{"a number as text", gatewayChart, "replicas: 1", "replicas: '1'", "/replicas"},
		{"a digest that is none", gatewayChart, "image: {digest: 'sha256:" + strings.Repeat("a", 64) + "'}", "image: {digest: 'sha256:abc'}", "/image/digest"},
		{"a digest in the repository's name", gatewayChart, "image: {repository: r/q}", "image: {repository: 'r/q@sha256:abc'}", "/image/repository"},
		{"a failure policy in another case", gatewayChart, "failurePolicy: Ignore", "failurePolicy: ignore", "/failurePolicy"},
		{"a namespace that can be none", gatewayChart, "excludedNamespaces: [kube-system]", "excludedNamespaces: ['kube-*']", "/excludedNamespaces"},
		{"an unknown setting of the gateway", gatewayChart, "configuration: {limits: {requests: 9}}", "configuration: {limits: {request: 9}}", "request"},
		{"a setting in another form", gatewayChart, "configuration: {ages: {tag: 5s}}", "configuration: {ages: {tag: 5}}", "/configuration/ages/tag"},
		{"a setting that has a value of its own", gatewayChart, "configuration: {webhooks: {mutateControllers: [Job]}}", "configuration: {webhooks: {excludedNamespaces: []}}", "excludedNamespaces"},
		{"a setting that only the chart knows", gatewayChart, "configuration: {listen: {drainDelay: 9s}}", "configuration: {listen: {address: ':1'}}", "address"},
		{"the kind of the configuration", gatewayChart, "configuration: {}", "configuration: {kind: Other}", "kind"},
		{"a ConfigMap that can be no volume's name", gatewayChart, "policies: {configMaps: [a-b]}", "policies: {configMaps: [a.b]}", "/policies/configMaps"},
		{"certificates from nowhere", gatewayChart, "certificates: {mode: certManager}", "certificates: {mode: vault}", "/certificates/mode"},
		{"a Secret without a name", gatewayChart, "certificates: {mode: secret, secretName: s}", "certificates: {mode: secret}", "certificates.secretName"},
		{"names for a certificate from elsewhere", gatewayChart, "configuration: {certificate: {names: [a.example]}}", "certificates: {mode: certManager}\nconfiguration: {certificate: {names: [a.example]}}", "configuration.certificate.names"},
		{"a kind of Service that metrics have no use for", gatewayChart, "metrics: {service: {type: NodePort}}", "metrics: {service: {type: ExternalName}}", "/metrics/service/type"},
		{"a monitor of no Service", gatewayChart, "metrics: {serviceMonitor: {enabled: true}}", "metrics: {service: {enabled: false}, serviceMonitor: {enabled: true}}", "metrics.service.enabled"},
		{"an Ingress without an exposed dashboard", gatewayChart, "dashboard: {expose: true, ingress: {enabled: true, host: h}}", "dashboard: {ingress: {enabled: true, host: h}}", "dashboard.expose"},
		{"an Ingress for every host", gatewayChart, "dashboard: {expose: true, ingress: {enabled: true, host: h}}", "dashboard: {expose: true, ingress: {enabled: true}}", "dashboard.ingress.host"},
		{"a budget that is no number", gatewayChart, "podDisruptionBudget: {minAvailable: 50%}", "podDisruptionBudget: {minAvailable: half}", "/podDisruptionBudget/minAvailable"},
		{"a budget that allows no eviction", gatewayChart, "podDisruptionBudget: {minAvailable: 2}", "podDisruptionBudget: {minAvailable: 3}", "podDisruptionBudget.minAvailable"},
		{"a share that is rounded up to all", gatewayChart, "podDisruptionBudget: {minAvailable: 66%}", "podDisruptionBudget: {minAvailable: 67%}", "podDisruptionBudget.minAvailable"},
		{"less time than a drain takes", gatewayChart, "terminationGracePeriodSeconds: 35", "terminationGracePeriodSeconds: 10", "/terminationGracePeriodSeconds"},
		{"a spread that Kubernetes does not know", gatewayChart, "spread: {nodes: DoNotSchedule}", "spread: {nodes: Never}", "/spread/nodes"},
		{"dry runs of every resource", gatewayChart, "manifests: {dryRuns: [{apiGroups: [apps], resources: [deployments]}]}", "manifests: {dryRuns: [{apiGroups: [apps], resources: ['*']}]}", "/manifests/dryRuns"},
		{"dry runs of every group", gatewayChart, "manifests: {dryRuns: [{apiGroups: [''], resources: [configmaps]}]}", "manifests: {dryRuns: [{apiGroups: ['*'], resources: [configmaps]}]}", "/manifests/dryRuns"},
		{"dry runs with another verb", gatewayChart, "manifests: {dryRuns: [{apiGroups: [apps], resources: [deployments]}]}", "manifests: {dryRuns: [{apiGroups: [apps], resources: [deployments], verbs: [delete]}]}", "verbs"},
		{"dry runs in the release's own namespace", gatewayChart, "manifests: {dryRuns: [{apiGroups: [apps], resources: [deployments]}], dryRunNamespaces: [try]}", "manifests: {dryRuns: [{apiGroups: [apps], resources: [deployments]}], dryRunNamespaces: [try, quaymaster]}", "manifests.dryRunNamespaces"},
		{"an unknown definition", definitionsChart, "kyverno: false", "kiverno: false", "kiverno"},
		{"signed images without a signer", policiesChart, "signedImages: {registries: [r.example], keys: [" + quoted(key) + "]}", "signedImages: {registries: [r.example]}", "signedImages.keys"},
		{"a key that is none", policiesChart, "signedImages: {registries: [r.example], keys: [" + quoted(key) + "]}", "signedImages: {registries: [r.example], keys: [cosign.pub]}", "/signedImages/keys"},
		{"an identity without an issuer", policiesChart, "signedImages: {registries: [r.example], identities: [{issuer: i, subject: s}]}", "signedImages: {registries: [r.example], identities: [{subject: s}]}", "/signedImages/identities"},
		{"an expression without an end", policiesChart, signedBy("issuer: i, subjectRegExp: '^https://a.example/.*$'"), signedBy("issuer: i, subjectRegExp: '^https://a.example/'"), "subjectRegExp"},
		{"an expression without a beginning", policiesChart, signedBy("issuerRegExp: ^i.*$, subject: s"), signedBy("issuerRegExp: i.*$, subject: s"), "issuerRegExp"},
		{"a registry with a slash at its end", policiesChart, "allowedRegistries: {registries: [r.example/team]}", "allowedRegistries: {registries: [r.example/team/]}", "/allowedRegistries/registries"},
		{"a registry with a scheme", policiesChart, "allowedRegistries: {registries: ['r.example:5000/team']}", "allowedRegistries: {registries: ['https://r.example']}", "/allowedRegistries/registries"},
		{"an action that Kyverno does not know", policiesChart, "action: Enforce", "action: enforce", "/action"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			render(t, row.chart, file(t, row.right))
			if said := refuse(t, row.chart, file(t, row.wrong)); !strings.Contains(said, row.says) {
				t.Errorf("the error %q does not contain %s", said, row.says)
			}
		})
	}
}

// TestReusedValues renders a chart with the values of an older one, of which one is not
// there yet, as helm upgrade --reuse-values does: it is refused, and not read as off.
func TestReusedValues(t *testing.T) {
	for _, row := range []struct{ chart, missing, says string }{
		{gatewayChart, "", ""},
		{gatewayChart, "fixedUser", "fixedUser"},
		{gatewayChart, "cleanup.ttl", "/cleanup"},
		{gatewayChart, "native.policies", "/native"},
		{gatewayChart, "ownNamespace", "ownNamespace"},
		{gatewayChart, "breakGlass.enabled", "/breakGlass"},
		{gatewayChart, "networkPolicy.endpoints", "/networkPolicy"},
		{gatewayChart, "certificates.certManager.issuerKind", "/certificates/certManager"},
		{definitionsChart, "", ""},
		{definitionsChart, "sigstore", "sigstore"},
		{policiesChart, "", ""},
		{policiesChart, "podSecurity.enabled", "/podSecurity"},
	} {
		older := t.TempDir()
		if err := os.CopyFS(older, os.DirFS(folder(t, row.chart))); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(older, "values.yaml")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var values map[string]any
		if err := yaml.Unmarshal(text, &values); err != nil {
			t.Fatal(err)
		}
		unstructured.RemoveNestedField(values, strings.Split(row.missing, ".")...)
		text, err = yaml.Marshal(values)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		said, err := peers.Get(t, peers.Helm).Run(t.Context(), "template", "quaymaster", older, "--namespace", "quaymaster")
		if (err == nil) != (row.missing == "") || !strings.Contains(said, row.says) {
			t.Errorf("%s without %q: %v: %.300s", row.chart, row.missing, err, said)
		}
	}
}

func signedBy(identity string) string {
	return "signedImages: {registries: [r.example], identities: [{" + identity + "}]}"
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }
