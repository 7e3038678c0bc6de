package validate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/action"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

const (
	// maxNesting bounds foreach in foreach, and maxLoops those beside one another.
	maxNesting, maxLoops = 5, 50
	// maxPatterns bounds anyPattern.
	maxPatterns = 200
)

// Options are the policy settings for rules.
type Options struct {
	Rule rule.Options
	// Actions are the policy's, for rules that say nothing themselves.
	Actions action.Actions
	// CEL makes the language of cel rules; required.
	CEL *Language
	// Manifests verify signed manifests.
	Manifests manifests.Options
	// Original is the rule that this one follows from, to which references in messages
	// refer; empty for all others.
	Original json.RawMessage
	// Template is the path of the pod template in generated cel rules.
	Template []string
}

// Rule is a policy.Validation.
type Rule struct {
	head    *rule.Head
	actions action.Actions
	path    string
	// strict: an existing violation excuses nothing.
	strict  bool
	message *message
	check   checker
	// warnings are shown to the author of the rule when it is written.
	warnings []string
}

var _ policy.Validation = (*Rule)(nil)

// checker is a rule's check.
type checker interface {
	// check evaluates. Data is the rule's own, and may be added to.
	check(c *question, data variable.Context) outcome
}

// question is one evaluation of a rule.
type question struct {
	ctx   context.Context
	rule  *Rule
	about policy.Case
	// element is the value that patterns are matched against in a scoped foreach.
	element any
	scoped  bool
}

// outcome is the result of a check; the zero outcome has no result for the object.
type outcome struct {
	result  policy.Result
	reasons []policy.Reason
	// doubtful, exempted, annotations and properties are as in policy.Validated.
	doubtful, exempted      bool
	annotations, properties map[string]string
}

func passed() outcome { return outcome{result: policy.Pass} }

func failed(message string) outcome {
	return outcome{result: policy.Fail, reasons: []policy.Reason{{Code: policy.Violated, Message: message}}}
}

func answered(a *rule.Answer) outcome { return outcome{result: a.Result, reasons: a.Reasons} }

func undecided(path string, err error) outcome {
	return answered(rule.Undecided(field.Below(path, err)))
}

// where returns the outcome of a check of which it is indeterminate whether it applies, for
// the reason that doubt is; nil for none. A failure is then indeterminate, too, and a pass
// stays one that may not apply.
func (o outcome) where(doubt error) outcome {
	switch {
	case doubt == nil:
	case o.result == policy.Pass:
		o.doubtful = true
	case o.result == policy.Fail:
		o.result, o.reasons = policy.Indeterminate, append([]policy.Reason{rule.ReasonOf(doubt)}, o.reasons...)
	}
	return o
}

// Compile reads a rule, JSON that is an object. Path is its location, for errors, which refer to
// fields.
func Compile(options Options, raw json.RawMessage, path string) (*Rule, error) {
	var doc Document
	if err := document.Decode(raw, &doc, path); err != nil {
		return nil, err
	}
	if doc.Validate == nil {
		return nil, field.Fail(path+".validate", "is empty")
	}
	v, place := doc.Validate, path+".validate"
	options.Rule.Operations, options.Rule.Preconditions = v.operations(), condition.CompileDemanding
	options.Rule.Context = options.Rule.Context.Reading(doc.Context)
	options.Rule.Plain = (v.Pattern != nil || v.AnyPattern != nil || v.PodSecurity != nil) && rule.Plain(raw)
	var errs []error
	head, err := rule.Compile(options.Rule, doc.Document, path)
	if err = errors.Join(err, doc.Match.CheckOperations(v.operations(), path+".match")); err != nil {
		return nil, err
	}
	// In Kyverno the existing-violations setting applies neither to CEL expressions nor to manifests, and not to
	// rules with preconditions: it does not match their old objects.
	strict := v.CEL != nil || v.Manifests != nil || doc.Preconditions != nil || v.AllowExistingViolations != nil && !*v.AllowExistingViolations
	gate := options.Rule.Gate
	r := &Rule{head: head, path: path, strict: strict || doc.aboutRequest() || gate != nil && gate.BeyondObject()}
	r.actions, err = options.actionsOf(v, place)
	errs = append(errs, err)
	c := compiler{Options: options, rule: doc.Name}
	r.message, err = c.compileMessage(v.Message, cmp.Or(string(options.Original), string(raw)), place+".message")
	errs = append(errs, err)
	c.known = head.Entries()
	r.check, err = c.checker(&doc, place)
	errs = append(errs, err)
	if p, ofCEL := r.check.(*program); ofCEL && err == nil && len(options.Template) == 0 {
		r.warnings, err = p.checkFields(head.Targets())
		errs = append(errs, err)
	}
	return r, errors.Join(errs...)
}

