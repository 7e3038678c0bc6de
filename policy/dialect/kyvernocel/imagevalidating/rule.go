package imagevalidating

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/internal/revision"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/verify"
)

// rule is a policy.Rule: a whole policy, for pods or for controllers of them.
type rule struct {
	name        string
	program     *program
	compiler    *Compiler
	action      policy.Action
	match       *constraint.Constraint // nil for documents that are no Kubernetes objects
	references  references
	credentials policy.Credentials
	template    kyvernocel.Template
	namespace   string // of the policy
	targets     []policy.Target
	json        bool
	// quiet: no requester of an admission receives the result.
	quiet bool
	configurations
	// named: no rule is sure to match the pods that come of its objects.
	named bool
}

// configurations are the checks in addition to the expressions (spec.validationConfigurations).
type configurations struct{ mutate, verify, required bool }

var (
	_ policy.Selective = (*rule)(nil)
	_ policy.OfObject  = (*rule)(nil)
	_ policy.Pinner    = (*rule)(nil)

	_ policy.OfDocuments = (*rule)(nil)
	_ policy.Rematching  = (*rule)(nil)
)

// Name returns the rule's name: the policy's, or a generated one.
func (r *rule) Name() string { return r.name }

// Extractors returns where the images are, if elsewhere than in a pod specification.
func (r *rule) Extractors(s *policy.Subject) []policy.Extractor {
	return r.program.places(s.Group, s.Kind, r.template)
}

// Targets returns the kinds that the rule matches.
func (r *rule) Targets() []policy.Target { return r.targets }

// ImagePatterns returns the globs, unless an expression selects the images, or the rule may apply
// to objects without any.
func (r *rule) ImagePatterns() ([]string, bool) {
	if r.references.all || len(r.references.programs) > 0 || r.program.ofObject || len(r.program.extractors) > 0 {
		return nil, false
	}
	return r.references.patterns, true
}

// AppliesToObject reports whether a validation may fail although no image is evaluated.
func (r *rule) AppliesToObject() bool { return r.program.ofObject || r.program.mixed }

// PinsNamed reports whether images are pinned in objects that no rule about pods
// follows up.
func (r *rule) PinsNamed() bool { return r.named && r.mutate && !r.json && !r.quiet }

// MayRematch reports whether an update may bring an object under the rule, or change what a
// validation reads of it.
func (r *rule) MayRematch() bool {
	p := r.program
	return r.match != nil && r.match.SelectsObjects() || len(p.conditions)+len(p.extractors) > 0 || !p.fixed || p.ofObject || p.mixed
}

// ReadsUpdate reports whether an update changed an object that the attestors, or validations about images,
// may depend on. Validations of the object alone are evaluated at every update anyway.
func (r *rule) ReadsUpdate(s *policy.Subject) bool {
	return (!r.program.fixed || r.program.mixed) && revision.ChangesObject(s)
}

// OnlyDocuments reports whether the policy's evaluation.mode is JSON.
func (r *rule) OnlyDocuments() bool { return r.json }

// skips returns why the rule is not evaluated at all.
func (r *rule) skips(s *policy.Subject) string {
	switch {
	case s.Operation == "DELETE":
		return "nothing will run after a deletion"
	case r.json && s.Kind != "":
		return "the policy is about documents that are no Kubernetes objects (evaluation.mode JSON)"
	case !r.json && s.Kind == "":
		return "the policy is about Kubernetes objects"
	case r.quiet && kyvernocel.AskedAtAdmission(s):
		return "the policy is not asked at admission (evaluation.admission.enabled: false)"
	}
	return ""
}

// Plan returns the matching images, and the questions for each.
func (r *rule) Plan(ctx context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	if skip := r.skips(s); skip != "" {
		return policy.RulePlan{Skip: skip}, nil
	}
	var unsure error
	if r.match != nil {
		matched, err := r.match.Matches(s)
		if err == nil && !matched {
			return policy.RulePlan{Skip: "the policy's matchConstraints do not match the object"}, nil
		}
		unsure = err
		if policy.IsUnconverted(err) {
			return policy.RulePlan{}, err
		}
	}
	applies, err := r.applies(ctx, s)
	if err == nil && !applies {
		return policy.RulePlan{Skip: "the policy's matchConditions do not hold"}, nil
	}
	concerned, unclear := r.concerned(ctx, images)
	// Where no image is found, an expression may have failed to find it.
	evaluates := r.program.ofObject || !s.Bare && len(r.program.extractors) > 0
	if len(concerned) == 0 && unclear == nil && !evaluates {
		return policy.RulePlan{}, nil
	}
	if s.Bare && len(r.program.extractors) > 0 {
		return policy.RulePlan{}, kyvernocel.UnknownHere("images that expressions name (spec.images)")
	}
	if s.Bare && s.Namespace == "" && r.namespace != "" {
		return policy.RulePlan{}, kyvernocel.UnknownHere("the object's namespace, being a policy of one")
	}
	if err := cmp.Or(unsure, err, unclear, r.program.needs.lacking(s)); err != nil {
		return policy.RulePlan{}, err
	}
	return r.plan(ctx, s, images, concerned)
}

