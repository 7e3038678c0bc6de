package suite_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/suite"
	"github.com/quaymaster/quaymaster/policy/suite/result"
)

var update = flag.Bool("update", false, "write golden files anew")

// run runs the suites below a folder.
func run(t *testing.T, folder string, options suite.Options) result.Report {
	t.Helper()
	paths, err := suite.Find([]string{folder}, suite.FileName)
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatalf("no suite below %s", folder)
	}
	return suite.Run(t.Context(), paths, options)
}

func text(t *testing.T, report result.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := result.Write(&b, report, "", result.TextOptions{FailOnly: true}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// expect wants every check of the suites below a folder to be met.
func expect(t *testing.T, folder string, suites, checks int) result.Report {
	t.Helper()
	report := run(t, folder, suite.Options{})
	if report.Failed > 0 {
		t.Errorf("failed:\n%s", text(t, report))
	}
	if got := report.Passed + report.Failed + report.Skipped; len(report.Suites) != suites || got != checks {
		t.Errorf("%d suites with %d checks, want %d with %d", len(report.Suites), got, suites, checks)
	}
	return report
}

// TestSuites runs the suites in testdata, which together use every field.
func TestSuites(t *testing.T) {
	t.Parallel()
	for folder, checks := range map[string]int{
		"context": 8, "deleting": 22, "expressions": 13, "generate": 2, "imagepolicies": 12, "images": 9, "lookups": 11, "mutate": 6, "older": 2, "targets": 2, "values": 12,
	} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			expect(t, filepath.Join("testdata", folder), 1, checks)
		})
	}
}

// opposite is a result that a rule which has the other does not have.
var opposite = map[string]string{"pass": "fail", "fail": "pass", "skip": "fail", "warn": "pass", "error": "pass"}

// TestWrongExpectationsFail turns every expectation of the same suites round: each
// check must fail then.
func TestWrongExpectationsFail(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"context", "deleting", "expressions", "generate", "imagepolicies", "images", "lookups", "mutate", "older", "targets", "values"} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			copied := copyOf(t, filepath.Join("testdata", folder))
			change(t, copied, func(document map[string]any) {
				for _, row := range document["results"].([]any) {
					row := row.(map[string]any)
					for _, key := range []string{"result", "status"} {
						if wanted, ok := row[key].(string); ok {
							row[key] = opposite[wanted]
						}
					}
				}
			})
			report := run(t, copied, suite.Options{})
			for _, s := range report.Suites {
				for _, c := range s.Checks {
					if c.Outcome != result.Failed || c.Got == "" && !strings.Contains(c.Reason, "and the rule does not") {
						t.Errorf("%s %s/%s of %s: %s (%s), though %s was expected", folder, c.Policy, c.Rule, c.Resource, c.Outcome, c.Reason, c.Want)
					}
				}
			}
		})
	}
}

