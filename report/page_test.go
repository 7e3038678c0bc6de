package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/verify"
)

func TestPagesKeepTheirWidth(t *testing.T) {
	for _, width := range []int{0, 60, 80, 120} {
		outcomes := all(t)
		pages := map[string]func(io.Writer) error{
			"text": func(w io.Writer) error {
				return report.Text(w, outcomes, report.TextOptions{Width: width, Verbose: true})
			},
		}
		for i, outcome := range outcomes {
			pages[fmt.Sprintf("tree %d", i)] = func(w io.Writer) error {
				return report.Tree(w, outcome, report.TreeOptions{Width: width, Verbose: true})
			}
		}
		most := width
		if width == 0 {
			most = 80
		}
		for name, write := range pages {
			for line := range strings.Lines(written(t, write)) {
				// Only a word that would fill most of a line itself, such as a digest, is beyond the width.
				n, last := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), ""
				if words := strings.Fields(line); len(words) > 0 {
					last = words[len(words)-1]
				}
				if n > most && (len(last) < most/3 || n-len(last) > most) {
					t.Errorf("%s at width %d: a line of %d columns: %s", name, width, n, line)
				}
			}
		}
	}
}

func TestSameWordsEveryRun(t *testing.T) {
	write := func() string {
		return written(t, func(w io.Writer) error {
			outcomes := all(t)
			return errors.Join(report.Text(w, outcomes, report.TextOptions{Verbose: true}), report.JSON(w, outcomes))
		})
	}
	if first, second := write(), write(); first != second {
		t.Errorf("two runs differ:\n%s\n%s", first, second)
	}
}

func TestEveryDenialIsActionable(t *testing.T) {
	for _, outcome := range all(t) {
		record := report.NewRecord(outcome)
		for _, v := range record.Images {
			if v.Result.Admits() {
				continue
			}
			if len(v.Reasons) == 0 {
				t.Errorf("%s: no reason", v.Written)
			}
			for _, reason := range v.Reasons {
				if reason.Message == "" || reason.Hint == "" || reason.Path == "" {
					t.Errorf("%s: a reason lacks its message, path or hint: %+v", v.Written, reason)
				}
			}
		}
	}
}

func TestNewRecordChangesNothing(t *testing.T) {
	outcome := find(t, "pod").outcomes(t)[0]
	before := fmt.Sprintf("%+v", outcome.Verdicts)
	report.NewRecord(outcome)
	if after := fmt.Sprintf("%+v", outcome.Verdicts); after != before {
		t.Errorf("the outcome changed from\n%s\nto\n%s", before, after)
	}
}

