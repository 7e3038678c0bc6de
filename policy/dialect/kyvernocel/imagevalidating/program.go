package imagevalidating

import (
	"errors"
	"slices"
	"strconv"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// program is the compiled expressions of a policy. The generated rules for controllers share it.
type program struct {
	scope *cel.Scope
	// perImage is where a subjectExpression is compiled; nil if there is none.
	perImage *cel.Scope
	// conditions have a scope of their own, without images.
	conditionScope *cel.Scope
	conditions     kyvernocel.Conditions

	extractors  []extractor
	categories  []string // of images: the standard ones, and the extractors'
	validations []validation
	annotations kyvernocel.Annotations

	attestors    []*attestor.Attestor
	attestations []attestor.Attestation

	// asks are the questions, by attestor, of the expressions.
	asks []ask
	// extracted are the attestations with statements that an expression may read.
	extracted []int
	analysis
	// attestorValues and attestationValues are the variables of those names.
	attestorValues, attestationValues ref.Val
}

// analysis is what follows from the text of the expressions.
type analysis struct {
	// data is how much image data the expressions read.
	data policy.Data
	// ofObject: a validation may fail although no image is evaluated.
	ofObject bool
	// mixed: a validation is about images and about the object.
	mixed bool
	// aboutObject: a validation mentions no image.
	aboutObject bool
	// needs are the object fields that the validations read; roles the lists of images
	// that are not containers.
	needs needs
	roles []string
	// fixed: nothing in the policy depends on an expression of an attestor.
	fixed bool
}

// validation is one entry of spec.validations.
type validation struct {
	path     string
	holds    *cel.Program
	message  string
	words    *cel.Program // nil for none
	mentions bool         // it mentions images
	mixed    bool         // and it reads the object or the request, too
	vacuous  bool         // it holds, whatever the object is, where there is no image
	extracts bool         // it reads statements
}

// ask is an attestor with its subject: a signature, or a type of statement.
type ask struct {
	attestor    int
	attestation int // -1: a signature
}

const signature = -1

// program compiles the expressions of a policy.
func (b *builder) program() (*program, error) {
	p := &program{}
	env := b.environments.cluster
	switch {
	case b.json:
		env = b.environments.json
	case b.out.Namespace != "":
		env = b.environments.namespaced
	}
	scope, err := kyvernocel.NewScope(env)
	if err != nil {
		return nil, err
	}
	p.scope = scope
	if err := kyvernocel.Declare(p.scope, b.spec.Variables); err != nil {
		return nil, err
	}
	if err := b.people(p); err != nil {
		return nil, err
	}
	p.annotations, err = kyvernocel.CompileAnnotations(p.scope, b.spec.AuditAnnotations)
	if err = errors.Join(b.conditions(p), b.images(p), b.validations(p), err); err != nil {
		return nil, err
	}
	if err := p.look(); err != nil {
		return nil, err
	}
	configured := b.spec.ValidationConfigurations
	if len(p.validations)+len(p.annotations) == 0 && !isTrue(configured.MutateDigest) && !isTrue(configured.VerifyDigest) && !isTrue(configured.Required) {
		return nil, field.Fail("spec.validations", "is empty, and nothing else is asked: the policy would do nothing")
	}
	return p, nil
}

// isTrue reads a setting with the default true.
func isTrue(setting *bool) bool { return setting == nil || *setting }

// people compiles attestors and attestations.
func (b *builder) people(p *program) error {
	options := attestor.Options{Scope: p.scope, Roots: b.options.Roots, Namespace: b.out.Namespace}
	if b.hasSubjectExpression() && !b.json {
		env := b.environments.perImage
		if b.out.Namespace != "" {
			env = b.environments.perImageNamespaced
		}
		scope, err := kyvernocel.NewScope(env)
		if err != nil {
			return err
		}
		if err := kyvernocel.Declare(scope, b.spec.Variables); err != nil {
			return err
		}
		p.perImage, options.Images = scope, scope
	}
	var errs [2]error
	p.attestors, errs[0] = attestor.Compile("spec.attestors", b.spec.Attestors, options)
	p.attestations, errs[1] = attestor.Attestations("spec.attestations", b.spec.Attestations)
	return errors.Join(errs[:]...)
}

func (b *builder) hasSubjectExpression() bool {
	for _, a := range b.spec.Attestors {
		if a.Cosign == nil || a.Cosign.Keyless == nil {
			continue
		}
		for _, identity := range a.Cosign.Keyless.Identities {
			if identity.SubjectExpression != "" {
				return true
			}
		}
	}
	return false
}

func (b *builder) conditions(p *program) error {
	if len(b.spec.MatchConditions) == 0 {
		return nil
	}
	if b.json {
		return kyvernocel.Unsupported("spec.matchConditions", "a condition on documents that are no Kubernetes objects")
	}
	env := b.environments.conditions
	if b.out.Namespace != "" {
		env = b.environments.namespacedCondition
	}
	var err error
	p.conditionScope, err = kyvernocel.NewScope(env)
	if err != nil {
		return err
	}
	p.conditions, err = kyvernocel.CompileConditions(p.conditionScope, b.spec.MatchConditions, "spec.matchConditions")
	return err
}

func (b *builder) validations(p *program) error {
	if len(b.spec.Validations) > maxEntries {
		return field.Fail("spec.validations", "%d are more than %d", len(b.spec.Validations), maxEntries)
	}
	var errs []error
	for i, doc := range b.spec.Validations {
		v := newValidation(doc, "spec.validations["+strconv.Itoa(i)+"]")
		var err error
		v.holds, err = p.scope.Compile(v.path+".expression", doc.Expression, celgo.BoolType)
		errs = append(errs, err)
		if doc.MessageExpression != "" {
			v.words, err = p.scope.Compile(v.path+".messageExpression", doc.MessageExpression, celgo.StringType)
			errs = append(errs, err)
		}
		errs = append(errs, kyvernocel.CheckReason(doc, v.path))
		p.validations = append(p.validations, v)
	}
	return errors.Join(errs...)
}

func newValidation(doc admission.Validation, path string) validation {
	message := doc.Message
	if message == "" {
		message = "the validation does not hold: " + kyvernocel.Shorten(doc.Expression)
	}
	return validation{path: path, message: message}
}

// all returns every program that is evaluated once the gate has answered.
func (p *program) all() []*cel.Program {
	var list []*cel.Program
	for _, v := range p.validations {
		list = append(list, v.holds)
		if v.words != nil {
			list = append(list, v.words)
		}
	}
	return append(list, p.annotations.Programs()...)
}

// expressions are those that are evaluated about an object, without the attestors'; nil is none.
func (p *program) expressions() []*cel.Program {
	programs := slices.Concat(p.conditions, p.all())
	for i := range p.extractors {
		programs = append(programs, p.extractors[i].program)
	}
	return programs
}

func (p *program) attestor(name string) int {
	return slices.IndexFunc(p.attestors, func(a *attestor.Attestor) bool { return a.Name == name })
}

func (p *program) attestation(name string) int {
	return slices.IndexFunc(p.attestations, func(a attestor.Attestation) bool { return a.Name == name })
}

// unknownName suggests the name for an undefined one.
func unknownName(path, kind, name string) error {
	return field.Fail(path, "%s.%s is not defined: define it in spec.%s, or correct the name", kind, name, kind)
}
