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
	"anygroup.yaml": resourceOfAnyGroup("configmaps"),
	"anything.yaml": resourceOfAnyGroup("'*'"),
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
	"data.yaml": `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: closed}
spec:
  validationActions: [Deny]
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [data]}]}
  validations: [{expression: "!object.spec.open", message: the datum is open}]
`,
	"warn.yaml": `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: called}
spec:
  validationActions: [Warn]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "request.name == 'other'", message: want another name}]
`,
	"open.yaml":   "apiVersion: example.com/v1\nkind: Datum\nmetadata: {name: a}\nspec: {open: true}\n",
	"closed.yaml": "apiVersion: example.com/v1\nkind: Datum\nmetadata: {name: a}\nspec: {open: false}\n",
	"definition.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: data.example.com}
spec: {group: example.com, scope: Namespaced, names: {kind: Datum, plural: data}}
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
	"version.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: version}
spec:
  rules:
  - name: named
    match: {any: [{resources: {kinds: ["*/ConfigMap", "v1/*"]}}]}
    validate: {pattern: {metadata: {name: "?*"}}}
`,
	"account.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: account}
spec:
  validationFailureAction: Enforce
  rules:
  - name: none
    match: {any: [{resources: {kinds: [Pod, Thing]}}]}
    validate: {pattern: {spec: {X(serviceAccountName): "null"}}}
`,
	"exec.yaml": `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: exec}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], resources: [pods/exec], operations: ["*"]}]}
  validations: [{expression: "false"}]
`,
	"net.yaml": `apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: net}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], resources: [pods], operations: [CREATE]}]}
  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{spec: Object.spec{hostNetwork: true}}"}}]
`,
	"nonet.yaml": `apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: nonet}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], resources: [pods], operations: [CREATE]}]}
  validations: [{expression: "!object.spec.?hostNetwork.orValue(false)", message: no host network}]
`,
	"first.yaml":     strings.ReplaceAll(bothKinds, "NAME", "first"),
	"elsewhere.yaml": strings.Replace(strings.ReplaceAll(bothKinds, "NAME", "first"), "kinds: [Pod]}}]}\n    validate", "kinds: [ConfigMap]}}]}\n    validate", 1),
	"second.yaml":    strings.ReplaceAll(bothKinds, "NAME", "second"),
	"bob.yaml":       "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\nmetadata: {name: v}\npolicies: [{name: net, resources: [{name: good, values: {request.userInfo.username: bob}}]}, {name: second, resources: [{name: good, values: {request.userInfo.username: bob}}]}]\n",
	"two.yaml":       "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\nmetadata: {name: v}\npolicies: [{name: first, rules: [{name: label, values: {request.userInfo.username: bob}}, {name: named, values: {request.userInfo.username: ann}}]}]\n",
	"options.yaml":   "apiVersion: v1\nkind: PodExecOptions\ncommand: [sh]\n",
	"large.yaml":     "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {serial: 9007199254740993}\n",
	"stage.yaml": `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: stage}
spec:
  rules:
  - name: stage
    match: {any: [{resources: {kinds: [Thing], names: [a]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {stage: test}}}}
`,
	"entry.yaml":   "apiVersion: kyverno.io/v2alpha1\nkind: GlobalContextEntry\nmetadata: {name: pods}\nspec: {kubernetesResource: {group: '', version: v1, resource: pods, namespace: default}}\n",
	"call.yaml":    "apiVersion: kyverno.io/v2alpha1\nkind: GlobalContextEntry\nmetadata: {name: pods}\nspec: {apiCall: {urlPath: /api/v1/pods, refreshInterval: 1m}}\n",
	"cleanup.yaml": "apiVersion: kyverno.io/v2\nkind: ClusterCleanupPolicy\nmetadata: {name: bad}\nspec: {schedule: '0 3 * * *', match: {any: [{resources: {kinds: [Pod, Namespace], names: [bad]}}]}}\n",
	"old.yaml": `apiVersion: policies.kyverno.io/v1
kind: DeletingPolicy
metadata: {name: old}
spec:
  schedule: 0 3 * * *
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods]}]}
  conditions: [{name: owned, expression: "object.metadata.labels.owner == 'shop'"}]
`,
	"keep.yaml": `apiVersion: policies.kyverno.io/v1
kind: PolicyException
metadata: {name: keep, namespace: default}
spec:
  policyRefs: [{kind: DeletingPolicy, name: old}]
  matchConditions: [{name: good, expression: "object.metadata.name == 'good'"}]
`,
	"never.yaml": "apiVersion: kyverno.io/v2\nkind: ClusterCleanupPolicy\nmetadata: {name: bad}\nspec: {schedule: never, match: {any: [{resources: {kinds: [Pod]}}]}}\n",
	"space.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: bad}\n",
	"wrong.yaml": "apiVersion: kyverno.io/v2alpha1\nkind: GlobalContextEntry\nmetadata: {name: pods}\nspec: {}\n",
	"good.yaml":  "apiVersion: v1\nkind: Pod\nmetadata: {name: good, labels: {owner: shop}}\nspec: {containers: [{name: a, image: \"registry.example/a:1\"}]}\n",
	"bad.yaml":   "apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: [{name: a, image: \"registry.example/a:1\"}]}\n",
	"zero.yaml":  "# nothing yet\n",
	"exception.yaml": `apiVersion: kyverno.io/v2
kind: PolicyException
metadata: {name: bad, namespace: default}
spec:
  exceptions: [{policyName: owner, ruleNames: [owned]}]
  match: {any: [{resources: {kinds: [Pod], names: [bad]}}]}
`,
}

