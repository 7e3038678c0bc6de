package configuration

import (
	"maps"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/policy"
)

// Names of the configurations and their webhooks.
const (
	// Name is the name of both configurations.
	Name = "quaymaster"
	// ManagedBy is the label that marks the gateway's objects, with the value Name.
	ManagedBy = "app.kubernetes.io/managed-by"

	mutateSuffix, validateSuffix, shadowSuffix = ".mutate.quaymaster.dev", ".validate.quaymaster.dev", ".shadow.quaymaster.dev"
	documentsName                              = "policies.quaymaster.dev"
)

// The endpoints, as paths below the base URL.
const (
	MutatePath    = "/mutate"
	ValidatePath  = "/validate"
	DocumentsPath = "/policies"
	// The shadows of the endpoints above. They evaluate requests, and neither deny nor change them.
	ShadowPath          = "/shadow"
	ShadowDocumentsPath = "/shadow/policies"
	// ProbePath is the endpoint of the probe webhooks; the mark of a configuration follows it.
	ProbePath = "/probe"
)

// notEnforced is the annotation for Azure's admissions enforcer that keeps it from adding its own
// selectors to webhook configurations. Without it, the enforcer and the gateway would overwrite
// each other every half minute.
const notEnforced = "admissions.enforcer/disabled"

// specUnchanged excludes updates that do not change spec, such as those of finalizers, because the
// engine evaluates changed images, and unchanged ones only if a policy selects or reads the object
// by something else, for which this condition is left out. CREATE has no oldObject; a webhook that was not split (see
// split) includes it. Objects without a spec are included. Changes of a Pod's record of its
// original images are included: only the gateway writes that record, and corrects a forged one.
const specUnchanged = `request.operation != "UPDATE" || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec || ` +
	`(has(object.metadata.annotations) && "` + writtenAnnotation + `" in object.metadata.annotations ? ` +
	`object.metadata.annotations["` + writtenAnnotation + `"] : "") != (has(oldObject.metadata.annotations) && "` + writtenAnnotation +
	`" in oldObject.metadata.annotations ? oldObject.metadata.annotations["` + writtenAnnotation + `"] : "")`

// withoutBreakGlass excludes updates of a Namespace that carries the label BreakGlass afterwards;
// see "Break glass" in the package's documentation.
const withoutBreakGlass = `request.operation != "UPDATE" || !has(object.metadata.labels) || !("` + BreakGlass + `" in object.metadata.labels)`

// writtenAnnotation is a Pod's record of its images before they were changed. Package
// webhook/admission writes it.
const writtenAnnotation = "quaymaster.dev/written"

const namespaceLabel = "kubernetes.io/metadata.name"

// Labels of namespaces that select webhooks in the API server. The endpoints do not read them.
const (
	// BreakGlass excludes the objects of a namespace from the webhooks, with any value. It is
	// effective even if the gateway is down.
	BreakGlass = "quaymaster.dev/break-glass"
	// ModeLabel with the value ModeEnforce enables enforcement in a namespace despite Input.Shadow.
	// Other values have no effect.
	ModeLabel   = "quaymaster.dev/mode"
	ModeEnforce = "enforce"
)

// Configurations are the two webhook configurations.
type Configurations struct {
	Mutating   *admission.MutatingWebhookConfiguration
	Validating *admission.ValidatingWebhookConfiguration
	// Warnings, sorted, report the parts of policies without a webhook.
	Warnings []Warning
}

// Build makes the configurations. The output depends only on the content of the input, not on its
// order. It rejects input that would block a cluster or verify nothing: without authorities,
// endpoint, own namespace, or known resources.
func Build(in Input) (Configurations, error) {
	if err := in.check(); err != nil {
		return Configurations{}, err
	}
	change, check := in.requirementsAt(mutatingPhase), in.requirementsAt(validatingPhase)
	changed, checked := change.divide(), check.divide()
	all := &requirements{}
	var shadowed []part
	if in.Shadow {
		all = in.requirementsAt(shadowPhase)
		shadowed = all.divide()
		changed, checked = inNamespaces(changed), inNamespaces(checked)
	}
	encodeResources, err := check.encodeResources(change)
	if err != nil {
		return Configurations{}, err
	}
	meta := in.metadata()
	c := Configurations{
		Mutating:   &admission.MutatingWebhookConfiguration{ObjectMeta: meta},
		Validating: &admission.ValidatingWebhookConfiguration{ObjectMeta: *meta.DeepCopy()},
		Warnings:   sorted(check, change, all),
	}
	c.Validating.Annotations[StoredResources] = encodeResources
	for _, g := range change.groups(changed) {
		c.Mutating.Webhooks = append(c.Mutating.Webhooks, g.mutating(in, change))
	}
	for _, g := range check.groups(checked) {
		c.Validating.Webhooks = append(c.Validating.Webhooks, g.validating(in, check))
	}
	for _, g := range all.groups(shadowed) {
		c.Validating.Webhooks = append(c.Validating.Webhooks, g.validating(in, all))
	}
	if len(in.Documents) > 0 {
		c.Validating.Webhooks = append(c.Validating.Webhooks, in.documents())
	}
	return c, nil
}

func (in Input) metadata() metav1.ObjectMeta {
	meta := metav1.ObjectMeta{
		Name:        Name,
		Labels:      map[string]string{ManagedBy: Name},
		Annotations: map[string]string{notEnforced: "true"},
	}
	if in.Owner != (metav1.OwnerReference{}) {
		meta.OwnerReferences = []metav1.OwnerReference{in.Owner}
	}
	return meta
}

// mutates reports whether images in the objects of a resource are changed.
func (in Input) mutates(r Resource) bool {
	if r.Group == "" && r.Kind == podKind {
		return true
	}
	w, ok := r.workload()
	return ok && slices.Contains(in.MutateControllers, w.kind)
}

