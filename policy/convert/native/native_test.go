package native_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/native"
	dialect "github.com/quaymaster/quaymaster/policy/dialect/native"
	"github.com/quaymaster/quaymaster/workload"
)

var update = flag.Bool("update", false, "write the golden files")

func read(t testing.TB, text string) []workload.Object {
	t.Helper()
	objects, err := workload.Read(strings.NewReader(text), "policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// converted returns the policies of a text without problems.
func converted(t testing.TB, text string, options native.Options) []native.Policy {
	t.Helper()
	policies, problems, err := native.Convert(read(t, text), options)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	return policies
}

func file(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// golden compares a text with a file.
func golden(t *testing.T, name string, text []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want := file(t, name); string(text) != want {
		t.Errorf("%s differs:\n%s", name, text)
	}
}

// TestYAML: the written form of each kind of policy, for the oldest API servers that accept the kind.
func TestYAML(t *testing.T) {
	for _, row := range []struct {
		name    string
		options native.Options
	}{
		{"cel", native.Options{Kubernetes: "1.36"}},
		{"rules", native.Options{Exempt: []string{"kube-system", "quaymaster"}}},
	} {
		text, err := native.YAML(converted(t, file(t, row.name+".yaml"), row.options))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, row.name+".golden.yaml", text)
		joined, warnings, err := dialect.Join(read(t, string(text)))
		if err != nil || len(warnings) > 0 || len(joined) == 0 {
			t.Fatal(len(joined), warnings, err)
		}
		for _, document := range joined {
			if _, err := dialect.New(dialect.Options{}).Compile(document.JSON(), row.name); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestFiles: the files for an API server, and its configuration, which names only folders that exist.
func TestFiles(t *testing.T) {
	policies := converted(t, file(t, "cel.yaml"), native.Options{Static: true})
	files, err := native.Files(policies, "/etc/kubernetes/policies")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"validating/no-latest.static.k8s.io.yaml", "validating/autogen-no-latest.static.k8s.io.yaml", "validating/autogen-cronjobs-no-latest.static.k8s.io.yaml",
		"mutating/shop-add.static.k8s.io.yaml",
	} {
		if strings.Count(string(files[name]), "  name: "+strings.TrimSuffix(filepath.Base(name), ".yaml")) != 2 {
			t.Errorf("%s is %q", name, files[name])
		}
	}
	golden(t, "admission.golden.yaml", files[native.Configuration])
	files, err = native.Files(policies[:1], "/etc/kubernetes/policies")
	if err != nil || len(files) != 2 || strings.Contains(string(files[native.Configuration]), "utating") {
		t.Errorf("%d files: %s, %v", len(files), files[native.Configuration], err)
	}
}

// vpol is a ValidatingPolicy about a resource; pods have the same policy for controllers unless controllers
// says otherwise.
func vpol(resource, more string) string {
	return "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: test}\nspec:\n" +
		"  matchConstraints:\n    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [" + resource + "]}]\n" + more
}

const holds = "  validations: [{expression: \"object.metadata.name != 'bad'\"}]\n"

func mpol(more string) string {
	return "apiVersion: policies.kyverno.io/v1\nkind: MutatingPolicy\nmetadata: {name: test}\nspec:\n" +
		"  matchConstraints:\n    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]\n" +
		"  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: \"Object{}\"}}]\n" + more
}

// cpol is a ClusterPolicy with one rule.
func cpol(spec, match, validate string) string {
	return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: test}\nspec:\n" + spec +
		"  rules:\n  - name: one\n    match: " + match + "\n" + validate
}

const (
	services = "{any: [{resources: {kinds: [Service]}}]}"
	celRule  = "    validate: {cel: {expressions: [{expression: \"object.metadata.name != 'bad'\"}]}}\n"
)

// TestRefused: a policy beyond an API server has a problem with the path; the row's twin has one thing less.
func TestRefused(t *testing.T) {
	none := native.Options{Kubernetes: native.Newest}
	for _, row := range []struct {
		why, text, twin string
		options         native.Options
		want            []string
	}{
		{"a function of the gateway", vpol("services", "  validations: [{expression: \"resource.Get('v1', 'configmaps', 'a', 'b').kind == ''\"}]\n"),
			vpol("services", holds), none, []string{"spec.validations[0].expression", "undeclared reference to 'resource'"}},
		{"a function that is newer", vpol("services", "  validations: [{expression: \"isSemver('1.0.0')\"}]\n"), vpol("services", holds), native.Options{Kubernetes: "1.32"},
			[]string{"Kubernetes 1.32 does not take it", "isSemver"}},
		{"a variable in a match condition", mpol("  variables: [{name: a, expression: 'true'}]\n  matchConditions: [{name: a, expression: variables.a}]\n"),
			mpol("  variables: [{name: a, expression: 'true'}]\n"), none, []string{"spec.matchConditions[0].expression", "variables"}},
		{"the object as a whole, for templates", vpol("pods", "  validations: [{expression: \"size(object) > 0\"}]\n"),
			vpol("pods", "  autogen: {podControllers: {controllers: []}}\n  validations: [{expression: \"size(object) > 0\"}]\n"), none,
			[]string{"spec.validations[0].expression", "object is read as a whole"}},
		{"the namespace of a Namespace", vpol("namespaces", "  validations: [{expression: \"namespaceObject.metadata.name != 'a'\"}]\n"),
			vpol("services", "  validations: [{expression: \"namespaceObject.metadata.name != 'a'\"}]\n"), none, []string{"namespaceObject"}},
		{"the namespace in a match condition", vpol("services", "  matchConditions: [{name: a, expression: \"namespaceObject != null\"}]\n"+holds),
			vpol("services", "  matchConditions: [{name: a, expression: \"object != null\"}]\n"+holds), none, []string{"spec.matchConditions[0].expression", "is null in the match conditions"}},
		{"another kind", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", vpol("services", holds), none, []string{"kind: v1 Pod"}},
		{"a policy that does not compile", vpol("services", "  validations: [{expression: \"1\"}]\n"), vpol("services", holds), none, []string{"spec.validations[0].expression", "mend the policy"}},
		{"documents that no API server sees", "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: test}\nspec: {evaluation: {mode: JSON}, validations: [{expression: 'true'}]}\n",
			vpol("services", holds), none, []string{"spec.evaluation.mode"}},
		{"only scans", vpol("services", holds+"  evaluation: {admission: {enabled: false}}\n"), vpol("services", holds), none, []string{"spec.evaluation.admission.enabled"}},
		{"mutations of templates", strings.Replace(mpol(""), "configmaps", "pods", 1), mpol(""), none, []string{"spec.autogen.podControllers.controllers"}},
		{"a mutation of existing objects", mpol("  evaluation: {mutateExisting: {enabled: true}}\n"), mpol(""), none, []string{"spec.evaluation.mutateExisting.enabled"}},
		{"an old API server", mpol(""), vpol("services", holds), native.Options{}, []string{"Kubernetes 1.30 has no MutatingAdmissionPolicy"}},
		{"another rule than CEL", cpol("", services, "    validate: {message: a, pattern: {metadata: {name: a}}}\n"), cpol("", services, celRule), none, []string{"spec.rules[0]: is no validation in CEL"}},
		{"JMESPath preconditions", cpol("", services, celRule+"    preconditions: {all: [{key: a, operator: Equals, value: a}]}\n"), cpol("", services, celRule), none, []string{"spec.rules[0].preconditions"}},
		{"a variable in a message", cpol("", services, "    validate: {message: '{{request.namespace}}', cel: {expressions: [{expression: \"object.metadata.name != 'bad'\"}]}}\n"),
			cpol("", services, celRule), none, []string{"spec.rules[0].validate.message"}},
		{"actions of namespaces", cpol("  validationFailureActionOverrides: [{action: Enforce, namespaces: [a]}]\n", services, celRule), cpol("", services, celRule), none,
			[]string{"spec.validationFailureActionOverrides"}},
		{"a selector of objects", cpol("", "{any: [{resources: {kinds: [Service], selector: {matchLabels: {a: b}}}}]}", celRule), cpol("", services, celRule), none, []string{"resources.selector"}},
		{"users", cpol("  background: false\n", "{any: [{resources: {kinds: [Service]}, clusterRoles: [a]}]}", celRule), cpol("", services, celRule), none, []string{"match.any[0]: selects subjects"}},
		{"names", cpol("", "{any: [{resources: {kinds: [Service], names: [a]}}]}", celRule), cpol("", services, celRule), none, []string{"selects names"}},
		{"a wildcard of kinds", cpol("", "{any: [{resources: {kinds: ['*']}}]}", celRule), cpol("", services, celRule), none, []string{"kinds[0]"}},
		{"a wildcard of versions", cpol("", "{any: [{resources: {kinds: ['apps/v*/Deployment']}}]}", celRule), cpol("", "{any: [{resources: {kinds: ['apps/*/Deployment']}}]}", celRule),
			none, []string{"kinds[0]", "wildcard"}},
		{"a wildcard of versions with a subresource", cpol("", "{any: [{resources: {kinds: ['apps/v1beta*/Deployment/scale']}}]}", celRule),
			cpol("", "{any: [{resources: {kinds: ['apps/v1/Deployment/scale']}}]}", celRule), none, []string{"kinds[0]", "wildcard"}},
		{"a wildcard of groups", cpol("", "{any: [{resources: {kinds: ['a*/v1/Deployment']}}]}", celRule), cpol("", "{any: [{resources: {kinds: ['*/v1/Deployment']}}]}", celRule),
			none, []string{"kinds[0]", "wildcard"}},
		{"a wildcard of namespaces", cpol("", "{any: [{resources: {kinds: [Service], namespaces: ['a*']}}]}", celRule),
			cpol("", "{any: [{resources: {kinds: [Service], namespaces: [a]}}]}", celRule), none, []string{"namespaces[0]", "wildcard"}},
		{"a kind without a known resource", cpol("", "{any: [{resources: {kinds: [Widget]}}]}", celRule), cpol("", services, celRule), none, []string{`the kind "Widget" is not known`}},
		{"an exclusion by labels", cpol("", services, celRule+"    exclude: {any: [{resources: {selector: {matchLabels: {a: b}}}}]}\n"),
			cpol("", services, celRule+"    exclude: {any: [{resources: {namespaces: [a]}}]}\n"), none, []string{"excludes by something other than namespaces"}},
		{"several filters together", cpol("", "{all: [{resources: {kinds: [Service]}}, {resources: {namespaces: [a]}}]}", celRule), cpol("", services, celRule), none, []string{"match.all"}},
		{"parameters of files", cpol("", services, "    validate: {cel: {paramKind: {apiVersion: v1, kind: ConfigMap}, paramRef: {name: a, namespace: b, parameterNotFoundAction: Deny}, expressions: [{expression: \"params.data.a == 'b'\"}]}}\n"),
			cpol("", services, celRule), native.Options{Static: true}, []string{"validate.cel.paramKind"}},
		{"two of one name", vpol("services", holds) + "---\n" + vpol("configmaps", holds), vpol("services", holds), none, []string{`another policy is named "test"`}},
	} {
		t.Run(row.why, func(t *testing.T) {
			_, problems, err := native.Convert(read(t, row.text), row.options)
			if err != nil || len(problems) == 0 {
				t.Fatalf("%d problems, %v", len(problems), err)
			}
			var said strings.Builder
			for _, p := range problems {
				said.WriteString(p.Error() + "\n")
			}
			for _, want := range row.want {
				if !strings.Contains(said.String(), want) {
					t.Errorf("%q lacks %q", said.String(), want)
				}
			}
			converted(t, row.twin, row.options)
		})
	}
}

// TestFollowersOfRules: a rule has the policies for controllers of its own pods alone, not those of a rule whose
// name begins its own.
func TestFollowersOfRules(t *testing.T) {
	rule := func(name, kind string) string {
		return "  - name: " + name + "\n    match: {any: [{resources: {kinds: [" + kind + "]}}]}\n" + celRule
	}
	text := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: test}\nspec:\n  rules:\n" + rule("check", "Pod") + rule("check-services", "Service")
	var names []string
	for _, p := range converted(t, text, native.Options{}) {
		names = append(names, p.Name)
	}
	if want := "test-check autogen-test-check autogen-cronjob-test-check test-check-services"; strings.Join(names, " ") != want {
		t.Errorf("%q, want %s", names, want)
	}
}

// TestOptions: a wrong version or name of a namespace fails before anything else.
func TestOptions(t *testing.T) {
	for _, row := range []struct {
		options native.Options
		want    string
	}{
		{native.Options{Kubernetes: "1.29"}, "want 1.30 to 1.37"},
		{native.Options{Kubernetes: "1.99"}, "want 1.30 to 1.37"},
		{native.Options{Kubernetes: "new"}, `"new" is no version`},
		{native.Options{Kubernetes: "1.35", Static: true}, "reads no policies from files"},
		{native.Options{Exempt: []string{"kube-*"}}, `"kube-*" is no name of a namespace`},
	} {
		if _, _, err := native.Convert(read(t, vpol("services", holds)), row.options); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.options, err, row.want)
		}
	}
}
