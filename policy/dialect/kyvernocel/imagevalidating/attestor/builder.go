package attestor

import (
	"context"
	"maps"

	celgo "github.com/google/cel-go/cel"
	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/verify"
)

// builder walks an attestor. When the document is read, it compiles the expressions and finds all
// mistakes that do not depend on their results. When the policy is evaluated, it walks the same
// way again, with their results.
type builder struct {
	options Options
	name    string // for verdicts
	request bool
	slots   []slot   // when read: the expressions in the order of the walk
	values  []string // during evaluation: their results, in that order
	root    string   // during evaluation: the trusted root of the TUF repository
	tuf     *TUF
}

func (b *builder) build(doc *v1alpha1.Attestor, path string) ([]verify.Authority, error) {
	if err := one(path, "cosign and notary", doc.Cosign != nil, doc.Notary != nil); err != nil {
		return nil, err
	}
	if doc.Notary != nil {
		a, err := b.notary(doc.Notary, path+".notary")
		return []verify.Authority{a}, err
	}
	return b.cosign(doc.Cosign, path+".cosign")
}

// slot is an expression of an attestor with its path.
type slot struct {
	path     string
	program  *cel.Program
	perImage bool
}

// evaluate returns the result of the expression. Errors have its path.
func (s slot) evaluate(ctx context.Context, in Activations) (string, error) {
	activation := in.Object
	if s.perImage {
		activation = in.Image
	}
	if activation == nil {
		return "", field.Fail(s.path, "there is nothing to evaluate the expression with")
	}
	return s.program.Text(ctx, activation)
}

// expression returns the result of an expression. Open reports that it is not known before the
// policy is evaluated. Its type may be unknown until then, too.
func (b *builder) expression(text, path string) (value string, open bool, err error) {
	if b.request {
		value, b.values = b.values[0], b.values[1:]
		return value, false, nil
	}
	if b.options.Scope == nil {
		return "", true, field.Fail(path, "expressions are not understood here")
	}
	program, err := b.options.Scope.Compile(path, text, celgo.StringType, celgo.DynType)
	if err == nil {
		b.slots = append(b.slots, slot{path: path, program: program})
	}
	return "", true, err
}

// imageExpression is an expression that may read the verified image. One that does not has the
// same result for all of them.
func (b *builder) imageExpression(text, path string) (value string, open bool, err error) {
	if b.request || b.options.Images == nil {
		return b.expression(text, path)
	}
	if b.options.Scope != nil {
		if program, err := b.options.Scope.Compile(path, text, celgo.StringType, celgo.DynType); err == nil {
			b.slots = append(b.slots, slot{path: path, program: program})
			return "", true, nil
		}
	}
	program, err := b.options.Images.Compile(path, text, celgo.StringType, celgo.DynType)
	if err == nil {
		b.slots = append(b.slots, slot{path: path, program: program, perImage: true})
	}
	return "", true, err
}

// given is a text that the document gives or computes, with its path.
type given struct {
	text, path string
	open       bool
}

// either reads a value or an expression.
func (b *builder) either(doc *v1alpha1.StringOrExpression, path string) (given, error) {
	if err := one(path, "value and expression", doc.Value != "", doc.Expression != ""); err != nil {
		return given{}, err
	}
	if doc.Value != "" {
		return given{text: doc.Value, path: path + ".value"}, nil
	}
	text, open, err := b.expression(doc.Expression, path+".expression")
	return given{text: text, path: path + ".expression", open: open}, err
}

// certificates reads certificates that the document gives or computes.
func (b *builder) certificates(doc *v1alpha1.StringOrExpression, path string) ([]byte, error) {
	text, err := b.either(doc, path)
	if err != nil || text.open {
		return nil, err
	}
	return certificatesPEM(text.text, text.path)
}

// terms are those that every kind of signer of Sigstore has.
func (b *builder) terms(doc *v1alpha1.Cosign, path string) (verify.Authority, error) {
	a := verify.Authority{Name: b.name}
	if len(doc.Annotations) > maxEntries {
		return a, field.Fail(path+".annotations", "%d are more than %d", len(doc.Annotations), maxEntries)
	}
	if _, nameless := doc.Annotations[""]; nameless {
		return a, field.Fail(path+".annotations", "one has no name")
	}
	a.Annotations = maps.Clone(doc.Annotations)
	return a, b.log(&a, doc, path+".ctlog")
}
