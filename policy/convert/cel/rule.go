package cel

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/overlay"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/selection"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/validate"
	"github.com/quaymaster/quaymaster/policy/internal/schema"
)

// autogenAnnotation selects the controllers in the source; the result has a field.
const autogenAnnotation = "pod-policies.kyverno.io/autogen-controllers"

// rule is a converted rule.
type rule struct {
	name        string
	selection   selection.Selection
	actions     []admission.ValidationAction
	usual       bool     // the actions are those of the rule without overrides
	controllers []string // of pods, by their resources; nil for the default of the result
	variables   []admission.Variable
	validations []admission.Validation
	annotations []admission.AuditAnnotation
	own         bool // the expressions are the author's
	// excused: an update is admitted if the old object violates before, which reads the variables.
	excused         bool
	before          string
	beforeVariables []admission.Variable
	// apart tells rules apart that exceptions or suites treat differently.
	apart string
	// fails: the rule may fail to be evaluated, which nothing excuses.
	fails bool
}

// rule converts a rule.
func (c *converter) rule(d source.Document, doc *document, compiled *policy.Policy, text ruleText) *rule {
	if err := cmp.Or(onlyKnown(text.raw), text.err); err != nil {
		c.refuse(d, text.at, err)
		return nil
	}
	from := text.from
	r := &rule{name: from.Name, own: from.Validate.CEL != nil}
	operations, err := restrict(&from)
	var s selection.Selection
	if err == nil {
		s, err = selection.Of(from.Match, from.Exclude, operations)
	}
	if err == nil {
		r.selection = s
		err = cmp.Or(r.require(&from), r.validate(&from, doc.Metadata.Namespace != "", compiled, c.types))
	}
	if err != nil {
		c.refuse(d, text.at, err)
		return nil
	}
	r.narrow(&text)
	enforced := text.effect.enforced
	r.actions, r.usual = actionsOf(enforced, doc.Spec.EmitWarning), text.effect.usual
	r.excused = enforced && r.usual && s.Before != "false" && excuses(compiled, from.Name)
	if w := doc.Spec.WebhookConfiguration; r.excused && w != nil && len(w.MatchConditions) > 0 {
		c.Refuse(d.At("spec.webhookConfiguration.matchConditions"), "conditions that the old object must meet as well, with the excuse of existing violations",
			"set validate.allowExistingViolations: false, or keep the policy")
	}
	if r.excused && r.before == "" {
		c.refuse(d, text.at, &source.Unsupported{Path: "validate", Found: "the excuse of existing violations of a rule that reads the request, variables, or texts that may have wildcards"})
		return nil
	}
	if err := r.follow(compiled, text); err != nil {
		c.refuse(d, text.at, err)
	}
	return r
}

// follow sets the controllers of pods for which the source has rules as well.
func (r *rule) follow(compiled *policy.Policy, text ruleText) error {
	r.controllers = []string{}
	if text.part == 0 {
		r.controllers = controllers(compiled, r.name)
	}
	if (r.controllers == nil || len(r.controllers) > 0) && !isOfPods(r.selection.Resources) {
		return &source.Unsupported{Path: "match", Found: "pods of several filters, for whose controllers rules are generated"}
	}
	return nil
}

// narrow adds the conditions of the policy's settings.
func (r *rule) narrow(text *ruleText) {
	if where := text.effect.where; where != "" {
		r.selection.Conditions = append(r.selection.Conditions, admission.MatchCondition{Name: "action-of-namespace", Expression: where})
	}
	for i, expression := range text.after {
		r.selection.Conditions = append(r.selection.Conditions, admission.MatchCondition{Name: "no-earlier-rule-" + strconv.Itoa(i+1), Expression: expression})
	}
}

// require adds the preconditions in CEL.
func (r *rule) require(from *ruleDocument) error {
	hasParams := from.Validate.CEL != nil && from.Validate.CEL.ParamKind != nil
	for i, one := range from.CELPreconditions {
		one.Name = cmp.Or(one.Name, "precondition-"+strconv.Itoa(i+1))
		if strings.Contains(one.Expression, "variables.") || hasParams {
			return &source.Unsupported{Path: source.Index("celPreconditions", i), Found: "a variable or parameter of validate.cel, which match conditions do not read"}
		}
		r.selection.Conditions = append(r.selection.Conditions, one)
	}
	return nil
}

// excuses reports whether a rule excuses updates of objects that violated it before.
func excuses(compiled *policy.Policy, name string) bool {
	return slices.ContainsFunc(compiled.Validations, func(v policy.Validation) bool {
		r, is := v.(*validate.Rule)
		return is && r.Name() == name && r.Excuses()
	})
}

