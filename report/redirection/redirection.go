// Package redirection reports the mirror targets of images: the mapping, the responses of the targets
// and the chosen target.
package redirection

import (
	"context"
	"slices"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/report"
)

// Reporter determines the redirection of images: by the gate if there are policies, else by
// requests to the targets alone.
type Reporter struct {
	// Mirrors is the mapping; required.
	Mirrors *mirror.Set
	// Outcomes are those of the gate, in the order of the images; nil without policies.
	Outcomes []gate.Outcome
	// Registries are required with a Chooser, which is nil if no request is sent, or the gate
	// sends them.
	Registries gate.Registries
	Chooser    *redirect.Chooser
}

// Report returns the result for the i-th image.
func (p *Reporter) Report(ctx context.Context, ref image.Ref, request gate.Request, i int) report.Redirection {
	r := report.Redirection{Written: ref.Written(), Reference: ref.String(), Result: report.NotMapped}
	for _, o := range p.Mirrors.Origins(ref) {
		r.Origins = append(r.Origins, report.Origin{Reference: o.Ref.String(), Mapping: o.Mirror, Evidence: names(o.Evidence)})
		r.Result = report.IsCopy
	}
	route, err := p.Mirrors.Route(ref, subjectOf(request))
	if err != nil {
		r.Result, r.Why = report.ErrorThere, err.Error()
	}
	if route != nil {
		r.Mapping, r.When, r.Otherwise, r.Resolve = route.Mirror, string(route.When), string(route.Otherwise), string(route.Resolve)
		r.Evidence, r.PullSecrets = names(route.Evidence), route.PullSecrets
		r.Result = report.OnlyListed
		answered(&r, route, nil)
	}
	switch {
	case p.Outcomes != nil:
		judged(&r, route, p.Outcomes[i])
	case p.Chooser != nil && route != nil:
		p.resolve(ctx, &r, ref, route)
	}
	return r
}

// subjectOf returns the Pod's data for the selectors of a mapping.
func subjectOf(request gate.Request) mirror.Subject {
	labels := map[string]string{}
	metadata, _ := request.Object.Content()["metadata"].(map[string]any)
	given, _ := metadata["labels"].(map[string]any)
	for key, value := range given {
		labels[key], _ = value.(string)
	}
	return mirror.Subject{
		Namespace: request.Object.Namespace(), Labels: labels,
		NamespaceLabels: request.Subject.NamespaceLabels, NamespaceKnown: request.Subject.NamespaceKnown,
	}
}

func names(repositories []image.Repository) []string {
	texts := make([]string, len(repositories))
	for i, repository := range repositories {
		texts[i] = repository.String()
	}
	return texts
}

// answered records the result of each target; a missing target received no request.
func answered(r *report.Redirection, route *mirror.Route, attempts []report.Attempt) {
	r.Candidates = make([]report.Candidate, len(route.Candidates))
	for i, c := range route.Candidates {
		r.Candidates[i] = report.Candidate{Attempt: report.Attempt{Target: c.Ref.String(), State: redirect.NotAsked}, Fill: c.Fill}
		if at := slices.IndexFunc(attempts, func(a report.Attempt) bool { return a.Target == c.Ref.String() }); at >= 0 {
			r.Candidates[i].Attempt = attempts[at]
		}
	}
}

// judged copies the gate's decision.
func judged(r *report.Redirection, route *mirror.Route, outcome gate.Outcome) {
	record := report.NewRecord(outcome)
	r.Policies, r.Reasons = record.Result, record.Reasons
	if len(record.Images) > 0 {
		one := record.Images[0]
		r.Digest, r.Reasons = one.Digest, append(one.Reasons, record.Reasons...)
		if m := one.Mirror; m != nil && route != nil {
			r.Target, r.Why, r.OtherDigest = m.Target, m.Why, m.OtherDigest
			answered(r, route, m.Attempts)
		}
	}
	switch {
	case r.Policies == gate.Deny:
		r.Result = report.DeniedThere
	case !r.Policies.Admits():
		r.Result = report.ErrorThere
	case r.Target != "":
		r.Result = report.Redirected
	case route != nil:
		r.Result = report.StaysThere
	}
}

