package decide

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/policy"
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
	if out.result == policy.Pass && check.Deny != nil {
		out.and(denied(check, predicates))
	}
	return out
}

// Contradicted reports whether verified statements about the digest do not meet the policy. The
// index that lists a platform then proves nothing about it: its statements may be about another.
func Contradicted(own policy.Decision) bool {
	return slices.ContainsFunc(own.Reasons, func(r policy.Reason) bool {
		return r.Code == policy.ConditionFailed || r.Code == policy.Denied && own.Check.Judge == nil
	})
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
	times := verify.Times(all.Facts)
	holding := make(agreed, len(all.Facts))
	holds := make([]bool, len(all.Facts))
	var failed time.Time // the latest statement that the condition does not hold for
	for i, fact := range all.Facts {
		predicate, agrees, why, err := g.holds(fact)
		switch {
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
func (g *agreement) holds(fact verify.Fact) (predicate any, holds bool, why string, err error) {
	if fact.Statement == nil {
		return nil, false, "", errors.New("the proof carries no statement")
	}
	text, isText := g.condition.(policy.TextCondition)
	if !isText || g.denies {
		if err := json.Unmarshal(fact.Statement.Predicate, &predicate); err != nil {
			return nil, false, "", fmt.Errorf("predicate: %w", err)
		}
	}
	switch {
	case g.condition == nil:
		holds = true
	case isText:
		holds, why, err = text.HoldsText(fact.Statement.Predicate)
	default:
		holds, why, err = g.condition.Holds(predicate)
	}
	return predicate, holds, why, err
}

func (g *agreement) keep(d dated) {
	if !slices.ContainsFunc(g.agreed, func(have dated) bool { return have.text == d.text && have.at.Equal(d.at) }) {
		g.agreed = append(g.agreed, d)
	}
}

func (g *agreement) miss(fact verify.Fact, why string) {
	where := fact.Origin.String()
	for _, m := range g.misses {
		if m.Where == where && m.Message == why {
			return
		}
	}
	g.misses = append(g.misses, policy.Reason{
		Code: policy.ConditionFailed, Path: g.path, Message: why, Where: where,
		Hint: hint.ReadStatement,
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
