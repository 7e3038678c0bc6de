package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// applyFiles are what apply is tried on.
var applyFiles = map[string]string{
	"policy.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owner}
spec:
  validationFailureAction: Enforce
  rules:
  - name: staged
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {annotations: {stage: test}}}}
  - name: owned
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: want an owner
      pattern: {metadata: {labels: {owner: "?*"}, annotations: {stage: test}}}
`,
	"audit.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: every}
spec:
  validationFailureAction: Audit
  rules:
  - name: named
    match: {any: [{resources: {kinds: ["*"]}}]}
    validate:
      message: "want {{ settings.data.prefix }}"
      pattern: {metadata: {name: "{{ settings.data.prefix }}*"}}
    context: [{name: settings, configMap: {name: settings, namespace: platform}}]
`,
	"unknown.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: unknown}
spec:
  validationFailureAction: Enforce
  rules:
  - name: unknown
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [{name: answer, apiCall: {urlPath: /api/v1/namespaces}}]
    validate: {message: denied, deny: {conditions: {any: [{key: "{{ answer.denied }}", operator: Equals, value: true}]}}}
`,
	"global.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: alone}
spec:
  validationFailureAction: Enforce
  rules:
  - name: alone
    match: {any: [{resources: {kinds: [Pod]}}]}
    context: [{name: others, globalReference: {name: pods}}]
    validate: {message: one pod is enough, deny: {conditions: {any: [{key: "{{ length(others) }}", operator: GreaterThan, value: 1}]}}}
`,
	"parameter.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: tiers}
spec:
  validationFailureAction: Enforce
  rules:
  - name: owned
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      cel:
        paramKind: {apiVersion: v1, kind: ConfigMap}
        paramRef: {name: tiers, namespace: platform, parameterNotFoundAction: Deny}
        expressions: [{expression: "object.metadata.?labels[?params.data.label].hasValue()"}]
`,
	"tiers.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tiers, namespace: platform}\ndata: {label: owner}\n",
	"fleet.yaml": `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: fleets}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.org], apiVersions: [v1], operations: [CREATE], resources: [fleets]}]}
  validations: [{expression: "false"}]
`,
	"update.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: fixed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: owner
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {cel: {expressions: [{expression: "object.metadata.labels.owner == oldObject.metadata.labels.owner"}]}}
`,
	"entry.yaml": "apiVersion: kyverno.io/v2alpha1\nkind: GlobalContextEntry\nmetadata: {name: pods}\nspec: {kubernetesResource: {group: '', version: v1, resource: pods, namespace: default}}\n",
	"call.yaml":  "apiVersion: kyverno.io/v2alpha1\nkind: GlobalContextEntry\nmetadata: {name: pods}\nspec: {apiCall: {urlPath: /api/v1/pods, refreshInterval: 1m}}\n",
	"left.yaml":  "apiVersion: policies.kyverno.io/v1\nkind: DeletingPolicy\nmetadata: {name: old}\nspec: {schedule: '* * * * *'}\n",
	"wrong.yaml": "apiVersion: kyverno.io/v2alpha1\nkind: GlobalContextEntry\nmetadata: {name: pods}\nspec: {}\n",
	"good.yaml":  "apiVersion: v1\nkind: Pod\nmetadata: {name: good, labels: {owner: shop}}\nspec: {containers: [{name: a, image: \"registry.example/a:1\"}]}\n",
	"bad.yaml":   "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: [{name: a, image: \"registry.example/a:1\"}]}\n",
	"exception.yaml": `apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: bad, namespace: default}
spec:
  exceptions: [{policyName: owner, ruleNames: [owned]}]
  match: {any: [{resources: {kinds: [Pod], names: [bad]}}]}
`,
}

