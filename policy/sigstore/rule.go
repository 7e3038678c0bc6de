package sigstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	prototrust "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/sigstore/internal/field"
	"github.com/quaymaster/quaymaster/policy/sigstore/trustroot"
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

	// overall is asked where passes says yes; nil for none.
	overall *overall

	// live are the signers that can be met; passes says that one passes whatever
	// it is asked about, refusal why none can ever be met.
	live    []*signer
	passes  bool
	refusal string
	// made is the check of the texts that were last looked up.
	made atomic.Pointer[made]
}

// made is a check without an image, and the texts that it was made of.
type made struct {
	texts texts
	check policy.Check
}

// texts are what TrustRoots, by their names, and ConfigMaps say now.
type texts struct {
	roots      map[string][]byte
	configMaps map[configMapRef][]byte
}

func (t texts) equal(other texts) bool {
	return maps.EqualFunc(t.roots, other.roots, bytes.Equal) && maps.EqualFunc(t.configMaps, other.configMaps, bytes.Equal)
}

var _ policy.Selective = (*rule)(nil)

// shape finds what the authorities mean together: any of them suffices. A check
// can say that of signatures, and of statements of one type and condition; it
// cannot say it of different statements, nor of statements and signatures.
func (r *rule) shape() error {
	for _, s := range r.signers {
		switch {
		case s.static == nil:
			r.live = append(r.live, s)
		case s.static.Action == "pass":
			r.passes = true
		case s.static.Message != "" && r.refusal == "":
			r.refusal = s.static.Message
		}
	}
	if r.refusal == "" {
		r.refusal = "disallowed by the policy (static: fail)"
	}
	if r.passes {
		r.live = nil // nobody needs to be asked
	}
	if len(r.live) < 2 {
		return nil
	}
	first := r.live[0]
	for _, s := range r.live[1:] {
		if !sameStatements(first.attestations, s.attestations) {
			at := s
			if len(s.attestations) == 0 {
				at = first
			}
			return field.Unsupported(at.path+".attestations", "a choice between authorities that want different statements, or one that is not a statement,")
		}
	}
	if len(first.attestations) > 1 {
		return field.Unsupported(r.live[1].path+".attestations", "a choice between authorities that each want several statements")
	}
	return nil
}

func sameStatements(a, b []statement) bool {
	return slices.EqualFunc(a, b, func(x, y statement) bool { return x.predicateType == y.predicateType && x.text == y.text })
}

// Name returns the rule's name.
func (r *rule) Name() string { return ruleName }

// Extractors returns none: images stand at the places of a pod specification.
func (r *rule) Extractors(*policy.Subject) []policy.Extractor { return nil }

// Targets returns the kinds that the rule matches.
func (r *rule) Targets() []policy.Target { return r.targets }

// ImagePatterns returns the globs, unless one has a wildcard for the registry,
// which may stand for a name that references do not have.
func (r *rule) ImagePatterns() ([]string, bool) {
	var patterns []string
	for _, g := range r.globs {
		if g.open {
			return nil, false
		}
		patterns = append(patterns, g.text)
	}
	return patterns, true
}

// Plan says what the policy asks of the images that a glob speaks of.
func (r *rule) Plan(ctx context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	skip, err := r.compiler.options.skips(s)
	if skip != "" {
		return policy.RulePlan{Skip: skip}, nil
	}
	matched, unsure := matches(r.match, s)
	if !matched && unsure == nil {
		return policy.RulePlan{Skip: "the policy does not match the object"}, nil
	}
	concerned := slices.DeleteFunc(slices.Clone(images), func(i policy.Image) bool { return i.Unchanged || !r.concerns(i) })
	if len(concerned) == 0 {
		return policy.RulePlan{}, nil
	}
	if err := errors.Join(err, unsure); err != nil {
		return policy.RulePlan{}, err
	}
	template, err := r.template(ctx)
	if err != nil {
		return policy.RulePlan{}, err
	}
	if err := r.judge(&template, s); err != nil {
		return policy.RulePlan{}, err
	}
	var plan policy.RulePlan
	for _, i := range concerned {
		check := template
		check.Image = i
		plan.Checks = append(plan.Checks, check)
	}
	return plan, nil
}

