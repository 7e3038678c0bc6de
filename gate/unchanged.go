package gate

import (
	"context"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
)

// leaveUnchanged drops the evaluations of images that did not change, and the errors of rules
// that match only such images: they do not block an update of other fields. A rule that
// also matches the object may still deny the update.
func (p *objectEvaluation) leaveUnchanged(ctx context.Context, standard []policy.Image) {
	if p.images.old.IsZero() {
		return
	}
	var kept []policy.Check
	for _, check := range p.checks.Checks {
		if check.Image.Unchanged {
			p.images.add(check.Image)
			continue
		}
		kept = append(kept, check)
	}
	p.checks.Checks = kept
	p.images.list = slices.Clone(p.images.list)
	for i := range p.images.list { // a rule that did not match it before evaluates it as a new one
		p.images.list[i].Unchanged = p.images.list[i].Unchanged &&
			!slices.ContainsFunc(kept, func(c policy.Check) bool { return c.Image.Pointer == p.images.list[i].Pointer })
	}
	for i := range p.checks.Results {
		result := &p.checks.Results[i]
		if result.Err != nil && !result.Renewed && p.isUnchanged(ctx, *result, standard) {
			result.Err, result.Skip = nil, fmt.Sprintf("none of its images changed; it could not be evaluated: %v", result.Err)
		}
	}
}

// isUnchanged reports whether a rule matches images, and none of them changed.
func (p *objectEvaluation) isUnchanged(ctx context.Context, result policy.RuleResult, standard []policy.Image) bool {
	i := slices.IndexFunc(result.Policy.Rules, func(r policy.Rule) bool { return r.Name() == result.Rule })
	if i < 0 {
		return false
	}
	if of, ok := result.Policy.Rules[i].(policy.OfObject); ok && of.AppliesToObject() {
		return false
	}
	images, err := policy.ImagesOf(ctx, result.Policy.Rules[i], p.subject, func(extractors []policy.Extractor) ([]policy.Image, error) {
		if len(extractors) == 0 {
			return standard, nil
		}
		return p.images.find(extractors)
	})
	if err != nil {
		return false
	}
	return len(images) > 0 && !slices.ContainsFunc(images, func(i policy.Image) bool { return !i.Unchanged })
}
