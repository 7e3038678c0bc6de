// Package autogen generates rules for pod controllers from rules for pods.
//
// It implements Kyverno's rule generation ("Auto-Gen Rules", 1.19): the kinds that a policy
// selects, the names of the generated rules, and each rule in the form for an object with a pod
// template.
package autogen

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

const (
	annotation = "pod-policies.kyverno.io/autogen-controllers"
	cronJob    = "CronJob"
	// maxRuleName is where Kyverno cuts the names of generated rules.
	maxRuleName = 63
)

// Controllers returns the kinds for which the policy's pod rules are generated, in the order of
// podControllers. The annotation names them by kind, or by plural resource in any case.
func Controllers(annotations map[string]string) ([]string, error) {
	wanted, set := annotations[annotation]
	switch {
	case !set || wanted == "all":
		return match.PodControllers(), nil
	case wanted == "none":
		return nil, nil
	}
	var kinds []string
	for name := range strings.SplitSeq(wanted, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		at := slices.IndexFunc(match.PodControllers(), func(kind string) bool {
			return kind == name || strings.EqualFold(kind+"s", name)
		})
		if at < 0 {
			return nil, field.Fail("metadata.annotations["+annotation+"]", "unknown pod controller %q: want none, all, or some of %s",
				name, strings.Join(match.PodControllers(), ", "))
		}
		kinds = append(kinds, match.PodControllers()[at])
	}
	return kinds, nil
}

// Follower is a rule that follows from one about pods.
type Follower struct {
	Name string
	// Kinds are those of its objects, in place of pods.
	Kinds []string
	// Template is where the template of pods is in them.
	Template rulecontext.PodTemplate
}

// Followers returns the rules that follow from one about pods: one for CronJob
// and one for all other controllers.
func Followers(name string, kinds []string) []Follower {
	var rules []Follower
	others := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == cronJob })
	if len(others) > 0 {
		rules = append(rules, Follower{cut("autogen-" + name), others, rulecontext.PodTemplate{"spec", "template"}})
	}
	if slices.Contains(kinds, cronJob) {
		rules = append(rules, Follower{cut("autogen-cronjob-" + name), []string{cronJob}, rulecontext.PodTemplate{"spec", "jobTemplate", "spec", "template"}})
	}
	return rules
}

func cut(name string) string {
	if len(name) > maxRuleName {
		return strings.TrimRight(name[:maxRuleName], "-.")
	}
	return name
}