// operations are the default if the rule's match names none: Kyverno evaluates patterns and manifests
// for no deletions.
func (v *validation) operations() []string {
	if v.Pattern != nil || v.AnyPattern != nil || v.PodSecurity != nil || v.Manifests != nil {
		return withoutDeletions()
	}
	return Operations()
}

// Operations are those of a rule without a pattern.
func Operations() []string { return []string{"CREATE", "UPDATE", "DELETE", "CONNECT"} }

func withoutDeletions() []string { return []string{"CREATE", "UPDATE", "CONNECT"} }

// RoughOperations is operations for the text of `validate` that may not compile: anything that is
// not certainly a pattern evaluates deletions as well.
func RoughOperations(text json.RawMessage) []string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(text, &fields) // an unreadable text has none
	found := false
	for name := range fields {
		switch name {
		case "pattern", "anyPattern", "podSecurity", "manifests":
			found = true
		case "message", "failureAction", "failureActionOverrides", "allowExistingViolations":
		default:
			return Operations()
		}
	}
	if found {
		return withoutDeletions()
	}
	return Operations()
}

// actionsOf returns the rule's own actions, or the policy's.
func (o Options) actionsOf(v *validation, path string) (action.Actions, error) {
	if v.FailureAction == "" && len(v.FailureActionOverrides) == 0 {
		return o.Actions, nil
	}
	return o.Actions.With(action.Document{Usual: v.FailureAction, Overrides: v.FailureActionOverrides}, path)
}

// Warnings returns the warnings for the author of the rule when it is written.
func (r *Rule) Warnings() []string { return r.warnings }

// IsOfManifests reports whether the rule verifies signed manifests. No rules for pod controllers follow
// from it, as in Kyverno: a pod template is not signed by itself.
func (r *Rule) IsOfManifests() bool { _, is := r.check.(*signed); return is }

// Name returns the rule's name.
func (r *Rule) Name() string { return r.head.Name() }

// Targets returns the kinds that the rule matches.
func (r *Rule) Targets() []policy.Target { return r.head.Targets() }

// CanEnforce reports whether a failure denies anywhere.
func (r *Rule) CanEnforce() bool { return r.actions.CanEnforce() }

// Excuses reports whether an update of an object that violated the rule before may pass, where a failure
// denies.
func (r *Rule) Excuses() bool { return !r.strict }

// Validate judges the object of a case.
func (r *Rule) Validate(ctx context.Context, about policy.Case) policy.Validated {
	found, data := r.ask(ctx, about)
	if found.result == "" {
		return policy.Validated{}
	}
	act, err := r.actions.Of(about.Subject, "")
	if err != nil {
		// Whether a failure denies is not known, so that it does.
		act = policy.Enforce
		if found.result == policy.Fail || found.result == policy.Indeterminate {
			found.reasons = append(found.reasons, rule.ReasonOf(field.Below(r.path, err)))
		}
	}
	if found.result == policy.Fail && err == nil && !act.Admits() && r.actions.Enforces() && r.failedBefore(ctx, about) {
		found = answered(rule.Skip("the object violated the rule before this update (allowExistingViolations)"))
	}
	return policy.Validated{
		Result: found.result, Reasons: found.reasons, Exempted: found.exempted, Action: act,
		Doubtful:         found.doubtful || found.result == policy.Pass && r.head.AssumesUser(about.Subject),
		AuditAnnotations: found.annotations, Properties: r.head.Properties().With(data, found.properties),
	}
}

