package equality_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/equality"
)

// policyOf is a policy of policies.kyverno.io.
func policyOf(kind, text string) string {
	return "apiVersion: policies.kyverno.io/v1\nkind: " + kind + "\nmetadata: {name: p}\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

func cleanup(text string) string {
	return "apiVersion: kyverno.io/v2\nkind: ClusterCleanupPolicy\nmetadata: {name: p}\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

// otherPairs are policies that change, generate and delete objects, and those that look up others.
func otherPairs() []pair {
	return []pair{
		{
			name: "a label that is added",
			source: rule(`
match: {any: [{resources: {kinds: [ConfigMap]}}]}
mutate: {patchStrategicMerge: {metadata: {labels: {+(team): none}}}}`),
			result: policyOf("MutatingPolicy", `
autogen: {podControllers: {controllers: []}}
matchConstraints: {resourceRules: [`+configMaps+`]}
matchConditions: [{name: absent, expression: "!has(object.metadata.labels) || !('team' in object.metadata.labels)"}]
mutations:
- patchType: ApplyConfiguration
  applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'team': 'none'}}}"}`),
			mutants: [][2]string{
				{"'team': 'none'", "'team': 'some'"}, {"'team': 'none'", "'teams': 'none'"}, {"!has(object.metadata.labels) || ", ""}, {"CREATE, UPDATE", "CREATE"},
				{"matchConditions: [{name: absent, expression: \"!has(object.metadata.labels) || !('team' in object.metadata.labels)\"}]", ""}, {"!('team'", "('team'"},
			},
		},
		{
			name: "an object that is generated",
			source: rule(`
match: {any: [{resources: {kinds: [Namespace], operations: [CREATE]}}]}
exclude: {any: [{resources: {selector: {matchLabels: {plain: "true"}}}}]}
generate: {apiVersion: v1, kind: ConfigMap, name: zone, namespace: "{{ request.object.metadata.name }}", synchronize: false, data: {data: {zone: a}}}`),
			result: policyOf("GeneratingPolicy", `
matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [namespaces]}]}
matchConditions: [{name: labelled, expression: "object.metadata.?labels.?plain.orValue('') != 'true'"}]
variables:
- name: zone
  expression: "[{'apiVersion': dyn('v1'), 'kind': dyn('ConfigMap'), 'metadata': dyn({'name': 'zone', 'namespace': string(object.metadata.name)}), 'data': dyn({'zone': 'a'})}]"
generate: [{expression: "generator.Apply(object.metadata.name, variables.zone)"}]`),
			mutants: [][2]string{
				{"'name': 'zone'", "'name': 'zones'"}, {"{'zone': 'a'}", "{'zone': 'b'}"}, {"!= 'true'", "== 'true'"},
			},
		},
		{
			name: "old objects that are deleted",
			source: cleanup(`
schedule: "0 3 * * *"
match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {temporary: "true"}}}}]}
conditions: {all: [{key: "{{ target.data.state || '' }}", operator: Equals, value: done}]}`),
			result: policyOf("DeletingPolicy", `
schedule: "0 3 * * *"
matchConstraints:
  resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps]}]
  objectSelector: {matchLabels: {temporary: "true"}}
conditions: [{name: done, expression: "object.?data.?state.orValue('') == 'done'"}]`),
			mutants: [][2]string{
				{`temporary: "true"`, `temporary: "false"`}, {"== 'done'", "!= 'done'"}, {"?state", "?status"}, {`"0 3 * * *"`, `"0 4 * * *"`}, {"conditions: [{name", "deletionPropagationPolicy: Orphan\n  conditions: [{name"},
				{"conditions: [{name: done, expression: \"object.?data.?state.orValue('') == 'done'\"}]", ""},
			},
		},
		{
			name: "a value of a ConfigMap",
			source: rule(`
match: {any: [{resources: {kinds: [Service], operations: [CREATE, UPDATE]}}]}
context: [{name: allowed, configMap: {name: allowed, namespace: shop}}]
validate: {failureAction: Enforce, allowExistingViolations: false, message: "the type is not allowed", deny: {conditions: {any: [{key: "{{ request.object.spec.type || 'ClusterIP' }}", operator: NotEquals, value: "{{ allowed.data.type }}"}]}}}`),
			result: validating("{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [services]}", `
variables: [{name: allowed, expression: "resource.Get('v1', 'configmaps', 'shop', 'allowed')"}]
validations: [{expression: "object.spec.?type.orValue('ClusterIP') == variables.allowed.data.type", message: "the type is not allowed"}]`),
			mutants: [][2]string{
				{"'shop', 'allowed'", "'shop', 'other'"}, {"data.type", "data.kind"}, {"orValue('ClusterIP') ==", "orValue('ClusterIP') !="}, {"spec.?type", "spec.?clusterIP"},
			},
		},
		{
			name: "data of an image",
			source: rule(`
match: {any: [{resources: {kinds: [Pod], operations: [CREATE]}}]}
validate:
  failureAction: Enforce
  message: "another architecture"
  foreach:
  - list: request.object.spec.containers
    context: [{name: data, imageRegistry: {reference: "{{ element.image }}", jmesPath: configData}}]
    deny: {conditions: {any: [{key: "{{ data.architecture }}", operator: AnyNotIn, value: [amd64, arm64]}]}}`),
			result: validating("{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}", `
validations: [{expression: "object.spec.containers.all(c, image.GetMetadata(c.image).configData.architecture in ['amd64', 'arm64'])", message: "another architecture"}]`),
			mutants: [][2]string{{"'arm64'", "'arm'"}, {"configData", "manifest"}, {".all(", ".exists("}, {"c.image", "c.name + ':1'"}},
		},
		{
			name: "a list of objects",
			source: rule(`
match: {any: [{resources: {kinds: [ConfigMap], operations: [CREATE]}}]}
context: [{name: services, apiCall: {urlPath: "/api/v1/namespaces/{{ request.namespace }}/services", jmesPath: "items[?spec.type == 'NodePort'] | length(@)"}}]
validate: {failureAction: Enforce, message: "one too many", deny: {conditions: {any: [{key: "{{ services }}", operator: GreaterThan, value: 0}]}}}`),
			result: validating("{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}", `
variables: [{name: services, expression: "resource.List('v1', 'services', object.metadata.namespace).items.filter(s, s.spec.?type.orValue('') == 'NodePort')"}]
validations: [{expression: "variables.services.size() == 0", message: "one too many"}]`),
			mutants: [][2]string{{"'NodePort'", "'ClusterIP'"}, {"== 0", "<= 1"}, {"object.metadata.namespace)", "'')"}, {".filter(s, s.spec.?type.orValue('') == 'NodePort')", ""}},
		},
	}
}

// TestSchedules: a form that deletes at other times differs, although it deletes the same.
func TestSchedules(t *testing.T) {
	p := otherPairs()[2]
	report, err := equality.Check(t.Context(), equality.Options{
		Source: documents(t, p.source), Result: documents(t, strings.Replace(p.result, `"0 3 * * *"`, `"0 3 * * 1"`, 1)), Objects: 1,
	})
	if err != nil || report.Equal() || report.Differing != 0 || len(report.Schedules) == 0 || !strings.HasSuffix(report.Schedules[0], "the source alone") {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestNamespaced: most objects have the namespace of their policy, and reach its rules.
func TestNamespaced(t *testing.T) {
	within := func(text, kind, namespaced string) string {
		return strings.Replace(strings.Replace(text, "kind: "+kind, "kind: "+namespaced, 1), "{name: p", "{namespace: shop, name: p", 1)
	}
	source := within(rule(wantsTeam), "ClusterPolicy", "Policy")
	result := validating(configMaps, "validations: [{expression: \"object.metadata.?labels.?team.orValue('') != ''\", messageExpression: \"'a team, ' + object.metadata.name\"}]")
	result = within(result, "ValidatingPolicy", "NamespacedValidatingPolicy")
	report := compare(t, source, result, false)
	if !report.Equal() || report.Matched*2 < report.Objects || len(report.Untried) > 0 {
		t.Errorf("%+v", report)
	}
	for _, m := range [][2]string{{"!= ''", "== ''"}, {"?labels.?team.orValue('')", "labels.team"}, {"namespace: shop", "namespace: shops"}} {
		if report := compare(t, source, strings.Replace(result, m[0], m[1], 1), true); report.Equal() {
			t.Errorf("%q -> %q is not found", m[0], m[1])
		}
	}
}
