package imagevalidating

import (
	"context"
	"errors"
	"slices"
	"strconv"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	admission "k8s.io/api/admissionregistration/v1"
	names "k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/cel"
	"github.com/quaymaster/quaymaster/policy/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// program is what a policy says in expressions. The rules that follow from it for
// controllers share it.
type program struct {
	scope *cel.Scope
	// perImage is where a subjectExpression is compiled; nil if there is none.
	perImage *cel.Scope
	// conditions have a scope of their own, without images.
	conditionScope *cel.Scope
	conditions     []*cel.Program

	extractors  []extractor
	categories  []string // of images: the standard ones, and the extractors'
	validations []validation
	annotations []annotation

	attestors    []*attestor.Attestor
	attestations []attestor.Attestation

	// asks are the questions, by attestor, that the expressions may put to the gate.
	asks []ask
	// extracted are the attestations whose statements an expression may read.
	extracted []int
	// data is how much expressions read of what an image says of itself.
	data policy.Data
	// ofObject: a validation may fail although no image is asked about.
	ofObject bool
	// mixed: a validation is about images and about the object.
	mixed bool
	// aboutObject: a validation mentions no image.
	aboutObject bool
	// needs is what the validations read of an object.
	needs needs
	// fixed: nothing in the policy depends on an expression of an attestor, nor on a
	// repository of trusted roots.
	fixed bool
	// attestorValues and attestationValues are the variables of those names.
	attestorValues, attestationValues ref.Val
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

// annotation is one entry of spec.auditAnnotations.
type annotation struct {
	key   string
	value *cel.Program
}

// ask is an attestor and what is asked of it: a signature, or a kind of statement.
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
	scope, err := newScope(env)
	if err != nil {
		return nil, err
	}
	p.scope = scope
	if err := b.declare(p.scope); err != nil {
		return nil, err
	}
	if err := b.people(p); err != nil {
		return nil, err
	}
	err = errors.Join(b.conditions(p), b.images(p), b.validations(p), b.annotations(p))
	if err != nil {
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

// isTrue reads a setting whose default is true.
func isTrue(setting *bool) bool { return setting == nil || *setting }

func newScope(env func() (*cel.Env, error)) (*cel.Scope, error) {
	made, err := env()
	if err != nil {
		return nil, err
	}
	return made.NewScope()
}

// declare compiles spec.variables.
func (b *builder) declare(scope *cel.Scope) error {
	if len(b.spec.Variables) > maxEntries {
		return field.Fail("spec.variables", "%d are more than %d", len(b.spec.Variables), maxEntries)
	}
	for i, v := range b.spec.Variables {
		if err := scope.Declare("spec.variables["+strconv.Itoa(i)+"].expression", v.Name, v.Expression); err != nil {
			return err // later ones may read it
		}
	}
	return nil
}

// people compiles attestors and attestations.
func (b *builder) people(p *program) error {
	options := attestor.Options{Scope: p.scope, Roots: b.options.Roots, Namespace: b.out.Namespace}
	if b.hasSubjectExpression() && !b.json {
		env := b.environments.perImage
		if b.out.Namespace != "" {
			env = b.environments.perImageNamespaced
		}
		scope, err := newScope(env)
		if err != nil {
			return err
		}
		if err := b.declare(scope); err != nil {
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
		return unsupported("spec.matchConditions", "a condition on documents that are no Kubernetes objects")
	}
	env := b.environments.conditions
	if b.out.Namespace != "" {
		env = b.environments.namespacedCondition
	}
	var err error
	if p.conditionScope, err = newScope(env); err != nil {
		return err
	}
	p.conditions, err = compileConditions(p.conditionScope, b.spec.MatchConditions)
	return err
}

// compileConditions reads spec.matchConditions of a policy or an exception.
func compileConditions(scope *cel.Scope, docs []admission.MatchCondition) ([]*cel.Program, error) {
	const path = "spec.matchConditions"
	if len(docs) > maxConditions {
		return nil, field.Fail(path, "%d are more than %d", len(docs), maxConditions)
	}
	var list []*cel.Program
	var errs []error
	seen := map[string]bool{}
	for i, doc := range docs {
		place := path + "[" + strconv.Itoa(i) + "]"
		switch problems := names.IsQualifiedName(doc.Name); {
		case len(problems) > 0:
			errs = append(errs, field.Fail(place+".name", "%q: %s", doc.Name, problems[0]))
		case seen[doc.Name]:
			errs = append(errs, field.Fail(place+".name", "%q is the name of an earlier condition", doc.Name))
		}
		seen[doc.Name] = true
		compiled, err := scope.Compile(place+".expression", doc.Expression, celgo.BoolType)
		if err == nil {
			err = readsKnown(compiled)
		}
		errs = append(errs, err)
		list = append(list, compiled)
	}
	return list, errors.Join(errs...)
}

// hold reports whether all conditions hold, as Kubernetes asks them: one that does
// not is a no, whatever the others are; else one that cannot be asked leaves it open.
func hold(ctx context.Context, conditions []*cel.Program, activation *cel.Activation) (bool, error) {
	var unsure error
	for _, p := range conditions {
		held, err := p.Bool(ctx, activation)
		if err == nil && !held {
			return false, nil
		}
		if unsure == nil {
			unsure = err
		}
	}
	return unsure == nil, unsure
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
		if doc.Reason != nil && !slices.Contains([]string{"", "Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge"}, string(*doc.Reason)) {
			errs = append(errs, field.Fail(v.path+".reason", "unknown reason %q: want Unauthorized, Forbidden, Invalid or RequestEntityTooLarge", *doc.Reason))
		}
		if len(doc.Message) > maxMessage {
			errs = append(errs, field.Fail(v.path+".message", "%d bytes are more than %d", len(doc.Message), maxMessage))
		}
		p.validations = append(p.validations, v)
	}
	return errors.Join(errs...)
}

func newValidation(doc admission.Validation, path string) validation {
	message := doc.Message
	if message == "" {
		message = "the validation does not hold: " + shorten(doc.Expression)
	}
	return validation{path: path, message: message}
}

func (b *builder) annotations(p *program) error {
	if len(b.spec.AuditAnnotations) > maxEntries {
		return field.Fail("spec.auditAnnotations", "%d are more than %d", len(b.spec.AuditAnnotations), maxEntries)
	}
	var errs []error
	seen := map[string]bool{}
	for i, doc := range b.spec.AuditAnnotations {
		path := "spec.auditAnnotations[" + strconv.Itoa(i) + "]"
		switch problems := names.IsQualifiedName(doc.Key); {
		case len(problems) > 0:
			errs = append(errs, field.Fail(path+".key", "%q: %s", doc.Key, problems[0]))
		case seen[doc.Key]:
			errs = append(errs, field.Fail(path+".key", "%q is the key of an earlier annotation", doc.Key))
		}
		seen[doc.Key] = true
		compiled, err := p.scope.Compile(path+".valueExpression", doc.ValueExpression, celgo.StringType, celgo.NullType)
		errs = append(errs, err)
		p.annotations = append(p.annotations, annotation{key: doc.Key, value: compiled})
	}
	return errors.Join(errs...)
}

// shorten cuts a text for a message.
func shorten(s string) string {
	const most = 200
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
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
	for _, a := range p.annotations {
		list = append(list, a.value)
	}
	return list
}

func (p *program) attestor(name string) int {
	return slices.IndexFunc(p.attestors, func(a *attestor.Attestor) bool { return a.Name == name })
}

func (p *program) attestation(name string) int {
	return slices.IndexFunc(p.attestations, func(a attestor.Attestation) bool { return a.Name == name })
}

// unknownName says what a name that is not defined should have been.
func unknownName(path, kind, name string) error {
	return field.Fail(path, "%s.%s is not defined: define it in spec.%s, or correct the name", kind, name, kind)
}
