package kyverno

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/action"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// compiledRule is a policy.Rule.
type compiledRule struct {
	name          string
	path          string
	selection     match.Selection
	template      rulecontext.PodTemplate // of a generated rule
	extractors    map[string][]policy.Extractor
	preconditions *condition.Conditions
	values        rule.Data
	entries       []*verifyimages.Entry
	actions       action.Actions
	// asks means that some part of the rule is evaluated on the context.
	asks, hasPreconditions bool
	// reads are the subject fields that the expressions read; namespaced means that the policy is
	// one of a namespace.
	reads      rulecontext.Reading
	namespaced bool
	// targets are the kinds that match may select.
	targets []policy.Target
	// selects: more than kind and namespace decides which objects it matches.
	selects bool
}

var (
	_ policy.Selective  = (*compiledRule)(nil)
	_ policy.Pinner     = (*compiledRule)(nil)
	_ policy.Rematching = (*compiledRule)(nil)
)

func (p *policyCompiler) compileRule(doc imagesRule, path string) (*compiledRule, error) {
	r := &compiledRule{name: doc.Name, path: path, actions: p.actions, reads: readingOf(doc), namespaced: p.out.Namespace != ""}
	var errs []error
	var err error
	r.selection, err = match.CompileSelection(doc.Match, doc.Exclude, path, p.out.Namespace)
	errs = append(errs, err, doc.Match.CheckOperations([]string{"CREATE", "UPDATE"}, path+".match"))
	if !p.oldForm() {
		if doc.Match.OldForm() || doc.Exclude != nil && doc.Exclude.OldForm() {
			errs = append(errs, field.Fail(path+".match", "the old form without any and all is not part of %s", p.doc.APIVersion))
		}
	}
	if len(doc.CELPreconditions) > 0 {
		errs = append(errs, document.Unsupported(path+".celPreconditions", "a precondition in CEL"))
	}
	r.extractors, err = rule.CompileExtractors(p.options.Engine, doc.ImageExtractors, r.selection.Match, path+".imageExtractors")
	errs = append(errs, err)
	r.values.Properties, err = rule.CompileProperties(p.options.Engine, doc.ReportProperties, path+".reportProperties")
	errs = append(errs, err)
	context := p.contextOptions().Reading(doc.Context)
	r.preconditions, err = condition.CompileDemanding(context.Engine, doc.Preconditions)
	errs = append(errs, field.Below(path+".preconditions", err), document.NeverHolds(doc.Preconditions, path+".preconditions"))
	r.values.Entries, err = rulecontext.Compile(context, doc.Context, path+".context")
	errs = append(errs, err, rulecontext.CheckConditions(doc.Preconditions, path+".preconditions", r.values.Names()))
	r.hasPreconditions = doc.Preconditions != nil
	r.asks = r.hasPreconditions
	if len(doc.VerifyImages) == 0 || len(doc.VerifyImages) > maxEntries {
		errs = append(errs, field.Fail(path+".verifyImages", "want 1 to %d entries, found %d", maxEntries, len(doc.VerifyImages)))
		return nil, errors.Join(errs...)
	}
	options := verifyimages.Options{Engine: p.options.Engine, Namespace: p.out.Namespace, SecretNamespace: p.options.SecretNamespace, Platforms: p.platforms}
	options.Known = r.values.Names()
	for i, raw := range doc.VerifyImages {
		short := "verifyImages[" + strconv.Itoa(i) + "]"
		e, err := verifyimages.Compile(options, raw, path, short)
		errs = append(errs, err)
		if err == nil {
			r.entries = append(r.entries, e)
			r.asks = r.asks || e.Asks()
			p.enforces = p.enforces || e.Action() == policy.Enforce || e.Action() == "" && p.actions.CanEnforce()
		}
	}
	return r, errors.Join(errs...)
}

// Name returns the rule's name.
func (r *compiledRule) Name() string { return r.name }

// Extractors returns those that the rule has for the subject's kind.
func (r *compiledRule) Extractors(s *policy.Subject) []policy.Extractor { return r.extractors[s.Kind] }

