package fitness

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// Validating returns why a policy has to stay in the webhook; nil if it need not.
func Validating(spec *admission.ValidatingAdmissionPolicySpec) error {
	all := shared(spec.MatchConditions, spec.Variables)
	for _, v := range spec.Validations {
		all = append(all, v.Expression, v.MessageExpression)
	}
	if err := weaker(spec.FailurePolicy, spec.MatchConstraints, all); err != nil {
		return err
	}
	if len(spec.AuditAnnotations) > 0 {
		return errors.New("it has audit annotations: one that cannot be evaluated is denied by an API server, also where the policy only audits")
	}
	return limited(spec.MatchConstraints, spec.ParamKind)
}

// Mutating is Validating for a policy that mutates.
func Mutating(spec *admission.MutatingAdmissionPolicySpec) error {
	all := shared(spec.MatchConditions, spec.Variables)
	for _, m := range spec.Mutations {
		if m.PatchType != admission.PatchTypeApplyConfiguration {
			return errors.New("a JSON patch may change an object again, and both sides mutate during a change-over: write it as applyConfiguration")
		}
		all = append(all, m.ApplyConfiguration.Expression)
	}
	if err := weaker(spec.FailurePolicy, spec.MatchConstraints, all); err != nil {
		return err
	}
	return limited(spec.MatchConstraints, spec.ParamKind)
}

// weaker returns why an API server would admit more than the webhook, although it takes the policy; nil if it
// would not.
func weaker(failure *admission.FailurePolicyType, match *admission.MatchResources, expressions []string) error {
	if failure != nil && *failure == admission.Ignore {
		return errors.New("failurePolicy Ignore: an API server admits an object that makes an expression fail, which the webhook denies")
	}
	for _, rules := range [][]admission.NamedRuleWithOperations{match.ResourceRules, match.ExcludeResourceRules} {
		for _, r := range rules {
			if len(r.ResourceNames) > 0 {
				return errors.New("it matches resourceNames, and an API server knows no name in the deletion of a collection")
			}
			if s := match.ObjectSelector; s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0 && slices.ContainsFunc(r.Resources, isBody) {
				return errors.New("it selects by labels of objects, which the body of a subresource has of its own in an API server")
			}
		}
	}
	if slices.ContainsFunc(expressions, orders.MatchString) {
		return errors.New("it calls max, min or isSorted, which an API server evaluates over values without an order")
	}
	return nil
}

// orders are the functions that compare the elements of a list.
var orders = regexp.MustCompile(`\.\s*(max|min|isSorted)\b`)

// isBody reports whether a request for a resource may have another object than the stored one.
func isBody(resource string) bool {
	_, sub, is := strings.Cut(resource, "/")
	return is && sub != "status" && sub != "ephemeralcontainers"
}

// shared returns the expressions that policies of both kinds have.
func shared(conditions []admission.MatchCondition, variables []admission.Variable) []string {
	var all []string
	for _, c := range conditions {
		all = append(all, c.Expression)
	}
	for _, v := range variables {
		all = append(all, v.Expression)
	}
	return all
}

// limited refuses matches for which the webhook has limits: an API server has none, and a cluster could then not be
// repaired.
func limited(match *admission.MatchResources, params *admission.ParamKind) error {
	if params != nil {
		return errors.New("it has parameters, which each API server follows by itself, so that no probe shows that they are there")
	}
	for _, r := range match.ResourceRules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				if strings.HasPrefix(resource, "*") {
					return errors.New("it matches resources by a pattern, also those that a cluster needs to be repaired")
				}
				if isLimited(group, resource) {
					return fmt.Errorf("it matches %s, for which the webhook has limits that keep the cluster repairable", resource)
				}
			}
		}
	}
	return nil
}

// isLimited reports whether the webhook has limits for a resource. A kind that a ClusterPolicy names without a group is
// in any: there its name decides, as do the groups of policies and reports, which are not all known here.
func isLimited(group, resource string) bool {
	name, sub, _ := strings.Cut(resource, "/")
	if sub == "binding" || sub == "token" { // without which no pod starts
		return true
	}
	if group != "*" {
		return configuration.HasLimits(group, kindOf(resource))
	}
	others := []string{
		"leases", "leasecandidates", "certificatesigningrequests", "clustertrustbundles", "customresourcedefinitions", "apiservices",
		"imageoverrides", "registrymirrors", "globalcontextentries", "trustroots",
	}
	return configuration.HasLimits("", kindOf(resource)) || slices.Contains(others, name) || strings.Contains(name, "report") ||
		strings.Contains(name, "polic") && name != "networkpolicies"
}

// kindOf is the kind of a resource of the core group.
func kindOf(resource string) string {
	name, _, _ := strings.Cut(resource, "/")
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + strings.TrimSuffix(name[1:], "s")
}
