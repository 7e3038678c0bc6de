package policyreport_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// decided are outcomes of three namespaces and of an image that is named alone.
func decided(t *testing.T) []report.Decided {
	t.Helper()
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "require-labels", Metadata: policy.Metadata{Category: "Best Practices", Severity: "medium"}, Hash: "0123456789abcdef"}
	signed := &policy.Policy{Kind: "ImageValidatingPolicy", Name: "signed", Metadata: policy.Metadata{Severity: "Critical", Unscored: true}, Hash: "fedcba9876543210"}
	ref, err := image.Parse("ghcr.io/acme/web:1")
	if err != nil {
		t.Fatal(err)
	}
	rule := func(result policy.Result, err error, reasons ...policy.Reason) []policy.RuleResult {
		return []policy.RuleResult{{Policy: p, Rule: "team", Kind: policy.ValidateRule, Ruling: policy.Ruling{Result: result, Reasons: reasons}, Err: err, Action: policy.Enforce}}
	}
	about := func(namespace, name string) *policy.Subject {
		return &policy.Subject{Version: "v1", Kind: "Pod", Namespace: namespace, Name: name}
	}
	occasion := report.Occasion{Time: morning, Process: report.ProcessCommand}
	check := &policy.Check{Policy: signed, Rule: "signed", Image: policy.Image{Container: "image", Ref: ref}}
	return []report.Decided{
		{Occasion: occasion, Outcome: gate.Outcome{Subject: about("shop", "web"), Rules: rule(policy.Fail, nil, policy.Reason{Code: policy.Violated, Message: "the label `team` is required"})}},
		{Occasion: occasion, Outcome: gate.Outcome{Subject: about("blog", "press"), Rules: rule(policy.Pass, nil)}},
		{Occasion: occasion, Outcome: gate.Outcome{Subject: about("shop", "db"), Rules: rule("", errors.New("variable team is not defined"))}},
		{Occasion: occasion, Outcome: gate.Outcome{Verdicts: []gate.Verdict{{
			Image:     check.Image,
			Decisions: []policy.Decision{{Check: check, Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Unsigned, Message: "no signature: ghcr.io/acme/web:1"}}}},
		}}}},
	}
}

// TestWrite: the output of the command line with -o policyreport and -o openreports.
func TestWrite(t *testing.T) {
	for name, row := range map[string]struct {
		api     policyreport.API
		decided []report.Decided
	}{
		"policyreport.yaml": {policyreport.PolicyReports, decided(t)},
		"openreports.yaml":  {policyreport.OpenReports, decided(t)},
		"none.yaml":         {policyreport.PolicyReports, nil},
	} {
		var got bytes.Buffer
		if err := policyreport.Write(&got, row.api, row.decided); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s differs: run go test ./report/policyreport -update and read the difference\n%s", file, got.String())
		}
	}
	if err := policyreport.Write(&bytes.Buffer{}, "v1", nil); err == nil {
		t.Error("reports of an API that there is not")
	}
	if err := policyreport.Write(full{}, policyreport.OpenReports, nil); !errors.Is(err, errFull) {
		t.Errorf("a disk that is full: %v", err)
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
