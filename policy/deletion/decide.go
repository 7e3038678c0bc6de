package deletion

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// Verdict is what happens to an object.
type Verdict string

// The verdicts. Only Delete deletes.
const (
	Unmatched Verdict = ""       // the rule does not match the object
	Delete    Verdict = "delete" // the object is to be deleted
	Keep      Verdict = "keep"   // the rule matches; a condition, an exception or the protection keeps the object
	Unknown   Verdict = "error"  // the rule could not be evaluated; the object is kept, and the error is to be reported
)

// Decision is the verdict about one object.
type Decision struct {
	Verdict Verdict
	// Reasons for it; of Delete and Unmatched there need be none.
	Reasons []policy.Reason
	// Protected: the rule selects the object, and the protection keeps it.
	Protected bool
}

// Decider decides about objects. It is immutable and safe for concurrent use.
type Decider struct {
	Protection Protection
	// Unprotected: no object is protected. It is for test suites, which delete nothing.
	Unprotected bool
	// Exceptions are those of all policies. A controller has to have loaded all of them: one that is
	// missing keeps nothing.
	Exceptions []*policy.Exception
}

// Decide decides whether a rule of a policy deletes the object of a case: the rule first, then
// exceptions, then the protection. It ends with ctx. Unlike for other rules, an exception that
// cannot be evaluated keeps the object: it might cover it.
func (d Decider) Decide(ctx context.Context, p *policy.Policy, rule policy.Deletion, about policy.Case) Decision {
	path := p.ID() + "/" + rule.Name()
	if p.Broken != nil || p.Namespace != "" && p.Namespace != about.Subject.Home() {
		return Decision{}
	}
	decided := rule.Decide(ctx, about)
	switch decided.Result {
	case "":
		return Decision{}
	case policy.Skipped:
		return Decision{Verdict: Keep, Reasons: decided.Reasons}
	case policy.Indeterminate:
		return Decision{Verdict: Unknown, Reasons: decided.Reasons}
	case policy.Pass:
	default:
		return Decision{Verdict: Unknown, Reasons: []policy.Reason{{
			Code: policy.Internal, Path: path, Message: fmt.Sprintf("the rule %s returned %q, which is a defect", rule.Name(), decided.Result),
		}}}
	}
	by, err := d.keeping(ctx, p, rule, about.Subject)
	switch {
	case by != nil:
		return Decision{Verdict: Keep, Reasons: []policy.Reason{{Code: policy.Excepted, Path: path, Message: set.SkipReason(by)}}}
	case err != nil:
		return Decision{Verdict: Unknown, Reasons: []policy.Reason{policy.LookReason(err, path)}}
	}
	if d.Unprotected {
		return Decision{Verdict: Delete}
	}
	metadata, _ := about.Subject.Object.Map()["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if why := d.Protection.Of(rule, about.Subject, labels); why != "" {
		return Decision{Verdict: Keep, Protected: true, Reasons: []policy.Reason{{Code: policy.SkippedByPolicy, Path: path, Message: why}}}
	}
	return Decision{Verdict: Delete}
}

// keeping returns an exception that keeps an object, or why that could not be evaluated. What an
// exception confines itself to, such as images, is not read: no part of an object can be deleted.
func (d Decider) keeping(ctx context.Context, p *policy.Policy, rule policy.Deletion, subject *policy.Subject) (*policy.Exception, error) {
	var errs []error
	for _, e := range d.Exceptions {
		if !set.Excepts(e, p, rule.Name(), subject.Time) {
			continue
		}
		if e.Scope == nil {
			return e, nil
		}
		covers, err := e.Scope.Covers(ctx, subject)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("evaluating the policy exception %s: %w", e.ID(), err))
		case covers:
			return e, nil
		}
	}
	return nil, errors.Join(errs...)
}
