package policy

import (
	"context"
	"slices"
)

// Rematching is a Rule that states whether updates of other fields may bring images under it. Of
// other rules it is assumed.
type Rematching interface {
	// MayRematch reports whether it reads more of an object than images, kind and namespace.
	MayRematch() bool
	// ReadsUpdate reports whether an update changes what it reads to decide about images.
	ReadsUpdate(subject *Subject) bool
}

// RematchesIn reports the same of the policy's rules for a kind, and of exceptions to them.
func (p *Policy) RematchesIn(subject *Subject, exceptions []*Exception) bool {
	return slices.ContainsFunc(p.Rules, func(r Rule) bool {
		of, is := r.(Rematching)
		return (is && of.MayRematch() || areRematching(exceptions, p, r.Name())) && matchesSubject(r, subject)
	})
}

func areRematching(exceptions []*Exception, p *Policy, rule string) bool {
	return slices.ContainsFunc(exceptions, func(e *Exception) bool {
		of, is := e.Scope.(interface{ MayRematch() bool })
		return e.Scope != nil && (!is || of.MayRematch()) && e.names(p, rule)
	})
}

// renew returns the images as a rule sees them: one of the old object is unchanged only if the rule
// had a check for it there, since an author could add the label that selects it later. Renewed means
// that it had none. Where that is not known, the images are evaluated, but must not block updates.
func (s *Set) renew(ctx context.Context, m ruleIn, subject *Subject, images []Image) (seen []Image, renewed bool) {
	of, states := m.rule.(Rematching)
	mayRematch := !states || of.MayRematch() || areRematching(s.exceptions, m.policy, m.rule.Name())
	if subject.OldObject.IsZero() || !mayRematch || !slices.ContainsFunc(images, func(i Image) bool { return i.Unchanged }) {
		return images, false
	}
	fresh := slices.Clone(images)
	for i := range fresh {
		fresh[i].Unchanged = false
	}
	if states && of.ReadsUpdate(subject) {
		return fresh, true
	}
	old := *subject
	old.Object = subject.OldObject
	before, _, err := planUnderAllNames(ctx, m.rule, &old, fresh)
	if err != nil {
		return fresh, false
	}
	s.except(ctx, m, before.Checks, &old)
	for i := range fresh {
		had := slices.ContainsFunc(before.Checks, func(c Check) bool { return c.Skip == "" && c.Image.Pointer == fresh[i].Pointer })
		fresh[i].Unchanged = images[i].Unchanged && had
		renewed = renewed || images[i].Unchanged && !had
	}
	return fresh, renewed
}
