package native

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// mutatingPolicy converts a MutatingPolicy about objects under admission.
func (c *converter) mutatingPolicy(d source.Document) {
	if !c.has(betaOfMAP) {
		c.Refuse(d.At("kind"), "Kubernetes "+c.version.String()+" has no MutatingAdmissionPolicy", "require Kubernetes "+betaOfMAP+" or later, or keep the policy")
		return
	}
	var spec v1alpha1.MutatingPolicySpec
	e, ok := c.read(d, c.mutating.Compile, &spec)
	if !ok || !c.atAdmission(d, &spec) {
		return
	}
	t := translation{converter: c, Document: d, ownNamespace: matchesNamespaces(spec.MatchConstraints)}
	id := c.named(e.identity, "")
	failure := admission.Fail
	if spec.FailurePolicy != nil {
		failure = *spec.FailurePolicy
	}
	out := admission.MutatingAdmissionPolicySpec{
		MatchConstraints: confined(*spec.MatchConstraints.DeepCopy(), e.identity.namespace), FailurePolicy: &failure,
		MatchConditions: t.conditions(spec.MatchConditions, "spec.matchConditions"), Variables: t.variables(c.language.mutations, spec.Variables, "spec.variables"),
		ReinvocationPolicy: spec.GetReinvocationPolicy(),
	}
	for i := range spec.Mutations {
		m, err := t.mutation(&spec, i)
		if err != nil {
			c.Refuse(d.At("spec.mutations["+strconv.Itoa(i)+"]"), err.Error(), "mend the policy")
		}
		out.Mutations = append(out.Mutations, m)
	}
	made := &Mutating{}
	made.Policy.TypeMeta, made.Binding.TypeMeta = c.typed("MutatingAdmissionPolicy"), c.typed("MutatingAdmissionPolicyBinding")
	made.Policy.ObjectMeta, made.Policy.Spec = id.meta(), out
	made.Binding.ObjectMeta = identity{name: id.name, labels: id.labels}.meta()
	made.Binding.Spec = admission.MutatingAdmissionPolicyBindingSpec{PolicyName: id.name, MatchResources: c.exempted()}
	c.add(d, Policy{Name: id.name, Mutating: made, Notes: notesOf(spec.WebhookConfiguration)})
}

// atAdmission refuses what an API server does not do for a policy.
func (c *converter) atAdmission(d source.Document, spec *v1alpha1.MutatingPolicySpec) bool {
	before := len(c.Problems)
	if spec.MutateExistingEnabled() {
		c.Refuse(d.At("spec.evaluation.mutateExisting.enabled"), "is true: an API server changes the object of the request alone", "keep the policy")
	}
	if len(spec.AuditAnnotations) > 0 {
		c.Refuse(d.At("spec.auditAnnotations"), "has no equivalent", "remove it, or keep the policy")
	}
	for i, r := range spec.MatchConstraints.ResourceRules {
		for n, operation := range r.Operations {
			if operation != admission.Create && operation != admission.Update {
				c.Refuse(d.At(fmt.Sprintf("spec.matchConstraints.resourceRules[%d].operations[%d]", i, n)), string(operation)+" leaves no object to be changed",
					"write CREATE and UPDATE")
			}
		}
	}
	var pods *v1alpha1.PodControllersGenerationConfiguration
	if spec.AutogenConfiguration != nil {
		pods = spec.AutogenConfiguration.PodControllers
	}
	followers, err := kyvernocel.FollowerMatches(spec.MatchConstraints, pods)
	switch {
	case err != nil:
		c.problemsOf(d, err)
	case len(followers) > 0:
		c.Refuse(d.At("spec.autogen.podControllers.controllers"), "lets the policy change the templates of controllers, too, which an expression about a pod cannot",
			"write controllers: [] for pods alone, or keep the policy")
	}
	return len(c.Problems) == before
}

// mutation carries one mutation over: the versions of the API have the same fields.
func (t translation) mutation(spec *v1alpha1.MutatingPolicySpec, i int) (admission.Mutation, error) {
	var m admission.Mutation
	text, err := json.Marshal(spec.Mutations[i])
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	at := "spec.mutations[" + strconv.Itoa(i) + "]"
	if m.ApplyConfiguration != nil {
		m.ApplyConfiguration.Expression = t.expression(t.language.mutations, at+".applyConfiguration.expression", m.ApplyConfiguration.Expression)
	}
	if m.JSONPatch != nil {
		m.JSONPatch.Expression = t.expression(t.language.mutations, at+".jsonPatch.expression", m.JSONPatch.Expression)
	}
	return m, err
}
