package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// TestPolicyList: each document of a folder is listed with what a gateway makes of it, and a broken one makes the
// exit status 1.
func TestPolicyList(t *testing.T) {
	rule := func(kind, name, spec, rule string) string {
		return "apiVersion: kyverno.io/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec:\n  " + spec + "\n  rules:\n  - name: r\n    match: {any: [{resources: {kinds: [Pod, ConfigMap]}}]}\n    " + rule + "\n"
	}
	const validate = "validate: {pattern: {metadata: {name: '?*'}}}"
	sound := map[string]string{
		"enforce.yaml":   rule("ClusterPolicy", "enforced", "validationFailureAction: Enforce", validate),
		"audit.yaml":     rule("ClusterPolicy", "audited", "validationFailureAction: Audit", validate),
		"generate.yaml":  rule("ClusterPolicy", "generated", "background: true", "generate: {apiVersion: v1, kind: ConfigMap, name: x, namespace: elsewhere, data: {data: {a: b}}}"),
		"all.yaml":       rule("ClusterPolicy", "audited-in-all", "validationFailureAction: Enforce", "validate: {failureActionOverrides: [{action: Audit, namespaces: ['*']}], pattern: {metadata: {name: '?*'}}}"),
		"some.yaml":      rule("ClusterPolicy", "audited-in-some", "validationFailureAction: Enforce", "validate: {failureActionOverrides: [{action: Audit, namespaces: [a]}], pattern: {metadata: {name: '?*'}}}"),
		"cleanup.yaml":   "apiVersion: kyverno.io/v2\nkind: CleanupPolicy\nmetadata: {name: cleaned, namespace: shop}\nspec: {schedule: '0 3 * * *', match: {any: [{resources: {kinds: [Pod, apps/v1/Deployment]}}]}}\n",
		"deleting.yaml":  "apiVersion: policies.kyverno.io/v1\nkind: DeletingPolicy\nmetadata: {name: deleted}\nspec: {schedule: '0 3 * * *', matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [secrets]}]}}\n",
		"json.yaml":      "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: documents}\nspec: {evaluation: {mode: JSON}, validations: [{expression: 'has(object.a)'}]}\n",
		"exception.yaml": "apiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: e, namespace: shop}\nspec: {exceptions: [{policyName: enforced, ruleNames: [r]}], match: {any: [{resources: {kinds: [Pod]}}]}}\n",
		"look-up.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: elsewhere}\n",
	}
	folder := t.TempDir()
	for name, text := range sound {
		ok(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	list := func(args ...string) (int, string, string) {
		return quaymaster(t, append([]string{"policy", "list"}, args...)...)
	}
	want := `POLICY                         MODE        READY  RULES  KINDS
ClusterPolicy/audited-in-all   audit       True   1      ConfigMap,Pod
ClusterPolicy/audited          audit       True   1      ConfigMap,Pod
CleanupPolicy/shop/cleaned     background  True   1      Deployment,Pod
DeletingPolicy/deleted         background  True   1      Secret
ClusterPolicy/enforced         enforce     True   1      ConfigMap,Pod
PolicyException/shop/e         -           True   0      -
ClusterPolicy/generated        background  True   1      ConfigMap,Pod
ValidatingPolicy/documents     json        True   1      -
ClusterPolicy/audited-in-some  enforce     True   1      ConfigMap,Pod
`
	if code, out, errs := list(folder); code != 0 || strings.Join(strings.Fields(out), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("status %d:\n%s%s\nwant\n%s", code, out, errs, want)
	}
	ok(t, os.WriteFile(filepath.Join(folder, "z.yaml"), []byte(rule("ClusterPolicy", "misspelt", "validationFailureAktion: Enforce", validate)), 0o600))
	code, out, _ := list(folder)
	if code != command.ExitDenied || !strings.Contains(out, "ClusterPolicy/misspelt") || !strings.Contains(out, "validationFailureAktion") || !strings.Contains(out, "ClusterPolicy/enforced") {
		t.Errorf("with a broken policy: status %d:\n%s", code, out)
	}
	code, out, _ = list(folder, "-o", "json")
	var read struct {
		Kind  string
		Items []struct {
			ID, State, Mode, Ready, Message string
			Rules, Kinds                    []string
		}
	}
	ok(t, json.Unmarshal([]byte(out), &read))
	if code != command.ExitDenied || read.Kind != "PolicyList" || len(read.Items) != 10 {
		t.Fatalf("status %d: %s", code, out)
	}
	for _, i := range read.Items {
		if broken := i.ID == "ClusterPolicy/misspelt"; broken != (i.State == "broken") || broken != (i.Ready == "False") || broken != (i.Message != "") {
			t.Errorf("%+v", i)
		}
	}
	other := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(other, "a.yaml"), []byte(rule("ClusterPolicy", `"a\nClusterPolicy/forged  enforce  True  1  Pod"`, "validationFailureAction: Enforce", validate)+
		"---\napiVersion: quaymaster.dev/v1alpha1\nkind: ImageOverride\nmetadata: {name: over}\nspec: {effect: Deny, reason: r, expires: '2020-01-01T00:00:00Z', match: {repositories: [a.example/b]}}\n"+
		"---\napiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: vp}\nspec: {matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [secrets]}]}, validations: [{expression: 'true'}]}\n"), 0o600))
	_, out, _ = list(other)
	for _, line := range strings.Split(out, "\n") {
		if strings.HasPrefix(line, "ClusterPolicy/forged") {
			t.Errorf("a name forges a line:\n%s", out)
		}
	}
	if !regexp.MustCompile(`(?m)^ImageOverride/over +- +False `).MatchString(out) || !regexp.MustCompile(`(?m)^ValidatingPolicy/vp +\w+ +True +\d +Secret$`).MatchString(out) {
		t.Errorf("an override that ended, and the kinds of a rule about objects:\n%s", out)
	}
	for reason, args := range map[string][]string{
		"no such kubeconfig": {"--kubeconfig", filepath.Join(folder, "nothing")},
		"no such file":       {filepath.Join(folder, "nothing")}, "no policy": {filepath.Join(folder, "look-up.yaml")},
		"files and a cluster": {folder, "--context", "a"}, "a format": {folder, "-o", "yml"},
	} {
		if code, out, errs := list(args...); code != command.ExitUsage {
			t.Errorf("%s: status %d: %s%s", reason, code, out, errs)
		}
	}
	ok(t, os.WriteFile(filepath.Join(folder, "closed"), []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\n"+
		"contexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"), 0o600))
	if code, _, errs := list("--kubeconfig", filepath.Join(folder, "closed"), "--timeout", "1s"); code != command.ExitError || errs == "" {
		t.Errorf("a cluster that cannot be read: status %d: %s", code, errs)
	}
}
