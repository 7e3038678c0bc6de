package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
)

// livePolicies are what `quaymaster apply --cluster` is asked with, by their files.
var livePolicies = map[string]string{
	"teams.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: teams}
spec:
  validationFailureAction: Enforce
  rules:
  - name: known
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {about: applylive}}}}]}
    context: [{name: teams, configMap: {name: teams, namespace: applylive-settings}}]
    validate:
      message: "{{ request.object.metadata.name }} has no owner among {{ teams.data.names }}"
      deny: {conditions: {any: [{key: "{{ request.object.metadata.labels.owner || '' }}", operator: AnyNotIn, value: "{{ teams.data.names }}"}]}}
`,
	"called.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: called}
spec:
  validationFailureAction: Enforce
  rules:
  - name: few
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {about: applylive}}}}]}
    context:
    - name: count
      apiCall:
        urlPath: "/api/v1/namespaces/{{ request.namespace }}/configmaps?labelSelector=about=applylive"
        jmesPath: "items | length(@)"
    validate:
      message: "{{ count }} in {{ request.namespace }}"
      deny: {conditions: {any: [{key: "{{ count }}", operator: GreaterThan, value: 1}]}}
`,
	"staged.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: staged}
spec:
  validationFailureAction: Enforce
  rules:
  - name: production
    match: {any: [{resources: {kinds: [ConfigMap], names: [good, bad], namespaceSelector: {matchLabels: {stage: production}}}}]}
    mutate: {patchStrategicMerge: {metadata: {annotations: {stage: production}}}}
  - name: marked
    match: {any: [{resources: {kinds: [ConfigMap], names: [good, bad], namespaceSelector: {matchLabels: {stage: production}}}}]}
    validate: {message: want a stage, pattern: {metadata: {annotations: {stage: production}}}}
`,
	"gone.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: gone}
spec:
  validationFailureAction: Enforce
  rules:
  - name: gone
    match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {about: applylive}}}}]}
    context: [{name: teams, configMap: {name: none, namespace: applylive-settings}}]
    validate: {message: denied, deny: {conditions: {any: [{key: "{{ teams.data.names }}", operator: Equals, value: none}]}}}
`,
	"expressions.yaml": `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: expressions}
spec:
  validationActions: [Deny]
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
    objectSelector: {matchLabels: {about: applylive}}
  variables:
  - {name: teams, expression: "resource.Get('v1', 'configmaps', 'applylive-settings', 'teams').data.names"}
  validations:
  - {expression: "object.metadata.?labels.?owner.orValue('') in ['shop', 'blog'].filter(t, variables.teams.contains(t))", message: has no owner}
`,
	"every.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: every}
spec:
  validationFailureAction: Audit
  rules:
  - name: named
    match: {any: [{resources: {kinds: ["*"]}}]}
    validate: {message: want a name, pattern: {metadata: {name: "?*"}}}
`,
	"exception.yaml": `apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: spared, namespace: applylive-bad}
spec:
  exceptions: [{policyName: teams, ruleNames: [known]}]
  match: {any: [{resources: {kinds: [ConfigMap], names: [bad], namespaces: [applylive-bad]}}]}
`,
	"other-exception.yaml": `apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: spared, namespace: applylive-bad}
spec:
  exceptions: [{policyName: teams, ruleNames: [known]}]
  match: {any: [{resources: {kinds: [ConfigMap], names: [bad], namespaces: [applylive-good]}}]}
`,
	"old.yaml": `apiVersion: kyverno.io/v2
kind: ClusterCleanupPolicy
metadata: {name: old}
spec:
  schedule: 0 3 * * *
  context: [{name: teams, configMap: {name: teams, namespace: applylive-settings}}]
  match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {about: applylive}}}}]}
  conditions: {any: [{key: "{{ target.metadata.labels.owner || '' }}", operator: AnyNotIn, value: "{{ teams.data.names }}"}]}
`,
	"old-expression.yaml": `apiVersion: policies.kyverno.io/v1
