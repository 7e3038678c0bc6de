package imagevalidating

import (
	"slices"
	"strconv"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// controller is a resource for which a policy about pods is generated.
type controller struct {
	resource, group string
	template        templateOf
}

// controllers are Kyverno's, in the order in which they are written here.
func controllers() []controller {
	template := templateOf{"spec", "template"}
	return []controller{
		{"daemonsets", "apps", template}, {"deployments", "apps", template}, {"replicasets", "apps", template},
		{"statefulsets", "apps", template}, {"jobs", "batch", template},
		{"cronjobs", "batch", templateOf{"spec", "jobTemplate", "spec", "template"}},
	}
}

// followers returns the rules that follow from one about pods: one for the
// controllers whose template is in one place.
func (b *builder) followers(r *rule) ([]*rule, error) {
	wanted, err := b.controllers()
	if err != nil || b.json || !canGenerate(b.spec.MatchConstraints) {
		return nil, err
	}
	var rules []*rule
	for _, kind := range []struct{ prefix, of string }{{"autogen-", "deployments"}, {"autogen-cronjobs-", "cronjobs"}} {
		follower := *r
		follower.name = kind.prefix + r.name
		byGroup := map[string][]string{}
		for _, c := range wanted {
			if (c.resource == "cronjobs") != (kind.of == "cronjobs") {
				continue
			}
			follower.template = c.template
			byGroup[c.group] = append(byGroup[c.group], c.resource)
		}
		if len(byGroup) == 0 {
			continue
		}
		if follower.match, err = b.forControllers(byGroup); err != nil {
			return nil, err
		}
		rules = append(rules, &follower)
	}
	return rules, nil
}

// controllers returns those that the policy wants; all of them where it says nothing.
func (b *builder) controllers() ([]controller, error) {
	doc := b.spec.AutogenConfiguration
	if doc == nil || doc.PodControllers == nil || doc.PodControllers.Controllers == nil {
		return controllers(), nil
	}
	var list []controller
	for i, name := range doc.PodControllers.Controllers {
		at := slices.IndexFunc(controllers(), func(c controller) bool { return c.resource == name })
		if at < 0 {
			return nil, field.Fail("spec.autogen.podControllers.controllers["+strconv.Itoa(i)+"]",
				"unknown controller %q: want daemonsets, deployments, replicasets, statefulsets, jobs or cronjobs", name)
		}
		if c := controllers()[at]; !slices.ContainsFunc(list, func(have controller) bool { return have.resource == c.resource }) {
			list = append(list, c)
		}
	}
	return list, nil
}

// canGenerate reports whether a policy is about pods as such, so that it means the
// same for pod templates, as Kyverno sees it.
func canGenerate(doc *admission.MatchResources) bool {
	if doc == nil || len(doc.ResourceRules) != 1 || len(doc.ExcludeResourceRules) > 0 {
		return false
	}
	for _, selector := range []*meta.LabelSelector{doc.NamespaceSelector, doc.ObjectSelector} {
		if selector != nil && len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
			return false
		}
	}
	r := doc.ResourceRules[0]
	return len(r.ResourceNames) == 0 && slices.Equal(r.APIGroups, []string{""}) &&
		slices.Equal(r.APIVersions, []string{"v1"}) && slices.Equal(r.Resources, []string{"pods"})
}

// forControllers is the constraint of a rule that follows: the same operations, on
// other resources.
func (b *builder) forControllers(byGroup map[string][]string) (*constraint.Constraint, error) {
	doc := &admission.MatchResources{MatchPolicy: b.spec.MatchConstraints.MatchPolicy}
	for _, group := range []string{"apps", "batch"} {
		if len(byGroup[group]) == 0 {
			continue
		}
		doc.ResourceRules = append(doc.ResourceRules, admission.NamedRuleWithOperations{RuleWithOperations: admission.RuleWithOperations{
			Operations: b.spec.MatchConstraints.ResourceRules[0].Operations,
			Rule:       admission.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: byGroup[group]},
		}})
	}
	return constraint.Compile(doc, "spec.matchConstraints", nil)
}
