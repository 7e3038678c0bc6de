package cel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
	"github.com/quaymaster/quaymaster/policy/policytest"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// bothMutations compiles a policy that mutates and its results.
func bothMutations(t testing.TB, mutations *mutating.Compiler, text string) (source *policy.Policy, made []*policy.Policy, written string) {
	t.Helper()
	result := convertText(t, text, cel.Options{})
	if len(result.Problems) > 0 {
		t.Fatalf("%s\n%v", text, result.Problems)
	}
	for i := range result.Policies {
		yaml, err := result.Policies[i].YAML()
		if err != nil {
			t.Fatal(err)
		}
		p, err := mutations.Compile(yaml, "test.yaml")
		if err != nil {
			t.Fatalf("%v\n%s", err, yaml)
		}
		made, written = append(made, p), written+string(yaml)
	}
	return sourcePolicy(t, []byte(text)), made, written
}

// mutated is the object after the rules of policies, as JSON, or the first error.
func mutated(t testing.TB, object map[string]any, policies ...*policy.Policy) string {
	t.Helper()
	for _, p := range policies {
		for _, m := range p.Mutations {
			out := m.Mutate(t.Context(), policy.Case{Subject: creation(object)})
			if out.Result == policy.Indeterminate {
				return "error: " + out.Reasons[0].Message
			}
			if out.Object != nil {
				object = out.Object
			}
		}
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fitted is an object as an API server stores it.
type fitted struct {
	text   string
	object map[string]any
	json   string
}

// fitting returns an object as an API server stores it.
func fitting(t testing.TB, text string) fitted {
	t.Helper()
	raw, err := json.Marshal(policytest.Object(t, text))
	if err != nil {
		t.Fatal(err)
	}
	object, err := workload.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !stored.Fits(object) {
		t.Fatalf("%s is no object that an API server stores", text)
	}
	content := stored.Object(object).Content()
	written, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return fitted{text, content, string(written)}
}

// podSpecs are specifications of pods with fields absent, empty and present.
func podSpecs() []string {
	var all []string
	containers := []string{
		"[{name: a, image: a}]", "[{name: a, image: 'b:latest', imagePullPolicy: Never}, {name: b, image: 'b:1'}, {name: c, image: 'c:latest'}]",
		"[{name: b, image: b, command: [x], securityContext: {runAsUser: 1}, volumeMounts: [{name: v, mountPath: /v}, {name: c, mountPath: /certs}]}, {name: side, image: old, args: [z]}]",
		"[{name: a, image: 'a:latest', securityContext: {}, env: [{name: B, value: b}, {name: A, value: z}]}, {name: side, image: old, volumeMounts: [{name: o, mountPath: /o}]}]",
		"[{name: a, image: a, securityContext: {privileged: true, runAsUser: 5}, resources: {limits: {cpu: '1'}}, volumeMounts: []}, {name: b, image: 'b:latest'}]",
	}
	for _, list := range containers {
		for _, more := range []string{
			"", ", securityContext: {}", ", securityContext: {runAsNonRoot: false, fsGroup: 1}, nodeSelector: {os: linux}",
			", volumes: [{name: a, emptyDir: {}}, {name: c, hostPath: {path: /c}}], imagePullSecrets: [{name: own}]",
			", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: []}, {matchExpressions: [{key: a, operator: Exists}]}]}}}, volumes: [{name: c, secret: {secretName: s}}], nodeSelector: {}, initContainers: [{name: i, image: 'i:latest'}, {name: j, image: j}]",
			", affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: null}}}, tolerations: [{key: a}], terminationGracePeriodSeconds: 5, imagePullSecrets: [{name: own}, {name: pull}], automountServiceAccountToken: false, hostNetwork: true",
		} {
			all = append(all, "{containers: "+list+more+"}")
		}
	}
	return all
}

// compareMutations reports whether an object is changed, by both alike.
func compareMutations(t testing.TB, reason string, of fitted, source *policy.Policy, made []*policy.Policy, written string) (changed bool) {
	t.Helper()
	want, got := mutated(t, of.object, source), mutated(t, of.object, made...)
	if want != got && (!strings.HasPrefix(want, "error") || !strings.HasPrefix(got, "error")) {
		t.Errorf("%s: %s\n got %s\nwant %s\n%s", reason, of.text, got, want, written)
	}
	return want != of.json
}

// TestStrategicMerge: source and result make the same object.
func TestStrategicMerge(t *testing.T) {
	objects := podObjects(t)
	mutations := mutating.New(kyvernocel.Options{})
	for _, c := range []struct{ reason, patch, written string }{
		{"labels", "metadata: {labels: {app.example/team: shop, tier: web}}", "labels: {'app.example/team': 'shop', 'tier': 'web'}"},
		{"a label that is missing", "metadata: {labels: {+(team): shop}}", "labels: {'team': object.metadata.?labels.?team.orValue('shop')}"},
		{"annotations of a name with a slash", "metadata: {annotations: {+(example.com/a): \"true\"}}", "object.metadata.?annotations[?'example.com/a'].orValue('true')"},
		{"fields that are missing", "spec: {securityContext: {+(runAsNonRoot): true, +(fsGroup): 2000}}", "runAsNonRoot: object.spec.?securityContext.?runAsNonRoot.orValue(true)"},
		{"a number", "spec: {terminationGracePeriodSeconds: 50}", "Object{spec: Object.spec{terminationGracePeriodSeconds: 50}}"},
		{"an object that is missing", "spec: {+(securityContext): {runAsNonRoot: true}}", "?securityContext: has(object.spec.securityContext) ? optional.none() : optional.of("},
		{"a field of all containers", "spec: {containers: [{(name): '?*', imagePullPolicy: Always}]}", "containers: object.spec.containers.map(container, Object.spec.containers{"},
		{"a field of some containers", "spec: {containers: [{(image): '*:latest', imagePullPolicy: Always}]}", "object.spec.containers.filter(container, string(container.?image"},
		{"a missing field of all containers", "spec: {containers: [{(name): '*', +(imagePullPolicy): Always}]}", "container.?imagePullPolicy.orValue('Always')"},
		{"missing fields in an object of all containers", "spec: {containers: [{(name): '*', securityContext: {+(privileged): false, +(runAsUser): 7}}]}", ""},
		{"a missing and another field", "spec: {containers: [{(name): '*', imagePullPolicy: Never, securityContext: {+(privileged): false}}]}", ""},
		{"a field of all init containers", "spec: {initContainers: [{(name): '*', imagePullPolicy: Always}]}", "?initContainers: object.spec.?initContainers.optMap(initContainers, initContainers.map("},
		{"a field of some init containers", "spec: {initContainers: [{(image): '*:latest', imagePullPolicy: Always}]}", ""},
		{"a sidecar", "spec: {containers: [{name: side, image: side, imagePullPolicy: Always}]}", "path: '/spec/containers'"},
		{"a sidecar with lists", "spec: {containers: [{name: side, image: side, command: [a, b], volumeMounts: [{name: c, mountPath: /certs}], env: [{name: A, value: a}]}], volumes: [{name: c, emptyDir: {medium: Memory}}]}", "useServerSideApply: true"},
		{"two sidecars", "spec: {containers: [{name: side, image: side}, {name: b, image: 'b:2'}]}", ""},
		{"a mount in all containers", "spec: {containers: [{(name): '*', volumeMounts: [{name: c, mountPath: /certs}]}], volumes: [{name: c, configMap: {name: certs}}]}", "transformList(i, container, "},
		{"variables in some containers", "spec: {containers: [{(image): '*:latest', env: [{name: A, value: a}]}]}", ""},
		{"a secret for pulls", "spec: {imagePullSecrets: [{name: pull}]}", ""},
		{"a node selector", "spec: {nodeSelector: {+(kubernetes.io/arch): amd64, os: linux}}", "jsonpatch.escapeKey('kubernetes.io/arch')"},
		{"a list that is replaced", "spec: {tolerations: [{key: a, operator: Exists}]}", "path: '/spec/tolerations'"},
		{"a list that is missing", "spec: {+(tolerations): [{key: b, operator: Exists}], +(volumes): [{name: c, emptyDir: {}}]}", "(has(object.spec.tolerations) ? [] : "},
		{"lists that are missing in containers", "spec: {containers: [{(name): '*', +(command): [v, w], +(env): [{name: A, value: a}]}]}", ""},
		{"removal", "spec: {hostNetwork: null}", "op: 'remove'"},
		{"removal and a list that is replaced", "spec: {hostNetwork: null, tolerations: [{key: q}]}", ""},
		{"a missing object of an element that may be missing", "spec: {initContainers: [{name: side, +(securityContext): {runAsUser: 9}}]}", ""},
		{"a list in some elements that may be missing", "spec: {initContainers: [{(image): '*:latest', volumeMounts: [{name: c, mountPath: /certs}]}]}", ""},
		{"an object without members", "spec: {volumes: [{name: a, emptyDir: {}}]}", "emptyDir: Object.spec.volumes.emptyDir{}"},
		{"a condition", "spec: {(hostNetwork): true, terminationGracePeriodSeconds: 1}", "- name: hostNetwork"},
		{"a condition on an annotation", "metadata: {labels: {(app): web, a: b}}", ""},
		{"an element that must be there", "metadata: {annotations: {+(safe): \"true\"}}, spec: {volumes: [{<(emptyDir): {}}]}", ".exists(volume, has(volume.emptyDir))"},
		{"a path in an element that must be there", "metadata: {annotations: {+(safe): \"true\"}}, spec: {volumes: [{hostPath: {<(path): '*'}}]}", ""},
		{"an image that must be there", "spec: {containers: [{<(image): '*:latest'}], imagePullSecrets: [{name: pull}]}", ""},
		{"resources", "spec: {containers: [{(name): '*', resources: {limits: {+(memory): 1Gi}, requests: {+(cpu): 100m}}}]}", ""},
	} {
		changed := 0
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test, annotations: {pod-policies.kyverno.io/autogen-controllers: "Deployment,CronJob"}},
  spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, mutate: {patchStrategicMerge: {%s}}}]}}`, c.patch)
		source, made, written := bothMutations(t, mutations, text)
		if !strings.Contains(strings.ReplaceAll(written, "''", "'"), c.written) {
			t.Errorf("%s:\n%s\nlacks %s", c.reason, written, c.written)
		}
		for _, object := range objects {
			if compareMutations(t, c.reason, object, source, made, written) {
				changed++
			}
		}
		if changed == 0 {
			t.Errorf("%s: no object is changed", c.reason)
		}
	}
}

// TestRulesInOrder: each rule changes what the one before it made; rules of which the policies would be
// applied in another order, by their names, are refused if that may make a difference.
func TestRulesInOrder(t *testing.T) {
	objects := podObjects(t)
	mutations := mutating.New(kyvernocel.Options{})
	rule := func(name, patch string) string {
		return "{name: " + name + ", match: {any: [{resources: {kinds: [Pod]}}]}, mutate: {patchStrategicMerge: {" + patch + "}}}"
	}
	policy := func(rules ...string) string {
		return "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {rules: [" + strings.Join(rules, ", ") + "]}}"
	}
	first, second := "metadata: {labels: {+(team): bank}}", "metadata: {labels: {(team): bank, tier: web}}"
	for _, text := range []string{
		policy(rule("a", first), rule("b", second)), policy(rule("a", second), rule("b", first)), policy(rule("b", first), rule("a", "spec: {hostNetwork: true}")),
	} {
		source, made, written := bothMutations(t, mutations, text)
		if len(made) != 2 {
			t.Errorf("%s became %d policies", text, len(made))
		}
		for _, object := range objects {
			compareMutations(t, text, object, source, made, written)
		}
	}
	part := convertText(t, policy(rule("a", first), rule("b", "metadata: {$patch: delete}"), rule("c", second)), cel.Options{Partial: true})
	if len(part.Problems) != 1 || len(part.Policies) != 2 {
		t.Errorf("in part: %v", part)
	}
	one := strings.Replace(policy(rule("a", first), rule("b", second)), "spec: {", "spec: {applyRules: One, ", 1)
	if result := convertText(t, one, cel.Options{}); len(result.Problems) != 2 || !strings.Contains(result.Problems[0].Error(), "applyRules: One") {
		t.Error(result.Problems)
	}
	result := convertText(t, policy(rule("b", first), rule("a", second)), cel.Options{})
	if len(result.Problems) != 1 || !strings.Contains(result.Problems[0].Error(), "spec.rules[1].name: ") {
		t.Error(result.Problems)
	}
}

// podObjects are pods and controllers.
func podObjects(t testing.TB) (all []fitted) {
	t.Helper()
	add := func(text string) { all = append(all, fitting(t, text)) }
	metas := []string{"", "labels: {app: web, team: bank}, annotations: {a: b}", "labels: {tier: x}, annotations: {safe: 'no', example.com/a: x}"}
	for i, spec := range podSpecs() {
		meta := metas[i%len(metas)]
		add("{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: shop, " + meta + "}, spec: " + spec + "}")
		if i%2 == 0 {
			add("{apiVersion: apps/v1, kind: Deployment, metadata: {name: p, namespace: shop}, spec: {selector: {}, template: {metadata: {" + meta + "}, spec: " + spec + "}}}")
		} else {
			add("{apiVersion: batch/v1, kind: CronJob, metadata: {name: p, namespace: shop}, spec: {schedule: '* * * * *', jobTemplate: {spec: {template: {spec: " + spec + "}}}}}")
		}
	}
	return all
}

// TestJSONPatch: source and result make the same object.
func TestJSONPatch(t *testing.T) {
	objects := podObjects(t)
	mutations := mutating.New(kyvernocel.Options{})
	for _, c := range []struct{ reason, mutate, written string }{
		{"a label", "patchesJson6902: '[{op: add, path: /metadata/labels/tier, value: web}]'", "(has(object.metadata.labels) ? [] : [JSONPatch{op: 'add', path: '/metadata/labels', value: {}}])"},
		{"a name with a slash", "patchesJson6902: '[{op: add, path: /spec/nodeSelector/kubernetes.io~1arch, value: arm64}]'", "jsonpatch.escapeKey('kubernetes.io/arch')"},
		{"two in one object", "patchesJson6902: '[{op: add, path: /spec/nodeSelector/a, value: b}, {op: add, path: /spec/nodeSelector/b, value: \"c\"}]'", ""},
		{"one in the other", "patchesJson6902: '[{op: add, path: /spec/nodeSelector, value: {}}, {op: add, path: /spec/nodeSelector/b, value: \"c\"}]'", ""},
		{"a number, and a boolean", "patchesJson6902: '[{op: add, path: /spec/terminationGracePeriodSeconds, value: 7}, {op: add, path: /spec/hostNetwork, value: false}]'", "value: 7"},
		{"removal", "patchesJson6902: '[{op: remove, path: /spec/hostNetwork}, {op: remove, path: /spec/securityContext/runAsNonRoot}]'", "(has(object.spec.hostNetwork) ? [JSONPatch{op: 'remove'"},
		{"removal of an element", "patchesJson6902: '[{op: remove, path: /spec/containers/1}]'", "object.spec.containers[?1].hasValue()"},
		{"replacement", "patchesJson6902: '[{op: replace, path: /spec/terminationGracePeriodSeconds, value: 7}]'", ""},
		{"an element", "patchesJson6902: '[{op: add, path: /spec/volumes/-, value: {name: v, emptyDir: {}}}]'", "path: '/spec/volumes/-'"},
		{"two elements", "patchesJson6902: '[{op: add, path: /spec/volumes/-1, value: {name: v, emptyDir: {}}}, {op: add, path: /spec/volumes/-, value: {name: w, emptyDir: {}}}]'", ""},
		{"a first element", "patchesJson6902: '[{op: add, path: /spec/containers/0, value: {name: z, image: z, args: [a, b]}}]'", ""},
		{"below an element", "patchesJson6902: '[{op: add, path: /spec/containers/0/lifecycle/preStop/exec/command, value: [sleep, \"5\"]}]'", "object.spec.containers[0].?lifecycle"},
		{"the last element", "patchesJson6902: '[{op: add, path: /spec/containers/-1/command/-1, value: x}, {op: remove, path: /spec/imagePullSecrets/-1}]'", "object.spec.containers.last()"},
		{"below the last element of a list that may be missing", "patchesJson6902: '[{op: add, path: /spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/-1/matchExpressions/-1, value: {key: zone, operator: Lt, values: [\"400\"]}}]'", ""},
		{"a copy", "patchesJson6902: '[{op: copy, from: /metadata/name, path: /metadata/labels/name}]'", "from: '/metadata/name'"},
		{"a move", "patchesJson6902: '[{op: move, from: /spec/containers/0/image, path: /metadata/annotations/image}]'", ""},
		{"a variable", `patchesJson6902: "[{op: add, path: /metadata/labels/name, value: '{{ request.object.metadata.name }}-x'}]"`, "object.metadata.name + '-x'"},
		{"a variable in a path", `patchesJson6902: "[{op: add, path: '/metadata/annotations/{{ request.object.metadata.name }}', value: x}]"`, "'/metadata/annotations/' + object.metadata.name"},
		{"values of the object", `patchStrategicMerge: {metadata: {labels: {ns: "{{ request.object.metadata.namespace }}-x", first: "{{ request.object.spec.containers[0].name }}"}}}`, "'ns': string(object.metadata.namespace + '-x')"},
		{"values in a list", `patchesJson6902: "[{op: add, path: /spec/tolerations, value: [{key: '{{ request.object.metadata.name }}', operator: Exists}, {key: '{{ request.object.metadata.name }}', value: 'x{{ request.object.metadata.name }}'}]}]"`, ""},
		{"labels that are missing and others", "patchStrategicMerge: {metadata: {labels: {+(team): shop, +(tier): web, a: b}}}", "'a': 'b'"},
		{"numbers in a list of texts", "patchStrategicMerge: {spec: {tolerations: [{key: a, tolerationSeconds: 3, operator: Exists}, {key: b}]}}", "dyn(3)"},
		{"a value that may be missing", `patchStrategicMerge: {metadata: {labels: {copy: "{{ request.object.metadata.labels.app }}"}}}`, "object.metadata.labels.app"},
		{"a value with another", `patchStrategicMerge: {metadata: {labels: {+(copy): "{{ request.object.metadata.labels.app || 'none' }}"}}}`, ""},
		{"a value in a list that is replaced", `patchStrategicMerge: {spec: {tolerations: [{key: "{{ request.object.spec.containers[0].name }}"}]}}`, ""},
		{"a precondition", `patchStrategicMerge: {metadata: {labels: {a: b}}}}, preconditions: {all: [{key: "{{ request.object.spec.hostNetwork || ` + "`false`" + ` }}", operator: Equals, value: true}]`, "name: preconditions"},
		{"an entry of the context", `patchStrategicMerge: {metadata: {labels: {team: "{{ team }}-x"}}}}, context: [{name: team, variable: {jmesPath: request.object.metadata.namespace}}], preconditions: {all: [{key: "{{ team }}", operator: Equals, value: shop}]`, "variables.team + '-x'"},
		{"an entry with a default", `patchesJson6902: "[{op: add, path: /metadata/labels/first, value: '{{ app }}'}]"}, context: [{name: app, variable: {jmesPath: request.object.metadata.labels.app, default: none}}], preconditions: {all: [{key: "{{ app }}", operator: NotEquals, value: x}]`, "name: app"},
		{"an entry in a loop", `foreach: [{list: request.object.spec.containers, patchesJson6902: "[{op: replace, path: '/spec/containers/{{elementIndex}}/image', value: '{{ mirror }}/{{ element.image }}'}]"}]}, context: [{name: mirror, variable: {value: "{{ request.object.metadata.namespace }}.example"}}], preconditions: {all: [{key: "{{ mirror }}", operator: NotEquals, value: x}]`, ""},
		{"each container", "foreach: [{list: request.object.spec.containers, patchesJson6902: '[{op: replace, path: /spec/containers/{{elementIndex}}/image, value: new}]'}]", "object.spec.containers.transformList(i, container,\n"},
		{"the image of each", `foreach: [{list: request.object.spec.containers, patchesJson6902: "[{op: replace, path: '/spec/containers/{{elementIndex}}/image', value: 'mirror/{{ element.image }}'}]"}]`, "value: 'mirror/' + container.image"},
		{"a member that may be missing of each", "foreach: [{list: request.object.spec.containers, patchesJson6902: '[{op: add, path: /spec/containers/{{elementIndex0}}/securityContext/privileged, value: false}]'}]", ".flatten()"},
		{"some", "foreach: [{list: 'request.object.spec.containers[]', preconditions: {all: [{key: '{{ element.name }}', operator: NotEquals, value: a}]}, patchesJson6902: '[{op: add, path: /spec/containers/{{elementIndex}}/command, value: [x]}]'}]", "container.name != 'a'"},
		{"a merge for each container", `foreach: [{list: request.object.spec.containers, patchStrategicMerge: {spec: {containers: [{name: "{{ element.name }}", image: "mirror/{{ element.image }}"}]}}}]`, "object.spec.containers.map(container, Object.spec.containers{name: container.name, image: 'mirror/' + container.image})"},
		{"a merge for some containers", `foreach: [{list: "request.object.spec.containers[]", preconditions: {all: [{key: "{{ element.image }}", operator: Equals, value: "*:latest"}]}, patchStrategicMerge: {spec: {containers: [{(name): "{{element.name}}", imagePullPolicy: Always}]}}}]`, ""},
		{"a merge of what is missing", `foreach: [{list: "request.object.spec.containers", patchStrategicMerge: {spec: {containers: [{(name): "{{element.name}}", +(imagePullPolicy): Always, securityContext: {+(privileged): false}}]}}}]`, ""},
		{"a merge of what is missing with a name", `foreach: [{list: "request.object.spec.containers", preconditions: {all: [{key: "{{ element.name }}", operator: NotEquals, value: a}]}, patchStrategicMerge: {spec: {containers: [{name: "{{element.name}}", +(imagePullPolicy): Always}]}}}]`, ""},
		{"a merge for each init container", `foreach: [{list: "request.object.spec.initContainers[]", patchStrategicMerge: {spec: {initContainers: [{name: "{{ element.name }}", imagePullPolicy: Never}]}}}]`, "?initContainers: "},
		{"a merge that needs the list", `foreach: [{list: "request.object.spec.initContainers", patchStrategicMerge: {spec: {initContainers: [{name: "{{ element.name }}", imagePullPolicy: Never}]}}}]`, "initContainers: object.spec.initContainers.map("},
		{"removal from the last to the first", "foreach: [{list: 'request.object.spec.containers[]', order: Descending, preconditions: {all: [{key: '{{ element.name }}', operator: NotEquals, value: a}]}, patchesJson6902: '[{op: remove, path: /spec/containers/{{elementIndex}}}]'}]", ".reverse()"},
		{"one loop after the other", "foreach: [{list: request.object.spec.containers, patchesJson6902: '[{op: replace, path: /spec/containers/{{elementIndex}}/image, value: new}]'}, {list: request.object.spec.containers, preconditions: {all: [{key: '{{ element.image }}', operator: Equals, value: new}]}, patchesJson6902: '[{op: add, path: /spec/containers/{{elementIndex}}/imagePullPolicy, value: Always}]'}]", ""},
		{"a loop in a loop", "foreach: [{list: 'request.object.spec.containers', foreach: [{list: 'element.volumeMounts[]', order: Descending, preconditions: {all: [{key: '{{ element.name }}', operator: Equals, value: c}]}, patchesJson6902: '[{op: remove, path: /spec/containers/{{elementIndex0}}/volumeMounts/{{elementIndex1}}}]'}]}]", "transformList(j, volumeMount, "},
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, mutate: {%s}}]}}`, c.mutate)
		source, made, written := bothMutations(t, mutations, text)
		if !strings.Contains(strings.ReplaceAll(written, "''", "'"), c.written) {
			t.Errorf("%s:\n%s\nlacks %s", c.reason, written, c.written)
		}
		changed := 0
		for _, object := range objects {
			if compareMutations(t, c.reason, object, source, made, written) {
				changed++
			}
		}
		if changed == 0 {
			t.Errorf("%s: no object is changed\n%s", c.reason, written)
		}
	}
}

