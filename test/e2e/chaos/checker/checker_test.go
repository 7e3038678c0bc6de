package checker_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/checker"
)

const digest, other = "sha256:aaaa", "sha256:bbbb"

func at(seconds int) time.Time { return time.Unix(1_900_000_000+int64(seconds), 0) }

// answers are right ones, of each truth; each begins at second 100.
func admitted() checker.Answer {
	return checker.Answer{
		Namespace: "shop", Pod: "web", Image: "r.example/web:1", Digest: digest, Truth: checker.Signed,
		Start: at(100), End: at(101), Outcome: checker.Admitted, Ran: "r.example/web:1@" + digest,
	}
}

func denied(truth checker.Truth, code string) checker.Answer {
	a := admitted()
	a.Truth, a.Outcome, a.Codes, a.Ran = truth, checker.Denied, []string{code}, ""
	return a
}

func unverified() checker.Answer {
	a := denied(checker.Signed, "registry-unavailable")
	a.Outcome = checker.Error
	return a
}

// partly has an unavailable repository, and another's signature in a second one.
func partly(truth checker.Truth) checker.Answer {
	a := unverified()
	a.Truth, a.Codes = truth, append(a.Codes, "wrong-key")
	return a
}

func said(of checker.Answer, said checker.Outcome) checker.Answer {
	of.Outcome, of.Codes, of.Ran = said, nil, ""
	return of
}

// judged lists the kinds that were found; empty: none.
func judged(findings []checker.Finding) string {
	var kinds []string
	for _, f := range findings {
		kinds = append(kinds, f.Kind.String())
	}
	return strings.Join(kinds, ", ")
}

