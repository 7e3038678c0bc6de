package checker

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Truth is what an image is.
type Truth string

// The truths: signed by the policy's signer, unsigned, signed by another signer.
const (
	Signed   Truth = "signed"
	Unsigned Truth = "unsigned"
	Foreign  Truth = "wrong signer"
)

// The codes of reasons about an image's signatures.
const codeUnsigned, codeForeign = "unsigned", "wrong-key"

// code is the code of the expected refusal; empty: none, the image is admitted.
func (t Truth) code() string {
	return map[Truth]string{Unsigned: codeUnsigned, Foreign: codeForeign}[t]
}

// Outcome is the API server's answer about a pod.
type Outcome string

// The outcomes.
const (
	Admitted Outcome = "admitted"
	// Denied is the gateway's denial, and Error its "could not be verified".
	Denied Outcome = "denied"
	Error  Outcome = "error"
	// Unanswered: the API server refuses, since it had no answer from the gateway.
	Unanswered Outcome = "unanswered"
	// Away: there is no answer of the API server's about the pod.
	Away Outcome = "away"
)

// Answer is what became of the wish for one pod.
type Answer struct {
	// Namespace and Pod name it; no two answers are about the same.
	Namespace, Pod string
	// Image as it was written, and the digest that is meant by it.
	Image, Digest string
	Truth         Truth
	// New: the image was not requested before.
	New        bool
	Start, End time.Time
	Outcome    Outcome
	// Codes are those that a refusal names.
	Codes []string
	// Ran is the image of the pod as it was created.
	Ran string
	// Text is the text of the answer.
	Text string
}

// String names the answer.
func (a *Answer) String() string {
	return fmt.Sprintf("%s/%s (%s, %s): %s: %s", a.Namespace, a.Pod, a.Image, a.Truth, a.Outcome, strings.Join(strings.Fields(a.Text), " "))
}

// codes finds those of reasons in a refusal.
var codes = regexp.MustCompile(`\[([a-z]+(?:-[a-z]+)*)\]`)

// Read classifies the API server's answer about a pod that was to be created.
func Read(status int, text string) (said Outcome, reasons []string) {
	for _, match := range codes.FindAllStringSubmatch(text, -1) {
		reasons = append(reasons, match[1])
	}
	switch {
	case status == http.StatusCreated:
		return Admitted, nil
	case strings.Contains(text, "failed calling webhook"):
		return Unanswered, nil
	case !strings.Contains(text, "denied the request"):
		return Away, nil
	case strings.Contains(text, "could not be verified"):
		return Error, reasons
	}
	return Denied, reasons
}

// Window is a fault, from its beginning until everything is as it was.
type Window struct {
	Fault            string
	Start, End, Calm time.Time
	Allows           Allowance
}

// Allowance are the outcomes that are allowed in a window; a wrong image is refused all the
// same.
type Allowance struct {
	// NewError: "could not be verified", for an image that is new or not signed.
	NewError bool
	// Unanswered and Away as in Outcome.
	Unanswered, Away bool
}

// allows reports whether a window explains an answer that is no decision.
func (w *Window) allows(a *Answer) bool {
	if a.Start.After(w.Calm) || a.End.Before(w.Start) {
		return false
	}
	switch a.Outcome {
	case Error: // that there is no signature is remembered for seconds only
		return (a.New || a.Truth != Signed) && w.Allows.NewError
	case Unanswered:
		return w.Allows.Unanswered
	case Away:
		return w.Allows.Away
	}
	return false
}

// IsGood reports whether an answer is the expected one without faults.
func (a *Answer) IsGood() bool {
	if a.Truth == Signed {
		return a.Outcome == Admitted
	}
	return a.Outcome == Denied
}

// Answers judges answers by their images, and by the faults meanwhile.
func Answers(answers []Answer, windows []Window) []Finding {
	var all []Finding
	for i := range answers {
		a := &answers[i]
		if finding, wrong := a.judge(); wrong {
			all = append(all, finding)
			continue
		}
		if !a.IsGood() && !slices.ContainsFunc(windows, func(w Window) bool { return w.allows(a) }) {
			all = append(all, found(Refused, "at %s nothing explains %s", a.Start.Format(time.TimeOnly), a))
		}
	}
	return all
}

// judge finds what no fault may bring about.
func (a *Answer) judge() (Finding, bool) {
	speaks := slices.ContainsFunc(a.Codes, func(c string) bool {
		// With some evidence unavailable, another's signature may have been found all the
		// same.
		return c == codeUnsigned || c == codeForeign && a.Truth != Foreign
	})
	switch {
	case a.Outcome == Admitted && a.Truth != Signed:
		return found(WrongYes, "%s", a), true
	case a.Outcome == Admitted && !strings.HasSuffix(a.Ran, "@"+a.Digest):
		return found(WrongYes, "%s runs %s, and %s was proved", a, a.Ran, a.Digest), true
	case a.Outcome == Denied && a.Truth == Signed:
		return found(WrongWord, "a signed image is denied: %s", a), true
	case a.Outcome == Denied && !slices.Contains(a.Codes, a.Truth.code()):
		return found(WrongWord, "no reason is that the image is %s: %s", a.Truth, a), true
	case a.Outcome == Error && speaks:
		return found(WrongWord, "what could not be verified is called so: %s", a), true
	}
	return Finding{}, false
}

// Pod is one that is stored.
type Pod struct{ Namespace, Name, Image string }

// Stored judges the pods in the cluster at the end: pods of answers and others, all of which
// must run images by signed digests.
func Stored(pods []Pod, answers []Answer, signed map[string]bool) []Finding {
	asked := map[string]*Answer{}
	for i := range answers {
		asked[answers[i].Namespace+"/"+answers[i].Pod] = &answers[i]
	}
	var all []Finding
	for _, p := range pods {
		_, digest, pinned := strings.Cut(p.Image, "@")
		a := asked[p.Namespace+"/"+p.Name]
		switch {
		case !pinned || !signed[digest]:
			all = append(all, found(WrongYes, "%s/%s is stored with %s", p.Namespace, p.Name, p.Image))
		case a != nil && a.Digest != digest:
			all = append(all, found(WrongYes, "stored with %s: %s", p.Image, a))
		case a != nil && (a.Outcome == Denied || a.Outcome == Error || a.Outcome == Unanswered):
			all = append(all, found(Contradiction, "it is stored: %s", a))
		}
	}
	return all
}
