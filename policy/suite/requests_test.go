package suite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/suite/result"
)

const (
	mutatingPolicy = `apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: NAME}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: Object.spec{hostNetwork: true}}"}}]
`
	validatingPolicy = `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: NAME}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "!object.spec.?hostNetwork.orValue(false)", message: no host network}]
`
	plainPod = `apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: c, image: i}]}
`
)

// folderOf makes a folder of files, by their paths.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// ran runs a suite of files.
func ran(t *testing.T, files map[string]string) result.Report {
	t.Helper()
	folder := folderOf(t, files)
	filter, err := ParseFilter("policy=*,rule=*,resource=*")
	if err != nil {
		t.Fatal(err)
	}
	return Run(t.Context(), []string{filepath.Join(folder, FileName)}, Options{Filter: filter})
}

// TestMutationsOfOtherRequests: a policy sees the mutations of the others also where values give them
// different requests, in whatever order they are listed.
func TestMutationsOfOtherRequests(t *testing.T) {
	named := func(text, name string) string { return strings.ReplaceAll(text, "NAME", name) }
	for _, policies := range []string{"[m.yaml, v.yaml]", "[v.yaml, m.yaml]"} {
		for _, values := range []string{"", "values: {policies: [{name: m, resources: [{name: a, values: {request.userInfo.username: bob}}]}]}\n"} {
			report := ran(t, map[string]string{
				"m.yaml": named(mutatingPolicy, "m"), "v.yaml": named(validatingPolicy, "v"), "pod.yaml": plainPod,
				FileName: "policies: " + policies + "\nresources: [pod.yaml]\n" + values + "results:\n- {policy: v, isValidatingPolicy: true, kind: Pod, resources: [a], result: fail}\n",
			})
			if report.Passed != 1 || report.Failed != 0 {
				t.Errorf("%s, %q: %+v", policies, values, report)
			}
		}
	}
}

const (
	tierPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: tier}
spec:
  rules:
  - name: tier
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {tier: shop}}}}
`
	copyPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: copy}
spec:
  rules:
  - name: copy
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {annotations: {tier: "{{ request.object.metadata.labels.tier || 'none' }}"}}}}
`
	targetPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: target}
spec:
  rules:
  - name: target
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate:
      targets: [{apiVersion: v1, kind: ConfigMap, name: there, namespace: default}]
      patchStrategicMerge: {data: {tier: "{{ request.object.metadata.labels.tier || 'none' }}"}}
`
	thereTarget = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: there, namespace: default}\n"
)

// TestObjectsOfOtherRequests: what a row compares follows from the object as the mutations of policies
// with another request leave it, and a row fails where these could not be evaluated.
func TestObjectsOfOtherRequests(t *testing.T) {
	const (
		another = "values: {policies: [{name: tier, resources: [{name: a, values: {request.userInfo.username: bob}}]}]}\n"
		wrong   = "values: {policies: [{name: tier, resources: [{name: a, values: {request.operation: WRITE}}]}]}\n"
		copied  = "- {policy: copy, rule: copy, kind: Pod, resources: [a], patchedResources: patched.yaml, result: pass}\n"
		changed = "- {policy: target, rule: target, kind: ConfigMap, resources: [there], patchedResources: patched.yaml, result: pass}\n"
	)
	pod := func(tier string) string {
		return strings.Replace(plainPod, "{name: a}", "{name: a, labels: {tier: shop}, annotations: {tier: "+tier+"}}", 1)
	}
	for _, c := range []struct {
		reason, values, row, patched string
		passed                       int
	}{
		{"the mutated object", another, copied, pod("shop"), 1},
		{"the object before", another, copied, pod("none"), 0},
		{"a request that is none", wrong, copied, pod("none"), 0},
		{"a target", another, changed, thereTarget + "data: {tier: shop}\n", 1},
		{"a target by the object before", another, changed, thereTarget + "data: {tier: none}\n", 0},
		{"a target by a request that is none", wrong, changed, thereTarget + "data: {tier: none}\n", 0},
		{"a target by one request", "", changed, thereTarget + "data: {tier: shop}\n", 1},
	} {
		report := ran(t, map[string]string{
			"tier.yaml": tierPolicy, "copy.yaml": copyPolicy, "target.yaml": targetPolicy, "pod.yaml": plainPod, "there.yaml": thereTarget, "patched.yaml": c.patched,
			FileName: "policies: [tier.yaml, copy.yaml, target.yaml]\nresources: [pod.yaml]\ntargetResources: [there.yaml]\n" + c.values + "results:\n" + c.row,
		})
		if report.Passed != c.passed || report.Failed != 1-c.passed {
			t.Errorf("%s: %+v", c.reason, report)
		}
		if check := report.Suites[0].Checks[0]; c.values == wrong && !strings.Contains(check.Message, "request.operation") {
			t.Errorf("%s: %+v", c.reason, check)
		}
	}
	report := ran(t, map[string]string{
		"tier.yaml": tierPolicy, "v.yaml": strings.ReplaceAll(validatingPolicy, "NAME", "v"), "pod.yaml": plainPod,
		FileName: "policies: [v.yaml, tier.yaml]\nresources: [pod.yaml]\n" + wrong + "results:\n- {policy: v, isValidatingPolicy: true, kind: Pod, resources: [a], result: pass}\n",
	})
	if report.Failed != 1 || !strings.Contains(report.Suites[0].Checks[0].Message, "policy tier, which mutates the object first: ") {
		t.Errorf("a policy after one that could not be evaluated: %+v", report)
	}
}

// TestTargetsOfNamespaces: only targets in namespaces of the selected labels are changed.
func TestTargetsOfNamespaces(t *testing.T) {
	const existing = `apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: e}
