package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/suite/document"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/policy/suite/result"
	"github.com/quaymaster/quaymaster/workload"
)

// checks runs the checks of a row: one for each object that it names.
func (t *compiledSuite) checks(ctx context.Context, r *document.Row, filter Filter) []result.Check {
	blank := result.Check{Policy: r.Policy, Rule: r.Rule, Want: r.Result}
	place := t.policyOf(r)
	left := t.apartFor(r, place)
	switch {
	case left != nil:
		blank.Message = left.why
		return every(blank.As(result.Failed, unreadReason), r, filter)
	case place < 0:
		return every(blank.As(result.Failed, "no policy of the suite has this name"), r, filter)
	}
	selected, missing := t.selected(r, filter)
	var checks []result.Check
	for _, name := range missing {
		c := blank
		c.Resource = strings.TrimPrefix(r.Kind+"/"+name, "/")
		checks = append(checks, c.As(result.Failed, "no object of the suite has this kind and name"))
	}
	if names, ruled := rulesOf(t.policies[place]); ruled && !slices.ContainsFunc(names, func(name string) bool { return follows(r.Rule, name) }) {
		const why = "the policy has no rule of this name"
		t.warn(r, fmt.Sprintf("%s (it has %s), and the row checks nothing", why, strings.Join(names, ", ")))
		for _, c := range every(blank.As(result.Skipped, why), r, filter) {
			if !slices.ContainsFunc(checks, func(failed result.Check) bool { return failed.Resource == c.Resource }) {
				checks = append(checks, c)
			}
		}
		return checks
	}
	spoken := false
	for _, object := range selected {
		c := t.check(ctx, r, place, object)
		spoken = spoken || c.Got != ""
		checks = append(checks, c)
	}
	if !r.Names() && !spoken && r.Result != evaluation.Skip && filter.Resource == "" {
		c := blank
		c.Resource = r.Kind
		checks = append(checks, c.As(result.Failed, "the rule matches no object of the suite"))
	}
	return checks
}

// policyOf returns the index of the policy of a row, -1 for none: of several with its name, the first of
// the kind that it selects.
func (t *compiledSuite) policyOf(r *document.Row) int {
	named := func(p evaluation.Policy) bool { return p.Is(r.Policy) }
	place := slices.IndexFunc(t.policies, func(p evaluation.Policy) bool { return named(p) && r.Selects(p.Object.Kind()) })
	if place < 0 {
		return slices.IndexFunc(t.policies, named)
	}
	return place
}

// unreadReason is the reason of checks about a policy with an error.
const unreadReason = "the policy could not be read"

// apartFor returns the document that a row is about and that is not evaluated; nil for none. Of several
// policies with the name, one of the kind that the row selects precedes the policy at the index.
func (t *compiledSuite) apartFor(r *document.Row, place int) *notEvaluated {
	for i := range t.apart {
		left := &t.apart[i]
		if left.Is(r.Policy) && (place < 0 || (r.Selects(left.Object.Kind()) || !r.Selects(t.policies[place].Object.Kind()))) {
			return left
		}
	}
	return nil
}

// warn adds a warning about a row.
func (s *loaded) warn(r *document.Row, what string) {
	s.warnings = append(s.warnings, fmt.Sprintf("policy %s, rule %q, result %s: %s", r.Policy, r.Rule, r.Result, what))
}

// every returns the check for each object that a row names.
func every(blank result.Check, r *document.Row, filter Filter) []result.Check {
	names := slices.Clone(r.Resources)
	for _, s := range r.ResourceSpecs {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		names = []string{""}
	}
	var checks []result.Check
	for _, name := range names {
		if name == "" || filter.resource(name) {
			c := blank
			c.Resource = strings.Trim(r.Kind+"/"+name, "/")
			checks = append(checks, c)
		}
	}
	return checks
}

// rulesOf returns the names of a policy's rules, and whether it is of a kind with rules.
func rulesOf(p evaluation.Policy) (names []string, ok bool) {
	spec, _ := p.Object.Content()["spec"].(map[string]any)
	rules, ok := spec["rules"].([]any)
	for _, raw := range rules {
		if one, _ := raw.(map[string]any); one["name"] != nil {
			name, _ := one["name"].(string)
			names = append(names, name)
		}
	}
	return names, ok
}

