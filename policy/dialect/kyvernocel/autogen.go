package kyvernocel

import (
	"slices"
	"strconv"
	"strings"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// controller is a resource for which a policy about pods is generated.
type controller struct {
	kind, resource, group string
	template              Template
}

// controllers are Kyverno's, in the order in which they are written here.
func controllers() []controller {
	template := Template{"spec", "template"}
	return []controller{
		{"DaemonSet", "daemonsets", "apps", template}, {"Deployment", "deployments", "apps", template},
		{"ReplicaSet", "replicasets", "apps", template}, {"StatefulSet", "statefulsets", "apps", template},
		{"Job", "jobs", "batch", template}, {"CronJob", "cronjobs", "batch", Template{"spec", "jobTemplate", "spec", "template"}},
	}
}

// named returns the controllers that a policy may name: by default no rule is generated for the last.
func named() []controller {
	return append(controllers(), controller{"ReplicationController", "replicationcontrollers", "", Template{"spec", "template"}})
}

// find returns the controller with a kind or a plural resource, in any case, as its name.
func find(name string) (controller, bool) {
	for _, c := range named() {
		if strings.EqualFold(c.resource, name) || c.kind == name {
			return c, true
		}
	}
	return controller{}, false
}

// Follower holds the differences of a generated rule from its pod rule.
type Follower struct {
	Name     string // the rule's
	Match    *constraint.Constraint
	Template Template
}

// Followers returns the rules that are generated from a named pod rule: one for the controllers
// with the pod template at one path. Match is the policy's. None are generated if it is nil, or
// if it matches more than pods as such.
func Followers(name string, match *admission.MatchResources, autogen *v1alpha1.PodControllersGenerationConfiguration) ([]Follower, error) {
	matches, err := FollowerMatches(match, autogen)
	if err != nil {
		return nil, err
	}
	var rules []Follower
	for _, m := range matches {
		compiled, err := constraint.Compile(m.Match, "spec.matchConstraints", nil)
		if err != nil {
			return nil, err
		}
		rules = append(rules, Follower{Name: m.Prefix + name, Match: compiled, Template: m.Template})
	}
	return rules, nil
}

// FollowerMatch is what a generated rule matches.
type FollowerMatch struct {
	// Prefix begins the rule's name.
	Prefix   string
	Match    *admission.MatchResources
	Template Template
}

// FollowerMatches returns the matches of the rules that Followers returns.
func FollowerMatches(match *admission.MatchResources, autogen *v1alpha1.PodControllersGenerationConfiguration) ([]FollowerMatch, error) {
	wanted, err := controllersOf(autogen)
	if err != nil || !canGenerate(match) {
		return nil, err
	}
	var rules []FollowerMatch
	for _, kind := range []struct {
		prefix string
		cron   bool
	}{{"autogen-", false}, {"autogen-cronjobs-", true}} {
		follower := FollowerMatch{Prefix: kind.prefix}
		byGroup := map[string][]string{}
		for _, c := range wanted {
			if (c.resource == "cronjobs") != kind.cron {
				continue
			}
			follower.Template = c.template
			byGroup[c.group] = append(byGroup[c.group], c.resource)
		}
		if len(byGroup) == 0 {
			continue
		}
		follower.Match = forControllers(match, byGroup)
		rules = append(rules, follower)
	}
	return rules, nil
}

// controllersOf returns the controllers that the policy selects; all of them by default.
func controllersOf(autogen *v1alpha1.PodControllersGenerationConfiguration) ([]controller, error) {
	if autogen == nil || autogen.Controllers == nil {
		return controllers(), nil
	}
	var list []controller
	for i, name := range autogen.Controllers {
		c, ok := find(name)
		if !ok {
			return nil, field.Fail("spec.autogen.podControllers.controllers["+strconv.Itoa(i)+"]",
				"unknown controller %q: want daemonsets, deployments, replicasets, replicationcontrollers, statefulsets, jobs or cronjobs (custom resources are not supported)", name)
		}
		if !slices.ContainsFunc(list, func(have controller) bool { return have.resource == c.resource }) {
			list = append(list, c)
		}
	}
	return list, nil
}

// canGenerate reports whether a policy is for pod templates too, by Kyverno's rules: not with a subresource of pods as
// well. A namespace selector is no obstacle: a controller is in the namespace of its pods.
func canGenerate(doc *admission.MatchResources) bool {
	if doc == nil || len(doc.ResourceRules) != 1 || len(doc.ExcludeResourceRules) > 0 {
		return false
	}
	if labels := doc.ObjectSelector; labels != nil && len(labels.MatchLabels)+len(labels.MatchExpressions) > 0 {
		return false
	}
	r := doc.ResourceRules[0]
	return len(r.ResourceNames) == 0 && slices.Equal(r.APIGroups, []string{""}) &&
		slices.Equal(r.APIVersions, []string{"v1"}) && slices.Equal(r.Resources, []string{"pods"})
}

// forControllers is the match of a generated rule: the same operations and namespaces, on
// other resources.
func forControllers(match *admission.MatchResources, byGroup map[string][]string) *admission.MatchResources {
	doc := &admission.MatchResources{MatchPolicy: match.MatchPolicy, NamespaceSelector: match.NamespaceSelector}
	for _, group := range []string{"", "apps", "batch"} {
		if len(byGroup[group]) == 0 {
			continue
		}
		doc.ResourceRules = append(doc.ResourceRules, admission.NamedRuleWithOperations{RuleWithOperations: admission.RuleWithOperations{
			Operations: match.ResourceRules[0].Operations,
			Rule:       admission.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: byGroup[group]},
		}})
	}
	return doc
}

// Pointer returns the location in the object for a pointer of a pod expression.
func (t Template) Pointer(path string) string {
	if len(t) == 0 {
		return path
	}
	for _, part := range []string{"/spec", "/metadata"} {
		if path == part || strings.HasPrefix(path, part+"/") {
			return "/" + strings.Join(t, "/") + path
		}
	}
	return path
}
