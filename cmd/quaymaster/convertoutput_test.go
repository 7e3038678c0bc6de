package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// outputPolicies are a policy with a rule that stays, an exception and another policy.
func outputPolicies() map[string]string {
	const rule = "{any: [{resources: {kinds: [Service]}}]}"
	return map[string]string{
		"a/shop.yaml": "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: shop}\nspec:\n  validationFailureAction: Enforce\n  rules:\n" +
			"  - {name: no-node-port, match: " + rule + ", validate: {message: No port of nodes., pattern: {spec: {type: '!NodePort'}}}}\n" +
			"---\n# of the portal\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n",
		"a/exception.yaml": "{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: leave, namespace: exempt}, spec: {exceptions: " +
			"[{policyName: shop, ruleNames: [no-node-port]}], match: {any: [{resources: {kinds: [Service], names: [free]}}]}}}\n",
		"a/index.yml": "version: 1\n",
		"a/.kyverno-test/kyverno-test.yaml": "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: shop}\npolicies: [../shop.yaml]\nresources: [services.yaml]\n" +
			"exceptions: [../exception.yaml]\nresults:\n- {policy: shop, rule: no-node-port, kind: Service, resources: [open], result: fail}\n" +
			"- {policy: shop, rule: no-node-port, kind: Service, resources: [closed], result: pass}\n- {policy: shop, rule: no-node-port, kind: Service, resources: [free], result: skip}\n",
		"a/.kyverno-test/services.yaml": "{apiVersion: v1, kind: Service, metadata: {name: open}, spec: {type: NodePort}}\n---\n" +
			"{apiVersion: v1, kind: Service, metadata: {name: closed}, spec: {type: ClusterIP}}\n---\n{apiVersion: v1, kind: Service, metadata: {name: free}, spec: {type: NodePort}}\n",
		"b/roles.yaml": "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: roles}\nspec:\n  rules:\n" +
			"  - {name: kept, match: {any: [{resources: {kinds: [Service]}, clusterRoles: [edit]}]}, validate: {pattern: {spec: {type: ClusterIP}}}}\n" +
			"  - {name: made, match: " + rule + ", validate: {pattern: {spec: {type: '!ExternalName'}}}}\n",
	}
}

// TestConvertOutput: files of policies and suites keep their places, and the suites hold.
func TestConvertOutput(t *testing.T) {
	folder := t.TempDir()
	for name, text := range outputPolicies() {
		path := filepath.Join(folder, "policies", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	policies, made := filepath.Join(folder, "policies"), filepath.Join(folder, "made")
	code, out, errs := quaymaster(t, "convert", "--to", "cel", "--output", made, policies)
	if code != 2 || out != "" || !strings.Contains(errs, "clusterRoles") {
		t.Errorf("a policy that stays: status %d: %s%s", code, out, errs)
	}
	code, out, errs = quaymaster(t, "convert", "--to", "cel", "--partial", "--output", made, policies)
	if code != 0 || !strings.Contains(out, filepath.Join(made, "a", ".kyverno-test", "kyverno-test.yaml")) || !strings.Contains(errs, "not converted: ") {
		t.Errorf("status %d: %s%s", code, out, errs)
	}
	rest := content(t, filepath.Join(made, "b", "roles.yaml"))
	if !strings.Contains(rest, "kind: ValidatingPolicy\nmetadata:\n  name: roles\n") || !strings.Contains(rest, "kind: ClusterPolicy") || strings.Count(rest, "name: made") != 0 {
		t.Errorf("what stays is not with what is made:\n%s", rest)
	}
	if shop := content(t, filepath.Join(made, "a", "shop.yaml")); !strings.HasSuffix(shop, "---\n# of the portal\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n") {
		t.Errorf("another document is not with what is made:\n%s", shop)
	}
	code, out, errs = quaymaster(t, "test", made, "--fail-only")
	if code != 0 || !strings.Contains(out, "0 failed") {
		t.Errorf("the converted suite: status %d: %s%s", code, out, errs)
	}
	for _, c := range []struct {
		reason string
		args   []string
		has    string
	}{
		{"over the source", []string{"--to", "cel", "--partial", "--output", policies, policies}, "would replace its source"},
		{"of two files with one path", []string{"--to", "cel", "--output", filepath.Join(folder, "two"), filepath.Join(policies, "a", "shop.yaml"), filepath.Join(made, "..", "copy", "shop.yaml")}, "have the path"},
		{"with --check", []string{"--to", "cel", "--check", "--output", made, policies}, "--output has no effect"},
		{"with another result", []string{"--to", "native", "--output", made, policies}, "--output has no effect"},
	} {
		if c.reason == "of two files with one path" {
			if err := os.MkdirAll(filepath.Join(folder, "copy"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "copy", "shop.yaml"), []byte(strings.Replace(outputPolicies()["a/shop.yaml"], "name: shop", "name: copy", 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if code, out, errs := quaymaster(t, append([]string{"convert"}, c.args...)...); code != 2 || !strings.Contains(errs, c.has) {
			t.Errorf("%s: status %d: %s%s", c.reason, code, out, errs)
		}
	}
	single := filepath.Join(folder, "single")
	if code, out, errs := quaymaster(t, "convert", "--to", "cel", "--output", single, filepath.Join(policies, "a", "shop.yaml"), filepath.Join(policies, "a", "exception.yaml")); code != 0 ||
		!strings.Contains(out, filepath.Join(single, ".kyverno-test", "kyverno-test.yaml")) {
		t.Errorf("a suite next to a file: status %d: %s%s", code, out, errs)
	}
}