func TestAnswers(t *testing.T) {
	window := func(allows checker.Allowance) []checker.Window {
		return []checker.Window{{Fault: "storm", Start: at(90), End: at(95), Calm: at(100), Allows: allows}}
	}
	everything := window(checker.Allowance{NewError: true, Unanswered: true, Away: true})
	forged := admitted()
	forged.Ran = "r.example/web:1@" + other
	byTag := admitted()
	byTag.Ran = "r.example/web:1"
	late := said(admitted(), checker.Unanswered)
	late.Start, late.End = at(101), at(102)
	early := said(admitted(), checker.Unanswered)
	early.Start, early.End = at(80), at(89)
	calledUnsigned := unverified()
	calledUnsigned.Codes = append(calledUnsigned.Codes, "unsigned")
	fresh := unverified()
	fresh.New = true
	yes := denied(checker.Unsigned, "unsigned")
	yes.Outcome, yes.Ran = checker.Admitted, "r.example/web:1@"+digest
	foreignYes := yes
	foreignYes.Truth = checker.Foreign
	for _, row := range []struct {
		reason  string
		answer  checker.Answer
		windows []checker.Window
		want    string
	}{
		{"signed and admitted", admitted(), nil, ""},
		{"unsigned and denied", denied(checker.Unsigned, "unsigned"), nil, ""},
		{"of a wrong signer and denied", denied(checker.Foreign, "wrong-key"), nil, ""},
		{"unsigned and admitted, whatever fails", yes, everything, "WRONG YES"},
		{"of a wrong signer and admitted, whatever fails", foreignYes, everything, "WRONG YES"},
		{"admitted by another digest", forged, everything, "WRONG YES"},
		{"admitted by its tag alone", byTag, everything, "WRONG YES"},
		{"signed and denied, whatever fails", denied(checker.Signed, "unsigned"), everything, "WRONG WORD"},
		{"of a wrong signer, and called unsigned", denied(checker.Foreign, "unsigned"), everything, "WRONG WORD"},
		{"could not be verified, and calls it unsigned", calledUnsigned, everything, "WRONG WORD"},
		{"could not be verified, and nothing fails", unverified(), nil, "REFUSED"},
		{"a known image could not be verified, whatever fails", unverified(), everything, "REFUSED"},
		{"a new image could not be verified, where that is allowed", fresh, window(checker.Allowance{NewError: true}), ""},
		{"an unsigned image could not be verified again, while that is allowed", said(denied(checker.Unsigned, ""), checker.Error), window(checker.Allowance{NewError: true}), ""},
		{"partly unavailable, with another's signature, on an image of another's", partly(checker.Foreign), everything, ""},
		{"partly unavailable, with another's signature, on a signed image", partly(checker.Signed), everything, "WRONG WORD"},
		{"partly unavailable, with another's signature, on an unsigned image", partly(checker.Unsigned), everything, "WRONG WORD"},
		{"no answer, and nothing fails", said(admitted(), checker.Unanswered), nil, "REFUSED"},
		{"no answer, while that may be", said(admitted(), checker.Unanswered), window(checker.Allowance{Unanswered: true}), ""},
		{"no answer, where only the API server may be away", said(admitted(), checker.Unanswered), window(checker.Allowance{Away: true}), "REFUSED"},
		{"no answer after the calm", late, everything, "REFUSED"},
		{"no answer before the fault", early, everything, "REFUSED"},
		{"the API server is away and may be", said(admitted(), checker.Away), window(checker.Allowance{Away: true}), ""},
		{"no answer about an unsigned one, and nothing fails", said(denied(checker.Unsigned, ""), checker.Unanswered), nil, "REFUSED"},
	} {
		if got := judged(checker.Answers([]checker.Answer{row.answer}, row.windows)); got != row.want {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
}

func TestRead(t *testing.T) {
	const deny = `admission webhook "pods.quaymaster.dev" denied the request: Pod shop/web: 1 `
	for _, row := range []struct {
		reason string
		status int
		text   string
		said   checker.Outcome
		codes  string
	}{
		{"created", http.StatusCreated, `{"kind":"Pod","note":"denied the request"}`, checker.Admitted, ""},
		{"denied", http.StatusForbidden, deny + "denied of 1 image\n policy: there is no signature [unsigned]", checker.Denied, "unsigned"},
		{"could not be verified", http.StatusForbidden, deny + "could not be verified of 1 image: [registry-unavailable] and [timed-out]", checker.Error, "registry-unavailable timed-out"},
		{"no answer", http.StatusInternalServerError, `failed calling webhook "pods.quaymaster.dev": EOF`, checker.Unanswered, ""},
		{"the API server's own trouble", http.StatusInternalServerError, "etcdserver: leader changed", checker.Away, ""},
		{"a name that is taken", http.StatusConflict, "already exists", checker.Away, ""},
		{"no answer at all", 0, "connection refused", checker.Away, ""},
	} {
		got, codes := checker.Read(row.status, row.text)
		if got != row.said || strings.Join(codes, " ") != row.codes {
			t.Errorf("%s: %s %v", row.reason, got, codes)
		}
	}
}

// line is the one that belongs to an answer.
func line(a checker.Answer) decisionlog.Decision {
	d := decisionlog.Decision{
		Process: report.ProcessAdmission, Endpoint: "validate", UID: "u1", Object: report.Resource{Kind: "Pod", Namespace: a.Namespace, Name: a.Pod},
		Image: &decisionlog.Image{Written: a.Image, Digest: a.Digest}, Result: gate.Allow, Allowed: true,
		Rules: []decisionlog.Rule{{Result: policy.Pass, Proofs: []decisionlog.Proof{{Key: "k"}}}},
	}
	if a.Outcome == checker.Admitted {
		return d
	}
	d.Allowed, d.Result, d.Rules = false, gate.Deny, nil
	if a.Outcome == checker.Error {
		d.Result = gate.Error
	}
	for _, code := range a.Codes {
		d.Reasons = append(d.Reasons, decisionlog.Reason{Code: policy.Code(code)})
	}
	return d
}

func TestReplay(t *testing.T) {
	bare, foreign := denied(checker.Unsigned, "unsigned"), denied(checker.Foreign, "wrong-key")
	for _, row := range []struct {
		reason string
		answer checker.Answer
		change func(*decisionlog.Decision) // nil: the line is as it should be
		want   string
	}{
		{"an admitted pod", admitted(), nil, ""},
		{"a denied pod", bare, nil, ""},
		{"a denied pod of a wrong signer", foreign, nil, ""},
		{"could not be verified", unverified(), nil, ""},
		{"the line is about another pod", admitted(), func(d *decisionlog.Decision) { d.Object.Name = "other" }, "LOST RECORD"},
		{"the line of a denial is about another pod", bare, func(d *decisionlog.Decision) { d.Object.Name = "other" }, "LOST RECORD"},
		{"the line is about a controller of that name", admitted(), func(d *decisionlog.Decision) { d.Object.Kind = "ReplicationController" }, "LOST RECORD"},
		{"the line is a scan's", admitted(), func(d *decisionlog.Decision) { d.Process = report.ProcessScan }, "LOST RECORD"},
		{"no answer, and there is no line", said(admitted(), checker.Unanswered), func(d *decisionlog.Decision) { d.Object.Name = "other" }, ""},
		{"another digest was proved", admitted(), func(d *decisionlog.Decision) { d.Image.Digest = other }, "LOST RECORD, WRONG YES"},
		{"nothing was proved", admitted(), func(d *decisionlog.Decision) { d.Rules[0].Proofs = nil }, "LOST RECORD"},
		{"no rule passed", admitted(), func(d *decisionlog.Decision) { d.Rules[0].Result = policy.Skipped }, "LOST RECORD"},
		{"the log refused an admitted pod", admitted(), func(d *decisionlog.Decision) {
			d.Allowed, d.Result, d.Reasons = false, gate.Error, []decisionlog.Reason{{Code: "timed-out"}}
		}, "LOST RECORD, CONTRADICTION"},
		{"the log calls a signed image unsigned", unverified(), func(d *decisionlog.Decision) {
			d.Result, d.Reasons = gate.Deny, append(d.Reasons, decisionlog.Reason{Code: "unsigned"})
		}, "WRONG WORD"},
		{"the log allowed a denied pod", bare, func(d *decisionlog.Decision) { d.Allowed, d.Result = true, gate.Allow }, "LOST RECORD, WRONG YES"},
		{"the log allowed an unsigned image, without an answer", said(bare, checker.Unanswered), func(d *decisionlog.Decision) { d.Allowed, d.Result = true, gate.Allow }, "WRONG YES"},
		{"the reason is missing", bare, func(d *decisionlog.Decision) { d.Reasons = nil }, "LOST RECORD, WRONG WORD"},
		{"the reason is another", foreign, func(d *decisionlog.Decision) { d.Reasons[0].Code = "unsigned" }, "LOST RECORD, WRONG WORD"},
		{"an error, and the log allowed", unverified(), func(d *decisionlog.Decision) { d.Allowed, d.Result = true, gate.Allow }, "LOST RECORD, CONTRADICTION"},
		{"no decision", said(admitted(), checker.Unanswered), func(d *decisionlog.Decision) { d.Undecided, d.Result = "timed-out", "" }, ""},
	} {
		d := line(row.answer)
		if row.change != nil {
			row.change(&d)
		}
		if got := judged(checker.Replay([]checker.Answer{row.answer}, []decisionlog.Decision{d})); got != row.want {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
}

func TestStored(t *testing.T) {
	signed := map[string]bool{digest: true, other: true}
	pod := func(image string) checker.Pod {
		return checker.Pod{Namespace: "shop", Name: "web", Image: "r.example/web:1" + image}
	}
	foreign := pod("@" + other)
	foreign.Name = "of-a-deployment"
	for _, row := range []struct {
		reason string
		pod    checker.Pod
		answer checker.Answer
		want   string
	}{
		{"admitted", pod("@" + digest), admitted(), ""},
		{"the answer was lost", pod("@" + digest), said(admitted(), checker.Away), ""},
		{"another client's, by a digest that is signed", foreign, admitted(), ""},
		{"by its tag", pod(""), admitted(), "WRONG YES"},
		{"an unsigned digest", pod("@sha256:cccc"), said(admitted(), checker.Away), "WRONG YES"},
		{"another one's digest", pod("@" + other), admitted(), "WRONG YES"},
		{"it was refused", pod("@" + digest), unverified(), "CONTRADICTION"},
	} {
		if got := judged(checker.Stored([]checker.Pod{row.pod}, []checker.Answer{row.answer}, signed)); got != row.want {
			t.Errorf("%s: %q, want %q", row.reason, got, row.want)
		}
	}
}

func TestSort(t *testing.T) {
	findings := []checker.Finding{{checker.Refused, "c"}, {checker.WrongYes, "a"}, {checker.LostRecord, "b"}}
	checker.Sort(findings)
	if findings[0].What != "a" || findings[1].What != "b" || findings[0].String() != "WRONG YES: a" {
		t.Errorf("got %v", findings)
	}
}