kind: DeletingPolicy
metadata: {name: old}
spec:
  schedule: 0 3 * * *
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
    objectSelector: {matchLabels: {about: applylive}}
  variables: [{name: teams, expression: "resource.Get('v1', 'configmaps', 'applylive-settings', 'teams').data.names"}]
  conditions:
  - {name: owner, expression: "!variables.teams.contains(object.metadata.labels.owner)"}
  - {name: stage, expression: "namespaceObject.metadata.labels.stage == 'test'"}
`,
	"local.yaml":  "{apiVersion: v1, kind: ConfigMap, metadata: {name: local, namespace: applylive-good, labels: {about: applylive, owner: blog}}}",
	"broken.yaml": "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: broken}\nspec: {rules: [{name: a, mach: {}}]}\n",
}

// liveObjects are the objects of the cluster.
const liveObjects = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: teams, namespace: applylive-settings}, data: {names: '["shop", "blog"]'}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: good, namespace: applylive-good, labels: {about: applylive, owner: shop}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: bad, namespace: applylive-bad, labels: {about: applylive, owner: nobody}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: more, namespace: applylive-bad, labels: {about: applylive, owner: blog}}}
`

// TestApplyCluster asks policies in files about the objects of a cluster, as a user
// does: with the program, a kubeconfig and nothing else.
func TestApplyCluster(t *testing.T) {
	p := plane(t)
	must(t,
		p.Namespace(t.Context(), "applylive-settings"),
		p.Namespace(t.Context(), "applylive-good", "stage", "production"),
		p.Namespace(t.Context(), "applylive-bad", "stage", "test"),
		p.ApplyYAML(t.Context(), liveObjects))
	folder := t.TempDir()
	for name, content := range livePolicies {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	reader, err := p.User("applylive-nobody")
	must(t, err, controlplane.WriteKubeconfig(filepath.Join(folder, "nobody.kubeconfig"), reader),
		writeContexts(filepath.Join(folder, "kubeconfig"), p))
	for _, c := range []struct {
		reason, arguments string
		status            int
		out, not          string
	}{
		{reason: "an owner by a ConfigMap of the cluster", arguments: "teams.yaml -n applylive-good", out: "pass: 1, fail: 0, warn: 0, error: 0, skip: 0\n"},
		{reason: "and none", arguments: "teams.yaml -n applylive-bad", status: 1, out: "bad has no owner among", not: "applylive-good"},
		{reason: "all namespaces", arguments: "teams.yaml", status: 1, out: "pass: 2, fail: 1,"},
		{reason: "the API server is called", arguments: "called.yaml -n applylive-good", out: "pass: 1, fail: 0,"},
		{reason: "with another result", arguments: "called.yaml -n applylive-bad", status: 1, out: "2 in applylive-bad"},
		{reason: "a namespace's labels", arguments: "staged.yaml", out: "pass: 2, fail: 0,", not: "applylive-bad"},
		{reason: "the mutated object", arguments: "staged.yaml -n applylive-good --mutated -", out: "    stage: production\n"},
		{reason: "an expression looks a ConfigMap up", arguments: "expressions.yaml -n applylive-bad", status: 1, out: "has no owner", not: "applylive-bad/more (cluster): denied"},
		{reason: "an exception", arguments: "teams.yaml -n applylive-bad -e exception.yaml", out: "exception applylive-bad/spared"},
		{reason: "an exception for other objects", arguments: "teams.yaml -n applylive-bad -e other-exception.yaml", status: 1, out: "fail: 1,"},
		{reason: "a value in place of the ConfigMap", arguments: "teams.yaml -n applylive-bad --set teams.data.names=nobody,unused=1", status: 1, out: "among nobody"},
		{reason: "files beside the cluster", arguments: "teams.yaml -n applylive-good -r local.yaml", out: "pass: 2, fail: 0,"},
		{reason: "what a policy reads is not there", arguments: "gone.yaml -n applylive-good", status: 3, out: "could not be verified"},
		{reason: "every kind, with its cost", arguments: "every.yaml", out: "matches every kind of object ("},
		{reason: "JSON", arguments: "teams.yaml -n applylive-bad -o json", status: 1, out: `"result": "deny"`},
		{reason: "another context without permissions", arguments: "teams.yaml --context nobody", status: 2, out: "forbidden"},
		{reason: "another kubeconfig", arguments: "teams.yaml --kubeconfig nobody.kubeconfig", status: 2, out: "forbidden"},
		{reason: "a context that is not there", arguments: "teams.yaml --context none", status: 2, out: `context "none" does not exist`},
		{reason: "a policy that does not compile", arguments: "broken.yaml", status: 2, out: "mach"},
		{reason: "an object to delete", arguments: "old.yaml", out: "would delete 1, 2 kept\n  delete  ConfigMap/applylive-bad/bad\nprotected: "},
		{reason: "an object to delete, by an expression", arguments: "old-expression.yaml", out: "would delete 1, 2 kept\n  delete  ConfigMap/applylive-bad/bad\nprotected: "},
		{reason: "offline", arguments: "teams.yaml --offline", status: 2, out: "--cluster needs one"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			status, said := applyLive(t, folder, strings.Fields(c.arguments)...)
			if status != c.status || !strings.Contains(said, c.out) || c.not != "" && strings.Contains(said, c.not) {
				t.Errorf("exit status %d, want %d, with %q and without %q:\n%s", status, c.status, c.out, c.not, said)
			}
		})
	}
}

