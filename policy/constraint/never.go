package constraint

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/requirement"
)

// checkReach refuses a rule that matches nothing by its text. Of several resources, one that can
// match is enough. A resource that a definition may bring can have any scope.
func (r *rule) checkReach(path string) error {
	if i := slices.Index(r.names, ""); i >= 0 {
		return field.Fail(path+".resourceNames["+strconv.Itoa(i)+"]", "is empty, and so it would match nothing")
	}
	if len(r.kinds) == 0 {
		return nil
	}
	if i := slices.IndexFunc(r.names, r.isNoName); i >= 0 {
		return field.Fail(path+".resourceNames["+strconv.Itoa(i)+"]",
			"%q can be the name of none of the resources, and so it would match nothing: write whole names in lower case, without *", r.names[i])
	}
	if !slices.ContainsFunc(r.kinds, func(k kind) bool { return slices.ContainsFunc(r.versions, k.mayHaveVersion) }) {
		return field.Fail(path+".apiVersions", "%q is no version of the resources, and so the rule would match nothing: write v1", r.versions)
	}
	if r.scope != admission.AllScopes && !slices.ContainsFunc(r.kinds, func(k kind) bool { return k.mayBeIn(r.scope) }) {
		return field.Fail(path+".scope", "none of the resources has the scope %s, and so the rule would match nothing", r.scope)
	}
	if !slices.ContainsFunc(r.kinds, func(k kind) bool { return slices.ContainsFunc(r.operations, k.mayHave) }) {
		return field.Fail(path+".operations",
			"%q is no operation of the resources, and so the rule would match nothing: CONNECT is that of subresources such as pods/exec, CREATE that of pods/eviction, UPDATE that of scale and status", r.operations)
	}
	return nil
}

// isNoName reports whether no object of the rule can have a name. Those of most built-in kinds are
// domain names; of other kinds, as roles, they may have any character that a path can have.
func (r *rule) isNoName(name string) bool {
	if len(content.IsPathSegmentName(name)) > 0 {
		return true
	}
	hasDomains := func(k kind) bool {
		of, known := builtin.Find(k.group, k.name)
		return known && !k.isGuess() && of.NamesDomains()
	}
	return len(validation.IsDNS1123Subdomain(name)) > 0 && !slices.ContainsFunc(r.kinds, func(k kind) bool { return !hasDomains(k) })
}

// isGuess reports whether the kind is not known, or any.
func (k kind) isGuess() bool { return k.name == "*" || k.guessed || k.unserved }

func (k kind) mayBeIn(scope admission.ScopeType) bool {
	return k.isGuess() || k.cluster == (scope == admission.ClusterScope)
}

func (k kind) mayHaveVersion(version string) bool {
	of, known := builtin.Find(k.group, k.name)
	return !known || k.isGuess() || of.MayHaveVersion(version)
}

// mayHave reports whether requests for a resource may have an operation.
func (k kind) mayHave(o admission.OperationType) bool {
	_, known := builtin.Find(k.group, k.name)
	return o == admission.OperationAll || builtin.MayHave(k.subresource, string(o), known && !k.isGuess())
}

// checkNames refuses groups and versions that no API has.
func checkNames(doc *admission.NamedRuleWithOperations, path string) error {
	var errs []error
	for i, group := range doc.APIGroups {
		if group != "" && group != "*" && len(validation.IsDNS1123Subdomain(group)) > 0 {
			errs = append(errs, field.Fail(path+".apiGroups["+strconv.Itoa(i)+"]",
				"%q is no API group, and would match nothing: groups are in lower case, such as apps", group))
		}
	}
	for i, version := range doc.APIVersions {
		if version != "*" && len(validation.IsDNS1035Label(version)) > 0 {
			errs = append(errs, field.Fail(path+".apiVersions["+strconv.Itoa(i)+"]",
				"%q is no version, and would match nothing: versions are in lower case and without a group, such as v1", version))
		}
	}
	return errors.Join(errs...)
}

// InNamespace refuses a constraint of a policy of a namespace that matches nothing there; an
// empty namespace is that of a cluster-wide policy.
func (c *Constraint) InNamespace(namespace, path string) error {
	if namespace == "" {
		return nil
	}
	inNamespace := func(r rule) bool {
		return len(r.kinds) == 0 || r.scope != admission.ClusterScope && slices.ContainsFunc(r.kinds,
			func(k kind) bool { return k.mayBeIn(admission.NamespacedScope) })
	}
	if !slices.ContainsFunc(c.rules, inNamespace) {
		return field.Fail(path+".resourceRules",
			"the resources are in no namespace, and a policy of a namespace would match none of them: write a policy of the cluster")
	}
	if c.namespace == nil {
		return nil
	}
	own := []requirement.Requirement{{Key: core.LabelMetadataName, Operator: string(meta.LabelSelectorOpIn), Values: []string{namespace}}}
	if why := requirement.Contradiction(append(own, c.namespaceRequirements...)); why != "" {
		return field.Fail(path+".namespaceSelector", "does not select the policy's own namespace %s: %s", namespace, why)
	}
	return nil
}

// checkExcluded refuses exclusions that by their text cover every rule.
func checkExcluded(doc *admission.MatchResources, path string) error {
	left := func(r admission.NamedRuleWithOperations) bool {
		operations := r.Operations
		if slices.Contains(operations, admission.OperationAll) {
			operations = []admission.OperationType{admission.Create, admission.Update, admission.Delete, admission.Connect}
		}
		for _, resource := range r.Resources {
			for _, operation := range operations {
				covers := func(e admission.NamedRuleWithOperations) bool {
					return has(e.Operations, operation) && slices.ContainsFunc(e.Resources, func(of string) bool { return includes(of, resource) }) && coversRest(&e, &r)
				}
				if !slices.ContainsFunc(doc.ExcludeResourceRules, covers) {
					return true
				}
			}
		}
		return false
	}
	if slices.ContainsFunc(doc.ResourceRules, left) {
		return nil
	}
	return field.Fail(path+".excludeResourceRules", "cover everything that resourceRules match, and so the policy would match nothing")
}

// coversRest compares all but operations and resources.
func coversRest(e, r *admission.NamedRuleWithOperations) bool {
	all := func(of, texts []string) bool {
		return !slices.ContainsFunc(texts, func(text string) bool { return !has(of, text) })
	}
	scope := func(of *admission.ScopeType) admission.ScopeType {
		if of == nil {
			return admission.AllScopes
		}
		return *of
	}
	names := len(e.ResourceNames) == 0 || len(r.ResourceNames) > 0 && all(e.ResourceNames, r.ResourceNames)
	return all(e.APIGroups, r.APIGroups) && all(e.APIVersions, r.APIVersions) && names &&
		(scope(e.Scope) == admission.AllScopes || scope(e.Scope) == scope(r.Scope))
}

// includes reports whether an entry of resources matches all that another does.
func includes(of, resource string) bool {
	name, sub, _ := strings.Cut(of, "/")
	otherName, otherSub, _ := strings.Cut(resource, "/")
	return (name == "*" || name == otherName) && (sub == "*" || sub == otherSub)
}