func actionsOf(enforced, warns bool) []admission.ValidationAction {
	switch {
	case enforced:
		return []admission.ValidationAction{admission.Deny}
	case warns:
		return []admission.ValidationAction{admission.Audit, admission.Warn}
	}
	return []admission.ValidationAction{admission.Audit}
}

// onlyKnown refuses the parts of a rule that are not converted.
func onlyKnown(raw json.RawMessage) error {
	known := map[string][]string{
		"": {"name", "match", "exclude", "celPreconditions", "validate", "context", "preconditions"},
		"validate": {
			"failureAction", "failureActionOverrides", "allowExistingViolations", "message", "pattern", "anyPattern", "cel", "deny", "foreach", "podSecurity",
		},
		"validate.cel": {"expressions", "variables", "auditAnnotations", "paramKind", "paramRef"},
	}
	for _, place := range []string{"", "validate", "validate.cel"} {
		var fields map[string]json.RawMessage
		text := raw
		for part := range strings.SplitSeq(place, ".") {
			if part == "" {
				continue
			}
			if err := json.Unmarshal(text, &fields); err != nil {
				return err
			}
			text, fields = fields[part], nil
		}
		if text == nil && place == "validate.cel" {
			return nil
		}
		if text == nil {
			return errors.New("is no rule that validates")
		}
		if err := json.Unmarshal(text, &fields); err != nil {
			return err
		}
		for name, value := range fields {
			if !slices.Contains(known[place], name) && string(value) != "null" {
				return &source.Unsupported{Path: source.Below(place, name), Found: "has no form yet that is known to be equal"}
			}
		}
	}
	return nil
}

// validate writes what a rule requires.
func (r *rule) validate(from *ruleDocument, namespaced bool, compiled *policy.Policy, types *schema.Finder) error {
	v := &from.Validate
	hasVariables := from.Preconditions != nil || len(from.Context) > 0 || strings.Contains(v.Message, "{{")
	switch {
	case v.PodSecurity != nil && hasVariables:
		return &source.Unsupported{Path: "validate.podSecurity", Found: "JMESPath beside it"}
	case v.PodSecurity != nil:
		return r.podSecurity(v.PodSecurity, compiled)
	case v.CEL == nil && (v.Deny != nil || len(v.ForEach) > 0 || hasVariables):
		return r.conditional(from, namespaced, types)
	}
	if v.CEL != nil {
		if hasVariables {
			return &source.Unsupported{Path: "validate.cel", Found: "JMESPath beside CEL"}
		}
		expressions := v.CEL
		if v.CEL.ParamKind != nil || v.CEL.ParamRef != nil {
			var err error
			expressions, err = withParams(v.CEL)
			if err != nil {
				return err
			}
		}
		r.variables, r.annotations = expressions.Variables, expressions.AuditAnnotations
		for _, one := range expressions.Expressions {
			if one.Message == "" {
				one.Message = v.Message
			}
			r.validations = append(r.validations, one)
		}
		return nil
	}
	expression, err := patterns(from, "object")
	if err != nil {
		return err
	}
	r.before, err = patterns(from, "oldObject")
	r.validations = []admission.Validation{{Expression: expression, Message: v.Message}}
	return err
}

// patterns writes the pattern or patterns of a rule as an expression.
func patterns(from *ruleDocument, object string) (string, error) {
	v := &from.Validate
	text, err := json.Marshal(from.Match)
	untyped := err != nil || strings.Contains(string(text), "ControllerRevision") // data of any form
	if v.Pattern != nil {
		text, err := overlay.Expression(v.Pattern, overlay.Options{Object: object, Untyped: untyped})
		return text, source.Located("validate.pattern", err)
	}
	if len(v.AnyPattern) == 0 {
		return "", &source.Unsupported{Path: "validate", Found: "requires nothing"}
	}
	if !slices.ContainsFunc(v.AnyPattern, func(one any) bool { return !overlay.IsConditional(one) }) {
		return "", &source.Unsupported{Path: "validate.anyPattern", Found: "conditional anchors in each of several patterns"}
	}
	var alternatives []string
	for i, one := range v.AnyPattern {
		text, err := overlay.Expression(one, overlay.Options{Object: object, OneOfSeveral: true, Untyped: untyped})
		if err != nil {
			return "", source.Located(source.Index("validate.anyPattern", i), err)
		}
		alternatives = append(alternatives, "("+text+")")
	}
	return strings.Join(alternatives, " || "), nil
}