// pinsNamed reports whether a policy pins images in the objects of a resource because one of its
// rules names the kind itself.
func (in Input) pinsNamed(p *policy.Policy, r Resource) bool {
	return !in.OnlyPods && p.PinsIn(&policy.Subject{Group: r.Group, Version: r.Version, Kind: r.Kind, Shape: policy.Shape{Bare: true}})
}

// selector returns the namespace selector of a webhook.
func (g *group) selector(in Input, q *requirements) *metav1.LabelSelector {
	requirement := metav1.LabelSelectorRequirement{Key: namespaceLabel, Operator: metav1.LabelSelectorOpIn, Values: g.namespaces}
	if g.Except {
		requirement.Operator, requirement.Values = metav1.LabelSelectorOpNotIn, union(q.excluded, g.namespaces)
		if g.Record {
			requirement.Values = union(requirement.Values, recordNamespaces())
		}
	}
	selector := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}}
	if in.BreakGlass && !g.Itself {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{Key: BreakGlass, Operator: metav1.LabelSelectorOpDoesNotExist})
	}
	if in.Shadow {
		selector.MatchExpressions = append(selector.MatchExpressions, q.mode())
	}
	if g.Labelled {
		selector.MatchLabels = map[string]string{in.Labelled.Label: in.Labelled.Value}
	}
	return selector
}

func (g *group) policy() *admission.FailurePolicyType {
	failure := admission.Ignore
	if g.Closed {
		failure = admission.Fail
	}
	return &failure
}

func (g *group) conditions(in Input) []admission.MatchCondition {
	switch {
	case g.Spec:
		return []admission.MatchCondition{{Name: "spec-changes", Expression: specUnchanged}}
	case g.Itself && in.BreakGlass:
		return []admission.MatchCondition{{Name: "no-break-glass", Expression: withoutBreakGlass}}
	case g.Others:
		return []admission.MatchCondition{{Name: "not-the-gateway", Expression: in.othersOnly()}}
	}
	return nil
}

// rules returns the rules of a webhook. A rule matches every combination of its lists, so resources
// share a rule only if everything else is equal.
func (g *group) rules() []admission.RuleWithOperations {
	var rules []admission.RuleWithOperations
	at := make(map[string]int)
	for _, p := range g.parts {
		scope := admission.ClusterScope
		if p.namespaced {
			scope = admission.NamespacedScope
		}
		key := strings.Join([]string{p.name.group, p.form.versions, p.form.operations, string(scope)}, " ")
		i, ok := at[key]
		if !ok {
			i = len(rules)
			at[key] = i
			rules = append(rules, p.form.rule(p.name.group, scope))
		}
		rules[i].Resources = append(rules[i].Resources, p.name.resource)
	}
	return rules
}

func (g *group) mutating(in Input, q *requirements) admission.MutatingWebhook {
	again := admission.IfNeededReinvocationPolicy
	match, effects := common()
	return admission.MutatingWebhook{
		Name: g.name + mutateSuffix, ClientConfig: in.Client(MutatePath), Rules: g.rules(),
		FailurePolicy: g.policy(), MatchPolicy: match, NamespaceSelector: g.selector(in, q), ObjectSelector: &metav1.LabelSelector{},
		SideEffects: effects, TimeoutSeconds: &g.Seconds, AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy: &again, MatchConditions: g.conditions(in),
	}
}

func (g *group) validating(in Input, q *requirements) admission.ValidatingWebhook {
	match, effects := common()
	suffix, path := validateSuffix, ValidatePath
	if q.phase == shadowPhase {
		suffix, path = shadowSuffix, ShadowPath
	}
	return admission.ValidatingWebhook{
		Name: g.name + suffix, ClientConfig: in.Client(path), Rules: g.rules(),
		FailurePolicy: g.policy(), MatchPolicy: match, NamespaceSelector: g.selector(in, q), ObjectSelector: &metav1.LabelSelector{},
		SideEffects: effects, TimeoutSeconds: &g.Seconds, AdmissionReviewVersions: []string{"v1"},
		MatchConditions: g.conditions(in),
	}
}

// common returns the settings of all webhooks: an object is matched in any version, and dry runs
// have no side effects.
func common() (*admission.MatchPolicyType, *admission.SideEffectClass) {
	match, effects := admission.Equivalent, admission.SideEffectClassNoneOnDryRun
	return &match, &effects
}

// documents is the webhook that rejects broken policies. It fails open: the gateway detects them when it is back.
func (in Input) documents() admission.ValidatingWebhook {
	byGroup := make(map[string][]string)
	for _, d := range in.Documents {
		byGroup[d.Group] = append(byGroup[d.Group], d.Resource)
	}
	var rules []admission.RuleWithOperations
	for _, group := range slices.Sorted(maps.Keys(byGroup)) {
		slices.Sort(byGroup[group])
		scope := admission.AllScopes
		rules = append(rules, admission.RuleWithOperations{
			Operations: []admission.OperationType{admission.Create, admission.Update},
			Rule:       admission.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: slices.Compact(byGroup[group]), Scope: &scope},
		})
	}
	failure, wait, path := admission.Ignore, int32(defaultSeconds), DocumentsPath
	if in.Shadow {
		wait, path = shadowSeconds, ShadowDocumentsPath
	}
	match, effects := common()
	return admission.ValidatingWebhook{
		Name: documentsName, ClientConfig: in.Client(path), Rules: rules,
		FailurePolicy: &failure, MatchPolicy: match, NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
		SideEffects: effects, TimeoutSeconds: &wait, AdmissionReviewVersions: []string{"v1"},
	}
}
