package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// TestApplyLookups: policies look up what the files have. What they lack may be in a cluster, and is not
// known to be missing.
func TestApplyLookups(t *testing.T) {
	t.Parallel()
	const expression = `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: v}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "EXPRESSION"}]
`
	const parameter = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: most
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      failureAction: Enforce
      cel:
        paramKind: {apiVersion: example.com/v1, kind: KIND}
        paramRef: {REF}
        expressions: [{expression: "size(object.spec.containers) <= params.spec.most"}]
`
	const call = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: c}
spec:
  rules:
  - name: named
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [{name: found, apiCall: {urlPath: PATH, jmesPath: QUERY}}]
    validate: {failureAction: Enforce, message: denied, deny: {conditions: {any: [{key: "{{ found }}", operator: NotEquals, value: 1}]}}}
`
	policy := func(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }
	const definitions = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: quotae.example.com}\nspec: {group: example.com, scope: Namespaced, names: {kind: Quota, plural: quotae}}\n---\n" +
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: bounds.example.com}\nspec: {group: example.com, scope: Cluster, names: {kind: Bound, plural: bounds}}\n"
	const namespaces = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {tier: gold}}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: other, labels: {tier: silver}}\n"
	const quotas = "apiVersion: example.com/v1\nkind: Quota\nmetadata: {name: q, labels: {use: pods}}\nspec: {most: 1}\n---\napiVersion: example.com/v1\nkind: Quota\nmetadata: {name: q, namespace: other}\nspec: {most: 0}\n"
	const bounds = "apiVersion: example.com/v1\nkind: Bound\nmetadata: {name: b, labels: {use: pods}}\nspec: {most: MOST}\n"
	for _, c := range []struct {
		reason, policy, objects string
		status                  int
	}{
		{"a Namespace", policy(expression, "EXPRESSION", "resource.Get('v1', 'namespaces', '', 'default').metadata.labels.tier == 'gold'"), namespaces, 0},
		{"of another name", policy(expression, "EXPRESSION", "resource.Get('v1', 'namespaces', '', 'other').metadata.labels.tier == 'gold'"), namespaces, command.ExitDenied},
		{"that no file has", policy(expression, "EXPRESSION", "resource.Get('v1', 'namespaces', '', 'third').metadata.labels.tier == 'gold'"), namespaces, command.ExitError},
		{"a ConfigMap", policy(expression, "EXPRESSION", "resource.Get('v1', 'configmaps', 'platform', 'tiers').data.label == 'owner'"), applyFiles["tiers.yaml"], 0},
		{"a custom resource", policy(expression, "EXPRESSION", "resource.Get('example.com/v1', 'quotae', 'other', 'q').spec.most == 0"), quotas, 0},
		{"of another version", policy(expression, "EXPRESSION", "resource.Get('example.com/v2', 'quotae', 'other', 'q').spec.most == 0"), quotas, command.ExitError},
		{"a list", policy(expression, "EXPRESSION", "resource.List('v1', 'namespaces', '').items.size() == 2"), namespaces, 0},
		{"a list of a namespace", policy(expression, "EXPRESSION", "resource.List('example.com/v1', 'quotae', 'other').items.all(q, q.spec.most > 0)"), quotas, command.ExitDenied},
		{"a list with the object itself", policy(expression, "EXPRESSION", "resource.List('v1', 'pods', 'default').items.size() == 1"), namespaces, 0},
		{"a list of what no file has", policy(expression, "EXPRESSION", "resource.List('v1', 'services', 'default').items.size() == 0"), namespaces, command.ExitError},
		{"a review", policy(expression, "EXPRESSION", "resource.Post('authorization.k8s.io/v1', 'subjectaccessreviews', {'kind': 'SubjectAccessReview'}).status.allowed == true"), namespaces, command.ExitError},
		{"a parameter", policy(parameter, "KIND", "Quota", "REF", "name: q"), quotas, 0},
		{"of another namespace", policy(parameter, "KIND", "Quota", "REF", "name: q, namespace: other"), quotas, command.ExitDenied},
		{"by its labels", policy(parameter, "KIND", "Quota", "REF", "selector: {matchLabels: {use: pods}}"), quotas, 0},
		{"by labels that none has", policy(parameter, "KIND", "Quota", "REF", "selector: {matchLabels: {use: jobs}}"), quotas, command.ExitError},
		{"that no file has", policy(parameter, "KIND", "Quota", "REF", "name: r"), quotas, command.ExitError},
		{"of a kind that no file has", policy(parameter, "KIND", "Quota", "REF", "selector: {matchLabels: {use: pods}}, parameterNotFoundAction: Allow"), namespaces, command.ExitError},
		{"of the cluster", policy(parameter, "KIND", "Bound", "REF", "name: b"), policy(bounds, "MOST", "1"), 0},
		{"of the cluster, that denies", policy(parameter, "KIND", "Bound", "REF", "selector: {matchLabels: {use: pods}}"), policy(bounds, "MOST", "0"), command.ExitDenied},
		{"of the cluster, with a namespace", policy(parameter, "KIND", "Bound", "REF", "name: b, namespace: other"), policy(bounds, "MOST", "1"), command.ExitError},
		{"a call for an object", policy(call, "PATH", "/api/v1/namespaces/platform/configmaps/tiers", "QUERY", "length(data)"), applyFiles["tiers.yaml"], 0},
		{"a call for a list", policy(call, "PATH", "/apis/example.com/v1/namespaces/other/quotae", "QUERY", "length(items)"), quotas, 0},
		{"a call that finds two", policy(call, "PATH", "/api/v1/namespaces", "QUERY", "length(items)"), namespaces, command.ExitDenied},
		{"a call for what no file has", policy(call, "PATH", "/api/v1/namespaces/platform/configmaps/others", "QUERY", "length(data)"), applyFiles["tiers.yaml"], command.ExitError},
		{"a call for a list of what no file has", policy(call, "PATH", "/api/v1/services", "QUERY", "length(items)"), namespaces, command.ExitError},
	} {
		folder := t.TempDir()
		for name, content := range map[string]string{"policy.yaml": c.policy, "objects.yaml": c.objects, "definitions.yaml": definitions, "pod.yaml": applyFiles["good.yaml"]} {
			ok(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
		}
		for _, place := range []string{"-r", ""} { // definitions are found among the objects, and next to the policies
			args := []string{"apply", filepath.Join(folder, "policy.yaml"), "-r", filepath.Join(folder, "objects.yaml"), "-r", filepath.Join(folder, "pod.yaml")}
			if place != "" {
				args = append(args, place)
			}
			args = append(args, filepath.Join(folder, "definitions.yaml"))
			if status, out, errs := piped(t, "", nil, args...); status != c.status {
				t.Errorf("%s: status %d, want %d\n%s%s", c.reason, status, c.status, out, errs)
			}
		}
	}
}
