package sigstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/revision"
)

// ruleName is the name of a policy's one rule.
const ruleName = "authorities"

// rule is a policy.Rule: a whole ClusterImagePolicy.
type rule struct {
	compiler *Compiler
	action   policy.Action
	globs    []glob
	match    []selected
	targets  []policy.Target
	signers  []*signer

	// overall is asked where an authority passes; nil for none.
	overall *overall

	// live are the signers to be verified; passes means that one passes without verification,
	// refusals are the reasons why others never can.
	live     []*signer
	passes   bool
	refusals []policy.Reason
	// judged means that a check alone cannot express the authorities together, or cannot
	// decide whether a glob matches the image.
	judged bool
	// byDigest means that a glob has a digest.
	byDigest bool
	// made is the template of the last external texts.
	made atomic.Pointer[made]
}

var (
	_ policy.Selective  = (*rule)(nil)
	_ policy.Pinner     = (*rule)(nil)
	_ policy.Rematching = (*rule)(nil)
)

// shape determines how the authorities combine: one of them suffices. A check can express
// that for signatures, and for statements of one type and condition. Different statements,
// statements together with signatures, and a policy over all authorities require a judge.
func (r *rule) shape() {
	r.byDigest = slices.ContainsFunc(r.globs, func(g glob) bool { return g.named != nil })
	for _, s := range r.signers {
		switch {
		case s.static == nil:
			r.live = append(r.live, s)
		case s.static.Action == "pass":
			r.passes = true
		default:
			r.refusals = append(r.refusals, policy.Reason{
				Code: policy.Denied, Path: s.short(), Message: cmp.Or(s.static.Message, "disallowed by the policy (static: fail)"),
			})
		}
	}
	if r.overall != nil {
		r.judged = true
		return
	}
	if r.passes {
		r.live = nil // no verification needed
		return
	}
	r.judged = r.byDigest || slices.ContainsFunc(r.live, func(s *signer) bool {
		return len(r.live) > 1 && (len(s.attestations) > 1 || !sameStatements(r.live[0].attestations, s.attestations))
	})
}

func sameStatements(a, b []statement) bool {
	return slices.EqualFunc(a, b, func(x, y statement) bool {
		return x.predicateType == y.predicateType && x.script.same(&y.script)
	})
}

// Name returns the rule's name.
func (r *rule) Name() string { return ruleName }

// Extractors returns none: images are in the standard fields of a pod specification.
func (r *rule) Extractors(*policy.Subject) []policy.Extractor { return nil }

// Targets returns the kinds that the rule matches.
func (r *rule) Targets() []policy.Target { return r.targets }

// PinsNamed reports whether images are pinned in objects that may create pods which the
// policy does not match.
func (r *rule) PinsNamed() bool {
	return !slices.ContainsFunc(r.match, func(s selected) bool {
		return s.kind == "Pod" && s.labels == nil
	})
}

// MayRematch reports whether the policy selects objects by labels, or reads them.
func (r *rule) MayRematch() bool {
	return selectsByLabels(r.match) || r.overall != nil && (r.overall.spec || r.overall.meta)
}

func selectsByLabels(list []selected) bool {
	return slices.ContainsFunc(list, func(s selected) bool { return s.labels != nil })
}

// ReadsUpdate reports whether an update changed what spec.policy reads of the object. As in
// policy-controller, fewer replicas are no change: an object may always be scaled down.
func (r *rule) ReadsUpdate(s *policy.Subject) bool {
	o := r.overall
	return o != nil && (o.meta && revision.Changes(s, "metadata") || o.spec && revision.Changes(s, "spec") && !revision.ScalesDown(s))
}

// ImagePatterns returns the globs, unless one has a wildcard for the registry, which may match a
// name that references do not have, or for the @. Digests in globs are compared later.
func (r *rule) ImagePatterns() ([]string, bool) {
	var patterns []string
	for _, g := range r.globs {
		if g.open || g.named != nil && !strings.Contains(g.text, "@") {
			return nil, false
		}
		named, _, _ := strings.Cut(g.text, "@")
		patterns = append(patterns, named)
	}
	return patterns, true
}

// Plan returns the policy's checks of the images that a glob matches.
func (r *rule) Plan(ctx context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	skip, err := r.compiler.options.skips(s)
	if skip != "" {
		return policy.RulePlan{Skip: skip}, nil
	}
	matched, unsure := matches(r.match, s)
	if !matched && unsure == nil {
		return policy.RulePlan{Skip: "the policy does not match the object"}, nil
	}
	concerned := slices.DeleteFunc(slices.Clone(images), func(i policy.Image) bool { return i.Unchanged || !r.concerns(i.Ref) && !r.hangsOnDigest(i.Ref) })
	if len(concerned) == 0 {
		return policy.RulePlan{}, nil
	}
	if err := errors.Join(err, unsure); err != nil {
		return policy.RulePlan{}, err
	}
	made, err := r.template(ctx)
	if err != nil {
		return policy.RulePlan{}, err
	}
	template := made.check
	template.Credentials.Secrets, err = r.secrets(s)
	if err != nil {
		return policy.RulePlan{}, err
	}
	plan := policy.RulePlan{Action: r.action}
	if r.judged {
		plan.Judge, err = r.judge(made, s)
		if err != nil {
			return policy.RulePlan{}, err
		}
	}
	for _, i := range concerned {
		check := template
		check.Image = i
		check.Required = check.Required && r.concerns(i.Ref) // else the judge decides
		plan.Checks = append(plan.Checks, check)
	}
	return plan, nil
}

// skips returns why no policy is evaluated for a subject. The error matters only if one
// would be.
func (o Options) skips(s *policy.Subject) (string, error) {
	if s.Operation == "DELETE" {
		return "nothing will run after a deletion", nil
	}
	if !o.OptIn {
		return "", nil
	}
	in, err := optedIn(s)
	if err == nil && !in {
		return "the namespace is not labelled " + includeLabel + ": \"true\"", nil
	}
	return "", err
}

func (r *rule) concerns(ref image.Ref) bool {
	return slices.ContainsFunc(r.globs, func(g glob) bool { return g.concerns(ref) })
}

func (r *rule) hangsOnDigest(ref image.Ref) bool {
	return slices.ContainsFunc(r.globs, func(g glob) bool { return g.hangsOnDigest(ref) })
}

// secrets returns the pull secrets of the sources, in the object's namespace.
func (r *rule) secrets(s *policy.Subject) ([]string, error) {
	var list []string
	for _, one := range r.live {
		for _, name := range one.secrets {
			if s.Namespace == "" {
				return nil, errors.New("the policy's signaturePullSecrets are in the object's namespace, and it is not known")
			}
			list = append(list, s.Namespace+"/"+name)
		}
	}
	return list, nil
}
