package kyvernocel

import (
	"context"
	"errors"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// Reasons returns why an expression at a path has no value: because of data that could not be
// read, or by its own fault, which no failure setting admits.
func Reasons(err error, path string) (reasons []policy.Reason, faulty bool) {
	unknown, isUnknown := errors.AsType[*cel.UnknownError](err)
	switch {
	case isUnknown:
		for _, gap := range unknown.Gaps {
			reasons = append(reasons, GapReason(gap, path))
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		reasons = append(reasons, policy.LookReason(err, path))
	default:
		return []policy.Reason{{
			Code: policy.PolicyError, Path: path, Message: "the expression cannot be evaluated: " + err.Error(),
			Hint: hint.CorrectExpression,
		}}, true
	}
	return reasons, false
}

// GapReason returns the reason for a failed read.
func GapReason(gap error, path string) policy.Reason {
	if _, fetched := errors.AsType[image.Failure](gap); fetched || errors.Is(gap, context.DeadlineExceeded) {
		return policy.LookReason(gap, path)
	}
	return policy.Reason{Code: policy.PolicyError, Path: path, Message: gap.Error()}
}

// Unmatched is the reason if it is indeterminate whether matchConstraints match an object.
func Unmatched(err error) []policy.Reason {
	return []policy.Reason{{Code: policy.PolicyError, Path: "spec.matchConstraints", Message: err.Error()}}
}
