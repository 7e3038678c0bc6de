package gate

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// investigate answers inquiries about one digest and one group of places.
func (w *work) investigate(ctx context.Context, pinned image.Pinned, inquiries []*inquiry) {
	answers := w.gate.memory.claims.Search(ctx, queriesOf(inquiries), apart(inquiries[0].session, inquiries[0].query.Repository), func(ctx context.Context) []policy.Answer {
		return w.look(ctx, pinned, inquiries)
	})
	for i, in := range inquiries {
		w.add(in.place, in.key, answers[i])
	}
}

// look searches for all evidence that the inquiries can use, and verifies it.
func (w *work) look(ctx context.Context, pinned image.Pinned, inquiries []*inquiry) []policy.Answer {
	want := wanted(inquiries)
	var (
		found attest.Found
		wg    sync.WaitGroup
		gap   error
	)
	// All inquiries of a search are about one place.
	session, subject := inquiries[0].session, pinned
	pinned = pinned.At(inquiries[0].query.Repository)
	if slices.Contains(want.Formats, attest.Notation) && !pinned.Descriptor().IsComplete() {
		wg.Go(func() { // in parallel with the search: costs no round trip of its own
			described, err := session.Describe(ctx, pinned)
			if err != nil {
				gap = err
				return
			}
			subject = described.At(subject.Repository())
		})
	}
	searching, discovered := w.gate.options.begin(ctx, PhaseDiscover)
	found = attest.Find(searching, session, pinned, want)
	wg.Wait()
	discovered()

	ctx, proved := w.gate.options.begin(ctx, PhaseProve)
	defer proved()
	answers := make([]policy.Answer, len(inquiries))
	var group errgroup.Group
	group.SetLimit(max(2, runtime.GOMAXPROCS(0)))
	first := make(map[claims.Key]int, len(inquiries)) // equal keys share one answer
	for i, in := range inquiries {
		if _, asked := first[in.query.Key]; asked {
			continue
		}
		first[in.query.Key] = i
		group.Go(func() error {
			if err := safely(func() { answers[i] = w.answer(ctx, subject, in, found, gap) }); err != nil {
				answers[i] = policy.Answer{Gaps: []error{err}}
			}
			return nil
		})
	}
	_ = group.Wait()
	for i, in := range inquiries {
		answers[i] = answers[first[in.query.Key]]
	}
	return answers
}

// wanted joins the kinds of evidence that the inquiries can use.
func wanted(inquiries []*inquiry) attest.Want {
	var want attest.Want
	for _, in := range inquiries {
		for _, format := range formats(in.authority) {
			if !slices.Contains(want.Formats, format) {
				want.Formats = append(want.Formats, format)
			}
		}
		switch {
		case in.Role == attest.Signature:
			want.Signatures = true
		case in.Artifact:
			want.Artifacts = appendNew(want.Artifacts, in.Predicate)
		default:
			want.Predicates = appendNew(want.Predicates, in.Predicate)
		}
		want.Sources = in.Sources
	}
	slices.Sort(want.Formats)
	return want
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// formats returns the evidence formats that can verify an authority.
func formats(a verify.Authority) []attest.Format {
	switch {
	case len(a.Formats) > 0:
		return a.Formats
	case a.Notation != nil:
		return []attest.Format{attest.Notation}
	default:
		return []attest.Format{attest.Cosign, attest.Bundle}
	}
}

// answer tries every piece of evidence for one authority. Every fact is kept,
// since a condition may agree with one statement and not with another.
func (w *work) answer(ctx context.Context, subject image.Pinned, in *inquiry, found attest.Found, gap error) policy.Answer {
	var out policy.Answer
	for _, g := range found.Gaps {
		out.Gaps = append(out.Gaps, g)
	}
	for _, m := range found.Malformed {
		out.Rejections = append(out.Rejections, &verify.Rejection{
			Code: verify.Malformed, Authority: in.authority.Name, Err: m,
		})
	}
	for _, document := range found.Unsigned {
		out.Instead = appendNew(out.Instead, "a document of type "+document.PredicateType+" that is not signed")
	}
	for _, other := range found.Unasked {
		out.Instead = appendNew(out.Instead, describe(other))
	}
	accepted := formats(in.authority)
	for _, evidence := range found.Evidence {
		if !slices.Contains(accepted, evidence.Format) {
			continue
		}
		if !in.concerns(evidence) {
			out.Instead = appendNew(out.Instead, describe(evidence))
			continue
		}
		if evidence.Format == attest.Notation && gap != nil {
			out.Gaps = append(out.Gaps, gap)
			continue
		}
		fact, err := w.try(ctx, subject, evidence, in.authority)
		if err == nil {
			err = in.confirm(fact, subject)
		}
		rejection, disproved := errors.AsType[*verify.Rejection](err)
		switch {
		case err == nil:
			out.Facts = append(out.Facts, fact)
		case disproved:
			out.Rejections = append(out.Rejections, rejection)
		default:
			out.Gaps = append(out.Gaps, fmt.Errorf("proof of %s: %w", evidence.Origin, err))
		}
	}
	return out
}

// concerns reports whether the evidence is of a kind that the inquiry asks for.
func (in *inquiry) concerns(e attest.Evidence) bool {
	if e.Role != in.Role {
		return false
	}
	return in.Role == attest.Signature || e.PredicateType == "" || e.PredicateType == in.Predicate
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

// confirm checks that a verified fact matches the inquiry: a verifier's result must not
// count for more than it contains.
func (in *inquiry) confirm(fact verify.Fact, subject image.Pinned) error {
	reject := func(code verify.Code, expected, found string) error {
		return &verify.Rejection{Code: code, Authority: in.authority.Name, Origin: fact.Origin, Expected: expected, Found: found}
	}
	switch {
	case fact.Subject != subject.Digest():
		return reject(verify.WrongDigest, subject.Digest().String(), fact.Subject.String())
	case fact.Role != in.Role:
		return reject(verify.WrongPredicate, string(in.Role), string(fact.Role))
	case in.Role == attest.Signature:
		return nil
	case fact.Statement == nil:
		return reject(verify.WrongPredicate, in.Predicate, "")
	case fact.Statement.PredicateType != in.Predicate:
		return reject(verify.WrongPredicate, in.Predicate, fact.Statement.PredicateType)
	}
	return nil
}

// try runs a verifier. A panic on attacker-controlled bytes becomes an error, so the image
// could not be verified.
func (w *work) try(ctx context.Context, subject image.Pinned, e attest.Evidence, a verify.Authority) (fact verify.Fact, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the verifier failed, which is a defect: %v", p)
		}
	}()
	return w.prover.Verify(ctx, subject, e, a)
}
