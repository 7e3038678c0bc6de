package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// TestObjectsDoNotReplaceLookups: evaluated objects do not change what the files of the policies define.
func TestObjectsDoNotReplaceLookups(t *testing.T) {
	const (
		allowed  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: allowed, namespace: platform}\ndata: {images: '[\"IMAGE\"]'}\n"
		space    = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {trusted: 'IMAGE'}}\n"
		secret   = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {key: 'IMAGE'}\n"
		entry    = "apiVersion: kyverno.io/v2alpha1\nkind: GlobalContextEntry\nmetadata: {name: pods}\nspec: {kubernetesResource: {version: v1, resource: IMAGE}}\n"
		widgets  = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec: {group: example.com, scope: IMAGE, names: {kind: Widget, plural: widgets}}\n"
		renamed  = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgetry.example.com}\nspec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgetry}}\n"
		rule     = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  validationFailureAction: Enforce\n  rules:\n  - {name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {metadata: {name: '?*'}}}}\n"
		evaluate = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: a}]}\n"
	)
	with := func(text, value string) string { return strings.ReplaceAll(text, "IMAGE", value) }
	for _, c := range []struct {
		reason, own, evaluated string
		status                 int
		names                  string
	}{
		{"another ConfigMap", with(allowed, "good"), with(allowed, "evil"), command.ExitUsage, "ConfigMap platform/allowed"},
		{"the same ConfigMap", with(allowed, "good"), with(allowed, "good"), 0, ""},
		{"of another name", with(allowed, "good"), strings.Replace(with(allowed, "evil"), "name: allowed", "name: other", 1), 0, ""},
		{"of another namespace", with(allowed, "good"), strings.Replace(with(allowed, "evil"), "platform", "shop", 1), 0, ""},
		{"a ConfigMap of the objects alone", "", with(allowed, "evil"), 0, ""},
		{"a Namespace with other labels", with(space, "no"), with(space, "yes"), command.ExitUsage, "Namespace default"},
		{"a Namespace with other labels, which names a namespace", with(space, "no"), strings.Replace(with(space, "yes"), "name: default", "name: default, namespace: other", 1), command.ExitUsage, "Namespace default"},
		{"the same Namespace", with(space, "no"), with(space, "no"), 0, ""},
		{"another Secret", with(secret, "a"), with(secret, "b"), command.ExitUsage, "Secret default/key"},
		{"the same Secret, as an API server has it", with(secret, "a"), strings.Replace(secret, "stringData: {key: 'IMAGE'}", "data: {key: YQ==}", 1), 0, ""},
		{"another entry of the global context", with(entry, "pods"), with(entry, "services"), command.ExitUsage, "GlobalContextEntry pods"},
		{"another entry, which names a namespace", with(entry, "pods"), strings.Replace(with(entry, "services"), "name: pods", "name: pods, namespace: other", 1), command.ExitUsage, "GlobalContextEntry pods"},
		{"the same entry", with(entry, "pods"), with(entry, "pods"), 0, ""},
		{"a kind of another scope", with(widgets, "Namespaced"), with(widgets, "Cluster"), command.ExitUsage, "example.com/Widget again"},
		{"the same kind", with(widgets, "Namespaced"), with(widgets, "Namespaced"), 0, ""},
		{"a kind under another name", with(widgets, "Namespaced"), renamed, command.ExitUsage, "example.com/Widget again"},
	} {
		folder := t.TempDir()
		for name, content := range map[string]string{"policies.yaml": rule + "---\n" + c.own, "objects.yaml": evaluate + "---\n" + c.evaluated} {
			ok(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
		}
		status, out, errs := piped(t, "", nil, "apply", filepath.Join(folder, "policies.yaml"), "-r", filepath.Join(folder, "objects.yaml"))
		if status != c.status || !strings.Contains(errs, c.names) || c.names != "" && !strings.Contains(errs, "objects.yaml") {
			t.Errorf("%s: status %d, want %d\n%s%s", c.reason, status, c.status, out, errs)
		}
		if c.status != 0 && !strings.Contains(c.names, "again") && !strings.Contains(errs, "policies.yaml") {
			t.Errorf("%s: the error does not name both files: %s", c.reason, errs)
		}
	}
}