// TestOneThingWrong spoils one thing of a suite that holds.
func TestOneThingWrong(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, folder string
		spoil          func(document map[string]any)
		file, old, new string
		want           string
	}{
		{reason: "a mutation makes something else", folder: "mutate", file: "owned.yaml", old: "owner: shop", new: "owner: blog",
			want: `/metadata/annotations/owner: want "blog", found "shop"`},
		{reason: "a mutation makes more than that", folder: "mutate", file: "both.yaml", old: ", stage: test", new: "",
			want: `/metadata/annotations/stage: want nothing, found "test"`},
		{reason: "the file does not have the object", folder: "mutate", file: "owned.yaml", old: "name: ours", new: "name: others",
			want: "owned.yaml does not have the object"},
		{reason: "the file has none at all", folder: "targets", file: "changed.yaml", old: "name: web", new: "name: other",
			want: "changed.yaml does not have the object"},
		{reason: "another object is altered in another way", folder: "targets", file: "changed.yaml", old: "10.0.0.1", new: "10.0.0.2",
			want: `/metadata/annotations/address: want "10.0.0.2", found "10.0.0.1"`},
		{reason: "the field checks", folder: "older", file: "test.yaml", old: "name: older", new: "checks: [{}]", want: "checks: assertions"},
		{reason: "a generation makes something else", folder: "generate", file: "quota.yaml", old: `"10"`, new: `"11"`,
			want: `/spec/hard/pods: want "11", found "10"`},
		{reason: "a generation makes another object", folder: "generate", file: "quota.yaml", old: "name: quota", new: "name: other",
			want: "ResourceQuota/shop/other is not made"},
		{reason: "the image is signed with another key", folder: "images", file: "kyverno-test.yaml", old: "- key: release", new: "- key: stranger",
			want: "signed with another key"},
		{reason: "the image is not signed", folder: "images", file: "kyverno-test.yaml", old: "- key: release", new: "- {key: release, noLog: true}",
			want: "transparency log"},
		{reason: "the scan has another result", folder: "images", file: "kyverno-test.yaml", old: "{critical: 0}", new: "{critical: 1}",
			want: "expected {{ critical }} Equals 0, found 1"},
		{reason: "the key replaces nothing", folder: "images", file: "kyverno-test.yaml", old: "replaces: release.pub", new: "replaces: k8s://kyverno/other",
			want: "keys[0].replaces: it stands nowhere"},
		{reason: "the call answers with an error", folder: "lookups", file: "kyverno-test.yaml", old: "statusCode: 200", new: "statusCode: 500",
			want: "it answers with status 500"},
		{reason: "the projection is another", folder: "lookups", file: "kyverno-test.yaml", old: "teams[].name", new: "teams[:0].name",
			want: "want pass, got fail"},
		{reason: "the projection is of nothing", folder: "lookups", file: "kyverno-test.yaml", old: "teams[].name", new: "units.first",
			want: "globalContextEntries[0]: projections[0].path: "},
		{reason: "the projection cannot be read", folder: "lookups", file: "kyverno-test.yaml", old: "teams[].name", new: "teams[",
			want: "globalContextEntries[0]: projections[0].path: "},
		{reason: "the projection has no name", folder: "lookups", file: "kyverno-test.yaml", old: "{name: owners, path", new: "{name: '', path",
			want: "globalContextEntries[0]: projections[0].name: "},
		{reason: "the ConfigMap is another", folder: "lookups", file: "cluster.yaml", old: "forbidden: NodePort", new: "forbidden: ClusterIP",
			want: "want pass, got fail"},
		{reason: "the exception is for another rule", folder: "lookups", file: "exception.yaml", old: "by-path", new: "by-call",
			want: "want skip, got fail"},
		{reason: "the user is in no group", folder: "values", file: "user.yaml", old: "[platform]", new: "[]",
			want: "want fail, and the rule does not match it"},
		{reason: "the namespace has no such label", folder: "values", file: "values.yaml", old: "stage: production", new: "stage: test",
			want: "want fail, and the rule does not match it"},
		{reason: "another notary signed", folder: "imagepolicies", file: "kyverno-test.yaml", old: "signers: [{notary: notary}]", new: "signers: [{notary: another}]",
			want: "not signed by the notary"},
		{reason: "a notary that is not defined", folder: "imagepolicies", file: "kyverno-test.yaml", old: "{notary: another}", new: "{notary: nobody}",
			want: `notary "nobody" is not among the keys of the suite`},
		{reason: "the payload names another image", folder: "imagepolicies", file: "signed.json", old: "shop/web", new: "shop/cart",
			want: "a stage that release did not sign"},
		{reason: "the payload has other content", folder: "expressions", file: "ours.json", old: "registry.example", new: "docker.io",
			want: "a stage from elsewhere"},
		{reason: "there is no such payload", folder: "expressions", file: "kyverno-test.yaml", old: "resources: [ours.json]", new: "resources: [their.json]",
			want: "no object of the suite has this kind and name"},
		{reason: "an expression finds another ConfigMap", folder: "expressions", file: "teams.yaml", old: "names: shop blog", new: "names: blog",
			want: "the label owner names no team"},
		{reason: "the exception is for another object", folder: "expressions", file: "exception.yaml", old: "== 'spared'", new: "== 'bad'",
			want: "want skip, got fail"},
		{reason: "an expression makes something else", folder: "expressions", file: "staged.yaml", old: "stage: test", new: "stage: production",
			want: `/metadata/labels/stage: want "production", found "test"`},
		{reason: "no such policy", folder: "older", file: "test.yaml", old: "policy: labelled", new: "policy: labeled", want: "no policy of the suite has this name"},
		{reason: "no such object", folder: "older", file: "test.yaml", old: "resource: good", new: "resource: god", want: "no object of the suite has this kind and name"},
		{reason: "no object of the kind", folder: "older", file: "test.yaml", old: "kind: Deployment", new: "kind: StatefulSet", want: "no object of the suite has this kind and name"},
		{reason: "an unknown result", folder: "older", file: "test.yaml", old: "status: pass", new: "status: passed", want: `results[0].result: "passed"`},
		{reason: "no such file", folder: "older", file: "test.yaml", old: "[policy.yaml]", new: "[none.yaml]", want: "no such file"},
		{reason: "a file from elsewhere", folder: "older", file: "test.yaml", old: "[policy.yaml]", new: `["https://example.com/policy.yaml"]`, want: "URLs are not supported"},
		{reason: "a policy that does not compile", folder: "older", file: "policy.yaml", old: "pattern:", new: "patern:", want: "patern"},
		{reason: "an object that is none", folder: "older", file: "resource.yaml", old: "kind: Pod", new: "kid: Pod", want: "no kind"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			copied := copyOf(t, filepath.Join("testdata", c.folder))
			path := filepath.Join(copied, c.file)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			after := strings.Replace(string(before), c.old, c.new, 1)
			if after == string(before) {
				t.Fatalf("%s has no %q", c.file, c.old)
			}
			if err := os.WriteFile(path, []byte(after), 0o600); err != nil {
				t.Fatal(err)
			}
			name := suite.FileName
			if c.folder == "older" {
				name = suite.OldName
			}
			report := suite.Run(t.Context(), []string{filepath.Join(copied, name)}, suite.Options{})
			if report.Failed == 0 || !strings.Contains(text(t, report), c.want) {
				t.Errorf("%d failed, want one with %q:\n%s", report.Failed, c.want, text(t, report))
			}
		})
	}
}