// TestCustomKind: lists of a custom kind are replaced, and its objects merged.
func TestCustomKind(t *testing.T) {
	mutations := mutating.New(kyvernocel.Options{})
	for _, patch := range []string{
		"metadata: {labels: {team: shop}}, spec: {size: 3, +(mode): fast}", "spec: {list: [a, b], inner: {+(list): [{name: x}]}}", "spec: {(mode): slow, size: 2}",
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [example.com/v1/Widget]}}]}, mutate: {patchStrategicMerge: {%s}}}]}}`, patch)
		source, made, written := bothMutations(t, mutations, text)
		changed := false
		for _, spec := range []string{"", ", spec: {}", ", spec: {size: 1, mode: slow, list: [c], inner: {}}", ", spec: {size: 3, mode: fast, list: [a, b], inner: {list: []}}"} {
			changed = compareMutations(t, patch, fitting(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: shop, labels: {a: b}}"+spec+"}"), source, made, written) || changed
		}
		if !changed {
			t.Errorf("%s changes nothing", patch)
		}
	}
}

// TestMutationRefused: what has no form is refused with its path.
func TestMutationRefused(t *testing.T) {
	for _, c := range []struct{ patch, want string }{
		{"metadata: {finalizers: [a.example/b]}", "mutate.patchStrategicMerge.metadata.finalizers: a list that is a set"},
		{"spec: {containers: [{name: a, (image): b, imagePullPolicy: Always}]}", "containers[0]: a conditional anchor beside the key"},
		{"spec: {containers: [{name: a, ports: [{containerPort: 80, name: web}]}]}", "containers[0].ports[0]: an element of a list with the keys"},
		{"spec: {containers: [{(name): a, imagePullPolicy: Always}, {(name): b, imagePullPolicy: Never}]}", "containers: several elements"},
		{"spec: {containers: [{$patch: replace}]}", "containers[0]: a directive"},
		{"spec: {containers: [{(name): '*', imagePullPolicy: null}]}", "imagePullPolicy: null"},
		{"spec: {+(volumes): [{name: a, emptyDir: {}}, {(name): b}]}", "volumes)[1].(name): an anchor"},
		{"spec: {containers: [{(name): '*', env: [{name: A, valueFrom: {fieldRef: {fieldPath: a}}}]}]}", "replaced as a whole"},
		{"metadata: {labels: {a: 1}}", "a value that Pod does not have"},
		{"metadata: {labels: {a: '{{ request.object.spec.x.y(z) }}'}}", ""},
		{"spec: {hostNetwork: 1.5}", "hostNetwork"},
		{"spec: {containers: [{(image): '*:latest', imagePullPolicy: '{{ request.object.spec.containers[0].image }}'}]}", ""},
		{"metadata: {labels: {a: '{{ request.object.metadata.namespace }}'}}, spec: {nodeSelector: {a: '{{ request.object.metadata.namespace }}'}}", "nodeSelector.a: a variable in a field"},
		{"spec: {containers: [{name: '{{ request.object.metadata.namespace }}', image: a}]}", "a variable in the key"},
		{"spec: {containers: [{(name): '{{ request.object.metadata.name }}', imagePullPolicy: Always}]}", "templates of pods have none"},
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test},
  spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, mutate: {patchStrategicMerge: {%s}}}]}}`, c.patch)
		result := convertText(t, text, cel.Options{})
		if len(result.Policies) > 0 || len(result.Problems) != 1 || !strings.Contains(result.Problems[0].Error(), c.want) {
			t.Errorf("%s: %v", c.patch, result.Problems)
		}
	}
}