// TestDefinitionsOfBuiltInKinds: no custom resource definition changes the name or scope of a kind of
// Kubernetes, of whichever command and flag.
func TestDefinitionsOfBuiltInKinds(t *testing.T) {
	const (
		made = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n"
		rule = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  validationFailureAction: Enforce\n  rules:\n" +
			"  - {name: r, match: {any: [{resources: {kinds: [Deployment], namespaces: [default]}}]}, validate: {deny: {}}}\n"
		deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: a}]}}}\n"
		suite      = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\npolicies: [policy.yaml]\nresources: [objects.yaml, definition.yaml]\n" +
			"results: [{policy: p, rule: r, kind: Deployment, resources: [d], result: fail}]\n"
	)
	for _, c := range []struct {
		reason, spec string
		refused      bool
	}{
		{"another scope", "{group: apps, scope: Cluster, names: {kind: Deployment, plural: deployments}}", true},
		{"another name", "{group: apps, scope: Namespaced, names: {kind: Deployment, plural: others}}", true},
		{"the core group", "{group: '', scope: Cluster, names: {kind: Pod, plural: pods}}", true},
		{"a new kind in a group of Kubernetes", "{group: batch, scope: Cluster, names: {kind: Batch, plural: batches}}", true},
		{"a kind of a group with a dot", "{group: networking.k8s.io, scope: Cluster, names: {kind: NetworkPolicy, plural: networkpolicies}}", true},
		{"the name of another kind", "{group: networking.k8s.io, scope: Cluster, names: {kind: Other, plural: networkpolicies}}", true},
		{"a kind of another group", "{group: example.com, scope: Cluster, names: {kind: Deployment, plural: deployments}}", false},
		{"a kind of a group below", "{group: gateway.networking.k8s.io, scope: Cluster, names: {kind: Gateway, plural: gateways}}", false},
	} {
		folder := t.TempDir()
		for name, content := range map[string]string{
			"policy.yaml": rule, "objects.yaml": deployment, "definition.yaml": made + "spec: " + c.spec + "\n", "kyverno-test.yaml": suite,
		} {
			ok(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
		}
		in := func(name string) string { return filepath.Join(folder, name) }
		for _, args := range [][]string{
			{"apply", in("policy.yaml"), "-r", in("objects.yaml"), "-r", in("definition.yaml")},
			{"apply", in("policy.yaml"), in("definition.yaml"), "-r", in("objects.yaml")},
			{"verify", "--policy", in("policy.yaml"), "-f", in("objects.yaml"), "-f", in("definition.yaml")},
			{"verify", "--policy", in("policy.yaml"), "--resource", in("definition.yaml"), "-f", in("objects.yaml")},
			{"scan", "--policy", in("policy.yaml"), "-f", in("objects.yaml"), "-f", in("definition.yaml")},
			{"test", folder},
		} {
			want := command.ExitDenied // also of a suite that could not be run
			switch {
			case c.refused && args[0] != "test":
				want = command.ExitUsage
			case !c.refused && args[0] == "test":
				want = 0
			}
			status, out, errs := piped(t, "", nil, args...)
			if status != want || c.refused && !strings.Contains(out+errs, "definition.yaml") {
				t.Errorf("%s, %s: status %d, want %d\n%s%s", c.reason, strings.Join(args[:2], " "), status, want, out, errs)
			}
		}
	}
}

