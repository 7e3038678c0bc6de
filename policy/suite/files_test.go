package suite

import (
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/suite/result"
)

const (
	labelPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: NAME}
spec:
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: want a label, pattern: {metadata: {labels: {app: "?*"}}}}
`
	labelledPods = "apiVersion: v1\nkind: Pod\nmetadata: {name: good, labels: {app: shop}}\nspec: {containers: [{name: c, image: i}]}\n---\n" +
		"apiVersion: v1\nkind: Pod\nmetadata: {name: bad}\nspec: {containers: [{name: c, image: i}]}\n"
	labelSuite = "policies: [policy.yaml]\nresources: [pods.yaml]\nresults: [{policy: p, rule: labelled, kind: Pod, resources: [good], result: pass}]\n"
)

// labels runs a suite about a policy of labels, with more files.
func labels(t *testing.T, suite string, more map[string]string) result.Report {
	t.Helper()
	files := map[string]string{"policy.yaml": strings.ReplaceAll(labelPolicy, "NAME", "p"), "pods.yaml": labelledPods, FileName: suite}
	for name, content := range more {
		files[name] = content
	}
	return ran(t, files)
}

// counts are the numbers of passed, failed and skipped checks.
func counts(r result.Report) [3]int { return [3]int{r.Passed, r.Failed, r.Skipped} }

// TestKindsOfSuites: the older form names no kind, or Kyverno's own group; what is of another kind is no
// suite.
func TestKindsOfSuites(t *testing.T) {
	t.Parallel()
	for head, want := range map[string][3]int{
		"": {1}, "name: older\n": {1}, "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: newer}\n": {1},
		"apiVersion: cli.kyverno.io/v1beta1\nkind: Test\n": {1}, "apiVersion: kyverno.io/v1\nkind: Test\nmetadata: {name: own}\n": {1},
		"apiVersion: kyverno.io/v1\n": {1}, "apiVersion: kyverno.io/v2beta1\nname: own\n": {1}, "kind: Test\n": {1},
		"apiVersion: kyverno.io/v1\nkind: ClusterPolicy\n": {0, 1}, "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\n": {0, 1},
		"apiVersion: policies.kyverno.io/v1\nkind: Test\n": {0, 1}, "apiVersion: v1\nkind: Test\n": {0, 1}, "kind: Pod\n": {0, 1},
	} {
		if got := counts(labels(t, head+labelSuite, nil)); got != want {
			t.Errorf("%q: passed, failed and skipped are %v, want %v", head, got, want)
		}
	}
}

// TestSeveralSuitesOfAFile: each document is a suite, and an error in one leaves the others.
func TestSeveralSuitesOfAFile(t *testing.T) {
	t.Parallel()
	wrong := strings.ReplaceAll(labelSuite, "result: pass", "result: fail")
	for _, c := range []struct {
		reason, file string
		names        string // of the suites
		want         [3]int
	}{
		{"two", "name: a\n" + labelSuite + "---\nname: b\n" + labelSuite, "a b", [3]int{2}},
		{"the second expects something else", "name: a\n" + labelSuite + "---\nname: b\n" + wrong, "a b", [3]int{1, 1}},
		{"so does the first", "name: a\n" + wrong + "---\nname: b\n" + labelSuite, "a b", [3]int{1, 1}},
		{"the second has no policies", "name: a\n" + labelSuite + "---\nresults: [{policy: p, rule: labelled, result: pass}]", "a", [3]int{1, 1}},
		{"the second is another kind", "name: a\n" + labelSuite + "---\n" + strings.ReplaceAll(labelPolicy, "NAME", "p"), "a", [3]int{1, 1}},
		{"without a name", labelSuite + "---\nname: b\n" + labelSuite, "b", [3]int{2}},
		{"after a comment", "---\n# nothing\n---\nname: a\n" + labelSuite + "---\n", "a", [3]int{1}},
		{"separated by a comment", "name: a\n" + labelSuite + "--- # more\nname: b\n" + wrong, "a b", [3]int{1, 1}},
		{"no document", "# nothing\n", "", [3]int{0, 1}},
		{"no YAML", "name: a\n" + labelSuite + "---\n{", "", [3]int{0, 1}},
	} {
		report := labels(t, c.file, nil)
		if got := counts(report); got != c.want {
			t.Errorf("%s: passed, failed and skipped are %v, want %v: %+v", c.reason, got, c.want, report)
		}
		for _, name := range strings.Fields(c.names) {
			if !slices.ContainsFunc(report.Suites, func(s result.Suite) bool { return s.Name == name && len(s.Checks) == 1 }) {
				t.Errorf("%s: no suite is called %s: %+v", c.reason, name, report)
			}
		}
	}
}

// TestUnknownFields: those of a suite's files are warnings with their path, those of policies are not.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, suite string
		more          map[string]string
		want          [3]int
		warning       string
	}{
		{"none", labelSuite, nil, [3]int{1}, ""},
		{"of the suite", labelSuite + "owner: shop\n", nil, [3]int{1}, `unknown field "owner"`},
		{"of a row", strings.ReplaceAll(labelSuite, "rule:", "ruleName: x, rule:"), nil, [3]int{1}, `unknown field "results[0].ruleName"`},
		{"of inline values", labelSuite + "values: {globalValue: {a: b}}\n", nil, [3]int{1}, `unknown field "values.globalValue"`},
		{"of values", labelSuite + "variables: v.yaml\n", map[string]string{"v.yaml": "policies: [{name: p, resource: []}]"}, [3]int{1}, `v.yaml: unknown field "policies[0].resource"`},
		{"of the user", labelSuite + "userinfo: u.yaml\n", map[string]string{"u.yaml": "userInfo: {name: bob}"}, [3]int{1}, `u.yaml: unknown field "userInfo.name"`},
		{"of the context", labelSuite + "context: c.yaml\n", map[string]string{"c.yaml": "kind: Context\nspec: {image: []}"}, [3]int{1}, `c.yaml: unknown field "spec.image"`},
		{"of the cluster", labelSuite + "clusterResources: [c.yaml]\n", map[string]string{"c.yaml": "kind: ClusterResource\nspec: {resource: []}"}, [3]int{1}, `c.yaml: unknown field "spec.resource"`},
		{"of an object of the cluster", labelSuite + "clusterResources: [c.yaml]\n", map[string]string{"c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\nother: true"}, [3]int{1}, ""},
		{"of a policy", labelSuite, map[string]string{"policy.yaml": strings.ReplaceAll(labelPolicy, "pattern:", "patern:")}, [3]int{0, 1}, ""},
		{"a field twice", labelSuite + "resources: []\n", nil, [3]int{0, 1}, ""},
		{"a field of another type", labelSuite + "exceptions: {}\n", nil, [3]int{0, 1}, ""},
	} {
		report := labels(t, c.suite, c.more)
		var warnings []string
		for _, s := range report.Suites {
			warnings = append(warnings, s.Warnings...)
		}
		if got := counts(report); got != c.want || (c.warning != "") != (len(warnings) == 1) || !strings.HasSuffix(strings.Join(warnings, "\n"), c.warning) {
			t.Errorf("%s: passed, failed and skipped are %v, want %v; the warnings are %q, want %q", c.reason, got, c.want, warnings, c.warning)
		}
	}
}

// TestUnreadPolicies: a policy with an error fails its own rows and is named, and the rows of the others run.
func TestUnreadPolicies(t *testing.T) {
	t.Parallel()
	broken := strings.ReplaceAll(strings.ReplaceAll(labelPolicy, "pattern:", "patern:"), "NAME", "q")
	row := func(policy, object, want string) string {
		return "- {policy: " + policy + ", rule: labelled, kind: Pod, resources: [" + object + "], result: " + want + "}\n"
	}
	for _, c := range []struct {
		reason, policies, rows string
		more                   map[string]string
		want                   [3]int
		named                  string // in the name, the source and the message of a failed check
	}{
		{"it does not compile", "[policy.yaml, q.yaml]", row("p", "good", "pass") + row("p", "bad", "fail") + row("q", "good", "pass"), map[string]string{"q.yaml": broken}, [3]int{2, 2}, "patern"},
		{"whatever its rows expect", "[q.yaml, policy.yaml]", row("q", "good", "fail") + row("q", "good", "skip") + row("q", "good", "error"), map[string]string{"q.yaml": broken}, [3]int{0, 4}, "q.yaml"},
		{"no row is about it", "[policy.yaml, q.yaml]", row("p", "good", "pass"), map[string]string{"q.yaml": broken}, [3]int{1, 1}, "q.yaml"},
		{"another expectation is wrong, too", "[policy.yaml, q.yaml]", row("p", "bad", "pass"), map[string]string{"q.yaml": broken}, [3]int{0, 2}, "q.yaml"},
		{"its file is no YAML", "[policy.yaml, q.yaml]", row("p", "good", "pass") + row("q", "good", "pass"), map[string]string{"q.yaml": "{"}, [3]int{1, 2}, "q.yaml"},
		{"its file is not there", "[policy.yaml, q.yaml]", row("p", "good", "pass") + row("q", "good", "pass"), nil, [3]int{1, 2}, "q.yaml"},
		{"it is no policy", "[policy.yaml, q.yaml]", row("p", "good", "pass"), map[string]string{"q.yaml": plainPod}, [3]int{1, 1}, "unsupported kind v1 Pod"},
		{"of two documents of a file", "[q.yaml]", row("p", "good", "pass") + row("q", "good", "pass"),
			map[string]string{"q.yaml": broken + "---\n" + strings.ReplaceAll(labelPolicy, "NAME", "p")}, [3]int{1, 2}, "document 1"},
		{"it has the name of another kind", "[q.yaml, m.yaml]", "- {policy: q, kind: Pod, resources: [good], isMutatingPolicy: true, result: pass}\n" + row("q", "good", "pass"),
			map[string]string{"q.yaml": broken, "m.yaml": strings.ReplaceAll(mutatingPolicy, "NAME", "q")}, [3]int{1, 2}, "patern"},
		{"its values for one object are wrong", "[policy.yaml, q.yaml]\nvalues: {policies: [{name: q, resources: [{name: good, values: {element: a}}]}]}", row("p", "good", "pass") + row("q", "good", "pass") + row("q", "bad", "fail"),
			map[string]string{"q.yaml": strings.ReplaceAll(labelPolicy, "NAME", "q")}, [3]int{1, 3}, "element: a value for it is not supported"},
		{"and come before another policy", "[q.yaml, policy.yaml]\nvalues: {policies: [{name: q, resources: [{name: good, values: {element: a}}]}]}", row("p", "good", "pass") + row("p", "bad", "fail"),
			map[string]string{"q.yaml": strings.ReplaceAll(labelPolicy, "NAME", "q")}, [3]int{2, 1}, "element: a value for it is not supported"},
		{"none can be read", "[q.yaml]", row("q", "good", "pass"), map[string]string{"q.yaml": broken}, [3]int{0, 1}, "patern"},
		{"all can", "[policy.yaml, q.yaml]", row("p", "good", "pass") + row("q", "good", "pass"), map[string]string{"q.yaml": strings.ReplaceAll(labelPolicy, "NAME", "q")}, [3]int{2}, ""},
	} {
		report := labels(t, "policies: "+c.policies+"\nresources: [pods.yaml]\nresults:\n"+c.rows, c.more)
		if got := counts(report); got != c.want {
			t.Errorf("%s: passed, failed and skipped are %v, want %v: %+v", c.reason, got, c.want, report)
		}
		var text strings.Builder
		if err := result.Write(&text, report, "", result.TextOptions{}); err != nil || !strings.Contains(text.String(), c.named) {
			t.Errorf("%s: %v, and the report does not name %q:\n%s", c.reason, err, c.named, &text)
		}
	}
}

// TestUnreadPoliciesOfFolders: a file with an error does not hide the others of its folder, and a filter
// for another policy leaves a policy with an error aside.
func TestUnreadPoliciesOfFolders(t *testing.T) {
	t.Parallel()
	folder := folderOf(t, map[string]string{
		"policies/a.yaml": "{", "policies/p.yaml": strings.ReplaceAll(labelPolicy, "NAME", "p"),
		"policies/q.yaml": strings.ReplaceAll(strings.ReplaceAll(labelPolicy, "pattern:", "patern:"), "NAME", "q"),
		"pods.yaml":       labelledPods, FileName: strings.ReplaceAll(labelSuite, "policy.yaml", "policies"),
	})
	for selector, want := range map[string][3]int{"": {1, 2}, "policy=p": {1, 1}, "policy=q": {}, "policy=*": {1, 2}} {
		filter, err := ParseFilter(selector)
		if err != nil {
			t.Fatal(err)
		}
		if got := counts(Run(t.Context(), []string{folder + "/" + FileName}, Options{Filter: filter})); got != want {
			t.Errorf("%q: passed, failed and skipped are %v, want %v", selector, got, want)
		}
	}
}

// TestDefinitions: definitions make their kinds known wherever a suite names them.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	const definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: data.example.com}\nspec: {group: example.com, scope: Cluster, names: {kind: Datum, plural: data}}\n"
	policy := strings.NewReplacer("NAME", "v", `""`, "example.com", "pods", "data", "spec.?hostNetwork", "?open").Replace(validatingPolicy)
	for place, want := range map[string][3]int{"policies: [v.yaml, d.yaml]": {2}, "policies: [d.yaml, v.yaml]": {2}, "clusterResources: [d.yaml]\npolicies: [v.yaml]": {2}, "policies: [v.yaml]": {1, 1}} {
		report := ran(t, map[string]string{
			"v.yaml": policy, "d.yaml": definition, "o.yaml": "apiVersion: example.com/v1\nkind: Datum\nmetadata: {name: a}\nopen: true\n---\napiVersion: example.com/v1\nkind: Datum\nmetadata: {name: b}\n",
			FileName: place + "\nresources: [o.yaml]\nresults:\n- {policy: v, isValidatingPolicy: true, kind: Datum, resources: [a], result: fail}\n- {policy: v, isValidatingPolicy: true, kind: Datum, resources: [b], result: pass}\n",
		})
		if got := counts(report); got != want {
			t.Errorf("%s: passed, failed and skipped are %v, want %v: %+v", place, got, want, report)
		}
		for _, c := range report.Suites[0].Checks {
			if want[1] == 0 && strings.Contains(c.Resource, "default") {
				t.Errorf("%s: %s is in a namespace", place, c.Resource)
			}
		}
	}
}