// controllers returns the resources of the controllers for which the source has rules; nil for
// the default of the result, which has no ReplicationControllers.
func controllers(compiled *policy.Policy, name string) []string {
	kinds := map[string]string{
		"DaemonSet": "daemonsets", "Deployment": "deployments", "ReplicaSet": "replicasets", "ReplicationController": "replicationcontrollers",
		"StatefulSet": "statefulsets", "Job": "jobs", "CronJob": "cronjobs",
	}
	found := []string{}
	for _, follower := range ruleOf(compiled, name).Followers {
		for _, kind := range follower.Kinds {
			if resource := kinds[kind]; resource != "" {
				found = append(found, resource)
			}
		}
	}
	slices.Sort(found)
	if slices.Equal(found, []string{"cronjobs", "daemonsets", "deployments", "jobs", "replicasets", "statefulsets"}) {
		return nil
	}
	return found
}

// group are rules that match the same, so that they are one policy.
type group struct {
	first *rule
	rules []*rule
}

// label is the name of the first rule.
func (g *group) label() string { return g.first.name }

// names are those of the rules.
func (g *group) names() (names []string) {
	for _, r := range g.rules {
		names = append(names, r.name)
	}
	return names
}

func (g *group) takes(r *rule) bool {
	// Variables and audit annotations of two rules could have the same names.
	own := len(r.variables)+len(r.annotations) > 0 && len(g.first.variables)+len(g.first.annotations) > 0
	return !own && g.first.apart == r.apart && reflect.DeepEqual(g.first.selection, r.selection) && slices.Equal(g.first.actions, r.actions) &&
		(g.first.controllers == nil) == (r.controllers == nil) && slices.Equal(g.first.controllers, r.controllers)
}

// policy writes the rules as one policy.
func (g *group) policy(doc *document, name string) Policy {
	s := &spec{}
	p := policyOf(doc, "ValidatingPolicy", name, s)
	s.ValidationActions, s.FailurePolicy = g.first.actions, cmp.Or(doc.Spec.FailurePolicy, "Fail")
	s.MatchConstraints.ResourceRules = g.first.selection.Resources
	s.MatchConditions = g.first.selection.Conditions
	if w := doc.Spec.WebhookConfiguration; w != nil {
		s.FailurePolicy = cmp.Or(w.FailurePolicy, s.FailurePolicy)
		s.MatchConditions = slices.Concat(w.MatchConditions, s.MatchConditions)
		s.setTimeout(w.TimeoutSeconds)
	}
	s.setTimeout(doc.Spec.WebhookTimeoutSeconds)
	s.setEvaluation(doc.Spec.Admission, doc.Spec.Background)
	if isOfPods(s.MatchConstraints.ResourceRules) && g.first.controllers != nil {
		s.Autogen = &autogenFields{}
		s.Autogen.PodControllers.Controllers = g.first.controllers
	}
	for i, r := range g.rules {
		p.statements = append(p.statements, len(s.Validations))
		s.AuditAnnotations = append(s.AuditAnnotations, r.annotations...)
		for _, v := range r.variables {
			s.Variables = append(s.Variables, admission.Variable{Name: v.Name, Expression: r.formatted(v.Expression)})
		}
		name := "violatedBefore"
		if i > 0 {
			name += strconv.Itoa(i + 1)
		}
		if r.excused {
			s.Variables = append(append(s.Variables, r.beforeVariables...), admission.Variable{Name: name, Expression: celtext.Lines(r.violatedBefore())})
		}
		for _, v := range r.validations {
			if r.excused {
				if r.fails { // an error beside || would be none
					v.Expression = "(" + v.Expression + ") ? true : variables." + name
				} else {
					v.Expression = celtext.Join([]string{"variables." + name, v.Expression}, " || ")
				}
			}
			v.Expression = r.formatted(v.Expression)
			s.Validations = append(s.Validations, v)
		}
	}
	return p
}

// formatted breaks an expression into lines, unless it is the author's own.
func (r *rule) formatted(expression string) string {
	if r.own {
		return expression
	}
	return celtext.Lines(expression)
}

// violatedBefore writes that an object which changes violated the rule before.
func (r *rule) violatedBefore() string {
	all := []string{"request.operation == 'UPDATE'", "object != oldObject"}
	if r.selection.Before != "" {
		all = append(all, r.selection.Before)
	}
	return celtext.And(append(all, "!("+r.before+")"))
}

// isOfPods reports whether rules are of the form for which those about controllers are generated.
func isOfPods(rules []admission.RuleWithOperations) bool {
	return len(rules) == 1 && slices.Equal(rules[0].Resources, []string{"pods"}) && slices.Equal(rules[0].APIGroups, []string{""}) &&
		slices.Equal(rules[0].APIVersions, []string{"v1"})
}
