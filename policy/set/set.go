package set

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set/internal/objectindex"
)

// Set is the policies of one moment, sorted by ID.
type Set struct {
	policies   []*policy.Policy
	exceptions []*policy.Exception
	overrides  *overrides // nil for none
	// hash names everything; rulesHash the policies and exceptions, policiesHash the
	// policies alone.
	hash, rulesHash, policiesHash string
	index                         *index
	pinning                       []*policy.Policy // with a rule that PinsNamed
	mutations                     objectindex.Index[policy.Mutation]
	validations                   objectindex.Index[policy.Validation]
	generations                   objectindex.Index[policy.Generation]
	alterations                   objectindex.Index[policy.Alteration]
}

// New joins policies. Two with the same ID are an error: one would silently replace the other.
func New(policies ...*policy.Policy) (*Set, error) {
	sorted := slices.Clone(policies)
	slices.SortStableFunc(sorted, func(a, b *policy.Policy) int { return strings.Compare(a.ID(), b.ID()) })
	h := sha256.New()
	var errs []error
	for i, p := range sorted {
		if p.Name == "" {
			errs = append(errs, fmt.Errorf("%s: a policy has no name", p.Source))
		}
		if i > 0 && p.ID() == sorted[i-1].ID() {
			errs = append(errs, fmt.Errorf("policy %s is defined twice: in %s and in %s", p.ID(), sorted[i-1].Source, p.Source))
		}
		fmt.Fprintf(h, "%s=%s\n", p.ID(), p.Hash)
		if p.AuditedBy != "" {
			fmt.Fprintf(h, "audited by %q\n", p.AuditedBy)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	hash := hex.EncodeToString(h.Sum(nil))
	set := &Set{policies: sorted, hash: hash, rulesHash: hash, policiesHash: hash, index: newIndex(sorted)}
	for _, p := range sorted {
		if slices.ContainsFunc(p.Rules, policy.PinsNamed) {
			set.pinning = append(set.pinning, p)
		}
		set.validations.Add(p, p.Validations)
		set.generations.Add(p, p.Generations)
		set.alterations.Add(p, p.Alterations)
	}
	for _, ofServer := range []bool{true, false} {
		for _, p := range sorted {
			if p.OfServer == ofServer {
				set.mutations.Add(p, p.Mutations)
			}
		}
	}
	return set, nil
}

// Join joins policies, exceptions and overrides.
func Join(policies []*policy.Policy, exceptions []*policy.Exception, overrides []*policy.Override) (*Set, error) {
	joined, err := New(policies...)
	if err != nil {
		return nil, err
	}
	joined, err = joined.With(exceptions...)
	if err != nil {
		return nil, err
	}
	return joined.WithOverrides(overrides...)
}

// Policies returns the policies, sorted by ID. The slice is not to be changed.
func (s *Set) Policies() []*policy.Policy { return s.policies }

// Hash names the content of the set; equal sets have equal hashes.
func (s *Set) Hash() string { return s.hash }

// MayPin reports whether a rule may pin images in a subject that is no pod, by its
// kind, its namespace and the operation.
func (s *Set) MayPin(subject *policy.Subject) bool {
	if subject.IsPod() || subject.Operation != "CREATE" && subject.Operation != "UPDATE" {
		return false
	}
	return slices.ContainsFunc(s.pinning, func(p *policy.Policy) bool {
		return (p.Namespace == "" || p.Namespace == subject.Home()) && p.PinsIn(subject)
	})
}