// applies evaluates the match conditions.
func (r *rule) applies(ctx context.Context, s *policy.Subject) (bool, error) {
	if len(r.program.conditions) == 0 {
		return true, nil
	}
	inputs := r.compiler.options.Inputs(r.namespace)
	inputs.More = &kyvernocel.Seen{Subject: s, Template: r.template}
	return r.program.conditions.Hold(ctx, r.program.conditionScope.NewActivation(inputs))
}

// concerned returns the positions in images of the matching ones. An error means that the match
// of one is indeterminate.
func (r *rule) concerned(ctx context.Context, images []policy.Image) ([]int, error) {
	var list []int
	var unsure error
	for i := range images {
		meant, err := r.references.mean(ctx, images[i].Ref)
		if meant {
			list = append(list, i)
		}
		if err != nil && !images[i].Unchanged {
			unsure = cmp.Or(unsure, err)
		}
	}
	return list, unsure
}

func (r *rule) plan(ctx context.Context, s *policy.Subject, images []policy.Image, concerned []int) (policy.RulePlan, error) {
	j := &judge{rule: r, subject: s, members: make([]member, len(images))}
	var inputs cel.Inputs
	var activation *cel.Activation
	if !r.program.fixed || len(r.program.extractors) > 0 {
		inputs = r.inputs(s)
		activation = r.program.scope.NewActivation(inputs)
	}
	filed, err := r.program.filed(ctx, images, activation)
	if err != nil {
		return policy.RulePlan{}, err
	}
	// A value in a searched field that no expression names is no image.
	concerned = slices.DeleteFunc(concerned, func(i int) bool { return len(filed[i]) == 0 })
	for i := range images {
		j.members[i] = member{image: images[i], categories: filed[i], meant: slices.Contains(concerned, i)}
	}
	j.secrets, err = r.secrets(s)
	if err != nil {
		return policy.RulePlan{}, err
	}
	out := policy.RulePlan{Judge: j, Action: r.action, Checks: make([]policy.Check, len(concerned))}
	shared := r.people(ctx, attestor.Activations{Object: activation})
	asks := r.questions(shared)
	for n, i := range concerned {
		m := &j.members[i]
		m.people = shared
		if r.program.perImage != nil {
			perImage := inputs
			perImage.Variables = withVariable(inputs.Variables, imageName, images[i].Ref.Written())
			m.people = r.people(ctx, attestor.Activations{Object: activation, Image: r.program.perImage.NewActivation(perImage)})
			asks = r.questions(m.people)
		}
		out.Checks[n] = policy.Check{
			Entry: "spec.validations", Image: images[i], Action: r.action,
			Claims:  policy.Claims{Asks: asks, Required: r.required},
			Lookup:  policy.Lookup{WantsData: r.program.data, Credentials: j.credentials()},
			Pinning: policy.Pinning{MutateDigest: r.mutate, VerifyDigest: r.verify},
		}
	}
	return out, nil
}

// inputs are the inputs of an expression that names images.
func (r *rule) inputs(s *policy.Subject) cel.Inputs {
	inputs := r.compiler.options.Inputs(r.namespace)
	inputs.More = &kyvernocel.Seen{Subject: s, Template: r.template}
	inputs.Variables = map[string]any{attestorsName: r.program.attestorValues, attestationName: r.program.attestationValues}
	return inputs
}

func withVariable(variables map[string]any, name string, value any) map[string]any {
	more := make(map[string]any, len(variables)+1)
	for key, v := range variables {
		more[key] = v
	}
	more[name] = value
	return more
}

// secrets are the pull secrets of the attestors' sources.
func (r *rule) secrets(s *policy.Subject) ([]string, error) {
	var list []string
	var errs []error
	for _, a := range r.program.attestors {
		more, err := a.Secrets(s.Namespace)
		errs = append(errs, err)
		list = append(list, more...)
	}
	return list, errors.Join(errs...)
}

func (j *judge) credentials() policy.Credentials {
	c := j.rule.credentials
	if len(j.secrets) > 0 {
		c.Secrets = append(slices.Clone(c.Secrets), j.secrets...)
	}
	return c
}

// person is an attestor's authorities for an image, any of which suffices, or the error.
type person struct {
	authorities []*verify.Authority
	err         error
}

func (r *rule) people(ctx context.Context, activations attestor.Activations) []person {
	list := make([]person, len(r.program.attestors))
	for i, a := range r.program.attestors {
		if a.PerImage() && activations.Image == nil {
			continue // evaluated for each image
		}
		list[i].authorities, list[i].err = a.Authorities(ctx, activations)
		if _, faulty := errors.AsType[*cel.EvalError](list[i].err); list[i].err != nil && !faulty && a.TUF != nil {
			list[i].err = &cel.UnknownError{Gaps: []error{unproved{list[i].err}}} // its trusted root could not be read
		}
	}
	return list
}

// questions are the gate's claim queries for an image.
func (r *rule) questions(people []person) []policy.Question {
	list := make([]policy.Question, 0, len(r.program.asks))
	for _, one := range r.program.asks {
		for _, authority := range people[one.attestor].authorities {
			list = append(list, r.program.question(one, authority))
		}
	}
	return list
}

func (p *program) question(one ask, authority *verify.Authority) policy.Question {
	q := policy.Question{Authority: authority, Role: attest.Signature, Sources: p.attestors[one.attestor].Sources}
	if one.attestation != signature {
		a := p.attestations[one.attestation]
		q.Role, q.Predicate, q.Artifact = attest.Attestation, a.Type, a.Artifact
	}
	return q
}
