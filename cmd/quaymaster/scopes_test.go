package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// evaluating are the commands that evaluate objects.yaml by policy.yaml in a folder.
func evaluating(folder string, more ...string) [][]string {
	policy, objects := filepath.Join(folder, "policy.yaml"), filepath.Join(folder, "objects.yaml")
	commands := [][]string{{"verify", "--policy", policy, "-f", objects}, {"explain", "--policy", policy, "-f", objects}, {"scan", "--policy", policy, "-f", objects}, {"apply", policy, "-r", objects}}
	for i := range commands {
		commands[i] = append(commands[i], more...)
	}
	return commands
}

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		ok(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	return folder
}

// ruleOf is a ClusterPolicy with a rule that denies the kind in the conditions of a block.
func ruleOf(kind, more, deny string) string {
	return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  validationFailureAction: Enforce\n  rules:\n" +
		"  - {name: r, match: {any: [{resources: {kinds: [" + kind + "]" + more + "}}]}, validate: {message: refused, deny: " + deny + "}}\n"
}

// TestNamespaceOfObjects: rules read the namespace of an object as in a cluster: that of the command where the
// file names none, and none for an object of the cluster, whatever its file writes.
func TestNamespaceOfObjects(t *testing.T) {
	const (
		pod    = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: a}]}\n"
		own    = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec: {containers: [{name: c, image: a}]}\n"
		widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"
		all    = "metadata: {name: all, namespace: kube-system}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n"
		rbac   = "apiVersion: rbac.authorization.k8s.io/v1\n"
		cel    = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec:\n  validationActions: [Deny]\n"
		system = cel + "  matchConstraints: {resourceRules: [{apiGroups: [rbac.authorization.k8s.io], apiVersions: [v1], operations: [CREATE], resources: [clusterroles, roles]}]}\n" +
			"  matchConditions: [{name: system, expression: \"!has(object.metadata.namespace) || object.metadata.namespace != 'kube-system'\"}]\n" +
			"  validations: [{expression: \"object.rules.all(r, !('*' in r.verbs))\"}]\n"
		notDefault = cel + "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}\n" +
			"  validations: [{expression: \"!has(object.metadata.namespace) || object.metadata.namespace != 'default'\"}]\n"
	)
	inDefault := "{conditions: {any: [{key: \"{{ request.object.metadata.namespace || 'none' }}\", operator: Equals, value: default}]}}"
	for _, c := range []struct {
		reason, policy, object string
		status                 int
	}{
		{"a variable", ruleOf("Pod", "", inDefault), pod, command.ExitDenied},
		{"a variable, and a namespace of the object", ruleOf("Pod", "", inDefault), own, 0},
		{"a variable, of a kind that is not known", ruleOf("Widget", "", inDefault), widget, command.ExitDenied},
		{"an expression", notDefault, pod, command.ExitDenied},
		{"an expression, and a namespace of the object", notDefault, own, 0},
		{"an object of the cluster that names a namespace", system, rbac + "kind: ClusterRole\n" + all, command.ExitDenied},
		{"an object in that namespace", system, rbac + "kind: Role\n" + all, 0},
	} {
		folder := writeFiles(t, map[string]string{"policy.yaml": c.policy, "objects.yaml": c.object})
		for _, args := range evaluating(folder) {
			if status, out, errs := piped(t, "", nil, args...); status != c.status {
				t.Errorf("%s, %s: status %d, want %d\n%s%s", c.reason, args[0], status, c.status, out, errs)
			}
		}
	}
}

// TestScopes: where only a definition next to an object has its kind in no namespace, the object is evaluated
// as in none and as in the namespace of the command, and the graver result counts.
func TestScopes(t *testing.T) {
	const (
		cel = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: p}\nspec:\n  validationActions: [Deny]\n  matchConstraints:\n" +
			"    resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]SCOPE}]\n" +
			"  validations: [{expression: 'EXPRESSION', message: refused}]\n"
		widget     = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"
		definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n" +
			"spec: {group: example.com, scope: SCOPE, names: {kind: Widget, plural: widgets}}\n"
	)
	written := func(scope, expression string) string {
		return strings.NewReplacer("SCOPE", scope, "EXPRESSION", expression).Replace(cel)
	}
	outside := strings.Replace(ruleOf("Widget", "", "{}"), ", validate", ", exclude: {any: [{resources: {namespaces: [shop]}}]}, validate", 1)
	for _, c := range []struct {
		reason, policy   string
		none, hint, shop int // the exit statuses without a definition, and with cluster-scoped ones: next to the object, and next to the policy
	}{
		{"a rule for the namespace", ruleOf("Widget", ", namespaces: [shop]", "{}"), command.ExitDenied, command.ExitDenied, 0},
		{"a rule for another namespace", ruleOf("Widget", ", namespaces: [other]", "{}"), 0, 0, 0},
		{"an exclusion of the namespace", outside, 0, command.ExitDenied, command.ExitDenied},
		{"an expression about the namespace", written("", "!has(object.metadata.namespace)"), command.ExitDenied, command.ExitDenied, 0},
		{"an expression about none", written("", "has(object.metadata.namespace)"), 0, command.ExitDenied, command.ExitDenied},
		{"a scope of namespaces", written(", scope: Namespaced", "false"), command.ExitDenied, command.ExitDenied, command.ExitUsage}, // it matches nothing
		{"a scope of the cluster", written(", scope: Cluster", "false"), 0, command.ExitError, command.ExitDenied},
		{"an expression that both meet", written("", "object.metadata.name != \"\""), 0, 0, 0},
	} {
		cluster := strings.Replace(definition, "SCOPE", "Cluster", 1)
		for _, with := range []struct {
			reason, policy, objects string
			status                  int
		}{
			{"no definition", c.policy, widget, c.none},
			{"one in namespaces, next to the object", c.policy, widget + "---\n" + strings.Replace(definition, "SCOPE", "Namespaced", 1), c.none},
			{"next to the object", c.policy, widget + "---\n" + cluster, c.hint},
			{"next to both", c.policy + "---\n" + cluster, widget + "---\n" + cluster, c.shop},
			{"next to the policy", c.policy + "---\n" + cluster, widget, c.shop},
		} {
			folder := writeFiles(t, map[string]string{"policy.yaml": with.policy, "objects.yaml": with.objects})
			for _, args := range evaluating(folder, "-n", "shop") {
				status, out, errs := piped(t, "", nil, args...)
				if status != with.status {
					t.Errorf("%s, %s, %s: status %d, want %d\n%s%s", c.reason, with.reason, args[0], status, with.status, out, errs)
				}
				warned := strings.Contains(errs, "is evaluated as in the namespace shop")
				if want := with.reason == "next to the object" && with.status == command.ExitDenied && c.none == command.ExitDenied; want != warned {
					t.Errorf("%s, %s, %s: warned %t\n%s", c.reason, with.reason, args[0], warned, errs)
				}
			}
		}
	}
}