// check compares a rule's result for one object with the expected result.
func (t *compiledSuite) check(ctx context.Context, r *document.Row, place int, object workload.Object) result.Check {
	c := result.Check{Policy: r.Policy, Rule: r.Rule, Resource: title(object), Want: r.Result}
	if slices.ContainsFunc(t.targets, func(o workload.Object) bool { return keyOf(o) == keyOf(object) }) {
		return t.checkTarget(ctx, r, place, object, c)
	}
	a := t.evaluate(ctx, object, r.Operation, place)
	if a.Err != nil {
		c.Got, c.Message = evaluation.Error, a.Err.Error()
		return c.As(result.Failed, "could not be evaluated")
	}
	rules := by(a, t.policies[place], r.Rule)
	if len(rules) == 0 {
		return excluded(c, a)
	}
	worst := rules[0]
	for _, one := range rules[1:] {
		if evaluation.Worse(one.Result, worst.Result) {
			worst = one
		}
	}
	c.Got, c.Message = scored(t.policies[place], worst.Result), worst.Message
	made := same
	if isCompared(c) {
		made = t.compare(ctx, ruled{row: r, place: place, object: object, answer: a, rules: rules}, &c)
	}
	return concluded(c, made)
}

// comparison is the result of a comparison with a row's files.
type comparison int

const (
	same comparison = iota
	different
	undecided // and the check has its outcome
)

// isCompared reports whether a check depends on the row's files: as in Kyverno, a row that expects fail
// holds where a rule that passes makes something else than they have.
func isCompared(c result.Check) bool {
	return c.Got == evaluation.Pass && (c.Want == evaluation.Pass || c.Want == evaluation.Fail)
}

// concluded is a check after the comparison with the row's files.
func concluded(c result.Check, made comparison) result.Check {
	switch {
	case made == undecided || made == different && c.Want != evaluation.Fail:
		return c
	case made == different:
		return c.As(result.Passed, "ok: "+c.Reason)
	case c.Got != c.Want:
		return c.As(result.Failed, fmt.Sprintf("want %s, got %s", c.Want, c.Got))
	case c.Want == evaluation.Skip:
		return c.As(result.Skipped, "ok")
	}
	return c.As(result.Passed, "ok")
}

// checkTarget compares an existing object, after a rule mutated it because of the suite's other
// objects, with the expectation.
func (t *compiledSuite) checkTarget(ctx context.Context, r *document.Row, place int, object workload.Object, c result.Check) result.Check {
	after, found := object, false
	for _, trigger := range t.resources {
		a := t.evaluate(ctx, trigger, r.Operation, place)
		if a.Err != nil {
			c.Got, c.Message = evaluation.Error, title(trigger)+": "+a.Err.Error()
			return c.As(result.Failed, "could not be evaluated")
		}
		for _, one := range by(a, t.policies[place], r.Rule) {
			for _, altered := range one.Altered {
				if keyOf(altered.Target) != keyOf(object) || found && !evaluation.Worse(altered.Result, c.Got) {
					continue
				}
				found, after, c.Got, c.Message = true, altered.After, altered.Result, altered.Message
			}
		}
	}
	switch {
	case !found && c.Want == evaluation.Skip:
		return c.As(result.Skipped, "excluded: the rule does not change it")
	case !found:
		return c.As(result.Failed, fmt.Sprintf("want %s, and the rule does not change it", c.Want))
	case isCompared(c) && r.PatchedResources != "":
		return concluded(c, t.compareWith(r, r.PatchedResources, after, &c))
	}
	return concluded(c, same)
}

// by returns the results of the rules of a name, and of the rules derived from it for other
// kinds.
func by(a *evaluation.Answer, p evaluation.Policy, rule string) []evaluation.RuleResult {
	var rules []evaluation.RuleResult
	_, ruled := rulesOf(p)
	for _, one := range a.Rules {
		if p.Made(one.Policy) && (!ruled || follows(one.Rule, rule)) {
			rules = append(rules, one)
		}
	}
	return rules
}

// follows reports whether a rule has the name, or is derived from it for pod controllers.
func follows(rule, name string) bool {
	return rule == name || rule == "autogen-"+name || rule == "autogen-cronjob-"+name
}

// excluded is the check of a rule without a result for the object, which is no failure of the
// object.
func excluded(c result.Check, a *evaluation.Answer) result.Check {
	if reasons := evaluation.Words(a.Outcome.Reasons); len(a.Rules) == 0 && reasons != "" {
		c.Got, c.Message = evaluation.Error, reasons
		return c.As(result.Failed, "could not be evaluated")
	}
	if c.Want == evaluation.Skip || c.Want == evaluation.Pass {
		return c.As(result.Skipped, "excluded: the rule does not match it")
	}
	return c.As(result.Failed, fmt.Sprintf("want %s, and the rule does not match it", c.Want))
}

// scored turns a failure of an unscored policy into a warning.
func scored(p evaluation.Policy, result string) string {
	if result == evaluation.Fail && p.Annotation("policies.kyverno.io/scored") == "false" {
		return evaluation.Warn
	}
	return result
}