// resolve finds the digest at the authoritative side, and the targets that serve it.
func (p *Reporter) resolve(ctx context.Context, r *report.Redirection, ref image.Ref, route *mirror.Route) {
	question := redirect.Request{Route: route, Open: func(ctx context.Context, at image.Repository) (redirect.Session, error) {
		session, err := p.Registries.Open(ctx, gate.Access{}, at)
		return target{session}, err
	}}
	early := p.Chooser.Begin(ctx, question)
	var attempts []redirect.Attempt
	var err error
	r.Digest, attempts, err = p.digest(ctx, ref, question, early)
	if err != nil {
		answered(r, route, report.NewAttempts(attempts))
		r.Why = err.Error()
		r.Result = without(route, image.KindOf(err) != image.NotFound)
		if route.Resolve == mirror.Source {
			r.Result = report.ErrorThere // the digest is unknown
		}
		return
	}
	choice := p.Chooser.Choose(ctx, question, early, r.Digest)
	answered(r, route, report.NewAttempts(choice.Attempts))
	r.OtherDigest = p.other(ctx, ref, route, choice.Attempts, r.Digest)
	if choice.Target.IsZero() {
		r.Result = without(route, slices.ContainsFunc(choice.Attempts, func(a redirect.Attempt) bool {
			return a.State == redirect.Failed || a.State == redirect.Resting
		}))
		r.Why = "no target qualifies"
		return
	}
	r.Result, r.Target = report.Redirected, choice.Target.String()
	if route.When == mirror.Verified {
		r.Why = "only once a policy proves the digest (when: Verified); --policy shows whether one does"
	}
}

// target is a session that confirms the digest of a reference; the gate's session accepts it
// without a request.
type target struct{ gate.Session }

// Resolve implements redirect.Session.
func (t target) Resolve(ctx context.Context, ref image.Ref) (image.Pinned, error) {
	pinned, err := t.Session.Resolve(ctx, ref)
	if err != nil || ref.Digest().IsZero() {
		return pinned, err
	}
	return t.Describe(ctx, pinned)
}

// without is the result for an image without a qualified target; silent reports that a target
// that could not be checked may qualify.
func without(route *mirror.Route, silent bool) report.Redirect {
	switch {
	case route.Otherwise != mirror.Deny:
		return report.StaysThere
	case silent:
		return report.ErrorThere
	}
	return report.DeniedThere
}

// digest resolves the digest at the authoritative side.
func (p *Reporter) digest(ctx context.Context, ref image.Ref, question redirect.Request, early *redirect.Early) (image.Digest, []redirect.Attempt, error) {
	if !ref.Digest().IsZero() {
		return ref.Digest(), nil, nil
	}
	if question.Route.Resolve == mirror.Target {
		found, attempts, err := p.Chooser.Resolve(ctx, question, early)
		return found.Digest, attempts, err
	}
	pinned, err := p.atSource(ctx, ref)
	return pinned.Digest(), nil, err
}

func (p *Reporter) atSource(ctx context.Context, ref image.Ref) (image.Pinned, error) {
	session, err := p.Registries.Open(ctx, gate.Access{}, ref.Repository())
	if err != nil {
		return image.Pinned{}, err
	}
	return session.Resolve(ctx, ref)
}

// other returns the digest that the tag resolves to at the other side, if it differs.
func (p *Reporter) other(ctx context.Context, ref image.Ref, route *mirror.Route, attempts []redirect.Attempt, digest image.Digest) image.Digest {
	if !ref.Digest().IsZero() {
		return image.Digest{}
	}
	if route.Resolve == mirror.Target {
		if pinned, err := p.atSource(ctx, ref); err == nil && pinned.Digest() != digest {
			return pinned.Digest()
		}
		return image.Digest{}
	}
	for _, a := range attempts {
		if !a.Tag.IsZero() && a.Tag != digest {
			return a.Tag
		}
	}
	return image.Digest{}
}