// TestDefinitionsThatHide: a definition among the objects does not take them out of a rule's kinds or
// namespaces by another name or scope.
func TestDefinitionsThatHide(t *testing.T) {
	const (
		task = "apiVersion: example.com/v1\nkind: Task\nmetadata: {name: t, namespace: shop}\n"
		made = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: tasks.example.com}\n"
		rule = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec:\n  validationActions: [Deny]\n" +
			"  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [tasks]}]}\n" +
			"  validations: [{expression: \"object.metadata.namespace != 'shop'\"}]\n"
	)
	for _, c := range []struct {
		reason, definition string
		status             int
	}{
		{"no definition", "", command.ExitDenied},
		{"its own definition", "spec: {group: example.com, scope: Namespaced, names: {kind: Task, plural: tasks}}\n", command.ExitDenied},
		{"a definition of another group", "spec: {group: example.org, scope: Cluster, names: {kind: Task, plural: tasks}}\n", command.ExitDenied},
		{"its resource as that of another kind", "spec: {group: example.com, scope: Namespaced, names: {kind: Evil, plural: tasks}}\n", command.ExitUsage},
		{"in no namespace", "spec: {group: example.com, scope: Cluster, names: {kind: Task, plural: tasks}}\n", command.ExitUsage},
	} {
		folder := t.TempDir()
		objects := task
		if c.definition != "" {
			objects += "---\n" + made + c.definition
		}
		for name, content := range map[string]string{"policy.yaml": rule, "objects.yaml": objects} {
			ok(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
		}
		policy, file := filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "objects.yaml")
		for _, args := range [][]string{{"apply", policy, "-r", file}, {"verify", "--policy", policy, "-f", file}} {
			if status, out, errs := piped(t, "", nil, args...); status != c.status {
				t.Errorf("%s, %s: status %d, want %d\n%s%s", c.reason, args[0], status, c.status, out, errs)
			}
		}
	}
}

// TestForgedLines: the author of an object writes no line of a report with its name.
func TestForgedLines(t *testing.T) {
	const (
		rule = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  validationFailureAction: Enforce\n  rules:\n" +
			"  - {name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: 'of {{request.object.metadata.name}}', deny: {}}}\n"
		object = "apiVersion: v1\nkind: Pod\nmetadata: {name: \"a\\nPod/default/b: admitted\\n\\npass: 9\", namespace: \"d\\nx\"}\nspec: {containers: [{name: c, image: a}]}\n"
	)
	folder := t.TempDir()
	policies, objects := filepath.Join(folder, "p.yaml"), filepath.Join(folder, "o.yaml")
	ok(t, os.WriteFile(policies, []byte(rule), 0o600))
	ok(t, os.WriteFile(objects, []byte(object), 0o600))
	for _, args := range [][]string{{"apply", policies, "-r", objects}, {"scan", "--policy", policies, "-f", objects}, {"verify", "--policy", policies, "-f", objects}} {
		status, out, errs := piped(t, "", nil, args...)
		if status != command.ExitDenied || !strings.Contains(out, "Pod/default/b: admitted") {
			t.Errorf("%s: status %d, the name is not in it:\n%s%s", args[0], status, out, errs)
		}
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "Pod/default/b") || strings.HasPrefix(line, "pass: 9") {
				t.Errorf("%s: a forged line %q in\n%s", args[0], line, out)
			}
		}
	}
}

// TestRenamedKinds: a definition next to the objects adds a name under which rules match them, and
// removes none: its author does not choose which rules match.
func TestRenamedKinds(t *testing.T) {
	const (
		policy = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec:\n  validationActions: [Deny]\n" +
			"  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [RESOURCE]}]}\n" +
			"  validations: [{expression: 'false', message: refused}]\n"
		definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: RESOURCE.example.com}\n" +
			"spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: RESOURCE}}\n"
		widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"
	)
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	ok(t, os.WriteFile(in("objects.yaml"), []byte(widget), 0o600))
	for _, c := range []struct {
		reason, rule, defined string
		trusted               bool // the definition is given with --resource, or next to the policy
		status                int
	}{
		{"the usual name", "widgets", "widgets", false, command.ExitDenied},
		{"a rule for the usual name, and another in the definition", "widgets", "gadgetry", false, command.ExitDenied},
		{"a rule for the name in the definition", "gadgetry", "gadgetry", false, command.ExitDenied},
		{"a rule for a third name", "things", "gadgetry", false, 0},
		{"a rule for the usual name, and another in the cluster", "widgets", "gadgetry", true, 0},
		{"a rule for the name in the cluster", "gadgetry", "gadgetry", true, command.ExitDenied},
	} {
		for name, text := range map[string]string{"policy.yaml": strings.ReplaceAll(policy, "RESOURCE", c.rule), "definition.yaml": strings.ReplaceAll(definition, "RESOURCE", c.defined)} {
			ok(t, os.WriteFile(in(name), []byte(text), 0o600))
		}
		commands := [][]string{
			{"verify", "--policy", in("policy.yaml"), "-f", in("objects.yaml"), "-f", in("definition.yaml")},
			{"scan", "--policy", in("policy.yaml"), "-f", in("objects.yaml"), "-f", in("definition.yaml")},
			{"apply", in("policy.yaml"), "-r", in("objects.yaml"), "-r", in("definition.yaml")},
		}
		if c.trusted {
			commands = [][]string{
				{"verify", "--policy", in("policy.yaml"), "--resource", in("definition.yaml"), "-f", in("objects.yaml")},
				{"scan", "--policy", in("policy.yaml"), "--resource", in("definition.yaml"), "-f", in("objects.yaml")},
			}
		}
		for _, args := range commands {
			if status, out, errs := piped(t, "", nil, args...); status != c.status {
				t.Errorf("%s, %s: status %d, want %d\n%s%s", c.reason, args[0], status, c.status, out, errs)
			}
		}
	}
}

