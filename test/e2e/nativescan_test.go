package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
)

// TestNativeRefused: quaymaster refuses the same policies as the API server.
func TestNativeRefused(t *testing.T) {
	p := plane(t)
	binary, err := shared.binary()
	must(t, err)
	const holds = "  validations: [{expression: 'true'}]"
	for i, c := range []struct {
		reason, kind, spec string
		refused            bool
	}{
		{reason: "a function of Kubernetes", spec: "  validations: [{expression: \"quantity('1Gi').isGreaterThan(quantity('1Mi')) && isIP('10.0.0.1') && semver('1.2.3').major() == 1 && ['a'].sum() != 'b'\"}]", refused: true},
		{reason: "functions of Kubernetes", spec: "  validations: [{expression: \"quantity('1Gi').isGreaterThan(quantity('1Mi')) && isIP('10.0.0.1') && semver('1.2.3').major() == 1 && url('https://a').getHost() == 'a'\"}]"},
		{reason: "lists and sets", spec: "  validations: [{expression: \"[1, 2].isSorted() && sets.contains([1], [1]) && [1, 2, 3].slice(0, 1) == [1] && ['a', 'b'].join(',') == 'a,b'\"}]"},
		{reason: "two variables", spec: "  validations: [{expression: '[1, 2].all(i, v, i < v)'}]"},
		{reason: "optional fields", spec: "  validations: [{expression: \"object.?spec.?replicas.orValue(1) == 1\"}]"},
		{reason: "the authorizer", spec: "  validations: [{expression: \"authorizer.group('apps').resource('deployments').check('create').allowed()\"}]"},
		{reason: "the authorizer in a message", spec: "  validations: [{expression: 'true', messageExpression: \"authorizer.group('').resource('pods').check('get').reason()\"}]", refused: true},
		{reason: "a function of Kyverno", spec: "  validations: [{expression: \"sha256('a') == 'b'\"}]", refused: true},
		{reason: "a clock", spec: "  validations: [{expression: \"time.now() > timestamp('2026-01-01T00:00:00Z')\"}]", refused: true},
		{reason: "arithmetic", spec: "  validations: [{expression: 'math.greatest(1, 2) == 2'}]", refused: true},
		{reason: "an encoding", spec: "  validations: [{expression: \"base64.encode(b'a') == 'b'\"}]", refused: true},
		{reason: "a binding of names", spec: "  validations: [{expression: 'cel.bind(a, 1, a == 1)'}]", refused: true},
		{reason: "the object of the request", spec: "  validations: [{expression: request.object.kind == 'Pod'}]", refused: true},
		{reason: "variables in a condition", spec: "  variables: [{name: a, expression: 'true'}]\n  matchConditions: [{name: a, expression: variables.a}]\n" + holds, refused: true},
		{reason: "a later variable", spec: "  variables: [{name: a, expression: variables.b}, {name: b, expression: 'true'}]\n" + holds, refused: true},
		{reason: "no parameters", spec: "  validations: [{expression: params != null}]", refused: true},
		{reason: "no validations", spec: "  variables: []", refused: true},
		{reason: "an unknown failure policy", spec: "  failurePolicy: Allow\n" + holds, refused: true},
		{reason: "an unknown reason", spec: "  validations: [{expression: 'true', reason: Wrong}]", refused: true},
		{reason: "mixed types", spec: "  validations: [{expression: \"[1, 'a'].size() == 2\"}]", refused: true},
		{reason: "a broken pattern", spec: "  validations: [{expression: \"'a'.matches('[')\"}]", refused: true},
		{reason: "a mutation", kind: "MutatingAdmissionPolicy", spec: "  reinvocationPolicy: Never\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"add\", path: \"/metadata/labels/\" + jsonpatch.escapeKey(\"a/b\"), value: \"c\"}]'}}]"},
		{reason: "a mutation that is no list", kind: "MutatingAdmissionPolicy", spec: "  reinvocationPolicy: Never\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: 'JSONPatch{op: \"add\", path: \"/a\", value: \"c\"}'}}]", refused: true},
		{reason: "two patches", kind: "MutatingAdmissionPolicy", spec: "  reinvocationPolicy: Never\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[]'}, applyConfiguration: {expression: 'Object{}'}}]", refused: true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			kind := c.kind
			if kind == "" {
				kind = "ValidatingAdmissionPolicy"
			}
			name := "agree-refused-" + string(rune('a'+i))
			a := agreement{spec: c.spec, binding: "none"}
			manifest := strings.ReplaceAll(a.manifest(kind), "NAME", name)
			refused := p.ApplyYAML(t.Context(), manifest)
			if (refused != nil) != c.refused {
				t.Fatalf("the API server: %v, want refused: %t", refused, c.refused)
			}
			folder := t.TempDir()
			must(t, os.WriteFile(filepath.Join(folder, "policy.yaml"), []byte(manifest), 0o600),
				os.WriteFile(filepath.Join(folder, "object.yaml"), []byte(strings.ReplaceAll(agreedObject, "NAME", name)), 0o600))
			command := exec.CommandContext(t.Context(), binary, "apply", "policy.yaml", "-r", "object.yaml", "--offline")
			command.Dir, command.Env = folder, []string{"HOME=" + folder}
			said, _ := command.CombinedOutput()
			if got := command.ProcessState.ExitCode() == 2; got != c.refused {
				t.Errorf("exit status %d, want refused: %t\n%s", command.ProcessState.ExitCode(), c.refused, said)
			}
		})
	}
}