// TestScanDeletions lists the objects of a cluster that policies in files would delete.
func TestScanDeletions(t *testing.T) {
	p := plane(t)
	must(t,
		p.Namespace(t.Context(), "applylive-settings"),
		p.Namespace(t.Context(), "applylive-good", "stage", "production"),
		p.Namespace(t.Context(), "applylive-bad", "stage", "test"),
		p.ApplyYAML(t.Context(), liveObjects))
	folder := t.TempDir()
	for name, content := range livePolicies {
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	must(t, writeContexts(filepath.Join(folder, "kubeconfig"), p))
	for _, policy := range []string{"old.yaml", "old-expression.yaml"} {
		status, said := runLive(t, folder, "scan", "--policy", policy)
		if status != 0 || !strings.Contains(said, "would delete 1, 2 kept\n  delete  ConfigMap/applylive-bad/bad\nprotected: ") {
			t.Errorf("%s: exit status %d:\n%s", policy, status, said)
		}
	}
}

// applyLive runs apply in a folder, and returns its exit status and output.
func applyLive(t *testing.T, folder string, arguments ...string) (int, string) {
	t.Helper()
	return runLive(t, folder, append([]string{"apply", "--cluster"}, arguments...)...)
}

// runLive runs the program in a folder, and returns its exit status and output.
func runLive(t *testing.T, folder string, arguments ...string) (int, string) {
	t.Helper()
	binary, err := shared.binary()
	must(t, err)
	command := exec.CommandContext(t.Context(), binary, arguments...)
	command.Dir, command.Env = folder, []string{"HOME=" + folder, "KUBECONFIG=" + filepath.Join(folder, "kubeconfig")}
	said, err := command.CombinedOutput()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), string(said)
}

// writeContexts writes a kubeconfig with two contexts: the administrator's, which is the
// current one, and that of a user without permissions.
func writeContexts(file string, p *controlplane.ControlPlane) error {
	nobody, err := p.User("applylive-nobody")
	if err != nil {
		return err
	}
	var whole, more map[string]any
	for into, from := range map[*map[string]any]func() ([]byte, error){
		&whole: func() ([]byte, error) { return controlplane.Kubeconfig(p.Admin()) },
		&more:  func() ([]byte, error) { return controlplane.Kubeconfig(nobody) },
	} {
		text, err := from()
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			return err
		}
	}
	user := more["users"].([]any)[0].(map[string]any)
	user["name"] = "nobody"
	whole["users"] = append(whole["users"].([]any), user)
	whole["contexts"] = append(whole["contexts"].([]any), map[string]any{
		"name": "nobody", "context": map[string]any{"cluster": "default", "user": "nobody"},
	})
	text, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