// TestMissingIsAllowed: with failOnMissingResources false, the check of a missing object is
// skipped, and neither passed nor failed.
func TestMissingIsAllowed(t *testing.T) {
	t.Parallel()
	for says, want := range map[bool]result.Outcome{false: result.Skipped, true: result.Failed} {
		copied := copyOf(t, filepath.Join("testdata", "mutate"))
		if err := os.WriteFile(filepath.Join(copied, "owned.yaml"), []byte("{apiVersion: v1, kind: Pod, metadata: {name: other}}"), 0o600); err != nil {
			t.Fatal(err)
		}
		change(t, copied, func(document map[string]any) {
			document["results"].([]any)[0].(map[string]any)["failOnMissingResources"] = says
		})
		c := run(t, copied, suite.Options{}).Suites[0].Checks[0]
		if c.Outcome != want || c.Reason != "owned.yaml does not have the object" {
			t.Errorf("failOnMissingResources: %v gives %s (%s), want %s", says, c.Outcome, c.Reason, want)
		}
	}
}

// TestSamples runs other projects' suites: all of them hold, with every check counted.
func TestSamples(t *testing.T) {
	t.Parallel()
	samples := os.Getenv("QUAYMASTER_SAMPLES")
	if samples == "" {
		t.Skip("QUAYMASTER_SAMPLES names no folder of samples; TestSuites runs suites of our own")
	}
	const library, older = "kyverno-tests", "seed-policies/digitalocean"
	report := expect(t, filepath.Join(samples, library), 36, 1017)
	expect(t, filepath.Join(samples, older), 1, 6)
	for _, s := range report.Suites {
		for _, c := range s.Checks {
			if c.Outcome == result.Skipped && c.Want != "skip" {
				t.Errorf("%s: %s/%s of %s: %s, though %s was expected", s.Path, c.Policy, c.Rule, c.Resource, c.Reason, c.Want)
			}
		}
	}
	for _, folder := range []string{library, older} { // and none of them holds when it expects the opposite
		copied := copyOf(t, filepath.Join(samples, folder))
		paths, err := suite.Find([]string{copied}, suite.FileName)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			changeFile(t, path, func(document map[string]any) {
				for _, row := range document["results"].([]any) {
					row := row.(map[string]any)
					row["result"] = opposite[row["result"].(string)]
				}
			})
		}
		if report := suite.Run(t.Context(), paths, suite.Options{}); report.Passed+report.Skipped > 0 {
			t.Errorf("%s with every expectation turned round: %s", folder, report.Summary())
		}
	}
}