// TestHints: a definition next to the objects makes no exclusion, scope or other kind apply to them; one
// next to the policies does.
func TestHints(t *testing.T) {
	const (
		rule       = "{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], "
		definition = "kind: CustomResourceDefinition\nmetadata: {name: x.example.com}\nspec: {group: example.com, "
		genuine    = "apiextensions.k8s.io/v1"
		widget     = "scope: Namespaced, names: {kind: Widget, plural: "
	)
	policy := func(rules, excluded string) string {
		return "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec:\n  validationActions: [Deny]\n" +
			"  matchConstraints: {resourceRules: [" + rule + rules + "}], excludeResourceRules: [" + rule + excluded + "}]}\n" +
			"  validations: [{expression: 'false', message: refused}]\n"
	}
	const nothing = "resources: [others]"
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	for _, c := range []struct {
		reason, policy, kind, api, defined string
		hint, trusted                      int // the exit statuses
	}{
		{"an exclusion by name", policy("resources: ['*']", "resources: [gadgets]"), "Widget", genuine, widget + "gadgets}}", command.ExitDenied, 0},
		{"an exclusion by scope", policy("resources: ['*']", "resources: ['*'], scope: Cluster"), "Widget", genuine, "scope: Cluster, names: {kind: Widget, plural: widgets}}", command.ExitDenied, 0},
		{"another kind with the resource's name", policy("resources: [gateways]", nothing), "Gateway", genuine, "scope: Namespaced, names: {kind: Decoy, plural: gateways}}", command.ExitDenied, 0},
		{"an object of another group that looks like a definition", policy("resources: ['*']", "resources: [gadgets]"), "Widget", "evil.example/v1", widget + "gadgets}}", command.ExitDenied, command.ExitDenied},
	} {
		for name, text := range map[string]string{
			"policy.yaml": c.policy, "definition.yaml": "apiVersion: " + c.api + "\n" + definition + c.defined + "\n",
			"objects.yaml": "apiVersion: example.com/v1\nkind: " + c.kind + "\nmetadata: {name: w}\n",
		} {
			ok(t, os.WriteFile(in(name), []byte(text), 0o600))
		}
		type row struct {
			args []string
			want int
		}
		rows := []row{
			{[]string{"verify", "--policy", in("policy.yaml"), "-f", in("objects.yaml"), "-f", in("definition.yaml")}, c.hint},
			{[]string{"scan", "--policy", in("policy.yaml"), "-f", in("objects.yaml"), "-f", in("definition.yaml")}, c.hint},
			{[]string{"apply", in("policy.yaml"), "-r", in("objects.yaml"), "-r", in("definition.yaml")}, c.hint},
			{[]string{"verify", "--policy", in("policy.yaml"), "--resource", in("definition.yaml"), "-f", in("objects.yaml")}, c.trusted},
		}
		if c.api == genuine { // apply refuses other documents among policies
			rows = append(rows, row{[]string{"apply", in("policy.yaml"), in("definition.yaml"), "-r", in("objects.yaml")}, c.trusted})
		}
		for _, row := range rows {
			if status, out, errs := piped(t, "", nil, row.args...); status != row.want {
				t.Errorf("%s, %s: status %d, want %d\n%s%s", c.reason, strings.Join(row.args[:2], " "), status, row.want, out, errs)
			}
		}
	}
}
