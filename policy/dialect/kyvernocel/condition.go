package kyvernocel

import (
	"context"
	"errors"
	"slices"
	"strconv"

	celgo "github.com/google/cel-go/cel"
	admission "k8s.io/api/admissionregistration/v1"
	names "k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// Conditions are compiled matchConditions.
type Conditions []*cel.Program

// CompileConditions reads the matchConditions at a path of a policy or an exception. As in Kyverno,
// a name is any text: a qualified one is for webhooks.
func CompileConditions(scope *cel.Scope, docs []admission.MatchCondition, path string) (Conditions, error) {
	if len(docs) > maxConditions {
		return nil, field.Fail(path, "%d are more than %d", len(docs), maxConditions)
	}
	var list Conditions
	var errs []error
	seen := map[string]bool{}
	for i, doc := range docs {
		place := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case doc.Name == "":
			errs = append(errs, field.Fail(place+".name", "is empty: name the condition"))
		case seen[doc.Name]:
			errs = append(errs, field.Fail(place+".name", "%q is the name of an earlier condition", doc.Name))
		}
		seen[doc.Name] = true
		compiled, err := scope.Compile(place+".expression", doc.Expression, celgo.BoolType)
		if err == nil {
			err = ReadsKnown(compiled)
		}
		errs = append(errs, err)
		list = append(list, compiled)
	}
	return list, errors.Join(errs...)
}

// CompileWebhookConditions reads matchConditions of a webhook, of which Kubernetes requires qualified
// names.
func CompileWebhookConditions(scope *cel.Scope, docs []admission.MatchCondition, path string) (Conditions, error) {
	list, err := CompileConditions(scope, docs, path)
	errs := []error{err}
	for i, doc := range docs {
		if problems := names.IsQualifiedName(doc.Name); len(problems) > 0 {
			errs = append(errs, field.Fail(path+"["+strconv.Itoa(i)+"].name", "%q: %s", doc.Name, problems[0]))
		}
	}
	return list, errors.Join(errs...)
}

// Hold reports whether all conditions hold, as in Kubernetes: one that does not hold gives false,
// whatever the others are; otherwise a failed evaluation is an error.
func (c Conditions) Hold(ctx context.Context, activation *cel.Activation) (bool, error) {
	var unsure error
	for _, p := range c {
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

// Declare compiles spec.variables.
func Declare(scope *cel.Scope, docs []admission.Variable) error {
	if len(docs) > MaxEntries {
		return field.Fail("spec.variables", "%d are more than %d", len(docs), MaxEntries)
	}
	for i, v := range docs {
		if err := scope.Declare("spec.variables["+strconv.Itoa(i)+"].expression", v.Name, v.Expression); err != nil {
			return err // later ones may read it
		}
	}
	return nil
}

// NewScope makes an environment and a scope in it.
func NewScope(env func() (*cel.Env, error)) (*cel.Scope, error) {
	made, err := env()
	if err != nil {
		return nil, err
	}
	return made.NewScope()
}

// CheckReason requires one of Kubernetes' reasons or none, and a matching message.
func CheckReason(doc admission.Validation, path string) error {
	var errs []error
	if doc.Reason != nil && !slices.Contains([]string{"", "Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge"}, string(*doc.Reason)) {
		errs = append(errs, field.Fail(path+".reason", "unknown reason %q: want Unauthorized, Forbidden, Invalid or RequestEntityTooLarge", *doc.Reason))
	}
	if len(doc.Message) > MaxMessage {
		errs = append(errs, field.Fail(path+".message", "%d bytes are more than %d", len(doc.Message), MaxMessage))
	}
	return errors.Join(errs...)
}
