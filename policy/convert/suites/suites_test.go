package suites_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/convert/suites"
	"github.com/quaymaster/quaymaster/policy/suite"
	"github.com/quaymaster/quaymaster/policy/suite/result"
	"github.com/quaymaster/quaymaster/workload"
)

// shop are rules of which two become one policy, one a policy of its own, and one stays.
const shop = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: shop}
spec:
  validationFailureAction: Enforce
  rules:
  - name: own-network
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: Pods have a network of their own., allowExistingViolations: false, pattern: {spec: {=(hostNetwork): false}}}
  - name: own-processes
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {message: Pods have processes of their own., allowExistingViolations: false, pattern: {spec: {=(hostPID): false}}}
  - name: no-node-port
    match: {any: [{resources: {kinds: [Service]}}]}
    validate: {message: No port of nodes., allowExistingViolations: false, pattern: {spec: {type: '!NodePort'}}}
  - name: of-roles
    match: {any: [{resources: {kinds: [ConfigMap]}, clusterRoles: [edit]}]}
    validate: {message: Not by editors., pattern: {data: {kept: "true"}}}
`

const objects = `{apiVersion: v1, kind: Pod, metadata: {name: good}, spec: {containers: [{name: a, image: a}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: networked}, spec: {hostNetwork: true, containers: [{name: a, image: a}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: watching}, spec: {hostPID: true, containers: [{name: a, image: a}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: open}, spec: {type: NodePort}}
---
{apiVersion: v1, kind: Service, metadata: {name: closed}, spec: {type: ClusterIP}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {kept: "false"}}
`

// shopSuite has a row for each rule.
const shopSuite = `# Of the shop.
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata:
  name: shop
policies:
- ../policies/shop.yaml
resources:
- objects.yaml
results:
# Pods are alone.
- policy: shop
  rule: own-network
  kind: Pod
  resources: [networked]
  result: fail
- policy: shop
  rule: own-network
  kind: Pod
  resources: [good, watching]
  result: pass
- policy: shop
  rule: own-processes
  kind: Pod
  resources:
  - watching # sees all
  result: fail
- policy: shop
  rule: own-processes
  kind: Pod
  resources: [good, networked]
  result: pass
- policy: shop
  rule: no-node-port
  kind: Service
  resources: [open]
  result: fail
- policy: shop
  rule: no-node-port
  kind: Service
  resources: [closed]
  result: pass
- policy: shop
  rule: of-roles
  kind: ConfigMap
  resources: [settings]
  result: fail
`

// place writes a policy, its objects and its suite into folders, and returns the one above.
func place(t *testing.T, policies, suiteText string, more map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	files := map[string]string{"policies/shop.yaml": policies, "tests/objects.yaml": objects, "tests/kyverno-test.yaml": suiteText}
	for name, text := range more {
		files[name] = text
	}
	for name, text := range files {
		write(t, filepath.Join(folder, name), []byte(text))
	}
	return folder
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// convert converts the policy of a folder with what stays of it, and its suite.
func convert(t *testing.T, folder string) suites.Result {
	t.Helper()
	file := filepath.Join(folder, "policies", "shop.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	read, err := workload.ReadDocuments(bytes.NewReader(text), file)
	if err != nil {
		t.Fatal(err)
	}
	suiteText, err := os.ReadFile(filepath.Join(folder, "tests", suite.FileName))
	if err != nil {
		t.Fatal(err)
	}
	made, err := cel.Convert(read, cel.Options{Partial: true, Tested: suites.Tested(suiteText)})
	if err != nil {
		t.Fatal(err)
	}
	out, err := cel.YAML(slices.Concat(made.Policies, made.Rest))
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(folder, "cel", "policies", "shop.yaml")
	write(t, to, out)
	converted, err := suites.Convert(suiteText, suites.Options{
		From: filepath.Join(folder, "tests"), To: filepath.Join(folder, "cel", "tests"), Policies: made.Policies, Rest: made.Rest, Files: map[string]string{file: to},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range converted.Values {
		write(t, filepath.Join(folder, "cel", "tests", name), values)
	}
	if converted.Text != nil {
		place := filepath.Join(folder, "cel", "tests", suite.FileName)
		write(t, place, converted.Text)
		settle(t, place)
	}
	return converted
}

func settle(t *testing.T, file string) {
	t.Helper()
	text, err := suites.Settle(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, text)
}

// TestSettle: an object that one form passes and the other leaves aside has the result of the new form, and no other changes.
func TestSettle(t *testing.T) {
	text := strings.Replace(shopSuite, "  resources: [closed]\n  result: pass", "  resources: [closed, open]\n  result: skip", 1)
	text = strings.Replace(text, "  rule: no-node-port\n  kind: Service\n  resources: [open]\n  result: fail", "  rule: no-node-port\n  kind: Service\n  resources: [none]\n  result: fail", 1)
	folder := place(t, shop, text+"exceptions: [none.yaml]\n", map[string]string{
		"tests/none.yaml": "{apiVersion: policies.kyverno.io/v1, kind: PolicyException, metadata: {name: none}, spec: {policyRefs: [{kind: ValidatingPolicy, name: none}]}}\n"})
	convert(t, folder)
	got := readText(t, filepath.Join(folder, "cel", "tests", suite.FileName))
	if !strings.Contains(got, "resources: [closed]\n    result: pass\n") || !strings.Contains(got, "resources: [open]\n    result: skip\n") {
		t.Errorf("got\n%s", got)
	}
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// run runs the suites of a folder, and returns the results that objects have by a rule or a policy that denies.
func run(t *testing.T, folder string) (result.Report, map[string]string) {
	t.Helper()
	files, err := suite.Find([]string{folder}, suite.FileName)
	if err != nil {
		t.Fatal(err)
	}
	report := suite.Run(t.Context(), files, suite.Options{})
	all := map[string]string{}
	for _, s := range report.Suites {
		if s.Error != "" {
			t.Fatal(s.Error)
		}
		for _, c := range s.Checks {
			if all[c.Resource] != "fail" {
				all[c.Resource] = c.Got
			}
			if c.Outcome == result.Failed {
				t.Errorf("%s %s %s: %s %s", c.Policy, c.Rule, c.Resource, c.Reason, c.Message)
			}
		}
	}
	return report, all
}

// TestSuite: a suite is written for the new policies, with its comments, and each object has the same result as before.
func TestSuite(t *testing.T) {
	folder := place(t, shop, shopSuite, nil)
	converted := convert(t, folder)
	if len(converted.Problems) > 0 || !converted.Converted {
		t.Fatal(converted.Problems)
	}
	golden := filepath.Join("testdata", "shop.golden.yaml")
	if os.Getenv("UPDATE") != "" {
		write(t, golden, converted.Text)
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(converted.Text) != string(want) {
		t.Errorf("got\n%s", converted.Text)
	}
	_, before := run(t, filepath.Join(folder, "tests"))
	_, after := run(t, filepath.Join(folder, "cel"))
	if len(before) != 6 || fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("the results are %v, were %v", after, before)
	}
}

// TestWrong: a converted suite fails for a policy that admits too much.
func TestWrong(t *testing.T) {
	folder := place(t, shop, shopSuite, nil)
	convert(t, folder)
	file := filepath.Join(folder, "cel", "policies", "shop.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, bytes.Replace(text, []byte("hostPID"), []byte("hostIPC"), 1))
	report := suite.Run(t.Context(), []string{filepath.Join(folder, "cel", "tests", suite.FileName)}, suite.Options{})
	failed := 0
	for _, c := range report.Suites[0].Checks {
		if c.Outcome == result.Failed {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d checks failed, want that of the pod watching: %+v", failed, report.Suites[0].Checks)
	}
}

// TestParts: each part of a suite has its counterpart.
func TestParts(t *testing.T) {
	replace := func(old, with string) string { return strings.Replace(shopSuite, old, with, 1) }
	for _, c := range []struct{ reason, suite, has, lacks string }{
		{"a rule that shares a policy", shopSuite, "- policy: shop-own-network\n    isValidatingPolicy: true\n", "rule: own-network"},
		{"a rule that stays", shopSuite, "- policy: shop\n    rule: of-roles\n", "shop-of-roles"},
		{"a policy's file", shopSuite, "- ../policies/shop.yaml\n", "../../policies"},
		{"objects", shopSuite, "- ../../tests/objects.yaml\n", "- objects.yaml"},
		{"a rule that is tested apart", replace("  resources: [good, networked]", "  resources: [good]"), "- policy: shop-own-processes\n    isValidatingPolicy: true\n", ""},
		{"a rule that is passed over", replace("  resources: [closed]\n  result: pass", "  resources: [closed]\n  result: skip"), "resources: [closed]\n    result: pass\n", "result: skip"},
		{"an object that an exception leaves aside", replace("  resources: [closed]\n  result: pass", "  resources: [closed]\n  result: skip") + "exceptions: [exception.yaml]\n", "result: skip\n", ""},
		{"all objects of a kind", replace("  kind: Service\n  resources: [closed]\n  result: pass", "  kind: Service\n  result: fail"), "kind: Service\n    result: fail\n", ""},
		{"entries of resources", replace("resources: [closed]", "resourceSpecs: [{name: closed, kind: Service, version: v1}]"), "resourceSpecs: [{name: closed, kind: Service, version: v1}]", ""},
		{"the old form", replace("  resources: [closed]\n  result: pass", "  resource: closed\n  status: pass"), "resource: closed\n    status: pass\n", ""},
		{"an unknown rule", replace("rule: no-node-port", "rule: another"), "- policy: shop\n    rule: another\n", ""},
		{"another policy", replace("policy: shop\n  rule: no-node-port", "policy: other\n  rule: no-node-port"), "- policy: other\n    rule: no-node-port\n", ""},
		{"other fields", shopSuite + "unknown: {a: b}\n", "unknown: {a: b}\n", ""},
		{"files of other kinds", shopSuite + "userinfo: user.yaml\ncontext: context.yaml\n", "userinfo: ../../tests/user.yaml\ncontext: ../../tests/context.yaml\n", ""},
		{"a file by its address", replace("- objects.yaml", "- objects.yaml\n- https://example.com/a.yaml"), "- https://example.com/a.yaml\n", ""},
		{"files of lists", shopSuite + "globalContextEntries:\n- name: a\n  resourceFiles: [a.yaml]\n", "resourceFiles: [../../tests/a.yaml]\n", ""},
		{"values in the suite", shopSuite + "values:\n  policies:\n  - name: shop\n    resources:\n    - {name: good, values: {request.operation: UPDATE}}\n", "- name: shop-own-network\n", ""},
	} {
		folder := place(t, shop, c.suite, nil)
		converted := convert(t, folder)
		if len(converted.Problems) > 0 || !strings.Contains(string(converted.Text), c.has) || c.lacks != "" && strings.Contains(string(converted.Text), c.lacks) {
			t.Errorf("%s: %v\n%s", c.reason, converted.Problems, converted.Text)
		}
	}
}

// TestNames: the name of a policy remains a text.
func TestNames(t *testing.T) {
	yes := func(text string) string {
		return strings.NewReplacer("name: shop}", "name: 'yes'}", "policy: shop", "policy: 'yes'").Replace(text)
	}
	one := yes(shop[:strings.Index(shop, "  - name: own-processes")])
	folder := place(t, one, yes(shopSuite[:strings.Index(shopSuite, "- policy: shop\n  rule: own-processes")]), nil)
	if converted := convert(t, folder); !strings.Contains(string(converted.Text), "policy: \"yes\"\n") {
		t.Errorf("got\n%s", converted.Text)
	}
}

// TestValues: a file of values gets one beside the suite, with the names of the new policies; look-ups have no form.
func TestValues(t *testing.T) {
	const head = "apiVersion: cli.kyverno.io/v1alpha1\nkind: Values\nspec:\n  policies:\n  - name: shop\n"
	with := shopSuite + "variables: values.yaml\n"
	folder := place(t, shop, with, map[string]string{"tests/values.yaml": head + "    resources:\n    - name: good\n      values: {request.operation: UPDATE}\n"})
	converted := convert(t, folder)
	if values := string(converted.Values["values.yaml"]); len(converted.Problems) > 0 || !strings.Contains(values, "- name: shop-own-network") || !strings.Contains(values, "- name: shop\n") {
		t.Errorf("%v\n%s", converted.Problems, values)
	}
	run(t, filepath.Join(folder, "cel"))
	other := convert(t, place(t, shop, with, map[string]string{"tests/values.yaml": strings.Replace(head, "name: shop", "name: other", 1)}))
	if len(other.Values) > 0 || !strings.Contains(string(other.Text), "variables: ../../tests/values.yaml") {
		t.Errorf("values of another policy: %s", other.Text)
	}
	for _, c := range []struct{ reason, values, path string }{
		{"of a rule", head + "    rules:\n    - {name: own-network, values: {count: 1}}\n", "values.yaml: policies[0].rules[0]"},
		{"of an object", head + "    resources:\n    - {name: good, values: {count: 1}}\n", "values.yaml: policies[0].resources[0].values"},
		{"that are none", "[]", "variables"},
	} {
		refused := convert(t, place(t, shop, with, map[string]string{"tests/values.yaml": c.values}))
		if len(refused.Problems) != 1 || refused.Problems[0].Path != c.path || refused.Text != nil {
			t.Errorf("values %s: %v", c.reason, refused.Problems)
		}
	}
	staying := convert(t, place(t, shop, with, map[string]string{"tests/values.yaml": head + "    rules:\n    - {name: of-roles, values: {count: 1}}\n"}))
	if len(staying.Problems) > 0 || !strings.Contains(string(staying.Values["values.yaml"]), "of-roles") {
		t.Errorf("values of a rule that stays: %v\n%s", staying.Problems, staying.Values["values.yaml"])
	}
}

// TestNoSuite: a text that is no suite is an error.
func TestNoSuite(t *testing.T) {
	for _, text := range []string{"[]", "a", "{", "a: b\n---\n- c\n", "\x00"} {
		if _, err := suites.Convert([]byte(text), suites.Options{}); err == nil {
			t.Errorf("%q is converted", text)
		}
	}
}

// FuzzConvert: any text is converted, or an error.
func FuzzConvert(f *testing.F) {
	f.Add([]byte(shopSuite))
	f.Add([]byte("results: [{policy: shop, rule: no-node-port, resources: {a: b}}]\npolicies: shop\n"))
	f.Add([]byte("results: {policy: a}\nvalues: {policies: [{name: [shop], resources: {values: a}}]}\nvariables: [a]"))
	read, err := workload.ReadDocuments(strings.NewReader(shop), "/policies/shop.yaml")
	if err != nil {
		f.Fatal(err)
	}
	made, err := cel.Convert(read, cel.Options{Partial: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = suites.Convert(text, suites.Options{From: "/tests", To: "/cel", Policies: made.Policies, Files: map[string]string{"/policies/shop.yaml": "/cel/shop.yaml"}})
	})
}

// TestSamples converts the suites of real policies: each that held before holds afterwards.
func TestSamples(t *testing.T) {
	folder := os.Getenv("QUAYMASTER_SAMPLES")
	if folder == "" {
		t.Skip("QUAYMASTER_SAMPLES names no folder")
	}
	files, err := suite.Find([]string{folder, filepath.Join(folder, "..", "library")}, suite.FileName)
	if err != nil {
		t.Fatal(err)
	}
	converted, refused, checks, worse := 0, 0, 0, 0
	for _, file := range files {
		text, to, problems := convertSample(t, file)
		if text == "" {
			refused += min(len(problems), 1)
			continue
		}
		converted++
		before := suite.Run(t.Context(), []string{file}, suite.Options{})
		after := suite.Run(t.Context(), []string{to}, suite.Options{})
		checks += after.Passed
		if before.Failed == 0 && after.Failed > 0 {
			worse++
			for _, c := range after.Suites[0].Checks {
				// An object of a version that is no longer served, and one of which a container has no name.
				if isUnserved := strings.Contains(c.Message, "which is not converted here"); c.Outcome == result.Failed && !isUnserved && c.Resource != "Pod/default/myapp-pod-2" {
					t.Errorf("%s: %s %s: %s %s", file, c.Policy, c.Resource, c.Reason, c.Message)
				}
			}
		}
	}
	t.Logf("%d suites: %d about converted policies, with %d checks that hold; %d refused; %d are worse", len(files), converted, checks, refused, worse)
}

// convertSample converts a suite with the files of policies that it names; no text if it is about none that can be.
func convertSample(t *testing.T, file string) (text, to string, problems []suites.Problem) {
	t.Helper()
	folder, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	to = filepath.Join(out, suite.FileName)
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options := suites.Options{From: folder, To: out, Files: map[string]string{}}
	parsed, err := workload.ReadDocuments(bytes.NewReader(source), file)
	if err != nil {
		return "", "", nil
	}
	names, _ := parsed[0].Content()["policies"].([]any)
	for i, name := range names {
		path := filepath.Join(folder, fmt.Sprint(name))
		content, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		documents, err := workload.ReadDocuments(bytes.NewReader(content), path)
		if err != nil {
			continue
		}
		made, err := cel.Convert(documents, cel.Options{Partial: true, Tested: suites.Tested(source)})
		if err != nil || len(made.Policies) == 0 {
			continue
		}
		written, err := cel.YAML(slices.Concat(made.Policies, made.Rest))
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(out, fmt.Sprintf("policies%d.yaml", i))
		write(t, target, written)
		options.Files[path] = target
		options.Policies, options.Rest = append(options.Policies, made.Policies...), append(options.Rest, made.Rest...)
	}
	converted, err := suites.Convert(source, options)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if !converted.Converted || converted.Text == nil {
		return "", "", converted.Problems
	}
	write(t, to, converted.Text)
	for name, values := range converted.Values {
		write(t, filepath.Join(out, name), values)
	}
	settle(t, to)
	return string(converted.Text), to, nil
}
