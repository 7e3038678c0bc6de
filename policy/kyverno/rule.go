package kyverno

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/condition"
	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/reference"
	"github.com/quaymaster/quaymaster/policy/variable"
)

// compiledRule is a policy.Rule.
type compiledRule struct {
	name          string
	path          string
	match         block
	exclude       block
	template      templateOf // of a generated rule
	extractors    map[string][]policy.Extractor
	preconditions *condition.Conditions
	values        values
	entries       []*entry
	actions       actions
	// asks says that something in the rule is evaluated on the context.
	asks, hasPreconditions bool
	// reads is what the expressions read of the subject; namespaced says that the
	// policy is one of a namespace.
	reads      reading
	namespaced bool
	// targets are what match may speak of.
	targets []policy.Target
}

var _ policy.Selective = (*compiledRule)(nil)

func (p *policyCompiler) compileRule(doc rule, path string) (*compiledRule, error) {
	r := &compiledRule{name: doc.Name, path: path, actions: p.actions, reads: readingOf(doc), namespaced: p.out.Namespace != ""}
	var errs []error
	var err error
	if r.match, err = compileBlock(doc.Match, path+".match"); err == nil && len(r.match.filters) == 0 {
		err = fail(path+".match", "is empty, and so would match nothing")
	}
	errs = append(errs, err)
	if doc.Exclude != nil {
		r.exclude, err = compileBlock(*doc.Exclude, path+".exclude")
		errs = append(errs, err)
	}
	if strings.HasPrefix(p.doc.APIVersion, "kyverno.io/v2") {
		if !doc.Match.empty() || doc.Exclude != nil && !doc.Exclude.empty() {
			errs = append(errs, fail(path+".match", "the old form without any and all is not part of %s", p.doc.APIVersion))
		}
	}
	if len(doc.CELPreconditions) > 0 {
		errs = append(errs, unsupported(path+".celPreconditions", "a precondition in CEL"))
	}
	r.extractors, err = p.compileExtractors(doc.ImageExtractors, path+".imageExtractors")
	errs = append(errs, err)
	r.preconditions, err = condition.Compile(p.options.Engine, doc.Preconditions)
	errs = append(errs, below(path+".preconditions", err), neverHolds(doc.Preconditions, path+".preconditions"))
	r.values, err = p.compileValues(doc.Context, path+".context")
	errs = append(errs, err)
	r.hasPreconditions = doc.Preconditions != nil
	r.asks = r.hasPreconditions
	if len(doc.VerifyImages) == 0 || len(doc.VerifyImages) > maxEntries {
		errs = append(errs, fail(path+".verifyImages", "want 1 to %d entries, found %d", maxEntries, len(doc.VerifyImages)))
		return nil, errors.Join(errs...)
	}
	for i, raw := range doc.VerifyImages {
		short := "verifyImages[" + strconv.Itoa(i) + "]"
		e, err := p.compileEntry(raw, path, short)
		errs = append(errs, err)
		if err == nil {
			r.entries = append(r.entries, e)
			r.asks = r.asks || e.asks()
			p.enforces = p.enforces || e.action == policy.Enforce || e.action == "" && p.actions.canEnforce()
		}
	}
	return r, errors.Join(errs...)
}

// below puts the path of a field before an error of a rule language, whose own
// paths are JSON pointers inside that field.
func below(path string, err error) error {
	if err == nil {
		return nil
	}
	return &FieldError{Path: path, Err: err}
}

// compileExtractors reads imageExtractors. One with a jmesPath makes the
// reference by evaluating it on the text that was found.
func (p *policyCompiler) compileExtractors(doc map[string][]imageExtractor, path string) (map[string][]policy.Extractor, error) {
	compiled := make(map[string][]policy.Extractor, len(doc))
	var errs []error
	for kind, list := range doc {
		for i, e := range list {
			place := fmt.Sprintf("%s.%s[%d]", path, kind, i)
			if !strings.HasPrefix(e.Path, "/") {
				errs = append(errs, fail(place+".path", "want a path from the object's root, such as /spec/image, found %q", e.Path))
			}
			out := policy.Extractor{Name: e.Name, Path: e.Path, Value: e.Value, Key: e.Key}
			if e.JMESPath != "" {
				query, err := p.options.Engine.Compile(e.JMESPath)
				errs = append(errs, below(place+".jmesPath", err))
				out.Transform = transform(query)
			}
			compiled[kind] = append(compiled[kind], out)
		}
	}
	return compiled, errors.Join(errs...)
}