// ruled are the results of a row's rules for an object.
type ruled struct {
	row    *document.Row
	place  int // the index of the policy
	object workload.Object
	answer *evaluation.Answer
	rules  []evaluation.RuleResult
}

// compare compares the mutated object, and the generated objects, with the files of a row.
func (t *compiledSuite) compare(ctx context.Context, of ruled, c *result.Check) comparison {
	if of.row.PatchedResources != "" {
		found, err := t.mutated(ctx, of)
		if err != nil {
			*c = c.As(result.Failed, err.Error())
			return undecided
		}
		if made := t.compareWith(of.row, of.row.PatchedResources, found, c); made != same {
			return made
		}
	}
	files, err := of.row.Generated()
	if err != nil {
		*c = c.As(result.Failed, err.Error())
		return undecided
	}
	return t.compareGenerated(files, of.rules, c)
}

// compareWith compares one object with its counterpart in a file.
func (t *compiledSuite) compareWith(r *document.Row, file string, found workload.Object, c *result.Check) comparison {
	want, ok, err := t.expectedIn(file, found)
	switch {
	case err != nil:
		*c = c.As(result.Failed, err.Error())
	case !ok && r.FailOnMissing != nil && !*r.FailOnMissing:
		*c = c.As(result.Skipped, file+" does not have the object")
	case !ok && r.FailOnMissing == nil && c.Want == evaluation.Fail:
		t.warn(r, fmt.Sprintf("%s does not have %s, and the row checks nothing", file, title(found)))
		*c = c.As(result.Skipped, file+" does not have the object")
	case !ok:
		c.Message = "give it there, leave patchedResources out for it, or set failOnMissingResources: false"
		*c = c.As(result.Failed, file+" does not have the object")
	default:
		list := differences(want.Content(), found.Content())
		if len(list) == 0 {
			return same
		}
		c.Message = strings.Join(list, "; ")
		*c = c.As(result.Failed, "the object is not as in "+file)
		return different
	}
	return undecided
}

// compareGenerated requires each object of the files to be among those that the rules generate.
func (t *compiledSuite) compareGenerated(files []string, rules []evaluation.RuleResult, c *result.Check) comparison {
	var made []workload.Object
	for _, one := range rules {
		for _, content := range one.Made {
			object, err := objectOf(content)
			if err != nil {
				*c = c.As(result.Failed, "the generated object: "+err.Error())
				return undecided
			}
			made = append(made, object)
		}
	}
	made = t.inNamespace(made)
	for _, file := range files {
		wanted, err := readObjects(t.file(file))
		if err != nil {
			*c = c.As(result.Failed, err.Error())
			return undecided
		}
		for _, want := range t.inNamespace(wanted) {
			i := slices.IndexFunc(made, func(o workload.Object) bool { return keyOf(o) == keyOf(want) })
			if i < 0 {
				c.Message = "it would make " + titles(made)
				*c = c.As(result.Failed, fmt.Sprintf("%s is not made", title(want)))
				return different
			}
			if list := differences(want.Content(), made[i].Content()); len(list) > 0 {
				c.Message = strings.Join(list, "; ")
				*c = c.As(result.Failed, fmt.Sprintf("%s is not as in %s", title(want), file))
				return different
			}
		}
	}
	return same
}

// mutated returns the object as the policy leaves it. Mutations of earlier policies of the suite
// count, those of later policies do not.
func (t *compiledSuite) mutated(ctx context.Context, of ruled) (workload.Object, error) {
	others := false
	for _, one := range of.answer.Rules {
		if one.Result == evaluation.Pass && !t.policies[of.place].Made(one.Policy) {
			others = true
		}
	}
	together := t.evaluator.Together(of.place, of.object.Name())
	if !others || together[len(together)-1] == of.place {
		return of.answer.Object, nil
	}
	before := t.evaluateWith(ctx, of.object, of.row.Operation, together[:slices.Index(together, of.place)+1])
	return before.Object, before.Err
}

// title names an object for people.
func title(o workload.Object) string {
	if o.IsDocument() {
		return o.Source()
	}
	name := o.Kind()
	if o.Namespace() != "" {
		name += "/" + o.Namespace()
	}
	return name + "/" + o.Name()
}

func titles(objects []workload.Object) string {
	if len(objects) == 0 {
		return "nothing"
	}
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = title(o)
	}
	return strings.Join(names, ", ")
}

// shown formats a value on one line, truncated if it is long.
func shown(value any) string {
	const most = 200
	if value == nil {
		return "nothing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(text) > most {
		return string(text[:most]) + "..."
	}
	return string(text)
}
