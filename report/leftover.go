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

// leftover is what a decision knows and the tree has not told yet. A decision
// does not say which authority a fact was proved for, so a fact goes to the
// first authority that surely would believe its signer, or to the only one that
// was asked, and to none in doubt.
type leftover struct {
	facts   []verify.Fact
	reasons []policy.Reason
	passed  bool
}

// view is a leftover as one requirement sees it.
type view struct {
	*leftover
	predicate string // the predicate type of its facts; "" means signatures
	isOnly    bool   // the requirement has one member
	missed    bool   // a member of the requirement was not met
}

func (l *leftover) of(predicate string) view { return view{leftover: l, predicate: predicate} }

// factsOf takes the facts that the authority was met by.
func (v view) factsOf(a *verify.Authority) []verify.Fact {
	facts := take(&v.facts, func(f verify.Fact) bool { return v.concerns(f) && believes(a, f.Signer) })
	if len(facts) > 0 || !v.isOnly || !v.passed {
		return facts
	}
	if i := slices.IndexFunc(v.facts, v.concerns); i >= 0 { // facts stand in the order of requirements
		facts = append(facts, v.facts[i])
		v.facts = slices.Delete(slices.Clone(v.facts), i, i+1)
	}
	return facts
}

func (v view) concerns(f verify.Fact) bool {
	if v.predicate == "" {
		return f.Role == attest.Signature
	}
	return f.Role == attest.Attestation && f.Statement != nil && f.Statement.PredicateType == v.predicate
}

// conditionAt takes the reasons of a condition.
func (l *leftover) conditionAt(path string) []policy.Reason {
	return take(&l.reasons, func(r policy.Reason) bool {
		return r.Path == path && (r.Code == policy.ConditionFailed || r.Code == policy.Denied)
	})
}

// tooFewAt takes the reasons of a requirement.
func (l *leftover) tooFewAt(path string) []policy.Reason {
	return take(&l.reasons, func(r policy.Reason) bool { return r.Path == path && r.Code == policy.TooFewSigners })
}

// missesOf takes the reasons of an authority.
func (l *leftover) missesOf(path string) []policy.Reason {
	return take(&l.reasons, func(r policy.Reason) bool { return isMissOf(r, path) })
}

// speaksOf reports whether a reason is of an authority.
func (l *leftover) speaksOf(path string) bool {
	return slices.ContainsFunc(l.reasons, func(r policy.Reason) bool { return isMissOf(r, path) })
}

func isMissOf(r policy.Reason, path string) bool {
	switch r.Code {
	case policy.ConditionFailed, policy.Denied, policy.TooFewSigners, policy.Verified:
		return false
	}
	return path != "" && r.Path == path
}

// take removes and returns the elements for which wanted holds.
func take[T any](from *[]T, wanted func(T) bool) []T {
	var taken []T
	for _, element := range *from {
		if wanted(element) {
			taken = append(taken, element)
		}
	}
	*from = slices.DeleteFunc(slices.Clone(*from), wanted)
	return taken
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
			policy.PolicyError, policy.TimedOut, policy.Internal:
			return true
		}
		return false
	})
}
