package suite

import (
	"strings"
	"testing"
)

const nativePolicies = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: int(object.data.count) <= int(params.data.most), message: too many}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: shop}
spec:
  policyName: few
  validationActions: [Deny]
  paramRef: {name: limits, namespace: default, parameterNotFoundAction: Deny}
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}}
---
apiVersion: admissionregistration.k8s.io/v1alpha1
kind: MutatingAdmissionPolicy
metadata: {name: few}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  reinvocationPolicy: Never
  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "add", path: "/data/seen", value: "yes"}]'}}]
`

// TestNativePolicies: rows select policies of the API server by their kind; a policy without a binding is
// evaluated, as in Kyverno.
func TestNativePolicies(t *testing.T) {
	object := func(name, namespace, count string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: " + namespace + "}, data: {count: '" + count + "'}}\n---\n"
	}
	files := map[string]string{
		"policies.yaml": nativePolicies, "limits.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: limits}, data: {most: '1'}}",
		"objects.yaml": object("good", "shop", "1") + object("bad", "shop", "2") + object("bad", "blog", "2"),
		"patched.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: good, namespace: shop}, data: {count: '1', seen: 'yes'}}",
	}
	for _, c := range []struct {
		row    string
		passed bool
	}{
		{"{policy: few, isValidatingAdmissionPolicy: true, kind: ConfigMap, resources: [shop/good], result: pass}", true},
		{"{policy: few, isValidatingAdmissionPolicy: true, kind: ConfigMap, resources: [shop/bad], result: fail}", true},
		{"{policy: few, isValidatingAdmissionPolicy: true, kind: ConfigMap, resources: [shop/bad], result: pass}", false},
		{"{policy: few, isValidatingAdmissionPolicy: true, kind: ConfigMap, resources: [blog/bad], result: fail}", false},
		{"{policy: few, isMutatingAdmissionPolicy: true, kind: ConfigMap, resources: [shop/good], patchedResources: patched.yaml, result: pass}", true},
		{"{policy: few, isMutatingAdmissionPolicy: true, kind: ConfigMap, resources: [shop/bad], patchedResources: objects.yaml, result: pass}", false},
	} {
		files[FileName] = "policies: [policies.yaml]\nresources: [objects.yaml]\nparamResources: [limits.yaml]\nresults:\n- " + c.row + "\n"
		if report := ran(t, files); (report.Failed == 0) != c.passed || report.Passed+report.Failed != 1 {
			t.Errorf("%s: %+v", strings.TrimSpace(c.row), report)
		}
	}
}
