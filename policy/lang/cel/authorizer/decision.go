package authorizer

import (
	"errors"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/fieldcheck"
	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/partial"
)

// Decisions are the parts of an expression, by their number, of which it calls allowed(). Where a
// review could not be evaluated as a whole and does not allow, allowed() is indeterminate: an authorizer
// that failed may allow.
type Decisions struct {
	targets map[int64]bool
	failed  celgo.Program // the error of a decision that does not allow
}

// DecisionsOf returns those of a checked expression.
func DecisionsOf(checked *ast.AST) (Decisions, error) {
	d := Decisions{targets: map[int64]bool{}}
	d.add(checked.Expr())
	if len(d.targets) == 0 {
		return d, nil
	}
	env, err := celgo.NewEnv(library.Authz(), celgo.Variable("decision", library.DecisionType))
	if err != nil {
		return d, err
	}
	read, issues := env.Compile("decision.allowed() ? '' : decision.error()")
	if err := issues.Err(); err != nil {
		return d, err
	}
	d.failed, err = env.Program(read)
	return d, err
}

func (d Decisions) add(e ast.Expr) {
	if e.Kind() == ast.CallKind && e.AsCall().IsMemberFunction() && e.AsCall().FunctionName() == "allowed" {
		d.targets[e.AsCall().Target().ID()] = true
	}
	for _, part := range fieldcheck.Parts(e) {
		d.add(part)
	}
}

// Decorate returns the part of a program, as a decision if it is one. Unknown makes an error of the
// cause for which a value is indeterminate.
func (d Decisions) Decorate(part interpreter.InterpretableV2, unknown func(error) error) interpreter.InterpretableV2 {
	if !d.targets[part.ID()] {
		return part
	}
	return partial.Replaced(part, func(decision ref.Val) ref.Val {
		failed, _, err := d.failed.Eval(map[string]any{"decision": decision})
		if err != nil {
			return decision // an error itself
		}
		if text, is := failed.Value().(string); is && text != "" {
			return types.WrapErr(unknown(errors.New("a review of access could not be evaluated: " + text)))
		}
		return decision
	})
}
