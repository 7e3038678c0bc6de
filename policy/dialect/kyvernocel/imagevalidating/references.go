package imagevalidating

import (
	"context"
	"errors"
	"strconv"

	celgo "github.com/google/cel-go/cel"
	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/internal/glob"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
)

// references is a compiled matchImageReferences: it selects the images of a policy.
type references struct {
	// all: none were given, so every image matches.
	all      bool
	patterns []string
	scope    *cel.Scope
	programs []*cel.Program
}

func (c *Compiler) compileReferences(docs []v1alpha1.MatchImageReference, path string) (references, error) {
	r := references{all: len(docs) == 0}
	if len(docs) > maxEntries {
		return r, field.Fail(path, "%d are more than %d", len(docs), maxEntries)
	}
	var errs []error
	for i, doc := range docs {
		place := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case (doc.Glob != "") == (doc.Expression != ""):
			errs = append(errs, field.Fail(place, "want one of glob and expression"))
		case doc.Glob != "":
			patterns, err := glob.Patterns(doc.Glob, place+".glob")
			errs = append(errs, err)
			r.patterns = append(r.patterns, patterns...)
		default:
			errs = append(errs, r.expression(c, doc.Expression, place+".expression"))
		}
	}
	return r, errors.Join(errs...)
}

func (r *references) expression(c *Compiler, text, path string) error {
	if r.scope == nil {
		env, err := c.environments.reference()
		if err != nil {
			return err
		}
		r.scope, err = env.NewScope()
		if err != nil {
			return err
		}
	}
	p, err := r.scope.Compile(path, text, celgo.BoolType)
	if err != nil {
		return err
	}
	r.programs = append(r.programs, p)
	return nil
}

// mean reports whether an image matches. An error means that an expression could not be evaluated
// for it, and none of the others matches it.
func (r *references) mean(ctx context.Context, ref image.Ref) (bool, error) {
	if r.all || reference.Concerns(r.patterns, ref) {
		return true, nil
	}
	if len(r.programs) == 0 {
		return false, nil
	}
	var unsure error
	for _, spelling := range glob.Spellings(ref) {
		activation := r.scope.NewActivation(cel.Inputs{Variables: map[string]any{refName: spelling}})
		for _, p := range r.programs {
			held, err := p.Bool(ctx, activation)
			if held {
				return true, nil
			}
			if err != nil && unsure == nil {
				unsure = err
			}
		}
	}
	return false, unsure
}
