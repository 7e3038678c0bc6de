package evaluation

import (
	"context"
	"slices"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/deletion"
	"github.com/quaymaster/quaymaster/policy/set"
)

// Deletion is the decision of a rule that deletes existing objects about one of them.
type Deletion struct {
	Rule policy.Deletion
	deletion.Decision
}

// delete adds the results of rules that delete existing objects, about the object as it was before
// mutation rules. As in Kyverno's suites, a rule passes for an object that it deletes and fails for one
// that it keeps.
func (a *Answer) delete(ctx context.Context, of *set.Set, request gate.Request, by deletion.Decider) {
	var subject policy.Subject
	switch {
	case request.Object.IsDocument():
		subject.Document = true
	case a.Outcome.Subject == nil:
		return
	default:
		subject = *a.Outcome.Subject
	}
	subject.Object = policy.ContentFrom(request.Object)
	by.Exceptions = of.Exceptions()
	for _, p := range of.Policies() {
		for _, rule := range p.Deletions {
			decided := by.Decide(ctx, p, rule, policy.Case{Subject: &subject, Find: finder(request.Object)})
			if one, matched := deletionResult(p, rule, decided); matched {
				a.Rules = append(a.Rules, one)
			}
		}
	}
}

// deletionResult is the result of a rule; false for one that does not match the object, of which
// Kyverno has a result for its older kinds alone.
func deletionResult(p *policy.Policy, rule policy.Deletion, decided deletion.Decision) (RuleResult, bool) {
	one := RuleResult{Policy: p, Rule: rule.Name(), Kind: policy.DeleteRule, Message: Words(decided.Reasons), Deletion: &Deletion{rule, decided}}
	switch decided.Verdict {
	case deletion.Delete:
		one.Result = Pass
	case deletion.Keep:
		one.Result = Fail
	case deletion.Unknown:
		one.Result = Error
	default:
		one.Result, one.Message = Fail, "the policy does not select the object"
		return one, slices.Contains([]string{"CleanupPolicy", "ClusterCleanupPolicy"}, p.Kind)
	}
	return one, true
}
