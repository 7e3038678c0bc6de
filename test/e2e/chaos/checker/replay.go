package checker

import (
	"slices"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// Replay compares the decisions about pods that gateways recorded in admission with the
// answers and with the images.
func Replay(answers []Answer, recorded []decisionlog.Decision) []Finding {
	of := map[string][]*decisionlog.Decision{}
	for i := range recorded {
		if d := &recorded[i]; d.Image != nil && d.Object.Kind == "Pod" && d.Process == report.ProcessAdmission {
			key := d.Object.Namespace + "/" + d.Object.Name
			of[key] = append(of[key], d)
		}
	}
	var all []Finding
	for i := range answers {
		a := &answers[i]
		lines := of[a.Namespace+"/"+a.Pod]
		all = append(all, a.replay(lines)...)
		for _, line := range lines {
			if finding, wrong := a.against(line); wrong {
				all = append(all, finding)
			}
		}
	}
	return all
}

// replay looks for the line of an answer.
func (a *Answer) replay(lines []*decisionlog.Decision) []Finding {
	switch a.Outcome {
	case Admitted:
		if !slices.ContainsFunc(lines, a.proves) {
			return []Finding{found(LostRecord, "%d lines, none of which allows it by a proof of %s: %s", len(lines), a.Digest, a)}
		}
	case Denied, Error:
		if !slices.ContainsFunc(lines, a.refuses) {
			return []Finding{found(LostRecord, "%d lines, none of which refuses it for %v: %s", len(lines), a.Codes, a)}
		}
	case Unanswered, Away: // a decision may have been made, without an answer
	}
	return nil
}

// proves reports whether the line allows the pod, by a verification of the digest.
func (a *Answer) proves(d *decisionlog.Decision) bool {
	return d.Allowed && d.Result.Admits() && d.Image.Digest == a.Digest && slices.ContainsFunc(d.Rules, func(r decisionlog.Rule) bool {
		return r.Result == policy.Pass && len(r.Proofs) > 0
	})
}

// refuses reports whether the line refuses the pod, with each reason of the answer.
func (a *Answer) refuses(d *decisionlog.Decision) bool {
	if d.Allowed || d.Result.Admits() || len(d.Reasons) == 0 {
		return false
	}
	return !slices.ContainsFunc(a.Codes, func(code string) bool { return !has(d, code) })
}

func has(d *decisionlog.Decision, code string) bool {
	return slices.ContainsFunc(d.Reasons, func(r decisionlog.Reason) bool { return string(r.Code) == code })
}

// against finds an error in a line, whatever the answer was.
func (a *Answer) against(d *decisionlog.Decision) (Finding, bool) {
	switch {
	case d.Undecided != "":
		return Finding{}, false
	case d.Result.Admits() && a.Truth != Signed:
		return found(WrongYes, "the log allows it: %s", a), true
	case d.Result.Admits() && d.Image.Digest != a.Digest:
		return found(WrongYes, "the log allows %s: %s", d.Image.Digest, a), true
	case a.Truth == Signed && (d.Result == gate.Deny || has(d, codeUnsigned) || has(d, codeForeign)):
		return found(WrongWord, "the log denies a signed image: %s", a), true
	case d.Result == gate.Deny && !has(d, a.Truth.code()):
		return found(WrongWord, "the log does not say that the image is %s: %s", a.Truth, a), true
	case a.Outcome == Admitted && !d.Allowed:
		return found(Contradiction, "the log refuses it, endpoint %s, request %s: %s", d.Endpoint, d.UID, a), true
	case (a.Outcome == Denied || a.Outcome == Error) && d.Allowed:
		return found(Contradiction, "the log allows it, endpoint %s, request %s: %s", d.Endpoint, d.UID, a), true
	}
	return Finding{}, false
}
