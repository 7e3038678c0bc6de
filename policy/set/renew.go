package set

import (
	"context"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
)

// RematchesIn reports whether updates of other fields may bring images of a subject under rules of a
// policy, by its kind and namespace, or out of exceptions to them.
func RematchesIn(p *policy.Policy, subject *policy.Subject, exceptions []*policy.Exception) bool {
	return slices.ContainsFunc(p.Rules, func(r policy.Rule) bool {
		of, is := r.(policy.Rematching)
		return (is && of.MayRematch() || areRematching(exceptions, p, r.Name())) && policy.MayMatch(r, subject)
	})
}

func areRematching(exceptions []*policy.Exception, p *policy.Policy, rule string) bool {
	return slices.ContainsFunc(exceptions, func(e *policy.Exception) bool {
		of, is := e.Scope.(interface{ MayRematch() bool })
		return e.Scope != nil && (!is || of.MayRematch()) && names(e, p, rule)
	})
}

// renew returns the images as a rule sees them: one of the old object is unchanged only if the rule
// had a check for it there, since an author could add the label that selects it later. One that its tag may
// have exempted had none. Renewed means that it had none. Where that is not known, the images are evaluated, but must not block updates.
func (s *Set) renew(ctx context.Context, m ruleIn, subject *policy.Subject, images []policy.Image) (seen []policy.Image, renewed bool) {
	of, states := m.rule.(policy.Rematching)
	mayRematch := !states || of.MayRematch() || areRematching(s.exceptions, m.policy, m.rule.Name())
	if subject.OldObject.IsZero() || !mayRematch || !slices.ContainsFunc(images, func(i policy.Image) bool { return i.Unchanged }) {
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
		had := slices.ContainsFunc(before.Checks, func(c policy.Check) bool {
			return c.Skip == "" && c.AtTag == nil && c.Image.Pointer == fresh[i].Pointer
		})
		fresh[i].Unchanged = images[i].Unchanged && had
		renewed = renewed || images[i].Unchanged && !had
	}
	return fresh, renewed
}
