package gate

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// mirrors is the mirror configuration as it applies to the images of one object.
type mirrors struct {
	set   *mirror.Set // nil: nothing
	about mirror.Subject
	plans map[image.Ref]*mirrorPlan
}

// mirrorPlan is the mirror plan of one reference as written in the object. A nil mirrorPlan means that
// no mirror applies.
type mirrorPlan struct {
	name    string        // equal names mean equal plans, in one snapshot
	route   *mirror.Route // where it could be had instead; nil: nowhere
	err     error         // why that, or all that it is a copy of, could not be queried
	origins []mirror.Origin

	evidence []image.Repository // evidence repositories, in order; none: the image's own
	secrets  []string
	targets  *targetRequest   // the targets, where they are asked
	digest   *imageEvaluation // that resolves the reference where no check does
}

// newMirrors collects the fields that the selectors of mirrors read.
func newMirrors(set *mirror.Set, s *policy.Subject, object workload.Object) mirrors {
	if set.IsEmpty() {
		return mirrors{}
	}
	about := mirror.Subject{
		Namespace: s.Namespace, NamespaceLabels: s.NamespaceLabels, NamespaceKnown: s.NamespaceKnown, Bare: s.Bare,
	}
	about.Labels, about.Owners = describeObject(object)
	return mirrors{set: set, about: about, plans: map[image.Ref]*mirrorPlan{}}
}

// describeObject returns an object's labels and the kinds of its controllers.
func describeObject(object workload.Object) (labels map[string]string, owners []mirror.Owner) {
	metadata := object.Root().Member("metadata")
	for _, reference := range metadata.Member("ownerReferences").Elements() {
		if !reference.Member("controller").IsTrue() {
			continue
		}
		group, _, ok := strings.Cut(reference.Member("apiVersion").Text(), "/")
		if !ok {
			group = "" // the core group
		}
		owners = append(owners, mirror.Owner{Group: group, Kind: reference.Member("kind").Text()})
	}
	return metadata.Member("labels").Texts(), owners
}

// of returns the mirror plan of a reference, nil for none.
func (m mirrors) of(ref image.Ref) *mirrorPlan {
	if m.set == nil {
		return nil
	}
	known, ok := m.plans[ref]
	if !ok {
		known = m.planFor(ref)
		m.plans[ref] = known
	}
	return known
}

func (m mirrors) planFor(ref image.Ref) *mirrorPlan {
	plan := &mirrorPlan{}
	plan.origins, plan.err = m.set.Trace(ref)
	if len(plan.origins) > 0 {
		plan.name = "copy"
		for _, origin := range plan.origins {
			plan.evidence, plan.secrets = union(plan.evidence, origin.Evidence), union(plan.secrets, origin.PullSecrets)
		}
		plan.evidence = union(plan.evidence, []image.Repository{ref.Repository()})
		return plan
	}
	plan.route, plan.err = m.set.Route(ref, m.about)
	switch {
	case plan.route != nil:
		plan.name, plan.evidence, plan.secrets = plan.route.Mirror, plan.route.Evidence, plan.route.PullSecrets
	case plan.err == nil:
		return nil
	}
	return plan
}

// named returns images under all the names by which they are judged: a copy has the names
// of its sources in addition to its own. All of them must be allowed.
func (m mirrors) named(images []policy.Image) []policy.Image {
	if m.set == nil {
		return images
	}
	all := slices.Clip(images)
	for _, found := range images {
		plan := m.of(found.Ref)
		if plan == nil {
			continue
		}
		for _, origin := range plan.origins {
			copied := found
			copied.Ref, copied.Copy = origin.Ref, found.Ref
			all = append(all, copied)
		}
	}
	return all
}

// asWritten returns an image by its name in the object.
func asWritten(i policy.Image) policy.Image {
	if !i.Copy.IsZero() {
		i.Ref, i.Copy = i.Copy, image.Ref{}
	}
	return i
}

// planOf returns the mirror plan of the reference as written in the object.
func (m mirrors) planOf(i policy.Image) *mirrorPlan { return m.of(asWritten(i).Ref) }

// cost adds the cost of requests to targets.
func (m mirrors) cost(total Cost) Cost {
	for _, plan := range m.plans {
		if plan == nil {
			continue
		}
		if plan.digest != nil && len(plan.digest.Checks()) == 0 {
			total = total.Add(plan.digest.cost())
		}
		if plan.targets != nil {
			total = total.Add(plan.targets.cost())
		}
	}
	return total
}

// key names a plan among those of one snapshot.
func (plan *mirrorPlan) key() string {
	if plan == nil {
		return ""
	}
	return plan.name
}

// resolved fills in the digest of an image that no check asks about.
func (plan *mirrorPlan) resolved(v *Verdict) {
	if plan == nil || plan.digest == nil || !v.Pinned.IsZero() || plan.digest.result == nil || plan.digest.result.Err != nil {
		return
	}
	v.Pinned, v.Cost, v.Duration = plan.digest.result.Pinned, plan.digest.cost(), plan.digest.result.Duration
}
