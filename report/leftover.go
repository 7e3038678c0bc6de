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

// leftover is what a decision knows, and what of it the tree has told. A decision
// does not say which authority a fact was proved for, so a fact is told of each
// authority that surely would believe its signer, or of the only one that was
// asked, and of none in doubt.
type leftover struct {
	facts   told[verify.Fact]
	reasons told[policy.Reason]
	passed  bool
	// isJudged: something was found out; else a failure lies before that, as when
	// there is no digest.
	isJudged bool
}

// told is a list of which some elements were told.
type told[T any] struct {
	all  []T
	done map[int]bool
}

func newTold[T any](all []T) told[T] { return told[T]{all: all, done: map[int]bool{}} }

// tell returns the elements for which wanted holds; they may be told again.
func (t told[T]) tell(wanted func(T) bool) []T {
	var out []T
	for i, element := range t.all {
		if wanted(element) {
			t.done[i] = true
			out = append(out, element)
		}
	}
	return out
}

// tellNext returns the first element that was not told and for which wanted
// holds, if there is one.
func (t told[T]) tellNext(wanted func(T) bool) []T {
	for i, element := range t.all {
		if !t.done[i] && wanted(element) {
			t.done[i] = true
			return []T{element}
		}
	}
	return nil
}

// rest returns what was not told.
func (t told[T]) rest() []T {
	var out []T
	for i, element := range t.all {
		if !t.done[i] {
			out = append(out, element)
		}
	}
	return out
}

// view is a leftover as one requirement sees it.
type view struct {
	*leftover
	predicate string // the predicate type of its facts; "" means signatures
	isOnly    bool   // the requirement has one member
	silence   string // what it means that nothing is said of a member
}

// What it means that a decision says nothing of an authority: its facts are kept
// only if the whole check passed, and whoever was missed is named.
const (
	met       = "its terms were met"
	notNeeded = "not needed"
	notAsked  = "not asked"
	either    = "not needed, or its terms were met"
)

func (l *leftover) silenceIn(r *policy.Requirement) string {
	missed := slices.ContainsFunc(r.Members, func(m policy.Member) bool {
		return m.Authority != nil && l.speaksOf(m.Authority.Name)
	})
	switch {
	case l.passed:
		return notNeeded
	case !l.isJudged:
		return notAsked
	case missed || r.Threshold == len(r.Members):
		return met
	default:
		return either
	}
}

func (l *leftover) of(predicate string) view { return view{leftover: l, predicate: predicate} }

// factsOf tells the facts that the authority was met by.
func (v view) factsOf(a *verify.Authority) []verify.Fact {
	facts := v.facts.tell(func(f verify.Fact) bool { return v.concerns(f) && believes(a, f.Signer) })
	if len(facts) == 0 && v.isOnly && v.passed {
		return v.facts.tellNext(v.concerns) // facts stand in the order of requirements
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

// conditionAt tells the reasons of a condition.
func (l *leftover) conditionAt(path string) []policy.Reason {
	return l.reasons.tell(func(r policy.Reason) bool {
		return r.Path == path && (r.Code == policy.ConditionFailed || r.Code == policy.Denied)
	})
}

// tooFewAt tells the reasons of a requirement.
func (l *leftover) tooFewAt(path string) []policy.Reason {
	return l.reasons.tell(func(r policy.Reason) bool { return r.Path == path && r.Code == policy.TooFewSigners })
}

// missesOf tells the reasons of an authority.
func (l *leftover) missesOf(path string) []policy.Reason {
	return l.reasons.tell(func(r policy.Reason) bool { return isMissOf(r, path) })
}

// speaksOf reports whether a reason is of an authority.
func (l *leftover) speaksOf(path string) bool {
	return slices.ContainsFunc(l.reasons.all, func(r policy.Reason) bool { return isMissOf(r, path) })
}

func isMissOf(r policy.Reason, path string) bool {
	switch r.Code {
	case policy.ConditionFailed, policy.Denied, policy.TooFewSigners, policy.Verified:
		return false
	}
	return path != "" && r.Path == path
}

// believes reports whether the signer is surely the authority's. It describes;
// the proof was the verifier's.
func believes(a *verify.Authority, s verify.Signer) bool {
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

// fingerprint returns the SHA-256 of a public key that the policy gives itself,
// or "" for one that was looked up elsewhere.
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

// undecided reports whether one of the reasons is of something that could not be
// looked at.
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
