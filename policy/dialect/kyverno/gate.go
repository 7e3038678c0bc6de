package kyverno

import (
	"context"
	"slices"
	"strconv"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

const matchConditions = "spec.webhookConfiguration.matchConditions"

// gate is webhookConfiguration.matchConditions: the policy is not evaluated for a request that
// the API server would not send to the webhook.
type gate struct {
	scope      *cel.Scope
	conditions kyvernocel.Conditions
}

var _ rule.Gate = (*gate)(nil)

// compileGate reads matchConditions; nil for none.
func (p *policyCompiler) compileGate() (rule.Gate, error) {
	w := p.doc.Spec.WebhookConfiguration
	if w == nil || len(w.MatchConditions) == 0 {
		return nil, nil
	}
	docs := make([]admission.MatchCondition, len(w.MatchConditions))
	for i, c := range w.MatchConditions {
		docs[i] = admission.MatchCondition{Name: c.Name, Expression: c.Expression}
	}
	scope, err := kyvernocel.NewScope(p.language.Environment)
	if err != nil {
		return nil, field.Below(matchConditions, err)
	}
	conditions, err := kyvernocel.CompileWebhookConditions(scope, docs, matchConditions)
	return &gate{scope: scope, conditions: conditions}, err
}

// checkGate refuses matchConditions that read a field which no kind of the policy has: they would
// exempt every object, or none.
func (p *policyCompiler) checkGate() error {
	g, ok := p.gate.(*gate)
	if !ok {
		return nil
	}
	warnings, err := p.language.CheckFields(p.out.Targets, g.conditions...)
	p.out.Warnings = append(p.out.Warnings, warnings...)
	return err
}

// Opens evaluates the conditions. They need an admission request: without one there is nothing to
// evaluate them on.
func (g *gate) Opens(ctx context.Context, s *policy.Subject) (bool, error) {
	held, err := g.conditions.Hold(ctx, g.scope.NewActivation(cel.Inputs{Variables: kyvernocel.Variables(s, nil, nil)}))
	return held, field.Below(matchConditions, err)
}

// BeyondObject reports whether a condition reads the requester, the options, the old object
// or another part of the request that an object does not have by itself.
func (g *gate) BeyondObject() bool {
	return slices.ContainsFunc(g.conditions, func(p *cel.Program) bool { return slices.ContainsFunc(p.Reads(), beyondObject) })
}

func beyondObject(read cel.Read) bool {
	switch read.Variable {
	case kyvernocel.OldObjectName:
		return true
	case kyvernocel.RequestName:
		return !slices.Contains([]string{"operation", "kind", "name", "namespace"}, read.Field)
	}
	return false
}

// onlyForObjects refuses settings that rules about images cannot honour.
func (p *policyCompiler) onlyForObjects(rules int) []error {
	var errs []error
	if p.gate != nil {
		errs = append(errs, document.Unsupported(matchConditions, "a condition in CEL, in a policy with verifyImages,"))
	}
	if p.out.OnlyScanned {
		errs = append(errs, document.Unsupported("spec.admission", "a policy for background scans alone, with verifyImages,"))
	}
	if p.out.FirstRuleOnly && rules > 1 {
		errs = append(errs, document.Unsupported("spec.applyRules", "One, in a policy of "+strconv.Itoa(rules)+" rules with verifyImages,"))
	}
	return errs
}
