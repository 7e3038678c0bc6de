package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/verify"
)

// maxCombinations bounds the combinations of verified statements on which a deny condition across
// attestations is evaluated. Each statement was created by a trusted signer, so more than a
// handful of them is no attack but a mistake.
const maxCombinations = 256

// attestations judges all attestations of a check, and then the policy's deny conditions over all
// of them.
func attestations(check *policy.Check, ask answers) judgement {
	out := judgement{result: policy.Pass}
	predicates := make([][]any, len(check.Attestations))
	for i := range check.Attestations {
		one, agreed := attestation(check, &check.Attestations[i], ask)
		out.and(one)
		predicates[i] = agreed.contents(check.Attestations[i].LatestDecides)
	}
	if out.result != policy.Pass || check.Deny == nil {
		return out
	}
	out.and(denied(check, predicates))
	for i := 0; i < len(predicates) && out.result == policy.Pass; i++ {
		out.and(undenied(check, i, ask, predicates))
	}
	return out
}

// undenied judges the attestation at a position by the signers whose own statements the deny
// condition lets pass, so that the statement of one required signer does not replace another's.
func undenied(check *policy.Check, at int, ask answers, predicates [][]any) judgement {
	a := &check.Attestations[at]
	out := judgement{result: policy.Pass}
	var reasons []policy.Reason
	for i := range a.Signers {
		out.and(requirement(&a.Signers[i], check.StatementQuestion(a), func(q policy.Question) answer {
			own := agreement{condition: a.Condition, path: a.Path, denies: true, latest: a.LatestDecides}
			kept := own.apply(ask(q))
			choices := slices.Clone(predicates)
			choices[at] = own.agreed.contents(a.LatestDecides)
			if len(kept.Facts) > 0 {
				if one := denied(check, choices); one.result != policy.Pass {
					reasons = one.reasons
					kept.Facts, kept.disagreed = nil, true
				}
			}
			return kept
		}))
	}
	if out.result != policy.Pass {
		return judgement{result: out.result, reasons: append(reasons, out.reasons...)}
	}
	return judgement{result: policy.Pass}
}

// Contradicted reports whether verified statements about the digest do not meet the policy. The
// index that lists a platform then proves nothing about it: its statements may be about another.
func Contradicted(own policy.Decision) bool {
	return slices.ContainsFunc(own.Reasons, func(r policy.Reason) bool {
		return r.Code == policy.ConditionFailed || r.Code == policy.Denied && own.Check.Judge == nil
	})
}

// ByNearest decides a check that the index of a platform passes by the statements about the platform
// itself, where there are any: they may not meet conditions, or meet the deny condition. Where they
// could not be read, it is indeterminate.
func ByNearest(check *policy.Check, own, index policy.Answers, at ...image.Repository) policy.Decision {
	reads := check.Deny != nil || slices.ContainsFunc(check.Attestations, func(a policy.Attestation) bool { return a.Condition != nil })
	if !reads {
		return policy.Decision{Check: check, Result: policy.Pass}
	}
	nearest := Nearest(own, index, at...)
	return Check(check, func(q policy.Question) policy.Answer {
		if unread := hidden(q, own(q).Gaps, at); q.Role != attest.Signature && len(unread) > 0 {
			return policy.Answer{Gaps: unread} // beside a later statement those that were read do not count
		}
		return nearest(q)
	})
}

// Nearest returns the answers about the index that lists a platform, with the statements about the
// platform itself in place of the index's where there are any, or where they could not be read, and
// with the signatures of both: a policy may forbid one, and a statement. What was not read of the
// platform at its repositories, or at those that the policy names, may be a forbidden one, whatever is
// known about the index.
func Nearest(own, index policy.Answers, at ...image.Repository) policy.Answers {
	return func(q policy.Question) policy.Answer {
		above, nearer := index(q), own(q)
		if q.Role == attest.Signature {
			return policy.Answer{
				Facts: slices.Concat(above.Facts, nearer.Facts), Rejections: slices.Concat(above.Rejections, nearer.Rejections),
				Gaps: slices.Concat(above.Gaps, nearer.Gaps), Instead: above.Instead,
			}
		}
		unread := hidden(q, nearer.Gaps, at)
		switch {
		case len(nearer.Facts) > 0:
			return nearer
		case len(unread) > 0:
			return policy.Answer{Gaps: unread}
		}
		return above
	}
}

// hidden returns the gaps that may hide a statement: of repositories where statements are expected, and
// refusals of any, since the author of a workload causes those by the choice of pull secrets. A mirror
// that does not answer hides nothing that the repository itself does not have. A gap without a repository,
// such as a panic, may hide anything; evidence beyond a verifier's bound does not, since one push adds it.
func hidden(q policy.Question, gaps []error, at []image.Repository) (unread []error) {
	for _, source := range q.Sources {
		at = append(slices.Clone(at), source.Repository)
	}
	for _, gap := range gaps {
		of, ok := errors.AsType[attest.Gap](gap)
		kind := image.KindOf(gap)
		if kind != image.NotFound && (!ok || kind == image.Refused || image.ByCredential(gap) || slices.Contains(at, of.Repository)) {
			unread = append(unread, gap)
		}
	}
	return unread
}

// attestation judges one: signers count only by statements that the condition
// agrees with, so that type, digest, signature and condition hold for the same
// statement, and a stale or foreign one neither helps nor harms.
func attestation(check *policy.Check, a *policy.Attestation, ask answers) (judgement, agreed) {
	filter := agreement{condition: a.Condition, path: a.Path, denies: check.Deny != nil, latest: a.LatestDecides}
	agreeing := func(q policy.Question) answer { return filter.apply(ask(q)) }
	out := judgement{result: policy.Pass}
	for i := range a.Signers {
		out.and(requirement(&a.Signers[i], check.StatementQuestion(a), agreeing))
	}
	if out.result != policy.Pass && len(filter.misses) > 0 {
		out.reasons = append(filter.misses, out.reasons...)
	}
	return out, filter.agreed
}