// ask evaluates the rule for the object of a case, and returns the data of its variables.
func (r *Rule) ask(ctx context.Context, about policy.Case) (outcome, variable.Context) {
	data, answer, doubt := r.head.Ask(ctx, about)
	if answer != nil {
		return answered(answer), data
	}
	return r.check.check(&question{ctx: ctx, rule: r, about: about}, data).where(doubt), data
}

// deletes reports whether the object of a question is deleted.
func (q *question) deletes() bool { return q.about.Subject.Operation == "DELETE" }

type compiler struct {
	Options
	rule string
	// known are the names that variables may read in addition to those of every context.
	known []string
}

// checker compiles the rule's check: exactly one.
func (c compiler) checker(doc *Document, path string) (checker, error) {
	v := doc.Validate
	ways := map[string]bool{
		"pattern": v.Pattern != nil, "anyPattern": v.AnyPattern != nil, "deny": v.Deny != nil, "foreach": v.ForEach != nil,
		"podSecurity": v.PodSecurity != nil, "cel": v.CEL != nil, "manifests": v.Manifests != nil, "assert": v.Assert != nil,
	}
	found := 0
	for _, is := range ways {
		if is {
			found++
		}
	}
	switch {
	case v.Assert != nil:
		return nil, document.Unsupported(path+".assert", "an assertion tree")
	case found != 1:
		return nil, field.Fail(path, "want one of pattern, anyPattern, deny, foreach, podSecurity, cel and manifests, found %d", found)
	case v.CEL == nil && len(doc.CELPreconditions) > 0:
		return nil, field.Fail(strings.TrimSuffix(path, ".validate")+".celPreconditions", "belong to a rule with cel: write preconditions")
	case v.PodSecurity != nil:
		return c.podSecurity(v.PodSecurity, path+".podSecurity")
	case v.CEL != nil:
		return c.cel(doc, path)
	case v.Manifests != nil:
		return c.manifests(v.Manifests, path+".manifests")
	}
	return c.body(body{Pattern: v.Pattern, AnyPattern: v.AnyPattern, Deny: v.Deny, ForEach: v.ForEach}, path, 0)
}

// body is the part that a rule and a foreach share.
type body struct {
	Pattern    any
	AnyPattern []any
	Deny       *deny
	ForEach    []forEach
}

func (c compiler) body(b body, path string, nesting int) (checker, error) {
	if err := c.undefined(b, path); err != nil {
		return nil, err
	}
	switch {
	case b.Deny != nil:
		return c.deny(b.Deny, path+".deny")
	case b.Pattern != nil:
		return c.pattern(b.Pattern, path+".pattern")
	case b.AnyPattern != nil:
		return c.anyPattern(b.AnyPattern, path+".anyPattern")
	}
	return c.loops(b.ForEach, path+".foreach", nesting)
}

// undefined refuses variables of names that nothing defines; loops check their own.
func (c compiler) undefined(b body, path string) error {
	errs := []error{rulecontext.Undefined(b.Pattern, path+".pattern", c.known), rulecontext.Undefined(b.AnyPattern, path+".anyPattern", c.known)}
	if b.Deny != nil {
		errs = append(errs, rulecontext.CheckConditions(b.Deny.Conditions, path+".deny.conditions", c.known))
	}
	return errors.Join(errs...)
}

// context returns the dependencies of context entries.
func (c compiler) context() rulecontext.Options { return c.Rule.Context }
