package constraint

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	admission "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
	"github.com/quaymaster/quaymaster/policy/internal/requirement"
)

// CompileNative reads the constraint of one of the API server's own policies, or of a binding, where
// nil and no rules mean everything. It matches as the API server does: a rule for pods does not include
// ephemeral containers, and the labels of a Namespace are those that it will have. What the API server
// accepts and never matches, as a resource that it does not have, is a warning, and so are operations
// that are left out, which count as all.
func CompileNative(doc *admission.MatchResources, path string, resources Resources) (*Constraint, []string, error) {
	c := &Constraint{resources: resources, native: true}
	if doc == nil {
		return c, nil, nil
	}
	c.namespaceRequirements = requirement.Of(doc.NamespaceSelector)
	var warnings []string
	var errs [5]error
	c.rules, errs[0] = compileNativeRules(doc.ResourceRules, path+".resourceRules", resources, &warnings)
	c.excluded, errs[1] = compileNativeRules(doc.ExcludeResourceRules, path+".excludeResourceRules", withoutHints(resources), &warnings)
	c.namespace, errs[2] = nativeSelector(doc.NamespaceSelector, path+".namespaceSelector", &warnings)
	c.object, errs[3] = nativeSelector(doc.ObjectSelector, path+".objectSelector", &warnings)
	c.exact, errs[4] = isExact(doc, path)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, nil, err
	}
	if why := checkExcluded(doc, path); why != nil && len(doc.ResourceRules) > 0 {
		warnings = append(warnings, why.Error())
	}
	return c, warnings, nil
}

func compileNativeRules(docs []admission.NamedRuleWithOperations, path string, resources Resources, warnings *[]string) ([]rule, error) {
	if len(docs) > maxRules {
		return nil, field.Fail(path, "%d rules are more than %d", len(docs), maxRules)
	}
	var list []rule
	var errs []error
	for i, doc := range docs {
		at := path + "[" + strconv.Itoa(i) + "]"
		if len(doc.Operations) == 0 {
			*warnings = append(*warnings, at+".operations: is missing, which the API server refuses: the rule counts as one about every operation")
			doc.Operations = []admission.OperationType{admission.OperationAll}
		}
		r, err := compileRule(&doc, at, resources)
		if err == nil {
			err = r.checkReach(at)
			if err != nil {
				*warnings, err = append(*warnings, err.Error()), nil
			}
		} else if onlyUnknown(err) {
			*warnings, err = append(*warnings, err.Error()), nil
		}
		errs = append(errs, err)
		list = append(list, r)
	}
	return list, errors.Join(errs...)
}

// appliesNatively is appliesTo for a constraint of the API server.
func (c *Constraint) appliesNatively(s *policy.Subject, a action) logic.Value {
	matched := logic.Is(true)
	if len(c.rules) > 0 {
		matched = c.anyOf(c.rules, s, a, false)
	}
	return logic.All(func() logic.Value { return matched }, func() logic.Value { return c.anyOf(c.excluded, s, a, true).Not() })
}

// matchesNamespaceNatively selects a Namespace by the labels that it will have, and by the stored ones
// where a request does not change it.
func (c *Constraint) matchesNamespaceNatively(s *policy.Subject) logic.Value {
	changes := slices.Contains([]string{string(admission.Create), string(admission.Update)}, s.Operation) && s.Subresource == ""
	switch {
	case changes && !s.Object.IsZero():
		return selectsNamespace(c.namespace, s.Object)
	case s.NamespaceKnown:
		return logic.Is(c.namespace.Matches(labels.Set(s.NamespaceLabels)))
	case !s.OldObject.IsZero() && !s.OldObject.IsAssumed():
		return selectsNamespace(c.namespace, s.OldObject)
	}
	return logic.Indeterminate(errNamespaceUnknown)
}

func selectsNamespace(selector labels.Selector, namespace policy.Content) logic.Value {
	set, err := labelsOf(namespace)
	if err != nil {
		return logic.Indeterminate(err)
	}
	if name, ok := metadataOf(namespace)["name"].(string); ok {
		set[core.LabelMetadataName] = name // as the API server sets it
	}
	return logic.Is(selector.Matches(set))
}

// matchesObjectNatively selects by the labels of the new object and of the old one, whatever their kind
// is.
func (c *Constraint) matchesObjectNatively(s *policy.Subject) logic.Value {
	known := slices.DeleteFunc([]policy.Content{s.Object, s.OldObject}, policy.Content.IsZero)
	return logic.Any(known, func(object policy.Content) logic.Value {
		set, err := labelsOf(object)
		if err != nil {
			return logic.Indeterminate(err)
		}
		return logic.Is(c.object.Matches(set))
	})
}

// nativeSelector compiles a selector; one that no labels meet is a warning.
func nativeSelector(doc *meta.LabelSelector, path string, warnings *[]string) (labels.Selector, error) {
	if doc == nil || len(doc.MatchLabels)+len(doc.MatchExpressions) == 0 {
		return nil, nil
	}
	compiled, err := meta.LabelSelectorAsSelector(doc)
	if err != nil {
		return nil, &FieldError{Path: path, Err: err}
	}
	if why := requirement.Contradiction(requirement.Of(doc)); why != "" {
		*warnings = append(*warnings, fmt.Sprintf("%s: no labels meet it: %s", path, why))
	}
	return compiled, nil
}
