package native

import "github.com/quaymaster/quaymaster/policy"

// result is that of one evaluation, with one parameter.
type result int

const (
	skipped result = iota // a condition does not hold
	passed
	unknown // something is read that is not known
	fault   // an expression fails: the failurePolicy decides
	denied  // a validation does not hold
)

// outcome is the result of one evaluation, or of several.
type outcome struct {
	is      result
	reasons []policy.Reason
	// always: the API server denies whatever the actions of the binding are.
	always bool
	// reason is the author's, or the API server's, for a denial.
	reason      string
	annotations map[string]string
}

// decides reports whether the API server denies by it, if the failurePolicy is Ignore or not.
func (o *outcome) decides(ignores bool) bool { return o.is == denied || o.is == fault && !ignores }

// first returns the outcome of several: the first that denies, as in the API server, where a violation
// makes the others certain. Else what is not known decides, then a fault that is ignored.
func first(all []outcome, ignores bool) outcome {
	var found outcome
	var annotations map[string]string
	decided, isDenied := false, false
	for i := range all {
		o := &all[i]
		annotations, isDenied = merged(annotations, o.annotations), isDenied || o.is == denied
		switch {
		case decided:
			found.always = found.always || o.always
		case o.decides(ignores):
			found, decided = *o, true
		case i == 0 || rank(o.is) > rank(found.is):
			found = *o
		}
	}
	if isDenied {
		found.is = denied
	}
	found.annotations = annotations
	return found
}

// rank orders outcomes that deny nothing for certain.
func rank(r result) int {
	switch r {
	case passed:
		return 1
	case fault:
		return 2
	case unknown:
		return 3
	}
	return 0
}

// validated is the result of a rule with the action of its binding.
func (o *outcome) validated(action policy.Action, ignores bool) policy.Validated {
	if o.always {
		action = policy.Enforce
	}
	v := policy.Validated{Result: policy.Indeterminate, Reasons: o.reasons, Action: action, AuditAnnotations: o.annotations}
	switch o.is {
	case skipped:
		v.Result = policy.Skipped
	case passed:
		v.Result = policy.Pass
	case denied:
		v.Result = policy.Fail
		if o.reason != "" {
			v.Properties = map[string]string{"reason": o.reason}
		}
	case fault:
		if ignores {
			v.Action = policy.Audit // the API server admits it, and the error is reported here
		}
	}
	return v
}
