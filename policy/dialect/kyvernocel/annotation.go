package kyvernocel

import (
	"context"
	"errors"
	"strconv"

	celgo "github.com/google/cel-go/cel"
	admission "k8s.io/api/admissionregistration/v1"
	names "k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// Annotations are compiled spec.auditAnnotations.
type Annotations []annotation

type annotation struct {
	key   string
	value *cel.Program
}

// CompileAnnotations reads spec.auditAnnotations.
func CompileAnnotations(scope *cel.Scope, docs []admission.AuditAnnotation) (Annotations, error) {
	if len(docs) > MaxEntries {
		return nil, field.Fail("spec.auditAnnotations", "%d are more than %d", len(docs), MaxEntries)
	}
	var list Annotations
	var errs []error
	seen := map[string]bool{}
	for i, doc := range docs {
		path := "spec.auditAnnotations[" + strconv.Itoa(i) + "]"
		switch problems := names.IsQualifiedName(doc.Key); {
		case len(problems) > 0:
			errs = append(errs, field.Fail(path+".key", "%q: %s", doc.Key, problems[0]))
		case seen[doc.Key]:
			errs = append(errs, field.Fail(path+".key", "%q is the key of an earlier annotation", doc.Key))
		}
		seen[doc.Key] = true
		compiled, err := scope.Compile(path+".valueExpression", doc.ValueExpression, celgo.StringType, celgo.NullType)
		errs = append(errs, err)
		list = append(list, annotation{key: doc.Key, value: compiled})
	}
	return list, errors.Join(errs...)
}

// Programs returns the expressions.
func (a Annotations) Programs() []*cel.Program {
	list := make([]*cel.Program, len(a))
	for i := range a {
		list[i] = a[i].value
	}
	return list
}

// Words returns the values of the annotations, by key. The value of one that cannot be evaluated
// is the error. The errors are returned, too: Kubernetes and Kyverno apply the failure policy to
// them, so that a rule with one does not pass.
func (a Annotations) Words(ctx context.Context, activation *cel.Activation) (words map[string]string, errs []error) {
	if len(a) == 0 {
		return nil, nil
	}
	words = map[string]string{}
	for _, one := range a {
		value, err := one.value.Eval(ctx, activation)
		if err != nil {
			words[one.key] = "cannot be evaluated: " + Shorten(err.Error())
			errs = append(errs, err)
			continue
		}
		if text, ok := value.Value().(string); ok && text != "" {
			words[one.key] = Bounded(text)
		}
	}
	return words, errs
}

// AnnotationReasons are the reasons for errors of Words.
func AnnotationReasons(errs []error) (reasons []policy.Reason) {
	for _, err := range errs {
		found, _ := Reasons(err, "spec.auditAnnotations")
		reasons = append(reasons, found...)
	}
	return reasons
}