// TestSameEveryTime compares two runs of many suites at once.
func TestSameEveryTime(t *testing.T) {
	t.Parallel()
	var outputs [2]bytes.Buffer
	for i := range outputs {
		report := run(t, "testdata", suite.Options{})
		for _, s := range report.Suites {
			for n := range s.Checks {
				s.Checks[n].Message = "" // of images it names throw-away keys
			}
		}
		if err := result.Write(&outputs[i], report, "json", result.TextOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if outputs[0].String() != outputs[1].String() {
		t.Errorf("two runs differ:\n%s\n%s", &outputs[0], &outputs[1])
	}
}

// TestFormats compares each format with a golden file: go test -run Formats -update
func TestFormats(t *testing.T) {
	t.Parallel()
	report := run(t, "testdata/golden", suite.Options{})
	broken := run(t, "testdata/golden-broken", suite.Options{})
	report.Suites = append(report.Suites, broken.Suites...)
	report.Failed += broken.Failed
	for _, c := range []struct {
		file, format string
		options      result.TextOptions
	}{
		{"text.txt", "", result.TextOptions{}},
		{"text-detailed.txt", "", result.TextOptions{Detailed: true}},
		{"text-fail-only.txt", "", result.TextOptions{FailOnly: true}},
		{"text-color.txt", "", result.TextOptions{Color: true}},
		{"report.json", "json", result.TextOptions{}},
		{"report-fail-only.json", "json", result.TextOptions{FailOnly: true}},
		{"report.yaml", "yaml", result.TextOptions{}},
		{"report.md", "markdown", result.TextOptions{}},
		{"report-detailed.md", "markdown", result.TextOptions{Detailed: true}},
		{"report.xml", "junit", result.TextOptions{}},
	} {
		t.Run(c.file, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			if err := result.Write(&got, report, c.format, c.options); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "formats", c.file)
			if *update {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("%s differs (run with -update):\n%s", c.file, &got)
			}
		})
	}
	if err := result.Write(&bytes.Buffer{}, report, "sarif", result.TextOptions{}); err == nil {
		t.Error("a format that is none was written")
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		selector string
		checks   int
	}{
		{"", 12}, {"policy=*,rule=*,resource=*", 12}, {"rule=kept", 4}, {"rule=k?pt, resource=good", 2},
		{"resource=live/*", 1}, {"policy=other", 0}, {"rule=sizes,resource=large", 1},
	} {
		filter, err := suite.ParseFilter(c.selector)
		if err != nil {
			t.Errorf("%s: %v", c.selector, err)
			continue
		}
		report := run(t, "testdata/values", suite.Options{Filter: filter})
		if got := report.Passed + report.Skipped + report.Failed; got != c.checks || report.Failed > 0 {
			t.Errorf("%s chooses %d checks, of which %d fail; want %d:\n%s", c.selector, got, report.Failed, c.checks, text(t, report))
		}
	}
	for _, wrong := range []string{"policy", "policy=", "kind=Pod", "policy=a=b", "policy=a,,rule=b"} {
		if filter, err := suite.ParseFilter(wrong); err == nil {
			t.Errorf("%q is taken: %+v", wrong, filter)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, content := range map[string]string{
		"b/kyverno-test.yaml":               "policies: [a]\nresults: []\n",
		"a/.kyverno-test/kyverno-test.yaml": "policies: [a]\nresults: []\n",
		"c/test.yaml":                       "policies: [a]\nresults: []\n",
		"d/test.yaml":                       "kind: Pod\n",
		"e/test.yaml":                       "results: {}\n",
		".git/kyverno-test.yaml":            "policies: [a]\nresults: []\n",
		"f/other.yaml":                      "policies: [a]\nresults: []\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	find := func(name string, paths ...string) []string {
		t.Helper()
		found, err := suite.Find(paths, name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range found {
			found[i], _ = filepath.Rel(root, found[i])
		}
		return found
	}
	want := []string{"a/.kyverno-test/kyverno-test.yaml", "b/kyverno-test.yaml", "c/test.yaml"}
	if got := find(suite.FileName, root); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := find(suite.FileName, root, filepath.Join(root, "b"), filepath.Join(root, "f", "other.yaml")); !slices.Equal(got, append(want, "f/other.yaml")) {
		t.Errorf("found %q: want each once, and the file itself", got)
	}
	if got := find("other.yaml", root); !slices.Equal(got, []string{"f/other.yaml"}) {
		t.Errorf("found %q by another name", got)
	}
	if _, err := suite.Find([]string{filepath.Join(root, "none")}, suite.FileName); err == nil {
		t.Error("a path that is not there was taken")
	}
}

// TestInterrupted ends a run: nothing passes.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	paths, err := suite.Find([]string{"testdata/images"}, suite.FileName)
	if err != nil {
		t.Fatal(err)
	}
	report := suite.Run(ctx, paths, suite.Options{})
	for _, c := range report.Suites[0].Checks {
		if c.Outcome == result.Passed && c.Want == "pass" {
			t.Errorf("%s of %s passes though the run was ended", c.Rule, c.Resource)
		}
	}
}

// copyOf copies a folder, with what lies beside it in a sample's policy folder.
func copyOf(t *testing.T, folder string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	return to
}

// change changes the suite in a folder.
func change(t *testing.T, folder string, by func(document map[string]any)) {
	t.Helper()
	paths, err := suite.Find([]string{folder}, suite.FileName)
	if err != nil || len(paths) != 1 {
		t.Fatalf("%d suites in %s: %v", len(paths), folder, err)
	}
	changeFile(t, paths[0], by)
}

func changeFile(t *testing.T, path string, by func(document map[string]any)) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	by(document)
	text, err = yaml.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