// broken is a closed pipe.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWritersReportFailure(t *testing.T) {
	outcomes := find(t, "audit").outcomes(t)
	for name, err := range map[string]error{
		"text": report.Text(broken{}, outcomes, report.TextOptions{}),
		"tree": report.Tree(broken{}, outcomes[0], report.TreeOptions{}),
		"JSON": report.JSON(broken{}, outcomes),
	} {
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestNothingToReport(t *testing.T) {
	for name, write := range map[string]func(io.Writer) error{
		"text": func(w io.Writer) error {
			return report.Text(w, []gate.Outcome{{}}, report.TextOptions{Verbose: true})
		},
		"tree": func(w io.Writer) error { return report.Tree(w, gate.Outcome{}, report.TreeOptions{Verbose: true}) },
		"JSON": func(w io.Writer) error { return report.JSON(w, []gate.Outcome{{}}) },
	} {
		if got := written(t, write); strings.Contains(got, "✓") || strings.Contains(got, `"allow"`) {
			t.Errorf("%s makes a yes of an outcome without an answer: %s", name, got)
		}
	}
}

// FuzzForeignText puts foreign text into every field.
func FuzzForeignText(f *testing.F) {
	f.Add("plain")
	f.Add(hostile)
	f.Add(strings.Repeat("\u202e日", 500))
	f.Fuzz(func(t *testing.T, s string) {
		outcomes := []gate.Outcome{foreign(s)}
		text := written(t, func(w io.Writer) error {
			return errors.Join(
				report.Text(w, outcomes, report.TextOptions{Reproduce: func(report.Record, report.Image) string { return s }}),
				report.Text(w, outcomes, report.TextOptions{Verbose: true}),
				report.Tree(w, outcomes[0], report.TreeOptions{Verbose: true}),
			)
		})
		document := written(t, func(w io.Writer) error { return report.JSON(w, outcomes) })
		for _, output := range []string{text, document} {
			if i := strings.IndexFunc(output, actsOnTerminal); i >= 0 {
				t.Errorf("%q reaches the terminal: %q", s, output[max(0, i-20):min(len(output), i+20)])
			}
		}
		var back report.List
		if err := json.Unmarshal([]byte(document), &back); err != nil {
			t.Fatalf("%q: the record cannot be read again: %v", s, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && back.Items[0].Object.Name != want {
			t.Errorf("the record changes %q to %q", s, back.Items[0].Object.Name)
		}
	})
}

func actsOnTerminal(r rune) bool {
	return r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs))
}

// foreign is an outcome with foreign text in every possible field.
func foreign(s string) gate.Outcome {
	authority := &verify.Authority{
		Name: s, Annotations: map[string]string{s: s}, Log: verify.Log{URL: s},
		Keyless: &verify.Keyless{
			Identities: []verify.Identity{{Issuer: verify.Exactly(s), Subject: verify.Exactly(s)}},
			Extensions: []verify.Extension{{OID: s, Name: s, Value: verify.Exactly(s)}},
		},
	}
	signers := []policy.Requirement{{Name: s, Threshold: 1, Members: []policy.Member{{Authority: authority}}}}
	check := &policy.Check{
		Policy: &policy.Policy{Kind: s, Name: s, Namespace: s, Source: s, Hash: s},
		Rule:   s, Entry: s, Action: policy.Enforce, Claims: policy.Claims{Requirements: signers, Deny: condition{}, Attestations: []policy.Attestation{{Name: s, Path: s, PredicateType: s, Signers: signers, Condition: condition{}}}},
	}
	fact := verify.Fact{
		Role: attest.Attestation, Format: attest.Format(s), Statement: &attest.Statement{PredicateType: s},
		Signer:      verify.Signer{KeyFingerprint: s, Subject: s, Issuer: s, Extensions: map[string]string{s: s}},
		Annotations: map[string]string{s: s}, Notes: []string{s}, Entries: []verify.LogEntry{{LogID: s}}, Origin: attest.Origin{Via: s},
	}
	reason := policy.Reason{Code: policy.Code(s), Path: s, Message: s, Expected: s, Found: s, Where: s, Hint: s}
	decide := func(result policy.Result) policy.Decision {
		return policy.Decision{Check: check, Result: result, Reasons: []policy.Reason{reason}, Facts: []verify.Fact{fact}}
	}
	return gate.Outcome{
		Subject: &policy.Subject{Kind: s, Version: s, Group: s, Namespace: s, Name: s}, Source: s, Result: gate.Deny,
		Verdicts: []gate.Verdict{{
			Image: policy.Image{Container: s, Role: s, Pointer: s}, Result: gate.Deny, Reasons: []policy.Reason{reason},
			Decisions: []policy.Decision{decide(policy.Pass), decide(policy.Fail), decide(policy.Indeterminate), decide(policy.Skipped)},
			Warnings:  []policy.Reason{reason},
			Redirect: &gate.Redirect{Mirror: s, Why: s, PullSecrets: []string{s}, Attempts: []redirect.Attempt{
				{State: redirect.State(s)}, {State: redirect.Failed, Err: errors.New(s)},
			}},
		}},
		Rules:   []policy.RuleResult{{Policy: check.Policy, Rule: s, Skip: s}, {Policy: check.Policy, Rule: s, Err: errors.New(s)}},
		Reasons: []policy.Reason{reason}, Warnings: []policy.Reason{reason}, PolicyHash: s, TrustGeneration: s, MirrorHash: s,
	}
}

func written(t testing.TB, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func outcomeWith(reasons ...policy.Reason) gate.Outcome {
	return gate.Outcome{Result: gate.Error, Reasons: reasons}
}

// TestWarningsOfObjects: a warning names its rule and why it does not deny, and a path in the
// object is no evidence.
func TestWarningsOfObjects(t *testing.T) {
	for action, want := range map[policy.Action]string{
		policy.Audit: "ClusterPolicy/team, rule labelled (audit only, not denied)", policy.Enforce: "(could not be verified, admitted by failurePolicy Ignore)",
	} {
		reason := policy.Reason{Code: policy.Violated, Message: "want a team", Where: "/metadata/labels/"}
		outcome := gate.Outcome{Result: gate.Allow, Warnings: []policy.Reason{reason}, Rules: []policy.RuleResult{{
			Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "team"}, Rule: "labelled", Kind: policy.ValidateRule, Action: action,
			Ruling: policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{reason}},
		}}}
		text := written(t, func(w io.Writer) error {
			return report.Text(w, []gate.Outcome{outcome}, report.TextOptions{Width: 120})
		})
		if !strings.Contains(text, want) || !strings.Contains(text, "path      /metadata/labels/") || strings.Contains(text, "evidence") {
			t.Errorf("%s: want %q in\n%s", action, want, text)
		}
	}
}

func TestReasonsThatAreLeftOutAreCounted(t *testing.T) {
	var reasons []policy.Reason
	for i := range 6 {
		reasons = append(reasons, policy.Reason{Code: policy.Unsigned, Path: fmt.Sprintf("attestors[%d]", i), Message: "no signature found"})
	}
	outcomes := []gate.Outcome{outcomeWith(reasons...)}
	for verbose, want := range map[bool]bool{false: true, true: false} {
		text := written(t, func(w io.Writer) error { return report.Text(w, outcomes, report.TextOptions{Verbose: verbose}) })
		if strings.Contains(text, "and 2 more reasons") != want || strings.Contains(text, "attestors[5]") == want {
			t.Errorf("verbose %t: %s", verbose, text)
		}
	}
}