// TestContextRefused: an entry about the object is not evaluated again about a changed one.
func TestContextRefused(t *testing.T) {
	const text = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]},
  context: [{name: first, variable: {jmesPath: "request.object.spec.containers[0].image"}}],
  mutate: {foreach: [{list: request.object.spec.containers, patchesJson6902: "[{op: replace, path: '/spec/containers/{{elementIndex}}/image', value: x}]"},
    {list: request.object.spec.containers, patchesJson6902: "[{op: add, path: '/spec/containers/{{elementIndex}}/args', value: ['{{ first }}']}]"}]}}]}}`
	if result := convertText(t, text, cel.Options{}); len(result.Problems) != 1 || !strings.Contains(result.Problems[0].Error(), "context: the entry first") {
		t.Error(result.Problems)
	}
}

// TestLoopsRefused: a loop without a form is refused with its path.
func TestLoopsRefused(t *testing.T) {
	for _, c := range []struct{ loop, want string }{
		{`list: request.object.spec.containers, order: Ascending, patchStrategicMerge: {spec: {containers: [{name: "{{ element.name }}", imagePullPolicy: Never}]}}`, "mutate.foreach[0].order"},
		{`list: request.object.spec.containers, patchStrategicMerge: {spec: {hostNetwork: true, containers: [{name: "{{ element.name }}", imagePullPolicy: Never}]}}`, "patchStrategicMerge.spec.containers: a merge for each element that"},
		{`list: request.object.spec.containers, patchStrategicMerge: {spec: {containers: [{name: a, imagePullPolicy: Never}]}}`, "spec.containers[0]: an element that is not that of the loop"},
		{"list: request.object.spec.containers, patchesJson6902: '[{op: remove, path: /spec/containers/{{elementIndex}}}]'", "order: Ascending"},
		{"list: request.object.spec.containers, patchesJson6902: '[{op: test, path: /spec/containers/{{elementIndex}}/name, value: a}]'", "patchesJson6902[0].op"},
		{"list: request.object.spec.containers, patchesJson6902: '[{op: add, path: /spec/containers/{{elementIndex}}/image, value: {{element.image}}}]'", "without quotes"},
		{"list: request.object.spec.containers, foreach: [{list: request.object.spec.volumes, patchesJson6902: '[{op: add, path: /metadata/labels/a, value: b}]'}]", "operations by pointers of pods"},
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, mutate: {foreach: [{%s}]}}]}}`, c.loop)
		result := convertText(t, text, cel.Options{})
		if len(result.Policies) > 0 || len(result.Problems) != 1 || !strings.Contains(result.Problems[0].Error(), c.want) {
			t.Errorf("%s: %v", c.loop, result.Problems)
		}
	}
}
