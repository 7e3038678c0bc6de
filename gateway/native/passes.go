package native

import (
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
)

// The gateway admits some requests whatever a policy says (package webhook/admission). An API server asks no policy
// about them by these conditions: else an object that is as it was before the policy could never be deleted.
const (
	// changes excludes updates that change nothing but metadata that the API server maintains, and those of an object in
	// deletion that change its finalizers alone.
	changes = `request.operation != "UPDATE" || object.exists(k, k != "metadata" && (!(k in oldObject) || object[k] != oldObject[k])) || ` +
		`oldObject.exists(k, !(k in object)) || ` +
		`object.metadata.exists(k, ` + notKept + ` && (!(k in oldObject.metadata) || object.metadata[k] != oldObject.metadata[k])) || ` +
		`oldObject.metadata.exists(k, ` + notKept + ` && !(k in object.metadata))`
	notKept = `!(k in ["managedFields", "resourceVersion", "generation"]) && ` +
		`!(has(object.metadata.deletionTimestamp) && k in ["finalizers", "deletionTimestamp", "deletionGracePeriodSeconds"])`

	// notMirrored excludes the mirror pod that a node creates of its own static pod, which runs in any case.
	notMirrored = `request.operation != "CREATE" || request.resource.resource != "pods" || request.resource.group != "" || ` +
		`has(request.subResource) && request.subResource != "" || ` +
		`!has(object.metadata.annotations) || !("kubernetes.io/config.mirror" in object.metadata.annotations) || ` +
		`object.metadata.annotations["kubernetes.io/config.mirror"] == "" || ` +
		`!has(object.spec.nodeName) || object.spec.nodeName == "" || ` +
		`request.userInfo.username != "system:node:" + object.spec.nodeName || !("system:nodes" in request.userInfo.groups)`
)

// conditions returns the conditions of a policy after those of the gateway.
func conditions(of []admission.MatchCondition) []admission.MatchCondition {
	return append([]admission.MatchCondition{
		{Name: "quaymaster.dev/changes", Expression: changes}, {Name: "quaymaster.dev/not-mirrored", Expression: notMirrored},
	}, of...)
}

// asked is the name of the variable that validations end with, in place of conditions.
const asked = "quaymasterIsAsked"

// passExempt has a policy pass the requests that conditions exclude. An API server converts the request once for the
// conditions of a policy, and once more for its validations, which costs more than many an expression: a policy without
// conditions of its own has them in its validations, where they are evaluated for objects that violate.
func passExempt(spec *admission.ValidatingAdmissionPolicySpec) {
	isVariable := func(v admission.Variable) bool { return v.Name == asked }
	hasComment := func(v admission.Validation) bool { return strings.Contains(v.Expression, "//") } // which would end the line
	if len(spec.MatchConditions)+len(spec.AuditAnnotations) > 0 || slices.ContainsFunc(spec.Variables, isVariable) ||
		slices.ContainsFunc(spec.Validations, hasComment) {
		spec.MatchConditions = conditions(spec.MatchConditions)
		return
	}
	spec.Variables = append([]admission.Variable{{Name: asked, Expression: isAsked()}}, spec.Variables...)
	for i := range spec.Validations {
		v := &spec.Validations[i]
		v.Expression = "(" + v.Expression + ") || !variables." + asked
	}
}

// isAsked is the expression of the variable. The type check of validations knows the types of objects, which have no
// members to go through.
func isAsked() string {
	return strings.NewReplacer("oldObject", "dyn(oldObject)", "object", "dyn(object)").Replace("(" + changes + ") && (" + notMirrored + ")")
}