// judge fills in what depends on the object: the pull secrets, and what the policy
// over all authorities says of it.
func (r *rule) judge(check *policy.Check, s *policy.Subject) (err error) {
	if check.Credentials.Secrets, err = r.secrets(s); err != nil || r.overall == nil || !r.passes {
		return err
	}
	holds, why, err := r.overall.holds(s)
	if err == nil && !holds {
		check.Required, check.Deny, check.DenyMessage = true, refuse{}, "spec.policy does not hold: "+why
	}
	return err
}

// skips says why no policy is asked about a subject. The error matters only if
// one would be.
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

func (r *rule) concerns(i policy.Image) bool {
	return slices.ContainsFunc(r.globs, func(g glob) bool { return g.concerns(i.Ref) })
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

// template returns the check without its image, made of what TrustRoots and
// ConfigMaps say now.
func (r *rule) template(ctx context.Context) (policy.Check, error) {
	now, err := r.look(ctx)
	if err != nil {
		return policy.Check{}, err
	}
	if have := r.made.Load(); have != nil && have.texts.equal(now) {
		return have.check, nil
	}
	check, err := r.check(now)
	if err != nil {
		return policy.Check{}, err
	}
	r.made.Store(&made{texts: now, check: check})
	return check, nil
}

func (r *rule) look(ctx context.Context) (texts, error) {
	var out texts
	for _, s := range r.live {
		for _, name := range s.refs.names() {
			if r.compiler.options.TrustRoots == nil {
				return out, fmt.Errorf("%s names the TrustRoot %s, and none is known here", s.short(), name)
			}
			text, err := r.compiler.options.TrustRoots.TrustedRoot(name)
			if err != nil {
				return out, fmt.Errorf("%s: %w", s.short(), err)
			}
			if out.roots == nil {
				out.roots = map[string][]byte{}
			}
			out.roots[name] = text
		}
		for _, a := range s.attestations {
			if a.configMap == nil {
				continue
			}
			text, err := r.compiler.text(ctx, *a.configMap)
			if err != nil {
				return out, fmt.Errorf("%s: %w", a.short(), err)
			}
			if out.configMaps == nil {
				out.configMaps = map[configMapRef][]byte{}
			}
			out.configMaps[*a.configMap] = text
		}
	}
	return out, nil
}

// check makes the check. What passes unasked is neither resolved nor pinned; what
// is refused unasked is not looked at either.
func (r *rule) check(now texts) (policy.Check, error) {
	out := policy.Check{Entry: ruleName, Action: r.action}
	if r.passes {
		return out, nil
	}
	out.Required = true
	if len(r.live) == 0 {
		out.Deny, out.DenyMessage = refuse{}, r.refusal
		return out, nil
	}
	roots := make(map[string]*prototrust.TrustedRoot, len(now.roots))
	for name, text := range now.roots {
		root, err := trustroot.Unmarshal(text)
		if err != nil {
			return out, fmt.Errorf("the TrustRoot %s: %w", name, err)
		}
		roots[name] = root
	}
	anyOf := policy.Requirement{Name: ruleName, Threshold: 1}
	if len(r.live) == 1 {
		anyOf.Name = r.live[0].short()
	}
	for _, s := range r.live {
		authorities, err := s.rooted(roots)
		if err != nil {
			return out, fmt.Errorf("%s: %w", s.short(), err)
		}
		for _, a := range authorities {
			anyOf.Members = append(anyOf.Members, policy.Member{Authority: &a, Sources: s.sources})
		}
	}
	out.MutateDigest, out.VerifyDigest = true, true
	for _, a := range r.live[0].attestations {
		condition := a.condition
		if a.configMap != nil {
			var err error
			if condition, err = r.compiler.language(a.language, string(now.configMaps[*a.configMap]), a.predicateType); err != nil {
				return out, fmt.Errorf("%s: the policy in %s: %w", a.short(), a.configMap, err)
			}
		}
		out.Attestations = append(out.Attestations, policy.Attestation{
			Name: a.name, Path: a.short(), PredicateType: a.predicateType,
			Signers: []policy.Requirement{anyOf}, Condition: condition,
		})
	}
	if len(out.Attestations) == 0 {
		out.Requirements = []policy.Requirement{anyOf}
	}
	return out, nil
}

// refuse is a condition of denial that always holds.
type refuse struct{}

// Holds returns true.
func (refuse) Holds(any) (bool, string, error) { return true, "", nil }
