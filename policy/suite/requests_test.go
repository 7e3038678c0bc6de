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
