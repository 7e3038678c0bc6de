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

// The truths: signed by whom the policy names, by nobody, by somebody else.
const (
	Signed   Truth = "signed"
	Unsigned Truth = "unsigned"
	Foreign  Truth = "wrong signer"
)

// The codes of reasons that speak of an image's signatures.
const codeUnsigned, codeForeign = "unsigned", "wrong-key"

// code is what who wants the image has to be told; empty: nothing, it is admitted.
func (t Truth) code() string {
	return map[Truth]string{Unsigned: codeUnsigned, Foreign: codeForeign}[t]
}

// Said is what who wanted a pod was told.
type Said string

// What may be said.
const (
	Admitted Said = "admitted"
	// Denied is the gateway's no, and Unable its "could not be verified".
	Denied Said = "denied"
	Error  Said = "could not look"
	// Unanswered: the API server refuses, since it had no answer from the gateway.
	Unanswered Said = "unanswered"
	// Away: there is no answer of the API server's about the pod.
	Away Said = "away"
)

// Answer is what became of the wish for one pod.
type Answer struct {
	// Namespace and Pod name it; no two answers are about the same.
	Namespace, Pod string
	// Image as it was written, and the digest that is meant by it.
	Image, Digest string
	Truth         Truth
	// New: nobody had asked about the image before.
	New        bool
	Start, End time.Time
	Said       Said
	// Codes are those that a refusal names.
	Codes []string
	// Ran is the image of the pod as it was created.
	Ran string
	// Text is what was said.
	Text string
}

// String names the answer.
func (a *Answer) String() string {
	return fmt.Sprintf("%s/%s (%s, %s): %s: %s", a.Namespace, a.Pod, a.Image, a.Truth, a.Said, strings.Join(strings.Fields(a.Text), " "))
}

// codes finds those of reasons in a refusal.
var codes = regexp.MustCompile(`\[([a-z]+(?:-[a-z]+)*)\]`)

// Read tells what the API server said about a pod that was to be created.
func Read(status int, text string) (said Said, reasons []string) {
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

// Allowance is what may be said in a window; a wrong image is refused all the same.
type Allowance struct {
	// NewError: "could not look", at an image that is new or not signed.
	NewError bool
	// Unanswered and Away as in Said.
	Unanswered, Away bool
}

// allows reports whether a window explains an answer that is no decision.
func (w *Window) allows(a *Answer) bool {
	if a.Start.After(w.Calm) || a.End.Before(w.Start) {
		return false
	}
	switch a.Said {
	case Error: // that there is no signature is remembered for seconds only
		return (a.New || a.Truth != Signed) && w.Allows.NewError
	case Unanswered:
		return w.Allows.Unanswered
	case Away:
		return w.Allows.Away
	}
	return false
}

// IsGood reports whether an answer is what it should be with nothing failing.
func (a *Answer) IsGood() bool {
	if a.Truth == Signed {
		return a.Said == Admitted
	}
	return a.Said == Denied
}

// Answers judges answers by what the images are, and by what failed meanwhile.
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
		// Who could not look everywhere may have found another's signature all the same.
		return c == codeUnsigned || c == codeForeign && a.Truth != Foreign
	})
	switch {
	case a.Said == Admitted && a.Truth != Signed:
		return found(WrongYes, "%s", a), true
	case a.Said == Admitted && !strings.HasSuffix(a.Ran, "@"+a.Digest):
		return found(WrongYes, "%s runs %s, and %s was proved", a, a.Ran, a.Digest), true
	case a.Said == Denied && a.Truth == Signed:
		return found(WrongWord, "a signed image is denied: %s", a), true
	case a.Said == Denied && !slices.Contains(a.Codes, a.Truth.code()):
		return found(WrongWord, "it is not said that the image is %s: %s", a.Truth, a), true
	case a.Said == Error && speaks:
		return found(WrongWord, "what could not be verified is called so: %s", a), true
	}
	return Finding{}, false
}

// Pod is one that is stored.
type Pod struct{ Namespace, Name, Image string }

// Stored judges what is in the cluster in the end: pods of answers and others, all of whose
// images must be by digests that are signed.
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
		case a != nil && (a.Said == Denied || a.Said == Error || a.Said == Unanswered):
			all = append(all, found(Contradiction, "it is stored: %s", a))
		}
	}
	return all
}