// TestScopesOfImages: a warning about an image counts like one about the object.
func TestScopesOfImages(t *testing.T) {
	const (
		rule = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  validationFailureAction: Audit\n  rules:\n" +
			"  - name: r\n    match: {any: [{resources: {kinds: [Widget], namespaces: [NAMESPACE]}}]}\n    imageExtractors: {Widget: [{path: /spec/image}]}\n" +
			"    verifyImages: [{imageReferences: ['*'], mutateDigest: false, attestors: [{entries: [{keyless: {issuer: 'https://a', subject: b}}]}]}]\n"
		objects = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {image: '127.0.0.1:1/a:1'}\n---\n" +
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n" +
			"spec: {group: example.com, scope: Cluster, names: {kind: Widget, plural: widgets}}\n"
	)
	for namespace, isWarned := range map[string]bool{"shop": true, "other": false} {
		folder := writeFiles(t, map[string]string{"policy.yaml": strings.Replace(rule, "NAMESPACE", namespace, 1), "objects.yaml": objects})
		for _, args := range evaluating(folder, "-n", "shop")[:2] { // verify and explain
			status, out, errs := piped(t, "", nil, args...)
			if status != 0 || strings.Contains(out, "[missing-digest]") != isWarned || strings.Contains(errs, "as in the namespace shop") != isWarned {
				t.Errorf("a rule for %s, %s: status %d\n%s%s", namespace, args[0], status, out, errs)
			}
		}
	}
}

// TestContradictingDefinitions: two definitions of one kind or resource that differ are refused with both places.
func TestContradictingDefinitions(t *testing.T) {
	const (
		head   = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec: {group: example.com, "
		first  = head + "scope: Namespaced, names: {kind: Widget, plural: widgets}}\n"
		widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"
	)
	rule := ruleOf("Widget", ", namespaces: [default]", "{}")
	for _, c := range []struct {
		reason, second string
		status         int
	}{
		{"the same", first, command.ExitDenied},
		{"another scope", strings.Replace(first, "Namespaced", "Cluster", 1), command.ExitUsage},
		{"another resource", strings.Replace(first, "plural: widgets", "plural: gadgets", 1), command.ExitUsage},
		{"another kind", strings.Replace(first, "kind: Widget", "kind: Gadget", 1), command.ExitUsage},
		{"another group", strings.Replace(first, "example.com", "example.org", 1), command.ExitDenied},
	} {
		for where, files := range map[string]map[string]string{
			"objects": {"policy.yaml": rule, "objects.yaml": widget + "---\n" + first, "more.yaml": c.second},
			"policy":  {"policy.yaml": rule + "---\n" + first, "objects.yaml": widget, "more.yaml": c.second},
		} {
			for _, isOneFile := range []bool{true, false} {
				whole := map[string]string{"policy.yaml": files["policy.yaml"], "objects.yaml": files["objects.yaml"], "more.yaml": files["more.yaml"]}
				places := []string{where + ".yaml", "more.yaml"}
				if isOneFile {
					whole[where+".yaml"] += "---\n" + c.second
					places = []string{where + ".yaml, document 2", where + ".yaml, document 3"}
				}
				folder := writeFiles(t, whole)
				for _, args := range evaluating(folder) {
					if !isOneFile {
						args = withFile(args, where, filepath.Join(folder, "more.yaml"))
					}
					status, out, errs := piped(t, "", nil, args...)
					if status != c.status || status == command.ExitUsage && (!strings.Contains(errs, places[0]) || !strings.Contains(errs, places[1])) {
						t.Errorf("%s, in %s, one file %t, %s: status %d, want %d and both places\n%s%s", c.reason, where, isOneFile, args[0], status, c.status, out, errs)
					}
				}
			}
		}
	}
}

// withFile adds a file to the objects or the policies of a command.
func withFile(args []string, where, file string) []string {
	switch {
	case where == "objects" && args[0] == "apply":
		return append(args, "-r", file)
	case where == "objects":
		return append(args, "-f", file)
	case args[0] == "apply":
		return append(args, file)
	}
	return append(args, "--resource", file)
}
