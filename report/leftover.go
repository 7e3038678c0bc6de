package report

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"slices"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// leftover holds the claims and reasons of a decision, and which of them the tree has shown. A
// decision does not record the authority of a claim. A claim is therefore shown at each authority
// that certainly accepts its signer, or at the only authority that was evaluated, and at no
// other.
type leftover struct {
	facts   marked[verify.Fact]
	reasons marked[policy.Reason]
	passed  bool
	// isJudged: the evaluation ran; otherwise an earlier step failed, such as resolving the
	// digest.
	isJudged bool
}

// A list with a mark on each element that the tree has shown.
type marked[T any] struct {
	all  []T
	done map[int]bool
}

func newMarked[T any](all []T) marked[T] { return marked[T]{all: all, done: map[int]bool{}} }

// Elements for which wanted holds; they may be shown again.
func (t marked[T]) take(wanted func(T) bool) []T {
	var out []T
	for i, element := range t.all {
		if wanted(element) {
			t.done[i] = true
			out = append(out, element)
		}
	}
	return out
}

// next returns the first unmarked element for which wanted holds, if there is one.
func (t marked[T]) next(wanted func(T) bool) []T {
	for i, element := range t.all {
		if !t.done[i] && wanted(element) {
			t.done[i] = true
			return []T{element}
		}
	}
	return nil
}

// rest returns the unmarked elements.
func (t marked[T]) rest() []T {
	var out []T
	for i, element := range t.all {
		if !t.done[i] {
			out = append(out, element)
		}
	}
	return out
}

// view is a leftover restricted to one requirement.
type view struct {
	*leftover
	predicate   string // the predicate type of its claims; "" means signatures
	isOnly      bool   // the requirement has one member
	explanation string // the explanation for a member without claims or reasons
}

// The explanations for an authority that a decision does not mention. Its claims are retained
// only if the whole check passed, and missed authorities are always named.
const (
	met          = "requirement met"
	notNeeded    = "not needed"
	notEvaluated = "not evaluated"
	either       = "not needed, or requirement met"
)

func (l *leftover) explanationIn(r *policy.Requirement) string {
	missed := slices.ContainsFunc(r.Members, func(m policy.Member) bool {
		return m.Authority != nil && l.mentions(m.Authority.Name)
	})
	switch {
	case l.passed:
		return notNeeded
	case !l.isJudged:
		return notEvaluated
	case missed || r.Threshold == len(r.Members):
		return met
	default:
		return either
	}
}

func (l *leftover) of(predicate string) view { return view{leftover: l, predicate: predicate} }

// factsOf returns the claims that satisfied the authority.
func (v view) factsOf(a *verify.Authority) []verify.Fact {
	facts := v.facts.take(func(f verify.Fact) bool { return v.concerns(f) && isSignerOf(a, f.Signer) })
	if len(facts) == 0 && v.isOnly && v.passed {
		return v.facts.next(v.concerns) // claims are in the order of requirements
	}
	return slices.CompactFunc(facts, func(a, b verify.Fact) bool {
		return a.Origin == b.Origin && a.Subject == b.Subject && a.Signer.String() == b.Signer.String()
	})
}

func (v view) concerns(f verify.Fact) bool {
	if v.predicate == "" {
		return f.Role == attest.Signature
	}
	return f.Role == attest.Attestation && f.Statement != nil && f.Statement.PredicateType == v.predicate
}

// conditionAt returns the reasons of a condition.
func (l *leftover) conditionAt(path string) []policy.Reason {
	return l.reasons.take(func(r policy.Reason) bool {
		return r.Path == path && (r.Code == policy.ConditionFailed || r.Code == policy.Denied)
	})
}

// tooFewAt returns the reasons of a requirement.
func (l *leftover) tooFewAt(path string) []policy.Reason {
	return l.reasons.take(func(r policy.Reason) bool { return r.Path == path && r.Code == policy.TooFewSigners })
}

// missesOf returns the reasons of an authority.
func (l *leftover) missesOf(path string) []policy.Reason {
	return l.reasons.take(func(r policy.Reason) bool { return isMissOf(r, path) })
}

// mentions reports whether a reason belongs to an authority.
func (l *leftover) mentions(path string) bool {
	return slices.ContainsFunc(l.reasons.all, func(r policy.Reason) bool { return isMissOf(r, path) })
}

func isMissOf(r policy.Reason, path string) bool {
	switch r.Code {
	case policy.ConditionFailed, policy.Denied, policy.TooFewSigners, policy.Verified:
		return false
	}
	return path != "" && r.Path == path
}

// isSignerOf reports whether the signer certainly belongs to the authority. It is for display only;
// the verifier has verified the claim.
func isSignerOf(a *verify.Authority, s verify.Signer) bool {
	switch {
	case a.Key != nil:
		known := fingerprint(a.Key)
		return known != "" && known == s.KeyFingerprint
	case a.Keyless != nil:
		return slices.ContainsFunc(a.Keyless.Identities, func(i verify.Identity) bool {
			return i.Match(s.Issuer, []string{s.Subject})
		})
	default:
		return false
	}
}

// fingerprint returns the SHA-256 of a public key in the policy, or "" for a key that is stored
// elsewhere.
func fingerprint(k *verify.Key) string {
	text := k.PEM
	if len(text) == 0 {
		text = []byte(k.Ref)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" {
		return ""
	}
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:])
}

// undecided reports whether one of the reasons is a verification error.
func undecided(reasons []policy.Reason) bool {
	return slices.ContainsFunc(reasons, func(r policy.Reason) bool {
		switch r.Code {
		case policy.ImageNotFound, policy.AccessRefused, policy.Unavailable, policy.TooMuch, policy.Contradiction,
			policy.PolicyError, policy.CannotProve, policy.TimedOut, policy.Internal:
			return true
		}
		return false
	})
}