// TestScanNative: a scan of a cluster reports the results of the policies of its API server, and those
// of new ones.
func TestScanNative(t *testing.T) {
	p := plane(t)
	const name = "scans-native"
	must(t, p.Namespace(t.Context(), name), p.Namespace(t.Context(), name+"-params"),
		p.ApplyYAML(t.Context(), strings.ReplaceAll(agreedObject+"\n---"+limits, "NAME", name)))
	folder := t.TempDir()
	must(t, controlplane.WriteKubeconfig(filepath.Join(folder, "kubeconfig"), p.Admin()))
	user, err := p.User("agreeing", "system:masters")
	must(t, err)
	c := newComparison(t, p, user)
	installed := agreement{spec: "  validations: [{expression: \"!has(object.data.owner) || object.data.owner == 'blog'\", message: the owner is another}]", binding: "  validationActions: [Audit]"}
	c.apply(t, strings.ReplaceAll(installed.manifest("ValidatingAdmissionPolicy"), "NAME", name))
	planned := agreement{
		spec:    "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: '!has(object.data.count) || int(object.data.count) <= int(params.data.most)', message: too many}]",
		binding: "  paramRef: {name: low, namespace: NAME-params, parameterNotFoundAction: Deny}",
	}
	must(t, os.WriteFile(filepath.Join(folder, "planned.yaml"), []byte(strings.ReplaceAll(planned.manifest("ValidatingAdmissionPolicy"), "NAME", name)), 0o600),
		os.WriteFile(filepath.Join(folder, "object.yaml"), []byte(strings.ReplaceAll(agreedObject, "NAME", name)), 0o600),
		os.WriteFile(filepath.Join(folder, "allowed.yaml"), []byte(strings.ReplaceAll(strings.Replace(planned.manifest("ValidatingAdmissionPolicy"), "name: low", "name: high", 1), "NAME", name)), 0o600))
	for _, row := range []struct {
		reason, arguments string
		status            int
		out, not          string
	}{
		{"the policies of the cluster", "--kubeconfig kubeconfig", 0, "the owner is another", "too many"},
		{"a new policy with parameters of the cluster", "--kubeconfig kubeconfig --policy planned.yaml", 1, "too many", "the owner is another"},
		{"a new policy that nothing violates", "--kubeconfig kubeconfig --policy allowed.yaml", 0, "", "too many"},
		{"a file", "-f object.yaml --policy planned.yaml --resource object.yaml", 3, "labels of the object's namespace, and they are not known", "too many"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			binary, err := shared.binary()
			must(t, err)
			command := exec.CommandContext(t.Context(), binary, append([]string{"scan"}, strings.Fields(row.arguments)...)...)
			command.Dir, command.Env = folder, []string{"HOME=" + folder}
			said, _ := command.CombinedOutput()
			text := string(said)
			if command.ProcessState.ExitCode() != row.status || !strings.Contains(text, row.out) || strings.Contains(text, row.not) {
				t.Errorf("exit status %d, want %d, with %q and without %q:\n%s", command.ProcessState.ExitCode(), row.status, row.out, row.not, text)
			}
		})
	}
}
