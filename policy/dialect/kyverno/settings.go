package kyverno

import (
	"errors"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/action"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// contextOptions are the dependencies of the rules' contexts.
func (p *policyCompiler) contextOptions() rulecontext.Options {
	o := p.options
	return rulecontext.Options{
		Engine: o.Engine, Lookup: o.Lookup, Caller: o.Caller, Images: o.Images, Globals: o.Globals,
		Namespace: p.out.Namespace, SecretNamespace: o.SecretNamespace,
	}
}

// warns is emitWarning: the requester is warned of failures that Audit admits.
func (p *policyCompiler) warns() bool {
	return p.doc.Spec.EmitWarning != nil && *p.doc.Spec.EmitWarning
}

// oldForm reports whether match may be written without any and all.
func (p *policyCompiler) oldForm() bool { return !strings.HasPrefix(p.doc.APIVersion, "kyverno.io/v2") }

// settings reads the fields of spec other than the rules.
func (p *policyCompiler) settings() error {
	s := p.doc.Spec
	var errs []error
	failurePolicy, path := s.FailurePolicy, "spec.failurePolicy"
	if w := s.WebhookConfiguration; w != nil {
		if w.FailurePolicy != "" {
			failurePolicy, path = w.FailurePolicy, "spec.webhookConfiguration.failurePolicy"
		}
	}
	switch failurePolicy {
	case "", "Fail":
	case "Ignore":
		p.out.FailOpen = true
	default:
		errs = append(errs, field.Fail(path, "unknown value %q: want Fail or Ignore", failurePolicy))
	}
	errs = append(errs, p.timeout(), s.contradictions())
	p.out.OnlyScanned = s.Admission != nil && !*s.Admission
	p.out.Unscanned = s.unscanned()
	p.out.FirstRuleOnly = s.ApplyRules == "One"
	if s.ApplyRules != "" && s.ApplyRules != "All" && s.ApplyRules != "One" {
		errs = append(errs, field.Fail("spec.applyRules", "unknown value %q: want All or One", s.ApplyRules))
	}
	var err error
	p.actions, err = action.Compile(action.Document{Usual: s.ValidationFailureAction, Overrides: s.ValidationFailureActionOverrides, Warns: p.warns()})
	errs = append(errs, err)
	p.gate, err = p.compileGate()
	errs = append(errs, err)
	if len(s.Rules) == 0 {
		errs = append(errs, field.Fail("spec.rules", "is empty"))
	}
	if len(s.Rules) > maxRules {
		errs = append(errs, field.Fail("spec.rules", "the number of rules %w of %d", jmespath.ErrTooLarge, maxRules))
	}
	return errors.Join(errs...)
}

// The bounds of a webhook's timeout in Kubernetes, in seconds.
const minTimeout, maxTimeout = 1, 30

// timeout reads the time limit of a decision; the newer field takes precedence.
func (p *policyCompiler) timeout() error {
	seconds, path := p.doc.Spec.WebhookTimeoutSeconds, "spec.webhookTimeoutSeconds"
	if w := p.doc.Spec.WebhookConfiguration; w != nil && w.TimeoutSeconds != nil {
		seconds, path = w.TimeoutSeconds, "spec.webhookConfiguration.timeoutSeconds"
	}
	if seconds == nil {
		return nil
	}
	if *seconds < minTimeout || *seconds > maxTimeout {
		return field.Fail(path, "want %d to %d seconds, found %d", minTimeout, maxTimeout, *seconds)
	}
	p.out.Timeout = time.Duration(*seconds) * time.Second
	return nil
}