// agreement keeps the facts with a predicate that satisfies a condition.
type agreement struct {
	condition policy.Condition
	path      string
	denies    bool // the predicates kept are evaluated together
	latest    bool // a statement does not count beside a later one that is not kept
	misses    []policy.Reason
	agreed    agreed
}

// agreed are predicates that satisfy a condition, each once.
type agreed []dated

// dated is a predicate, its text, and the trusted time of signing.
type dated struct {
	predicate any
	text      string
	at        time.Time
}

// contents returns the predicates: where the latest decides, only those with the latest time, or
// all if none has a time.
func (a agreed) contents(latest bool) []any {
	if latest {
		a = verify.LatestBy(a, func(i int) time.Time { return a[i].at })
	}
	var contents []any
	for _, d := range a {
		contents = append(contents, d.predicate)
	}
	return contents
}

func (g *agreement) apply(all answer) answer {
	kept := all
	kept.Facts = nil
	times, signings := verify.Times(all.Facts), age.Signings(all.Facts)
	holding := make(agreed, len(all.Facts))
	holds := make([]bool, len(all.Facts))
	var failed time.Time // the latest statement that the condition does not hold for
	for i, fact := range all.Facts {
		predicate, agrees, why, err := g.holds(fact, signings[i])
		switch {
		case errors.Is(err, age.ErrUnknown): // no denial: with a time the condition might hold
			kept.Gaps = append(slices.Clip(kept.Gaps), fmt.Errorf("%s: %w", g.path, err))
		case err != nil:
			g.miss(fact, fmt.Sprintf("the condition cannot be evaluated on the statement: %v", err))
		case !agrees:
			g.miss(fact, why)
		default:
			holds[i], holding[i] = true, dated{predicate, string(fact.Statement.Predicate), times[i]}
			continue
		}
		if g.latest && times[i].After(failed) {
			failed = times[i]
		}
	}
	for i, fact := range all.Facts {
		if holds[i] && !times[i].Before(failed) {
			kept.Facts = append(kept.Facts, fact)
			g.keep(holding[i])
		}
	}
	kept.disagreed = len(all.Facts) > 0 && len(kept.Facts) == 0
	if g.latest && (g.condition != nil || g.denies) && len(all.Unsettled()) > 0 {
		kept.Facts = nil // the condition may not hold for a later statement
	}
	return kept
}

// holds evaluates the condition for a predicate, on its JSON text if the condition can read that.
// The predicate is decoded only if the condition needs the decoded form.
func (g *agreement) holds(fact verify.Fact, at age.Signing) (predicate any, holds bool, why string, err error) {
	if fact.Statement == nil {
		return nil, false, "", errors.New("the proof carries no statement")
	}
	condition := Signed(g.condition, at)
	text, isText := condition.(policy.TextCondition)
	if !isText || g.denies {
		if err := json.Unmarshal(fact.Statement.Predicate, &predicate); err != nil {
			return nil, false, "", fmt.Errorf("predicate: %w", err)
		}
	}
	switch {
	case condition == nil:
		holds = true
	case isText:
		holds, why, err = text.HoldsText(fact.Statement.Predicate)
	default:
		holds, why, err = condition.Holds(predicate)
	}
	return predicate, holds, why, err
}

func (g *agreement) keep(d dated) {
	if !slices.ContainsFunc(g.agreed, func(have dated) bool { return have.text == d.text && have.at.Equal(d.at) }) {
		g.agreed = append(g.agreed, d)
	}
}

func (g *agreement) miss(fact verify.Fact, why string) {
	where, next := fact.Origin.String(), hint.ReadStatement
	if fact.Format == attest.Notation {
		next = hint.ReadDocument
	}
	for _, m := range g.misses {
		if m.Where == where && m.Message == why {
			return
		}
	}
	g.misses = append(g.misses, policy.Reason{
		Code: policy.ConditionFailed, Path: g.path, Message: why, Where: where,
		Hint: next,
	})
}

// denied evaluates the deny condition on every combination of verified statements; one that it
// lets pass is enough.
func denied(check *policy.Check, predicates [][]any) judgement {
	combinations := 1
	for _, p := range predicates {
		combinations *= max(1, len(p))
		if combinations > maxCombinations {
			return judgement{result: policy.Fail, reasons: []policy.Reason{{
				Code: policy.TooMuch, Path: check.Entry + ".validate.deny",
				Message: fmt.Sprintf("more than %d combinations of statements", maxCombinations),
				Hint:    hint.FewerStale,
			}}}
		}
	}
	var why string
	for n := range combinations {
		data := map[string]any{}
		for i, choices := range predicates {
			if name := check.Attestations[i].Name; name != "" && len(choices) > 0 {
				data[name] = choices[n%len(choices)]
			}
			n /= max(1, len(choices))
		}
		holds, reason, err := check.Deny.Holds(data)
		if err == nil && !holds {
			return judgement{result: policy.Pass}
		}
		why = reason
		if err != nil {
			why = fmt.Sprintf("the condition cannot be evaluated: %v", err)
		}
	}
	text := check.DenyMessage
	if text == "" {
		text = "the policy's deny condition holds"
	}
	return judgement{result: policy.Fail, reasons: []policy.Reason{{Code: policy.Denied, Path: check.Entry + ".validate.deny", Message: text, Found: why}}}
}
