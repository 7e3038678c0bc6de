package findings_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/attest/document"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/findings"
	"github.com/quaymaster/quaymaster/verify"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// fact is a statement of a signer, as old as ago by the clock of a source.
func fact(signer, predicate string, source verify.TimeSource, ago time.Duration) verify.Fact {
	f := verify.Fact{
		Statement: &attest.Statement{Predicate: []byte(predicate)}, Signer: verify.Signer{KeyFingerprint: signer},
		TimeSource: source, Signatures: []string{signer + predicate},
	}
	if source != "" {
		f.SignedAt = noon.Add(-ago)
	}
	return f
}

func scan(names ...string) string {
	matches := make([]string, len(names))
	for i, name := range names {
		id, severity, _ := strings.Cut(name, " ")
		matches[i] = fmt.Sprintf(`{"vulnerability":{"id":%q,"severity":%q},"artifact":{"name":"foo","version":"1","purl":"pkg:npm/foo@1"}}`, id, severity)
	}
	return `{"matches":[` + strings.Join(matches, ",") + `]}`
}

func vex(vulnerability, status string) string {
	return fmt.Sprintf(`{"@context":"https://openvex.dev/ns/v0.2.0","statements":[{"vulnerability":{"name":%q},"products":[{"@id":"pkg:npm/foo"}],"status":%q}]}`, vulnerability, status)
}

func TestJoin(t *testing.T) {
	day, bounds := 24*time.Hour, age.Bounds{Maximum: 72 * time.Hour, At: noon}
	old, fresh := fact("a", scan("CVE-1 high"), verify.LogTime, 4*day), fact("a", scan("CVE-2 high"), verify.LogTime, day)
	other := fact("b", scan("CVE-3 critical"), verify.StampTime, 2*day)
	for _, c := range []struct {
		reason string
		scans  [][]verify.Fact
		vex    []verify.Fact
		age    age.Bounds
		open   string
	}{
		{"one scan", [][]verify.Fact{{fresh}}, nil, bounds, "CVE-2 (high) in foo 1"},
		{"a later scan of the signer replaces an earlier one", [][]verify.Fact{{old, fresh}}, nil, age.Bounds{}, "CVE-2 (high) in foo 1"},
		{"scans of two signers count together", [][]verify.Fact{{fresh}, {other}}, nil, bounds, "CVE-3 (critical) in foo 1; CVE-2 (high) in foo 1"},
		{"an old scan of another signer does not count", [][]verify.Fact{{old}, {other}}, nil, bounds, "CVE-3 (critical) in foo 1"},
		{"scans without a time count together", [][]verify.Fact{{fact("a", scan("CVE-1 low"), "", 0), fact("a", scan("CVE-2 low"), "", 0)}}, nil, age.Bounds{}, "CVE-1 (low) in foo 1; CVE-2 (low) in foo 1"},
		{"the signer's own time gives no order", [][]verify.Fact{{fact("a", scan("CVE-1 low"), verify.OwnTime, 0), fact("a", scan(), verify.OwnTime, -day)}}, nil, age.Bounds{}, "CVE-1 (low) in foo 1"},
		{"an excuse", [][]verify.Fact{{fresh}}, []verify.Fact{fact("c", vex("CVE-2", "not_affected"), "", 0)}, bounds, ""},
		{"an excuse of another finding", [][]verify.Fact{{fresh}}, []verify.Fact{fact("c", vex("CVE-1", "not_affected"), "", 0)}, bounds, "CVE-2 (high) in foo 1"},
		{"a later confirmation", [][]verify.Fact{{fresh}}, []verify.Fact{
			fact("c", vex("CVE-2", "not_affected"), verify.LogTime, 2*day), fact("d", vex("CVE-2", "affected"), verify.LogTime, day),
		}, bounds, "CVE-2 (high) in foo 1"},
	} {
		report, err := findings.Join(findings.Evidence{Scans: c.scans, VEX: c.vex, Age: c.age})
		if got := findings.List(report.Open()); got != c.open || err != nil {
			t.Errorf("%s: %q, %v; want %q", c.reason, got, err, c.open)
		}
		if c.reason == "an excuse" && (len(report.Excusing()) != 1 || report.Values()[0].(map[string]any)["statedBy"] != "key c") {
			t.Errorf("%s: %+v", c.reason, report.Values())
		}
	}
}

func TestRefused(t *testing.T) {
	bounds := age.Bounds{Maximum: time.Hour, At: noon}
	large := `{"matches":[],"x":"` + strings.Repeat("a", document.MaxBytes) + `"}`
	var tooOld *verify.Rejection
	var exceeded *limit.ExceededError
	for reason, c := range map[string]struct {
		evidence findings.Evidence
		is       func(error) bool
	}{
		"no scan":                     {findings.Evidence{}, func(err error) bool { return errors.Is(err, findings.ErrNoScan) }},
		"an old scan":                 {findings.Evidence{Scans: [][]verify.Fact{{fact("a", scan(), verify.LogTime, 2*time.Hour)}}, Age: bounds}, func(err error) bool { return errors.As(err, &tooOld) && tooOld.Code == verify.TooOld }},
		"no time":                     {findings.Evidence{Scans: [][]verify.Fact{{fact("a", scan(), "", 0)}}, Age: bounds}, func(err error) bool { return errors.Is(err, age.ErrUnknown) }},
		"no time beside a fresh scan": {findings.Evidence{Scans: [][]verify.Fact{{fact("a", scan(), "", 0)}, {fact("b", scan(), verify.LogTime, 0)}}, Age: bounds}, func(err error) bool { return errors.Is(err, age.ErrUnknown) }},
		"its own time":                {findings.Evidence{Scans: [][]verify.Fact{{fact("a", scan(), verify.OwnTime, 0)}}, Age: bounds}, func(err error) bool { return errors.Is(err, age.ErrUnknown) }},
		"a large scan":                {findings.Evidence{Scans: [][]verify.Fact{{fact("a", large, "", 0)}}}, func(err error) bool { return errors.As(err, &exceeded) && exceeded.Most == document.MaxBytes }},
		"another form":                {findings.Evidence{Scans: [][]verify.Fact{{fact("a", `{}`, "", 0)}}}, func(err error) bool { return err != nil }},
		"a malformed VEX":             {findings.Evidence{Scans: [][]verify.Fact{{fact("a", scan(), "", 0)}}, VEX: []verify.Fact{fact("c", `{}`, "", 0)}}, func(err error) bool { return err != nil }},
	} {
		if _, err := findings.Join(c.evidence); !c.is(err) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func TestList(t *testing.T) {
	if got := findings.List(strings.Fields("a b c d e f g")); got != "a; b; c; d; e; and 2 more" {
		t.Error(got)
	}
}