// Plan returns whether the rule applies to the subject, and the checks of each entry for each
// image. The context is built only if some image is concerned. Unknown fields of the subject have
// an effect only then, too.
func (r *compiledRule) Plan(ctx context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	if s.Operation == "DELETE" {
		return policy.RulePlan{Skip: "nothing will run after a deletion"}, nil
	}
	concerned := r.mayConcern(images) || r.findsElsewhere(s)
	applies := r.selection.Applies(s)
	if applies.False() {
		return policy.RulePlan{Skip: "the rule does not match the object, or excludes it"}, nil
	}
	unsure := applies.Cause()
	switch {
	case policy.IsUnconverted(unsure):
		return policy.RulePlan{}, unsure
	case !concerned:
		return policy.RulePlan{}, nil
	}
	if s.Bare { // nothing more is known of one, and so the rule cannot be evaluated
		if err := cmp.Or(unsure, r.asksMore(s)); err != nil {
			return policy.RulePlan{}, err
		}
	}
	var data verifyimages.Lazy
	var result condition.Result
	for _, s := range operations(s, r.reads) { // the preconditions hold where they do for one
		data = r.data(ctx, s, images)
		var err error
		result, err = r.ask(data)
		if err != nil {
			return policy.RulePlan{}, err
		}
		if result.Held || result.Indeterminate {
			break
		}
	}
	// Where the preconditions are indeterminate, the rule is evaluated: the object's author
	// must not choose that it is not.
	if !result.Held && !result.Indeterminate {
		return policy.RulePlan{Skip: "the preconditions are not met: " + result.Words()}, nil
	}
	var plan policy.RulePlan
	for _, e := range r.entries {
		act, err := r.actions.Of(s, e.Action())
		unsure = cmp.Or(unsure, err)
		checks, err := e.Checks(images, act, data)
		if err != nil {
			return policy.RulePlan{}, err
		}
		plan.Checks = append(plan.Checks, checks...)
	}
	properties := r.values.Properties.Found(data)
	for i := range plan.Checks {
		plan.Checks[i].Unsure, plan.Checks[i].Properties = unsure, properties
	}
	return plan, nil
}

// data returns the context of the rule. Everything is looked up at once: a failed lookup makes the
// rule undecided, instead of an image that a condition denies.
func (r *compiledRule) data(ctx context.Context, s *policy.Subject, images []policy.Image) verifyimages.Lazy {
	return sync.OnceValues(func() (variable.Context, error) {
		data := r.values.Context(ctx, rulecontext.Source{
			Subject: s, Template: r.template, Images: func() ([]policy.Image, error) { return images, nil },
		})
		return data, data.Settle()
	})
}

// ask evaluates the preconditions. A context with entries of the policy's is built at once if
// anything needs it: a failed lookup makes the rule undecided, instead of an image that a
// condition denies.
func (r *compiledRule) ask(base verifyimages.Lazy) (condition.Result, error) {
	if !r.asks || !r.hasPreconditions && r.values.Len() == 0 {
		return r.preconditions.Evaluate(nil)
	}
	data, err := base()
	if err != nil {
		return condition.Result{}, err
	}
	result, err := r.preconditions.Evaluate(data)
	return result, field.Below(r.path+".preconditions", err)
}

// Targets returns the kinds that the rule matches.
func (r *compiledRule) Targets() []policy.Target { return r.targets }

// PinsNamed reports whether an entry pins images in objects that no rule about pods
// follows up.
func (r *compiledRule) PinsNamed() bool {
	return (len(r.template) == 0 || r.selects) && slices.ContainsFunc(r.entries, (*verifyimages.Entry).Pins)
}

// MayRematch reports whether an update may bring an object under the rule.
func (r *compiledRule) MayRematch() bool { return r.selects }

// ReadsUpdate returns false: as in Kyverno, signers and conditions that read the object are not
// evaluated again for an image that the rule matched before.
func (r *compiledRule) ReadsUpdate(*policy.Subject) bool { return false }

// ImagePatterns returns the image patterns of the entries, unless they depend on a variable or on
// the result of an extractor.
func (r *compiledRule) ImagePatterns() ([]string, bool) {
	if len(r.extractors) > 0 {
		return nil, false
	}
	var patterns []string
	for _, e := range r.entries {
		of, known := e.Patterns()
		if !known {
			return nil, false
		}
		patterns = append(patterns, of...)
	}
	return patterns, true
}

// mayConcern reports whether an entry matches an image, or may match it after its variables are
// resolved.
func (r *compiledRule) mayConcern(images []policy.Image) bool {
	for _, e := range r.entries {
		patterns, known := e.Patterns()
		for _, i := range images {
			if i.Unchanged {
				continue
			}
			if !known || reference.Concerns(patterns, i.Ref) {
				return true
			}
		}
	}
	return false
}
