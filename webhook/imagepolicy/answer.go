package imagepolicy

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// Words for the answers. A failed verification and a denial always have different words.
const (
	wordDenied = "denied"
	wordUnable = "could not be verified"
)

// sentences explain a missing decision to a person.
var sentences = map[Cause]string{
	QueueFull:  "the gateway has reached its limit of concurrent requests",
	ShareTaken: "the namespace has reached its share of the gateway's concurrent requests",
	TimedOut:   "the evaluation timed out",
	Panicked:   "internal error; see the gateway's log",
}

// answer is the status of a review.
type answer struct {
	allowed bool
	reason  string            // empty if allowed, as the protocol requires
	audit   map[string]string // without the prefix that the API server adds
}

// status is an ImageReview in a response.
type status struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Status     struct {
		Allowed          bool              `json:"allowed"`
		Reason           string            `json:"reason,omitempty"`
		AuditAnnotations map[string]string `json:"auditAnnotations,omitempty"`
	} `json:"status"`
}

// write sends the answer.
func (a answer) write(w http.ResponseWriter) {
	s := status{APIVersion: apiVersion, Kind: kind}
	s.Status.Allowed, s.Status.Reason, s.Status.AuditAnnotations = a.allowed, a.reason, a.audit
	body, err := json.Marshal(s, json.Deterministic(true))
	if err != nil { // cannot happen: all texts are sanitised
		body = []byte(`{"apiVersion":"` + apiVersion + `","kind":"` + kind + `","status":{"allowed":false}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // client disconnected
}

// shadowed is the fixed answer of a shadow.
func shadowed() answer { return answer{allowed: true} }

// decided converts an outcome to an answer.
func decided(o *gate.Outcome) answer {
	a := answer{allowed: o.Result == gate.Allow, audit: audit(o)}
	if !a.allowed {
		a.reason = denial(o)
	}
	return a
}

// denial describes all denied images, with the policies, the reasons and the replacements.
func denial(o *gate.Outcome) string {
	var p page
	p.line(0, "%s", summary(o))
	for _, reason := range o.Reasons {
		p.reason("", reason, true)
	}
	for _, v := range inOrder(o.Verdicts) {
		if v.Result != gate.Allow {
			p.verdict(v)
		}
	}
	return p.bounded(maxReason)
}

// summary counts the images by result, or returns the result of a review without denied images.
func summary(o *gate.Outcome) string {
	count := map[gate.Result]int{}
	for i := range o.Verdicts {
		count[o.Verdicts[i].Result]++
	}
	denied, unable := len(o.Verdicts)-count[gate.Allow]-count[gate.Error], count[gate.Error]
	var parts []string
	if denied > 0 {
		parts = append(parts, fmt.Sprintf("%d %s", denied, wordDenied))
	}
	if unable > 0 {
		parts = append(parts, fmt.Sprintf("%d %s", unable, wordUnable))
	}
	switch {
	case len(parts) > 0:
		of := fmt.Sprintf("of %d images ", len(o.Verdicts))
		if len(o.Verdicts) == 1 {
			of = "of 1 image "
		}
		return of + strings.Join(parts, ", ")
	case o.Result == gate.Deny:
		return wordDenied
	}
	return wordUnable
}

// inOrder returns the verdicts in the order of the review.
func inOrder(verdicts []gate.Verdict) []*gate.Verdict {
	sorted := make([]*gate.Verdict, len(verdicts))
	for i := range verdicts {
		sorted[i] = &verdicts[i]
	}
	position := func(v *gate.Verdict) int {
		n, err := strconv.Atoi(v.Image.Container)
		if err != nil {
			return maxImages
		}
		return n
	}
	slices.SortStableFunc(sorted, func(a, b *gate.Verdict) int { return position(a) - position(b) })
	return sorted
}

// page is a text of lines, some of which begin with an image.
type page struct {
	lines []string
	heads []bool
}

func (p *page) line(depth int, format string, args ...any) {
	p.lines = append(p.lines, strings.Repeat("  ", depth)+fmt.Sprintf(format, args...))
	p.heads = append(p.heads, depth == 1)
}

func (p *page) verdict(v *gate.Verdict) {
	word := wordDenied
	if v.Result == gate.Error {
		word = wordUnable
	}
	p.line(1, "%s: %s", plain(v.Image.Ref.Written(), maxField), word)
	use := names(v)
	for i, reason := range v.Reasons {
		if i == maxReasons {
			p.line(2, "... and %d more reasons", len(v.Reasons)-i)
			break
		}
		p.reason(ruleOf(v, reason), reason, i == 0 && use == "")
	}
	if use != "" {
		p.line(2, "use %s", use)
	}
}

// maxReasons bounds the reasons for one image. The most specific ones come first.
const maxReasons = 4

// names returns the replacement of an image that is denied only because of its name.
func names(v *gate.Verdict) string {
	if v.Pinned.IsZero() || len(v.Reasons) == 0 ||
		slices.ContainsFunc(v.Reasons, func(r policy.Reason) bool { return r.Code != policy.MissingDigest && r.Code != policy.NotPinned }) {
		return ""
	}
	text := plain(v.Pinned.Written(), maxField)
	if to := v.Redirect; to != nil && !to.Target.IsZero() {
		text += ", or its copy " + plain(to.Target.String(), maxField) + " (" + plain(to.Mirror, maxField) + ")"
	}
	return text
}

// ruleOf returns the policy and the rule of a reason; empty if there is none.
func ruleOf(v *gate.Verdict, reason policy.Reason) string {
	for i := range v.Decisions {
		d := &v.Decisions[i]
		if d.Check.Policy != nil && slices.Contains(d.Reasons, reason) {
			return plain(d.Check.Policy.ID(), maxField) + ", rule " + plain(d.Check.Rule, maxField) + ": "
		}
	}
	return ""
}

func (p *page) reason(rule string, r policy.Reason, advise bool) {
	p.line(2, "%s%s [%s]", rule, plain(r.Message, maxField), r.Code)
	next := r.Hint
	if next == "" {
		next = report.Hint(r.Code)
	}
	if !advise {
		next = ""
	}
	for _, detail := range []struct{ label, text string }{{"expected", r.Expected}, {"found", r.Found}, {"next", next}} {
		if detail.text != "" {
			p.line(3, "%s: %s", detail.label, plain(detail.text, maxField))
		}
	}
}

// bounded joins whole lines up to most bytes, and counts the omitted ones.
func (p *page) bounded(most int) string {
	const tail = 40 // for the line with the count
	size, fit := 0, 0
	for fit < len(p.lines) && size+len(p.lines[fit])+1 <= most-tail {
		size += len(p.lines[fit]) + 1
		fit++
	}
	if fit == len(p.lines) {
		return strings.Join(p.lines, "\n")
	}
	left := 0
	for _, head := range p.heads[fit:] {
		if head {
			left++
		}
	}
	last := fmt.Sprintf("  ... and %d more lines", len(p.lines)-fit)
	if left > 0 {
		last = fmt.Sprintf("  ... and %d more images", left)
	}
	return strings.Join(append(slices.Clone(p.lines[:fit]), last), "\n")
}

// audit returns notes for the API server's audit log: the answer, the codes of denials, and by
// position the exact name of each image with a resolved digest.
func audit(o *gate.Outcome) map[string]string {
	notes := map[string]string{"answer": string(o.Result)}
	codes := map[string]bool{}
	for _, reason := range o.Reasons {
		codes[string(reason.Code)] = true
	}
	for _, v := range inOrder(o.Verdicts) {
		if v.Result != gate.Allow && len(v.Reasons) > 0 {
			codes[string(v.Reasons[0].Code)] = true
		}
		if v.Pinned.IsZero() || len(notes) > maxAudited {
			continue
		}
		notes["digest-"+v.Image.Container] = plain(v.Pinned.String(), maxField)
	}
	if o.Result != gate.Allow {
		notes["codes"] = strings.Join(slices.Sorted(maps.Keys(codes)), ",")
	}
	return notes
}

// plain sanitises untrusted text for one line: without control characters, and of bounded length in
// bytes.
func plain(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
	if len(s) <= most {
		return s
	}
	const mark = "..."
	cut := most - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}
