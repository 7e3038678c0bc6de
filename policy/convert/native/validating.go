package native

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	celgo "github.com/google/cel-go/cel"
	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/convert/native/internal/podtemplate"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// enforced are the common parts of the policies of both kinds.
type enforced struct {
	source.Document
	compiled *policy.Policy
	identity identity
}

// read returns what a document of either kind has in common; false if it does not compile or is not
// evaluated at admission. The spec is decoded into a struct.
func (c *converter) read(d source.Document, compile func(text []byte, source string) (*policy.Policy, error), spec any) (*enforced, bool) {
	var doc struct {
		Metadata struct {
			Name        string            `json:"name"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(d.Text, &doc); err != nil {
		c.Refuse(d.Prefix, err.Error(), "mend the policy")
		return nil, false
	}
	compiled, err := compile(d.Text, inFile)
	if err != nil {
		c.problemsOf(d, err)
		return nil, false
	}
	inner, err := json.Marshal(doc.Spec)
	if err == nil {
		err = json.Unmarshal(inner, spec)
	}
	if err != nil {
		c.Refuse(d.At("spec"), err.Error(), "mend the policy")
		return nil, false
	}
	delete(doc.Metadata.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	return &enforced{Document: d, compiled: compiled, identity: identity{
		name: doc.Metadata.Name, namespace: compiled.Namespace, labels: doc.Metadata.Labels, annotations: doc.Metadata.Annotations,
	}}, true
}

// validatingPolicy converts a ValidatingPolicy: one policy for what it matches, and one for each
// generated rule about controllers of pods.
func (c *converter) validatingPolicy(d source.Document) {
	var spec v1alpha1.ValidatingPolicySpec
	e, ok := c.read(d, c.validating.Compile, &spec)
	if !ok {
		return
	}
	switch {
	case spec.EvaluationMode() != kubernetesMode:
		c.Refuse(d.At("spec.evaluation.mode"), fmt.Sprintf("%q is about documents that no API server sees", spec.EvaluationMode()), "keep the policy")
		return
	case !spec.AdmissionEnabled():
		c.Refuse(d.At("spec.evaluation.admission.enabled"), "is false: only scans evaluate the policy", "keep the policy")
		return
	}
	var pods *v1alpha1.PodControllersGenerationConfiguration
	if spec.AutogenConfiguration != nil {
		pods = spec.AutogenConfiguration.PodControllers
	}
	followers, err := kyvernocel.FollowerMatches(spec.MatchConstraints, pods)
	if err != nil {
		c.problemsOf(d, err)
		return
	}
	c.validatingRule(e, &spec, kyvernocel.FollowerMatch{Match: spec.MatchConstraints})
	for _, f := range followers {
		c.validatingRule(e, &spec, f)
	}
}

// kubernetesMode is the evaluation mode of policies about objects.
const kubernetesMode = "Kubernetes"

// validatingRule adds a policy for one match.
func (c *converter) validatingRule(e *enforced, spec *v1alpha1.ValidatingPolicySpec, f kyvernocel.FollowerMatch) {
	t := translation{converter: c, Document: e.Document, template: f.Template, ownNamespace: matchesNamespaces(f.Match)}
	failure := admission.Fail
	if spec.FailurePolicy != nil {
		failure = *spec.FailurePolicy
	}
	out := admission.ValidatingAdmissionPolicySpec{
		MatchConstraints: confined(*f.Match.DeepCopy(), e.identity.namespace), FailurePolicy: &failure,
		MatchConditions: t.conditions(spec.MatchConditions, "spec.matchConditions"), Variables: t.variables(c.language.validations, spec.Variables, "spec.variables"),
		AuditAnnotations: t.annotations(c.language.validations, spec.AuditAnnotations, "spec.auditAnnotations"),
	}
	for i, v := range spec.Validations {
		out.Validations = append(out.Validations, t.validation(c.language.validations, v, "spec.validations["+strconv.Itoa(i)+"]"))
	}
	c.addValidating(e.Document, c.named(e.identity, f.Prefix), out, binding{actions: actionsOf(spec.ValidationAction), notes: notesOf(spec.WebhookConfiguration)})
}

// binding is what a ValidatingAdmissionPolicyBinding adds to its policy.
type binding struct {
	params  *admission.ParamRef
	actions []admission.ValidationAction
	notes   []string
}

// addValidating adds a policy with its binding.
func (c *converter) addValidating(d source.Document, id identity, spec admission.ValidatingAdmissionPolicySpec, with binding) {
	withEphemeral(spec.MatchConstraints)
	made := &Validating{}
	made.Policy.TypeMeta, made.Binding.TypeMeta = c.typed("ValidatingAdmissionPolicy"), c.typed("ValidatingAdmissionPolicyBinding")
	made.Policy.ObjectMeta, made.Policy.Spec = id.meta(), spec
	made.Binding.ObjectMeta = identity{name: id.name, labels: id.labels}.meta()
	made.Binding.Spec = admission.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: id.name, ParamRef: with.params, MatchResources: c.exempted(), ValidationActions: with.actions,
	}
	c.add(d, Policy{Name: id.name, Validating: made, Notes: with.notes})
}

// withEphemeral adds the subresource by which containers are added to pods where pods are matched, or
// excluded: the gateway evaluates these requests, too, and they run images as well.
func withEphemeral(match *admission.MatchResources) {
	const ephemeral = pods + "/" + builtin.Ephemeral
	for _, rules := range [][]admission.NamedRuleWithOperations{match.ResourceRules, match.ExcludeResourceRules} {
		for i := range rules {
			r := &rules[i]
			if slices.Contains(r.Resources, pods) && !slices.Contains(r.Resources, ephemeral) {
				r.Resources = append(slices.Clone(r.Resources), ephemeral)
			}
		}
	}
}

const pods = "pods"

// actionsOf returns the actions of a binding. Where a policy denies, a warning beside it is a
// contradiction for the API server; the dialect denies.
func actionsOf(written []admission.ValidationAction) []admission.ValidationAction {
	if len(written) == 0 {
		return []admission.ValidationAction{admission.Deny}
	}
	var actions []admission.ValidationAction
	for _, a := range written {
		if a == admission.Warn && slices.Contains(written, admission.Deny) || slices.Contains(actions, a) {
			continue
		}
		actions = append(actions, a)
	}
	return actions
}

func notesOf(webhook *v1alpha1.WebhookConfiguration) []string {
	if webhook != nil && webhook.TimeoutSeconds != nil {
		return []string{"Left out: webhookConfiguration, since no webhook is called."}
	}
	return nil
}

// oneLine joins the lines of a message: the API server refuses a message of several.
func oneLine(message string) string { return strings.Join(strings.FieldsFunc(message, isBreak), " ") }

func isBreak(r rune) bool { return r == '\n' || r == '\r' }

// matchesNamespaces reports whether a match may be about Namespaces.
func matchesNamespaces(match *admission.MatchResources) bool {
	return slices.ContainsFunc(match.ResourceRules, func(r admission.NamedRuleWithOperations) bool {
		return slices.ContainsFunc(r.APIGroups, func(g string) bool { return g == "" || g == "*" }) &&
			slices.ContainsFunc(r.Resources, func(name string) bool { return strings.HasPrefix(name, "namespaces") || strings.HasPrefix(name, "*") })
	})
}

// translation carries the expressions of a policy over.
type translation struct {
	*converter
	source.Document
	template kyvernocel.Template
	// ownNamespace: namespaceObject of a Namespace is null for an API server, and the stored Namespace here.
	ownNamespace bool
	hasParams    bool
	// asked: the expression is a match condition.
	asked bool
}

// expression returns an expression for the object, or refuses it with its path.
func (t translation) expression(env *celgo.Env, at, text string) string {
	if text == "" {
		return ""
	}
	rewritten, err := podtemplate.Rewrite(env, text, t.template)
	if err != nil {
		t.Refuse(t.At(at), "cannot be carried to controllers of pods: "+err.Error(),
			"read the spec or metadata of the object, or write spec.autogen.podControllers.controllers: [] for pods alone")
		return text
	}
	names, err := reads(env, rewritten)
	if err != nil {
		t.Refuse(t.At(at), fmt.Sprintf("an API server of Kubernetes %s does not take it: %s", t.version, err), "use what Kubernetes has, or keep the policy")
		return text
	}
	switch {
	case t.asked && names[kyvernocel.NamespaceName]:
		t.Refuse(t.At(at), "reads namespaceObject, which is null in the match conditions of an API server", "read it in a validation, or keep the policy")
	case t.ownNamespace && names[kyvernocel.NamespaceName]:
		t.Refuse(t.At(at), "reads namespaceObject, and the policy may match a Namespace, whose namespaceObject is null for an API server",
			"match other resources, or keep the policy")
	}
	return rewritten
}

func (t translation) conditions(docs []admission.MatchCondition, at string) []admission.MatchCondition {
	var out []admission.MatchCondition
	t.asked = true
	for i, c := range docs {
		c.Expression = t.expression(t.language.conditions, source.Index(at, i)+".expression", c.Expression)
		out = append(out, c)
	}
	return out
}

func (t translation) variables(env *celgo.Env, docs []admission.Variable, at string) []admission.Variable {
	var out []admission.Variable
	for i, v := range docs {
		v.Expression = t.expression(env, source.Index(at, i)+".expression", v.Expression)
		out = append(out, v)
	}
	return out
}

func (t translation) annotations(env *celgo.Env, docs []admission.AuditAnnotation, at string) []admission.AuditAnnotation {
	var out []admission.AuditAnnotation
	for i, a := range docs {
		a.ValueExpression = t.expression(env, source.Index(at, i)+".valueExpression", a.ValueExpression)
		out = append(out, a)
	}
	return out
}

// validation carries a validation over. The API server requires a message for an expression of several
// lines, and refuses one of several lines.
func (t translation) validation(env *celgo.Env, v admission.Validation, at string) admission.Validation {
	v.Expression = t.expression(env, at+".expression", v.Expression)
	v.MessageExpression = t.expression(env, at+".messageExpression", v.MessageExpression)
	v.Message = oneLine(v.Message)
	if v.Message == "" && strings.ContainsFunc(v.Expression, isBreak) {
		v.Message = "the validation does not hold: " + oneLine(kyvernocel.Shorten(v.Expression))
	}
	return v
}