func transform(query *jmespath.Query) func(string) (string, error) {
	return func(text string) (string, error) {
		value, err := query.Search(text)
		if err != nil {
			return "", err
		}
		reference, ok := value.(string)
		if !ok || reference == "" {
			return "", fmt.Errorf("the jmesPath %s gives %s, and no image reference", query, jmespath.Text(value))
		}
		return reference, nil
	}
}

// Name returns the rule's name.
func (r *compiledRule) Name() string { return r.name }

// Extractors returns those that the rule has for the subject's kind.
func (r *compiledRule) Extractors(s *policy.Subject) []policy.Extractor { return r.extractors[s.Kind] }

// Plan asks: does the rule apply to the subject, and what does each entry ask of
// each image? The context is built only if some image is concerned. What is not
// known of the subject matters only then, too.
func (r *compiledRule) Plan(ctx context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	if s.Operation == "DELETE" {
		return policy.RulePlan{Skip: "nothing will run after a deletion"}, nil
	}
	concerned := r.mayConcern(images) || r.findsElsewhere(s)
	matched, unsure := r.match.matches(s, false)
	if unsure == nil && !matched {
		return policy.RulePlan{Skip: "the rule does not match the object"}, nil
	}
	excluded, err := r.exclude.matches(s, true)
	if err == nil && excluded {
		return policy.RulePlan{Skip: "the rule excludes the object"}, nil
	}
	if !concerned {
		return policy.RulePlan{}, nil
	}
	if err := cmp.Or(unsure, err, r.asksMore(s)); err != nil {
		return policy.RulePlan{}, err
	}
	data := sync.OnceValues(func() (variable.Context, error) { return r.context(ctx, s, images) })
	result, err := r.ask(data)
	if err != nil {
		return policy.RulePlan{}, err
	}
	// Where a precondition is in doubt, the rule is asked: whoever writes the
	// object must not talk it away.
	if !result.Held && !result.InDoubt() {
		return policy.RulePlan{Skip: "the preconditions are not met: " + words(result)}, nil
	}
	var plan policy.RulePlan
	for _, e := range r.entries {
		checks, err := e.checks(r, s, images, data)
		if err != nil {
			return policy.RulePlan{}, err
		}
		plan.Checks = append(plan.Checks, checks...)
	}
	return plan, nil
}

// lazy is the rule's context, built when the first expression needs it.
type lazy func() (variable.Context, error)

// ask evaluates the preconditions. A context with entries of the policy's is built
// at once if anything needs it: what cannot be looked up makes the rule undecided, and not the
// image denied by a condition.
func (r *compiledRule) ask(base lazy) (condition.Result, error) {
	if !r.asks || !r.hasPreconditions && len(r.values.entries) == 0 {
		return r.preconditions.Evaluate(nil)
	}
	data, err := base()
	if err != nil {
		return condition.Result{}, err
	}
	result, err := r.preconditions.Evaluate(data)
	return result, below(r.path+".preconditions", err)
}

// Targets returns the kinds that the rule matches.
func (r *compiledRule) Targets() []policy.Target { return r.targets }

// ImagePatterns returns what the entries speak of, unless that depends on a
// variable or on what an extractor finds.
func (r *compiledRule) ImagePatterns() ([]string, bool) {
	if len(r.extractors) > 0 {
		return nil, false
	}
	var patterns []string
	for _, e := range r.entries {
		if e.static == nil {
			return nil, false
		}
		patterns = append(patterns, e.static.references...)
	}
	return patterns, true
}

// mayConcern reports whether an entry speaks of an image, or may do so once its
// variables are filled in.
func (r *compiledRule) mayConcern(images []policy.Image) bool {
	for _, e := range r.entries {
		for _, i := range images {
			if i.Unchanged {
				continue
			}
			if e.static == nil || reference.Concerns(e.static.references, i.Ref) {
				return true
			}
		}
	}
	return false
}

// words says which conditions decided, in one line.
func words(result condition.Result) string {
	var list []string
	for _, outcome := range result.Decisive() {
		list = append(list, outcome.String())
	}
	return strings.Join(list, "; ")
}
