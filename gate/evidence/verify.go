package evidence

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// Verify answers each query by the evidence that was found.
func Verify(ctx context.Context, verifier verify.Verifier, found Found, queries []Query) []policy.Answer {
	answers := make([]policy.Answer, len(queries))
	var group errgroup.Group
	group.SetLimit(max(2, runtime.GOMAXPROCS(0)))
	first := make(map[claims.Key]int, len(queries)) // equal keys share one answer
	for i, q := range queries {
		if _, ok := first[q.Key]; ok {
			continue
		}
		first[q.Key] = i
		group.Go(func() error {
			if err := panics.Catch(func() { answers[i] = answer(ctx, verifier, found, q) }); err != nil {
				answers[i] = policy.Answer{Gaps: []error{err}}
			}
			return nil
		})
	}
	_ = group.Wait()
	for i, q := range queries {
		answers[i] = answers[first[q.Key]]
	}
	return answers
}

// answer tries every piece of evidence for one authority. Every fact is kept,
// since a condition may agree with one statement and not with another.
func answer(ctx context.Context, verifier verify.Verifier, found Found, q Query) policy.Answer {
	var out policy.Answer
	for _, g := range found.Gaps {
		out.Gaps = append(out.Gaps, g)
	}
	for _, m := range found.Malformed {
		out.Rejections = append(out.Rejections, &verify.Rejection{
			Code: verify.Malformed, Authority: q.Resolved.Name, Err: m,
		})
	}
	for _, document := range found.Unsigned {
		out.Instead = appendNew(out.Instead, "a document of type "+document.PredicateType+" that is not signed")
	}
	for _, other := range found.Unasked {
		out.Instead = appendNew(out.Instead, describe(other))
	}
	accepted := formats(q.Resolved)
	for _, evidence := range found.Evidence {
		if !slices.Contains(accepted, evidence.Format) {
			continue
		}
		if !q.matches(evidence) {
			out.Instead = appendNew(out.Instead, describe(evidence))
			continue
		}
		if evidence.Format == attest.Notation && found.Err != nil {
			out.Gaps = append(out.Gaps, unread(evidence, found.Err))
			continue
		}
		fact, err := try(ctx, verifier, found.Subject, evidence, q.Resolved)
		if err == nil {
			err = q.confirm(fact, found.Subject)
		}
		rejection, disproved := errors.AsType[*verify.Rejection](err)
		switch {
		case err == nil:
			out.Facts = append(out.Facts, fact)
		case disproved:
			out.Rejections = append(out.Rejections, rejection)
		default:
			out.Gaps = append(out.Gaps, unread(evidence, err))
		}
	}
	return out
}

// unread returns the gap of evidence that could not be verified. Like evidence that could not be
// read, it may be a later statement than the verified ones of its repository. Evidence beyond the
// verifier's bounds is not: one push adds it.
func unread(evidence attest.Evidence, err error) attest.Gap {
	gap := attest.Gap{Repository: evidence.Origin.Repository, Where: "proof of " + evidence.Origin.String(), Err: err}
	if image.KindOf(err) == image.Bound {
		gap.Repository = image.Repository{}
	}
	return gap
}

// matches reports whether the evidence is of the kind that the query requires.
func (q Query) matches(e attest.Evidence) bool {
	if e.Role != q.Role {
		return false
	}
	return q.Role == attest.Signature || e.PredicateType == "" || e.PredicateType == q.Predicate
}

func describe(e attest.Evidence) string {
	switch {
	case e.Role == attest.Signature:
		return "a signature in the format " + string(e.Format)
	case e.PredicateType == "":
		return "an attestation"
	default:
		return "an attestation of type " + e.PredicateType
	}
}

// confirm checks that a verified fact matches the query: a verifier's result must not
// count for more than it contains.
func (q Query) confirm(fact verify.Fact, subject image.Pinned) error {
	reject := func(code verify.Code, expected, found string) error {
		return &verify.Rejection{Code: code, Authority: q.Resolved.Name, Origin: fact.Origin, Expected: expected, Found: found}
	}
	switch {
	case fact.Subject != subject.Digest():
		return reject(verify.WrongDigest, subject.Digest().String(), fact.Subject.String())
	case fact.Role != q.Role:
		return reject(verify.WrongPredicate, string(q.Role), string(fact.Role))
	case q.Role == attest.Signature:
		return nil
	case fact.Statement == nil:
		return reject(verify.WrongPredicate, q.Predicate, "")
	case fact.Statement.PredicateType != q.Predicate:
		return reject(verify.WrongPredicate, q.Predicate, fact.Statement.PredicateType)
	}
	return nil
}

// try runs a verifier. A panic on attacker-controlled bytes becomes an error, so the image
// could not be verified.
func try(ctx context.Context, verifier verify.Verifier, subject image.Pinned, e attest.Evidence, a verify.Authority) (fact verify.Fact, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the verifier failed, which is a defect: %v", p)
		}
	}()
	return verifier.Verify(ctx, subject, e, a)
}
