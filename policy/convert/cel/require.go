package cel

import (
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/requirement"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
)

// restrict limits the match of a rule to the operations for which it can fail, and returns those of a filter that
// names none. Preconditions on the operation are no others then.
func restrict(from *ruleDocument) ([]string, error) {
	v := &from.Validate
	operations := from.operations()
	if v.CEL != nil || v.Deny == nil && len(v.ForEach) == 0 && from.Preconditions == nil {
		return operations, nil
	}
	_, rest := requirement.Operations(from.Preconditions, operations)
	from.Match = requirement.Restrict(from.Match, operations, func(given []string) []string {
		allowed, _ := requirement.Operations(from.Preconditions, given)
		if len(v.ForEach) > 0 { // at a deletion there are no elements
			allowed = slices.DeleteFunc(slices.Clone(allowed), func(o string) bool { return o == "DELETE" })
		}
		return allowed
	})
	if len(requirement.OperationsOf(from.Match)) == 0 {
		return nil, &source.Unsupported{Path: "preconditions", Found: "no operation of the match"}
	}
	from.Preconditions = rest
	return operations, nil
}

// conditional writes a rule with conditions, loops or variables.
func (r *rule) conditional(from *ruleDocument, namespaced bool, types *schema.Finder) error {
	v := &from.Validate
	scope := jmespath.Scope{Object: requirement.ShapeOf(types, from.Match), Operations: requirement.OperationsOf(from.Match)}
	if len(scope.Operations) == 0 {
		scope.Operations = []string{"CREATE", "UPDATE"}
	}
	what := requirement.Rule{
		Context: from.Context, Preconditions: from.Preconditions, Message: v.Message, Deny: v.Deny, ForEach: v.ForEach, Namespaced: namespaced,
	}
	made, err := requirement.Of(what, scope)
	if err != nil {
		return err
	}
	if made.Validation.Expression == "" {
		return r.patternsWhere(from, made)
	}
	r.variables, r.validations, r.fails = made.Variables, []admission.Validation{made.Validation}, made.Fails
	r.applies(made.Condition)
	if !made.Doubtful && !strings.Contains(made.Validation.Expression, "request.") && !strings.Contains(made.Validation.Expression, "oldObject") {
		scope.ObjectName, scope.Operations, what.Message, what.Inline = "oldObject", []string{"UPDATE"}, "", true
		before, err := requirement.Of(what, scope)
		if err == nil && !strings.Contains(before.Validation.Expression, "request.") {
			r.before = before.Validation.Expression
			if len(before.Needs) > 0 && strings.Contains(r.before, " ?") {
				r.before = "(" + r.before + ")"
			}
			for _, there := range slices.Backward(before.Needs) { // an old object that cannot be evaluated excuses nothing
				r.before = term.Not(there) + " || " + r.before
			}
		}
	}
	return nil
}

// patternsWhere writes the patterns of a rule with preconditions, or with a message that has variables.
func (r *rule) patternsWhere(from *ruleDocument, made requirement.Requirement) error {
	expression, err := patterns(from, "object")
	if err != nil {
		return err
	}
	r.before, err = patterns(from, "oldObject")
	made.Validation.Expression = expression
	r.variables, r.validations = made.Variables, []admission.Validation{made.Validation}
	r.applies(made.Condition)
	return err
}

// applies adds a condition under which the rule applies.
func (r *rule) applies(condition string) {
	if condition != "" {
		r.selection.Conditions = append(r.selection.Conditions, admission.MatchCondition{Name: "preconditions", Expression: condition})
	}
}