func TestApply(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, content := range applyFiles {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		reason, arguments, in string
		status                int
		out, err, without     string
	}{
		{reason: "a kind that is not implemented alone", arguments: "left.yaml -r bad.yaml", out: "pass: 0, fail: 0, warn: 0, error: 0, skip: 0\n",
			err: "left.yaml, document 1: DeletingPolicy old is left aside: kind DeletingPolicy of policies.kyverno.io/v1 is not implemented"},
		{reason: "and among others", arguments: "left.yaml policy.yaml -r bad.yaml", status: 1, out: "want an owner", err: "DeletingPolicy old is left aside"},
		{reason: "admitted", arguments: "policy.yaml -r good.yaml", out: "pass: 2, fail: 0, warn: 0, error: 0, skip: 0\n"},
		{reason: "denied", arguments: "policy.yaml -r good.yaml -r bad.yaml", status: command.ExitDenied, out: "Pod/default/bad (FOLDER/bad.yaml, document 1): denied\n"},
		{reason: "the plural of a flag", arguments: "policy.yaml --resources bad.yaml", status: command.ExitDenied, out: "fail  ClusterPolicy/owner/owned: "},
		{reason: "an exception", arguments: "policy.yaml -r bad.yaml -e exception.yaml", out: "skip  ClusterPolicy/owner/owned (exception default/bad)"},
		{reason: "not to be judged", arguments: "unknown.yaml -r good.yaml", status: command.ExitError, out: "could not be judged"},
		{reason: "denied is worse than not to be judged", arguments: "unknown.yaml policy.yaml -r bad.yaml", status: command.ExitDenied},
		{reason: "a failure under audit", arguments: "audit.yaml -r good.yaml --set settings.data.prefix=b", out: "fail  ClusterPolicy/every/named (audit): ", err: "matches every kind of object: it was asked about 1 objects in"},
		{reason: "a failure under audit as a warning", arguments: "audit.yaml -r good.yaml --set settings.data.prefix=b --audit-warn --warn-exit-code 4", status: 4, out: "warn: 1"},
		{reason: "no warning", arguments: "audit.yaml -r good.yaml --set settings.data.prefix=g --audit-warn --warn-exit-code 4", out: "warn: 0"},
		{reason: "nothing passes", arguments: "audit.yaml -r good.yaml --set settings.data.prefix=b --warn-no-pass --warn-exit-code 4", status: 4},
		{reason: "what is made of it", arguments: "policy.yaml -r good.yaml --mutated -", out: "  annotations:\n    stage: test\n", err: "pass: 2"},
		{reason: "from standard input", arguments: "policy.yaml -r -", in: "bad.yaml", status: command.ExitDenied, out: "Pod/default/bad (standard input"},
		{reason: "nothing from standard input", arguments: "policy.yaml -r -", status: command.ExitUsage, err: "-r -: nothing was read"},
		{reason: "a parameter among the objects", arguments: "parameter.yaml -r good.yaml -r tiers.yaml", out: "pass: 1"},
		{reason: "a parameter that denies", arguments: "parameter.yaml -r bad.yaml -r tiers.yaml", status: command.ExitDenied, out: "fail  ClusterPolicy/tiers/owned: "},
		{reason: "no parameter", arguments: "parameter.yaml -r good.yaml", status: command.ExitError, out: "give it with -r FILE"},
		{reason: "one custom resource", arguments: "fleet.yaml -r good.yaml", out: "pass: 0", without: "matches every kind"},
		{reason: "an update without an old object", arguments: "update.yaml -r good.yaml --set request.operation=UPDATE", status: command.ExitError, out: "could not be judged"},
		{reason: "an update", arguments: "update.yaml -r good.yaml --set request.operation=UPDATE --set request.oldObject.metadata.labels.owner=shop", out: "pass: 1"},
		{reason: "an update that differs", arguments: "update.yaml -r good.yaml --set request.operation=UPDATE --set request.oldObject.metadata.labels.owner=bank", status: command.ExitDenied, out: "fail  ClusterPolicy/fixed/owner: "},
		{reason: "JSON", arguments: "policy.yaml -r bad.yaml -o json", status: command.ExitDenied, out: `"result": "deny"`},
		{reason: "a global context entry, of the objects", arguments: "global.yaml entry.yaml -r good.yaml", out: "pass: 1"},
		{reason: "of two objects", arguments: "global.yaml entry.yaml -r good.yaml -r bad.yaml", status: command.ExitDenied, out: "one pod is enough"},
		{reason: "of another namespace", arguments: "global.yaml entry.yaml -r good.yaml -r bad.yaml -n shop", out: "pass: 2"},
		{reason: "an entry among the objects", arguments: "global.yaml -r entry.yaml -r good.yaml", out: "pass: 1"},
		{reason: "no entry", arguments: "global.yaml -r good.yaml", status: command.ExitError, out: "could not be judged"},
		{reason: "an entry that is a call", arguments: "global.yaml call.yaml -r good.yaml", status: command.ExitError, out: "--values-file"},
		{reason: "an entry that is none", arguments: "global.yaml wrong.yaml -r good.yaml", status: command.ExitUsage, err: "wrong.yaml"},
		{reason: "another namespace", arguments: "policy.yaml -r bad.yaml -n shop", status: command.ExitDenied, out: "Pod/shop/bad"},
		{reason: "nothing to judge", arguments: "policy.yaml", status: command.ExitUsage, err: "nothing to judge"},
		{reason: "no policy", arguments: "good.yaml -r good.yaml", status: command.ExitUsage, err: "is not a policy"},
		{reason: "standard input twice", arguments: "- -r -", status: command.ExitUsage, err: "standard input can be read once"},
		{reason: "a status that means something else", arguments: "policy.yaml -r good.yaml --warn-exit-code 1", status: command.ExitUsage, err: "--warn-exit-code 1"},
		{reason: "a value that is none", arguments: "policy.yaml -r good.yaml --set a", status: command.ExitUsage, err: "--set"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			args := []string{"apply"}
			for _, word := range strings.Fields(c.arguments) {
				if strings.HasSuffix(word, ".yaml") {
					word = filepath.Join(folder, word)
				}
				args = append(args, word)
			}
			var out, errs bytes.Buffer
			status := run(t.Context(), args, command.Terminal{
				In: strings.NewReader(applyFiles[c.in]), Out: &out, Err: &errs, Env: func(string) string { return "" },
			})
			if status != c.status {
				t.Errorf("exit status %d, want %d\n%s%s", status, c.status, &out, &errs)
			}
			if want := strings.ReplaceAll(c.out, "FOLDER", folder); !strings.Contains(out.String(), want) {
				t.Errorf("the output is\n%s\nand has no %q", &out, want)
			}
			if !strings.Contains(errs.String(), c.err) {
				t.Errorf("the errors are\n%s\nand have no %q", &errs, c.err)
			}
			if c.without != "" && strings.Contains(errs.String(), c.without) {
				t.Errorf("the errors are\n%s\nand have %q", &errs, c.without)
			}
		})
	}
}

func TestTestCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason    string
		arguments []string
		status    int
		last      string
	}{
		{"all hold", []string{"../../policy/suite/testdata/older"}, 0, "2 passed, 0 failed, 0 skipped\n"},
		{"one does not", []string{"../../policy/suite/testdata/golden"}, command.ExitDenied, "1 passed, 2 failed, 1 skipped\n"},
		{"only what fails", []string{"../../policy/suite/testdata/golden", "--fail-only"}, command.ExitDenied, "1 passed, 2 failed, 1 skipped\n"},
		{"a suite that cannot be run", []string{"../../policy/suite/testdata/golden-broken"}, command.ExitDenied, "0 passed, 2 failed, 0 skipped\n"},
		{"a selection", []string{"../../policy/suite/testdata/golden", "-t", "resource=good"}, 0, "1 passed, 0 failed, 1 skipped\n"},
		{"nothing", []string{"../../policy/suite/testdata/formats"}, 0, "0 passed, 0 failed, 0 skipped\n"},
		{"nothing, and that is wrong", []string{"../../policy/suite/testdata/formats", "--require-tests"}, command.ExitUsage, ""},
		{"JSON", []string{"../../policy/suite/testdata/older", "-o", "json"}, 0, "\"skipped\": 0\n}\n"},
		{"no format", []string{"../../policy/suite/testdata/older", "-o", "sarif"}, command.ExitUsage, ""},
		{"no selector", []string{"../../policy/suite/testdata/older", "-t", "kind=Pod"}, command.ExitUsage, ""},
		{"no path", []string{"../../policy/suite/testdata/none"}, command.ExitUsage, ""},
		{"no arguments", nil, command.ExitUsage, ""},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			status := run(t.Context(), append([]string{"test"}, c.arguments...), command.Terminal{
				In: strings.NewReader(""), Out: &out, Err: &errs, Env: func(string) string { return "" },
			})
			if status != c.status || !strings.HasSuffix(out.String(), c.last) {
				t.Errorf("exit status %d, want %d, and output that ends with %q:\n%s%s", status, c.status, c.last, &out, &errs)
			}
		})
	}
}

// TestHiddenFiles: an object is judged though its file is hidden, and an exception counts
// only if it is not.
func TestHiddenFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, content := range map[string]string{
		"policies/policy.yaml":   applyFiles["policy.yaml"],
		"shown/bad.yaml":         applyFiles["bad.yaml"],
		"hidden/good.yaml":       applyFiles["good.yaml"],
		"hidden/.bad.yaml":       applyFiles["bad.yaml"],
		"none/good.yaml":         applyFiles["good.yaml"],
		"excepted/exception.yml": applyFiles["exception.yaml"], "excepted/policy.yaml": applyFiles["policy.yaml"],
		"secretly/.exception.yml": applyFiles["exception.yaml"], "secretly/policy.yaml": applyFiles["policy.yaml"],
	} {
		path := filepath.Join(folder, name)
		ok(t, os.MkdirAll(filepath.Dir(path), 0o700))
		ok(t, os.WriteFile(path, []byte(content), 0o600))
	}
	for _, c := range []struct {
		reason, policies, resources string
		status                      int
	}{
		{"nothing is bad", "policies", "none", command.ExitAllowed},
		{"a bad object", "policies", "shown", command.ExitDenied},
		{"a bad object in a hidden file", "policies", "hidden", command.ExitDenied},
		{"an exception", "excepted", "shown", command.ExitAllowed},
		{"an exception in a hidden file", "secretly", "shown", command.ExitDenied},
	} {
		status, out, errs := piped(t, "", nil, "apply", filepath.Join(folder, c.policies), "-r", filepath.Join(folder, c.resources))
		if status != c.status {
			t.Errorf("%s: exit status %d, want %d\n%s%s", c.reason, status, c.status, out, errs)
		}
	}
}
