package imagepolicy

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

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
	review.WriteJSON(w, http.StatusOK, body)
}

// shadowed is the fixed answer of a shadow.
func shadowed() answer { return answer{allowed: true} }

// decided converts an outcome to an answer.
func decided(o *gate.Outcome) answer {
	a := answer{allowed: o.Result.Admits(), audit: audit(o)}
	if !a.allowed {
		a.reason = denial(o)
	}
	return a
}

// denial describes all denied images, with the policies, the reasons and the replacements.
func denial(o *gate.Outcome) string {
	var p review.Page
	ordered := *o
	ordered.Verdicts = nil
	for _, v := range inOrder(o.Verdicts) {
		ordered.Verdicts = append(ordered.Verdicts, *v)
	}
	p.Line(0, "%s", review.Head(&ordered))
	for _, reason := range o.Reasons {
		p.Reason(reason, review.Fix(reason))
	}
	for i := range ordered.Verdicts {
		if v := &ordered.Verdicts[i]; !v.Result.Admits() {
			describe(&p, v)
		}
	}
	return p.Bounded(maxReason)
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

// describe adds a denied image to a page.
func describe(p *review.Page, v *gate.Verdict) {
	p.Line(1, "%s: %s", review.Plain(v.Image.Ref.Written(), review.MaxField), review.Word(v.Result))
	use := names(v)
	for i, reason := range v.Reasons {
		if i == maxReasons {
			p.Line(2, "... and %d more reasons", len(v.Reasons)-i)
			break
		}
		advice := ""
		if i == 0 && use == "" {
			advice = review.Fix(reason)
		}
		p.Reason(reason, advice, ruleOf(v, reason))
	}
	if use != "" {
		p.Line(2, "use %s", use)
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
	text := review.Plain(v.Pinned.Written(), review.MaxField)
	if to := v.Redirect; to != nil && !to.Target.IsZero() {
		text += ", or its copy " + review.Plain(to.Target.String(), review.MaxField) + " (" + review.Plain(to.Mirror, review.MaxField) + ")"
	}
	return text
}

// ruleOf returns the policy and the rule of a reason; empty if there is none.
func ruleOf(v *gate.Verdict, reason policy.Reason) string {
	for i := range v.Decisions {
		if d := &v.Decisions[i]; d.Check.Policy != nil && slices.Contains(d.Reasons, reason) {
			return review.RuleOf(d)
		}
	}
	return ""
}

// audit returns notes for the API server's audit log: the answer, the codes of denials, and by
// position the exact name of each image with a resolved digest.
func audit(o *gate.Outcome) map[string]string {
	notes := map[string]string{"result": string(o.Result)}
	for _, v := range inOrder(o.Verdicts) {
		if v.Pinned.IsZero() || len(notes) > maxAudited {
			continue
		}
		notes["digest-"+v.Image.Container] = review.Plain(v.Pinned.String(), review.MaxField)
	}
	if !o.Result.Admits() {
		notes["codes"] = review.Codes(o)
	}
	return notes
}
