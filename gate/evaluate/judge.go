package evaluate

import (
	"context"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/policy"
)

// Judge runs a judge on the evidence that is no older than a maximum age, and validates its result: one decision for
// each image, each with a reason. A panic becomes an error. Where that left evidence out and an image or the object
// passes, it must pass by all of the evidence, too.
func Judge(ctx context.Context, by policy.Judge, given []policy.Given) policy.Judgement {
	dated, isLess := slices.Clone(given), make([]func() bool, len(given))
	for i := range dated {
		dated[i].Answers, isLess[i] = given[i].Check.Dated(given[i].Answers)
	}
	judged := judgeBy(ctx, by, dated)
	if !slices.ContainsFunc(isLess, func(is func() bool) bool { return is() }) {
		return judged
	}
	whole := judgeBy(ctx, by, given)
	for i := range judged.Decisions {
		if judged.Decisions[i].Result == policy.Pass && whole.Decisions[i].Result != policy.Pass {
			judged.Decisions[i] = whole.Decisions[i]
		}
	}
	if judged.Object.Passes() {
		judged.Object = whole.Object
	}
	return judged
}

func judgeBy(ctx context.Context, by policy.Judge, given []policy.Given) policy.Judgement {
	var judged policy.Judgement
	err := panics.Catch(func() { judged = by.Judge(ctx, given) })
	if err == nil && len(judged.Decisions) != len(given) {
		err = fmt.Errorf("%d decisions about %d images; this is a defect", len(judged.Decisions), len(given))
	}
	if err != nil {
		reason := policy.Reason{Code: policy.Internal, Message: err.Error()}
		judged = policy.Judgement{Decisions: make([]policy.Decision, len(given))}
		for i := range given {
			judged.Decisions[i] = policy.Decision{Result: policy.Indeterminate, Reasons: []policy.Reason{reason}}
		}
		judged.Object = policy.Ruling{Result: policy.Indeterminate, Reasons: []policy.Reason{reason}}
	}
	for i := range judged.Decisions {
		d := &judged.Decisions[i]
		d.Check = given[i].Check
		known := d.Result == policy.Pass || d.Result == policy.Fail || d.Result == policy.Indeterminate || d.Result == policy.Skipped
		if !known || len(d.Reasons) == 0 {
			d.Reasons = []policy.Reason{{
				Code: policy.Internal, Path: d.Check.Entry,
				Message: fmt.Sprintf("a decision %q with %d reasons, which is a defect", d.Result, len(d.Reasons)),
			}}
			d.Result = policy.Indeterminate
		}
	}
	return judged
}

// Unasked returns a judge's input about an image that could not be evaluated.
func Unasked(check *policy.Check, err error) policy.Given {
	return policy.Given{Check: check, Err: err, DataErr: err, Answers: gap(err)}
}

// Unqueried returns a judge's input about a check that needs no digest.
func Unqueried(check *policy.Check) policy.Given {
	return policy.Given{Check: check, Answers: gap(errNeverAsked)}
}

func gap(err error) policy.Answers {
	return func(policy.Question) policy.Answer { return policy.Answer{Gaps: []error{err}} }
}