// bothKinds is a policy with a mutation and a validation.
const bothKinds = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: NAME}
spec:
  validationFailureAction: Enforce
  rules:
  - name: label
    match: {any: [{resources: {kinds: [Pod]}}]}
    mutate: {patchStrategicMerge: {metadata: {labels: {NAME: test}}}}
  - name: named
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {pattern: {metadata: {name: "?*"}}}
`

func resourceOfAnyGroup(name string) string {
	return `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: any}
spec:
  matchConstraints: {resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE], resources: [` + name + `]}]}
  validations: [{expression: "object.metadata.name != ''"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: any}
spec: {policyName: any, validationActions: [Deny]}
`
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
		{reason: "an object to delete", arguments: "cleanup.yaml -r bad.yaml -r good.yaml",
			out: "ClusterCleanupPolicy/bad: the run at ", without: "kept"},
		{reason: "its name", arguments: "cleanup.yaml -r bad.yaml -r good.yaml", out: "would delete 1\n  delete  Pod/default/bad\nprotected: the namespaces "},
		{reason: "nothing to delete", arguments: "cleanup.yaml -r good.yaml", out: "would delete 0\nprotected: ", err: "no rule matches any object"},
		{reason: "a protected object", arguments: "cleanup.yaml -r space.yaml", out: "would delete 0, 1 protected\n  keep    Namespace/bad: Namespaces are protected\n"},
		{reason: "a protected namespace", arguments: "cleanup.yaml -r bad.yaml -n kube-system", out: "  keep    Pod/kube-system/bad: the namespace kube-system is protected\n"},
		{reason: "an object that cannot be evaluated", arguments: "old.yaml -r good.yaml -r bad.yaml", status: command.ExitError,
			out: "would delete 1, 1 could not be evaluated\n  delete  Pod/default/good\n  keep    Pod/default/bad: could not be evaluated, and is kept: "},
		{reason: "an excepted object", arguments: "old.yaml -r good.yaml -e keep.yaml", out: "would delete 0, 1 kept\n"},
		{reason: "next to other policies", arguments: "cleanup.yaml policy.yaml -r bad.yaml", status: command.ExitDenied, out: "would delete 1\n  delete  Pod/default/bad\n"},
		{reason: "an object to delete, in JSON", arguments: "cleanup.yaml -r bad.yaml -o json", out: `"delete": [`},
		{reason: "a schedule that is none", arguments: "never.yaml -r bad.yaml", status: command.ExitUsage, err: "spec.schedule: \"never\" is no schedule"},
		{reason: "admitted", arguments: "policy.yaml -r good.yaml", out: "pass: 2, fail: 0, warn: 0, error: 0, skip: 0\n"},
		{reason: "denied", arguments: "policy.yaml -r good.yaml -r bad.yaml", status: command.ExitDenied, out: "Pod/default/bad (FOLDER/bad.yaml, document 1): denied\n"},
		{reason: "the plural of a flag", arguments: "policy.yaml --resources bad.yaml", status: command.ExitDenied, out: "fail  ClusterPolicy/owner/owned: "},
		{reason: "an exception", arguments: "policy.yaml -r bad.yaml -e exception.yaml", out: "skip  ClusterPolicy/owner/owned (exception default/bad)"},
		{reason: "not to be judged", arguments: "unknown.yaml -r good.yaml", status: command.ExitError, out: "could not be verified"},
		{reason: "denied is worse than not to be judged", arguments: "unknown.yaml policy.yaml -r bad.yaml", status: command.ExitDenied},
		{reason: "a failure under audit", arguments: "audit.yaml -r good.yaml --set settings.data.prefix=b", out: "fail  ClusterPolicy/every/named (audit): ", err: "matches every kind of object (1 evaluated in "},
		{reason: "a resource of any group, which is not every kind", arguments: "anygroup.yaml -r good.yaml", err: "no rule matches any object", without: "every kind"},
		{reason: "any resource of any group", arguments: "anything.yaml -r good.yaml", out: "pass: 1", err: "ValidatingAdmissionPolicy/any matches every kind of object (1 evaluated in "},
		{reason: "a failure that warns", arguments: "warn.yaml -r good.yaml", out: "fail  ValidatingPolicy/called/called (warn): want another name"},
		{reason: "a failure that warns, as a warning", arguments: "warn.yaml -r good.yaml --audit-warn --warn-exit-code 4", status: 4, out: "warn: 1"},
		{reason: "another name of the request", arguments: "warn.yaml -r good.yaml --set request.name=other", out: "pass: 1"},
		{reason: "an unknown member of the request", arguments: "warn.yaml -r good.yaml --set request.nam=other", status: command.ExitError, out: "request.nam: an AdmissionRequest has no such member: want object"},
		{reason: "a failure under audit as a warning", arguments: "audit.yaml -r good.yaml --set settings.data.prefix=b --audit-warn --warn-exit-code 4", status: 4, out: "warn: 1"},
		{reason: "an error under audit", arguments: "audit.yaml -r good.yaml", out: "error: 1"},
		{reason: "a failure that warns, with a status for it", arguments: "warn.yaml -r good.yaml --warn-exit-code 4", status: 4, out: "warn: 0"},
		{reason: "a failure under audit, with a status for it", arguments: "audit.yaml -r good.yaml --set settings.data.prefix=b --warn-exit-code 4", status: 4, out: "fail: 1"},
		{reason: "an error under audit, with a status for it", arguments: "audit.yaml -r good.yaml --warn-exit-code 4", status: 4, out: "error: 1"},
		{reason: "a status for warnings does not replace a denial", arguments: "policy.yaml warn.yaml -r bad.yaml --warn-exit-code 4", status: command.ExitDenied},
		{reason: "no warning", arguments: "audit.yaml -r good.yaml --set settings.data.prefix=g --audit-warn --warn-exit-code 4", out: "warn: 0"},
		{reason: "nothing passes", arguments: "audit.yaml -r good.yaml --set settings.data.prefix=b --warn-no-pass --warn-exit-code 4", status: 4},
		{reason: "a mutation for another request", arguments: "nonet.yaml net.yaml -r good.yaml -f bob.yaml", status: command.ExitDenied, out: "no host network"},
		{reason: "no mutation", arguments: "nonet.yaml -r good.yaml -f bob.yaml", out: "pass: 1"},
		{reason: "a mutation after another request was evaluated", arguments: "first.yaml second.yaml -r good.yaml -f bob.yaml", status: command.ExitError, out: "ClusterPolicy/second changes the object after other policies were evaluated"},
		{reason: "a mutation after another request, of which the check is about another kind", arguments: "elsewhere.yaml second.yaml -r good.yaml -f bob.yaml", out: "pass: 3"},
		{reason: "the same for one request", arguments: "first.yaml second.yaml -r good.yaml", out: "pass: 4"},
		{reason: "two requests for the rules of a policy", arguments: "first.yaml -r good.yaml -f two.yaml", status: command.ExitUsage, err: "request.userInfo.username differs from that of another rule"},
		{reason: "the mutated object", arguments: "policy.yaml -r good.yaml --mutated -", out: "  annotations:\n    stage: test\n", err: "pass: 2"},
		{reason: "a large integer of an object that stays", arguments: "account.yaml -r large.yaml --mutated -", out: "  serial: 9007199254740993\n"},
		{reason: "and of one that changes", arguments: "stage.yaml -r large.yaml --mutated -", status: command.ExitUsage, err: "cannot be written: an integer near"},
		{reason: "which does not matter without output", arguments: "stage.yaml -r large.yaml", out: "pass: 1"},
		{reason: "a value of the object is stored", arguments: "account.yaml -r good.yaml --set request.object.spec.serviceAccount=a", status: command.ExitDenied, out: "fail: 1"},
		{reason: "another value", arguments: "account.yaml -r good.yaml --set request.object.spec.hostname=a", out: "pass: 1"},
		{reason: "options of a resource that is not known", arguments: "exec.yaml -r options.yaml --set request.operation=CONNECT --set request.subResource=exec", status: command.ExitError, out: "does not name the resource of the exec"},
		{reason: "options of another subresource", arguments: "exec.yaml -r options.yaml --set request.operation=CONNECT --set request.subResource=attach", out: "pass: 0, fail: 0, warn: 0, error: 0"},
		{reason: "from standard input", arguments: "policy.yaml -r -", in: "bad.yaml", status: command.ExitDenied, out: "Pod/default/bad (standard input"},
		{reason: "no object that a rule matches", arguments: "policy.yaml -r tiers.yaml", out: "pass: 0", err: "warning: no rule matches any object: check the paths, and the kinds in the policies"},
		{reason: "one of two objects", arguments: "policy.yaml -r tiers.yaml -r good.yaml", out: "pass: 2", without: "no rule matches"},
		{reason: "an empty file", arguments: "policy.yaml -r zero.yaml", status: command.ExitUsage, err: "FOLDER/zero.yaml: no objects in it"},
		{reason: "an empty file among others", arguments: "policy.yaml -r zero.yaml -r good.yaml", out: "pass: 2", err: "warning: -r FOLDER/zero.yaml: no objects in it"},
		{reason: "nothing from standard input", arguments: "policy.yaml -r -", status: command.ExitUsage, err: "-r -: nothing was read"},
		{reason: "a parameter among the objects", arguments: "parameter.yaml -r good.yaml -r tiers.yaml", out: "pass: 1"},
		{reason: "a parameter that denies", arguments: "parameter.yaml -r bad.yaml -r tiers.yaml", status: command.ExitDenied, out: "fail  ClusterPolicy/tiers/owned: "},
		{reason: "no parameter", arguments: "parameter.yaml -r good.yaml", status: command.ExitError, out: "give it with -r FILE"},
		{reason: "every kind in one version", arguments: "version.yaml -r good.yaml", out: "pass: 1", without: "matches every kind"},
		{reason: "one custom resource", arguments: "fleet.yaml -r good.yaml", out: "pass: 0", without: "matches every kind"},
		{reason: "a kind with a plural of its own", arguments: "data.yaml -r open.yaml", status: command.ExitError, out: "give the CustomResourceDefinition with the objects"},
		{reason: "with its definition", arguments: "data.yaml -r closed.yaml -r definition.yaml", out: "pass: 1, fail: 0"},
		{reason: "which it breaks", arguments: "data.yaml -r definition.yaml -r open.yaml", status: command.ExitDenied, out: "the datum is open"},
		{reason: "an update without an old object", arguments: "update.yaml -r good.yaml --set request.operation=UPDATE", status: command.ExitError, out: "could not be verified"},
		{reason: "an update", arguments: "update.yaml -r good.yaml --set request.operation=UPDATE --set request.oldObject.metadata.labels.owner=shop", out: "pass: 1"},
		{reason: "an update that differs", arguments: "update.yaml -r good.yaml --set request.operation=UPDATE --set request.oldObject.metadata.labels.owner=bank", status: command.ExitDenied, out: "fail  ClusterPolicy/fixed/owner: "},
		{reason: "JSON", arguments: "policy.yaml -r bad.yaml -o json", status: command.ExitDenied, out: `"result": "deny"`},
		{reason: "a global context entry, of the objects", arguments: "global.yaml entry.yaml -r good.yaml", out: "pass: 1"},
		{reason: "of two objects", arguments: "global.yaml entry.yaml -r good.yaml -r bad.yaml", status: command.ExitDenied, out: "one pod is enough"},
		{reason: "of another namespace", arguments: "global.yaml entry.yaml -r good.yaml -r bad.yaml -n shop", out: "pass: 2"},
		{reason: "an entry among the objects", arguments: "global.yaml -r entry.yaml -r good.yaml", out: "pass: 1"},
		{reason: "no entry", arguments: "global.yaml -r good.yaml", status: command.ExitError, out: "could not be verified"},
		{reason: "an entry that is a call", arguments: "global.yaml call.yaml -r good.yaml", status: command.ExitError, out: "--values-file"},
		{reason: "an entry that is none", arguments: "global.yaml wrong.yaml -r good.yaml", status: command.ExitUsage, err: "wrong.yaml"},
		{reason: "another namespace", arguments: "policy.yaml -r bad.yaml -n shop", status: command.ExitDenied, out: "Pod/shop/bad"},
		{reason: "no objects", arguments: "policy.yaml", status: command.ExitUsage, err: "no objects: set -r FILE, or --cluster"},
		{reason: "no policy", arguments: "good.yaml -r good.yaml", status: command.ExitUsage, err: "unsupported kind v1 Pod"},
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
			if want := strings.ReplaceAll(c.err, "FOLDER", folder); !strings.Contains(errs.String(), want) {
				t.Errorf("the errors are\n%s\nand have no %q", &errs, want)
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
		{"a folder without suites", []string{"../../policy/suite/testdata/formats"}, 0, "no kyverno-test.yaml below ../../policy/suite/testdata/formats: set --file-name, or --require-tests to fail\n"},
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
			if status != c.status || !strings.HasSuffix(out.String(), c.last) && !strings.HasSuffix(errs.String(), c.last) {
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