spec:
  evaluation: {mutateExisting: {enabled: true}}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  targetMatchConstraints:
    namespaceSelector: {matchLabels: {team: a}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: Object.metadata.labels{by: 'e'}}}"}}]
`
	for team, want := range map[string]int{"a": 1, "b": 0} {
		report := ran(t, map[string]string{
			"e.yaml": existing, "pod.yaml": plainPod, "there.yaml": thereTarget, "patched.yaml": strings.Replace(thereTarget, "default}", "default, labels: {by: e}}", 1),
			FileName: "policies: [e.yaml]\nresources: [pod.yaml]\ntargetResources: [there.yaml]\nvalues: {namespaceSelector: [{name: default, labels: {team: " + team + "}}]}\n" +
				"results:\n- {policy: e, isMutatingPolicy: true, kind: ConfigMap, resources: [there], patchedResources: patched.yaml, result: pass}\n",
		})
		if report.Passed != want || report.Failed != 1-want {
			t.Errorf("team %s: %+v", team, report)
		}
	}
}

// TestMembersOfSuites: a value for a member that no AdmissionRequest has is one of a suite's own, if a policy
// with variables reads it; else it is misspelt. CEL has the members of the type alone.
func TestMembersOfSuites(t *testing.T) {
	const mode = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: mode}
spec:
  rules:
  - name: mode
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: "{{ request.mode }}"
      deny: {conditions: {all: [{key: "{{ request.mode }}", operator: NotEquals, value: dev}]}}
`
	for _, c := range []struct {
		reason, policy, values string
		passed                 int
		message                string
	}{
		{"of all policies", mode, "{globalValues: {request.mode: dev}}", 1, ""},
		{"of another value", mode, "{globalValues: {request.mode: prod}}", 0, "prod"},
		{"of an object", mode, "{globalValues: {request.mode: prod}, policies: [{name: mode, resources: [{name: a, values: {request.mode: dev}}]}]}", 1, ""},
		{"misspelt", mode, "{globalValues: {request.mod: dev}}", 0, "request.mod: an AdmissionRequest has no such member"},
		{"which an expression reads", strings.ReplaceAll(strings.ReplaceAll(validatingPolicy, "NAME", "mode"), "!object.spec.?hostNetwork.orValue(false)", "dyn(request).mode == 'dev'"),
			"{globalValues: {request.mode: dev}}", 0, "request.mode: an AdmissionRequest has no such member"},
	} {
		report := ran(t, map[string]string{
			"mode.yaml": c.policy, "pod.yaml": plainPod,
			FileName: "policies: [mode.yaml]\nresources: [pod.yaml]\nvalues: " + c.values + "\nresults:\n- {policy: mode, rule: mode, kind: Pod, resources: [a], result: pass}\n",
		})
		if check := report.Suites[0].Checks[0]; report.Passed != c.passed || !strings.Contains(check.Message, c.message) {
			t.Errorf("%s: %+v", c.reason, check)
		}
	}
}

// TestPoliciesOfOneName: a row is about the policy of the kind that it selects.
func TestPoliciesOfOneName(t *testing.T) {
	for _, policies := range []string{"[m.yaml, v.yaml]", "[v.yaml, m.yaml]"} {
		for row, passes := range map[string]bool{
			"isValidatingPolicy: true, kind: Pod, resources: [a], result: pass": false, "isValidatingPolicy: true, kind: Pod, resources: [a], result: fail": true,
			"isMutatingPolicy: true, kind: Pod, resources: [a], result: pass": true, "isMutatingPolicy: true, kind: Pod, resources: [a], result: fail": false,
		} {
			report := ran(t, map[string]string{
				"m.yaml": strings.ReplaceAll(mutatingPolicy, "NAME", "same"), "v.yaml": strings.ReplaceAll(validatingPolicy, "NAME", "same"), "pod.yaml": plainPod,
				FileName: "policies: " + policies + "\nresources: [pod.yaml]\nresults: [{policy: same, " + row + "}]\n",
			})
			if (report.Failed == 0 && report.Passed == 1) != passes {
				t.Errorf("%s, %s: %+v", policies, row, report)
			}
		}
	}
}
