package cel

import (
	"errors"
	"strings"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/lang/cel/internal/cost"
)

// CompileError is the reason why an expression cannot be compiled.
type CompileError struct {
	// Path is the field that holds the expression, as in
	// spec.validations[0].expression.
	Path string
	// Err is the fault; if the fault has a position in the text, Err shows the line with a caret
	// below.
	Err error
}

// Error implements error.
func (e *CompileError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns Err.
func (e *CompileError) Unwrap() error { return e.Err }

// EvalError is the reason why an evaluation has no value. It wraps an *UnknownError if a lookup
// was not possible, a *BudgetError if the expression cost too much, and the context's error if
// the context ended.
type EvalError struct {
	// Path is the field that holds the expression.
	Path string
	Err  error
}

// Error implements error.
func (e *EvalError) Error() string { return e.Path + ": " + limit.Text(e.Err.Error(), 2000) } // it may quote an object

// Unwrap returns the cause.
func (e *EvalError) Unwrap() error { return e.Err }

// ErrNotFound means that there certainly is no object of a name. It is an answer, no gap.
var ErrNotFound = errors.New("not found")

// UnknownError means that the value depends on data that could not be read. It is neither false
// nor a fault of the expression.
type UnknownError struct {
	// Gaps are the errors of failed reads; there is at least one.
	Gaps []error
}

// Error implements error.
func (e *UnknownError) Error() string {
	texts := make([]string, 0, len(e.Gaps))
	for _, gap := range e.Gaps {
		texts = append(texts, gap.Error())
	}
	return "indeterminate: " + strings.Join(texts, "; ")
}

// Unwrap returns the gaps.
func (e *UnknownError) Unwrap() []error { return e.Gaps }

// BudgetError means that an evaluation was stopped because it cost too much.
type BudgetError = cost.ExceededError

// errNotSupplied is the gap for a library that was declared without an implementation.
func errNotSupplied(what string) error {
	return &UnknownError{Gaps: []error{errors.New(what + " is not available here")}}
}
