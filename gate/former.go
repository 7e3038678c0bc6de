package gate

import (
	"context"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// former is the old object of an update, with its images. The zero value has no images.
type former struct {
	object workload.Object
	stood  map[standing]bool
}

// standing is an image's place in a pod specification, by name: a container that
// moved in its list is the same, one that became an init container is not.
type standing struct {
	role            workload.Role
	container, text string
}

// formerOf reads an object's former state. One of another kind, or one that
// cannot be read, vouches for nothing.
func formerOf(r Request) former {
	if r.Old.IsZero() || r.Old.Group() != r.Object.Group() || r.Old.Kind() != r.Object.Kind() {
		return former{}
	}
	f := former{object: r.Old}
	uses, err := workload.Extract(r.Old)
	if err != nil || len(uses) == 0 {
		return f
	}
	f.stood = make(map[standing]bool, len(uses))
	for _, use := range uses {
		f.stood[standing{use.Role, use.Container, use.Text}] = true
	}
	return f
}

// ran reports whether the same text stood under the same name and role.
func (f former) ran(use workload.Use) bool {
	return f.stood[standing{use.Role, use.Container, use.Text}]
}

// at returns the values at the pointers of extractors in the old object, by pointer.
func (f former) at(places []workload.Extractor) map[string]string {
	uses, err := workload.ExtractWith(f.object, places)
	if err != nil {
		return nil
	}
	texts := make(map[string]string, len(uses))
	for _, use := range uses {
		texts[use.Pointer] = use.Text
	}
	return texts
}

// leaveUnchanged drops the tasks of images that did not change, and the errors of rules
// that match only such images: they do not block an update of other fields. A rule that
// also matches the object may still deny the update.
func (p *planned) leaveUnchanged(ctx context.Context, standard []policy.Image) {
	if p.images.former.object.IsZero() {
		return
	}
	var kept []policy.Check
	for _, check := range p.checks.Checks {
		if check.Image.Unchanged {
			p.images.remember(check.Image)
			continue
		}
		kept = append(kept, check)
	}
	p.checks.Checks = kept
	p.images.list = slices.Clone(p.images.list)
	for i := range p.images.list { // a rule that did not match it before evaluates it as a new one
		p.images.list[i].Unchanged = p.images.list[i].Unchanged && !slices.ContainsFunc(kept, func(c policy.Check) bool { return c.Image.Pointer == p.images.list[i].Pointer })
	}
	for i := range p.checks.Results {
		result := &p.checks.Results[i]
		if result.Err != nil && !result.Renewed && p.isUnchanged(ctx, *result, standard) {
			result.Err, result.Skip = nil, fmt.Sprintf("none of its images changed; it could not be asked: %v", result.Err)
		}
	}
}

// isUnchanged reports whether a rule matches images, and none of them changed.
func (p *planned) isUnchanged(ctx context.Context, result policy.RuleResult, standard []policy.Image) bool {
	i := slices.IndexFunc(result.Policy.Rules, func(r policy.Rule) bool { return r.Name() == result.Rule })
	if i < 0 {
		return false
	}
	if of, ok := result.Policy.Rules[i].(policy.OfObject); ok && of.SpeaksOfObject() {
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
