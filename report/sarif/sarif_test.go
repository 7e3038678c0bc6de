package sarif_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report/finding"
	"github.com/quaymaster/quaymaster/report/sarif"
	"github.com/quaymaster/quaymaster/workload"
)

// validator validates a document against OASIS's schema, by the validator of Open Policy
// Agent, and returns the errors.
func validator(t testing.TB) func(ctx context.Context, document string) any {
	t.Helper()
	schema, err := os.ReadFile("testdata/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	query, err := rego.New(rego.Query(`json.match_schema(input.document, input.schema)`), rego.StrictBuiltinErrors(true)).PrepareForEval(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, document string) any {
		results, err := query.Eval(ctx, rego.EvalInput(map[string]any{"document": document, "schema": string(schema)}))
		if err != nil {
			return err
		}
		if said, _ := results[0].Expressions[0].Value.([]any); said[0] != true {
			return said[1]
		}
		return nil
	}
}

func write(t testing.TB, run finding.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := sarif.Write(&b, run, "1.2.3"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestSchema validates the output for every scenario of package report against the
// schema, and its results against GitHub's further requirements.
func TestSchema(t *testing.T) {
	faults := validator(t)
	files, err := filepath.Glob("../testdata/formats/*.sarif")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d documents: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if wrong := faults(t.Context(), string(text)); wrong != nil {
			t.Errorf("%s: %v", file, wrong)
		}
		check(t, file, string(text))
	}
	const sound = `{"version":"2.1.0","runs":[{"tool":{"driver":{"name":"x"}}}]}`
	if wrong := faults(t.Context(), sound); wrong != nil {
		t.Errorf("a sound document is refused: %v", wrong)
	}
	for reason, broken := range map[string]string{
		"another version": strings.Replace(sound, "2.1.0", "2.2.0", 1),
		"no tool":         `{"version":"2.1.0","runs":[{}]}`,
		"unknown member":  strings.Replace(sound, `"name"`, `"nom":"y","name"`, 1),
		"line 0":          strings.Replace(sound, `{"tool"`, `{"results":[{"message":{"text":"x"},"locations":[{"physicalLocation":{"region":{"startLine":0}}}]}],"tool"`, 1),
	} {
		if faults(t.Context(), broken) == nil {
			t.Errorf("the validator lets %s pass", reason)
		}
	}
}

// parsed has the checked fields of a document.
type parsed struct {
	Runs []struct {
		Tool struct {
			Driver struct {
				Rules []struct{ ID, HelpURI string }
			}
		}
		Invocations []struct{ ExecutionSuccessful bool }
		Results     []struct {
			RuleID    string
			RuleIndex int
			Level     string
			Locations []struct {
				PhysicalLocation struct {
					ArtifactLocation struct{ URI string }
					Region           struct{ StartLine, StartColumn int }
				}
			}
			PartialFingerprints map[string]string
			Suppressions        []struct{ Justification string }
		}
	}
}

// check wants each result to be found by its rule and its line, and by one fingerprint.
func check(t *testing.T, name, text string) parsed {
	t.Helper()
	var p parsed
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	seen := map[string]bool{}
	for _, result := range p.Runs[0].Results {
		if len(result.Locations) != 1 || result.Locations[0].PhysicalLocation.ArtifactLocation.URI == "" || result.Locations[0].PhysicalLocation.Region.StartLine < 1 {
			t.Errorf("%s: a result without a physical location, which GitHub refuses all for: %+v", name, result)
		}
		if rules := p.Runs[0].Tool.Driver.Rules; result.RuleIndex >= len(rules) || rules[result.RuleIndex].ID != result.RuleID {
			t.Errorf("%s: rule %s is not at %d", name, result.RuleID, result.RuleIndex)
		}
		for _, value := range result.PartialFingerprints {
			if seen[value] {
				t.Errorf("%s: two results have the fingerprint %s", name, value)
			}
			seen[value] = true
		}
		if len(result.PartialFingerprints) != 1 {
			t.Errorf("%s: %d fingerprints", name, len(result.PartialFingerprints))
		}
	}
	return p
}

// denied is a run with one finding.
func denied(change func(*finding.Finding)) finding.Run {
	f := finding.Finding{
		Status: finding.Deny, Image: "registry.example/web:1", Place: "web", Repository: "registry.example/web", Pointer: "/spec/containers/0/image",
		Position: &workload.Position{File: "deploy/web.yaml", Line: 7, Column: 12}, Policy: "ClusterPolicy/signed", Rule: "by-key",
		Reasons: []policy.Reason{{Code: policy.Unsigned, Message: "no signature found"}},
	}
	if change != nil {
		change(&f)
	}
	run := finding.Run{Objects: []finding.Object{{Title: "Pod shop/web", Source: "deploy/web.yaml, document 1", Result: gate.Deny, Findings: []finding.Finding{f}}}}
	run.Summary.Denied = 1
	return run
}

// TestFingerprints: a finding stays the same one where only its place changes.
func TestFingerprints(t *testing.T) {
	fingerprint := func(change func(*finding.Finding)) string {
		for _, value := range check(t, "", write(t, denied(change))).Runs[0].Results[0].PartialFingerprints {
			return value
		}
		return ""
	}
	before := fingerprint(nil)
	for _, c := range []struct {
		reason string
		change func(*finding.Finding)
		same   bool
	}{
		{"lines were added above", func(f *finding.Finding) {
			f.Position = &workload.Position{File: "deploy/web.yaml", Line: 90, Column: 2}
		}, true},
		{"the tag is another", func(f *finding.Finding) { f.Image = "registry.example/web:2" }, true},
		{"a container was put before", func(f *finding.Finding) { f.Pointer = "/spec/containers/1/image" }, true},
		{"the message is worded anew", func(f *finding.Finding) { f.Reasons = []policy.Reason{{Code: policy.Unsigned, Message: "x"}} }, true},
		{"another image", func(f *finding.Finding) { f.Repository = "registry.example/db" }, false},
		{"another container", func(f *finding.Finding) { f.Place = "db" }, false},
		{"another rule", func(f *finding.Finding) { f.Rule = "by-build" }, false},
		{"another reason", func(f *finding.Finding) { f.Reasons = []policy.Reason{{Code: policy.TooMuch, Message: "x"}} }, false},
	} {
		if same := fingerprint(c.change) == before; same != c.same {
			t.Errorf("%s: the same: %t", c.reason, same)
		}
	}
	twice := denied(nil)
	twice.Objects = append(twice.Objects, twice.Objects...)
	check(t, "one image twice", write(t, twice))
}

// TestLocations: a file is named as an URI that is relative to the checkout.
func TestLocations(t *testing.T) {
	for _, c := range []struct{ reason, file, want string }{
		{"as it is", "deploy/web.yaml", "deploy/web.yaml"},
		{"in the folder", "./deploy/../web.yaml", "web.yaml"},
		{"absolute", "/srv/a b.yaml", "file:///srv/a%20b.yaml"},
		{"standard input", "standard input", "standard%20input"},
		{"no scheme", "a:b.yaml", "./a:b.yaml"},
		{"characters that end things", "a\n#?<script>\u202e", "a%0A%23%3F%3Cscript%3E%E2%80%AE"},
	} {
		run := denied(func(f *finding.Finding) { f.Position.File = c.file })
		if got := check(t, c.reason, write(t, run)).Runs[0].Results[0].Locations[0].PhysicalLocation.ArtifactLocation.URI; got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
	for reason, c := range map[string]struct {
		change func(*finding.Run)
		want   string
	}{
		"no position":       {func(r *finding.Run) { r.Objects[0].Findings[0].Position = nil }, "deploy/web.yaml:1:0"},
		"no file":           {func(r *finding.Run) { r.Objects[0].Findings[0].Position, r.Objects[0].Source = nil, "" }, "registry.example/web:1%20%28web%29:1:0"},
		"a position at all": {func(*finding.Run) {}, "deploy/web.yaml:7:12"},
	} {
		run := denied(nil)
		c.change(&run)
		at := check(t, reason, write(t, run)).Runs[0].Results[0].Locations[0].PhysicalLocation
		if got := fmt.Sprintf("%s:%d:%d", at.ArtifactLocation.URI, at.Region.StartLine, at.Region.StartColumn); got != c.want {
			t.Errorf("%s: %s, want %s", reason, got, c.want)
		}
	}
}

// TestExecution: what could not be verified is no success.
func TestExecution(t *testing.T) {
	for reason, c := range map[string]struct {
		change func(*finding.Run)
		want   bool
	}{
		"denied":     {func(*finding.Run) {}, true},
		"error":      {func(r *finding.Run) { r.Summary.Errors = 1 }, false},
		"no outcome": {func(r *finding.Run) { r.Error = "no network" }, false},
	} {
		run := denied(nil)
		c.change(&run)
		if got := check(t, reason, write(t, run)).Runs[0].Invocations[0].ExecutionSuccessful; got != c.want {
			t.Errorf("%s: %t", reason, got)
		}
	}
}

// FuzzWrite puts foreign text into every field.
func FuzzWrite(f *testing.F) {
	f.Add("x\n::error::`|<script>\x1b[31m\u202e\xff\x00")
	f.Add("../../%2e%2e/:a?b#c")
	faults := validator(f)
	f.Fuzz(func(t *testing.T, s string) {
		run := denied(func(found *finding.Finding) {
			found.Position.File = s
			found.Reasons = []policy.Reason{{Code: policy.Code(s), Message: s, Path: s, Hint: s}}
			found.Policy, found.Rule, found.Exception, found.Place, found.Image = s, s, s, s, s
		})
		run.Objects[0].Title, run.Objects[0].Source, run.Objects[0].Template = s, s, s
		text := write(t, run)
		if wrong := faults(t.Context(), text); wrong != nil {
			t.Errorf("%q: %v", s, wrong)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' }); i >= 0 {
			t.Errorf("%q: a control character at %d", s, i)
		}
		check(t, s, text)
	})
}
