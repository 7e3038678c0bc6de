package kyverno

import (
	"slices"
	"strings"
)

const (
	autogenAnnotation = "pod-policies.kyverno.io/autogen-controllers"
	cronJob           = "CronJob"
	// maxRuleName is where Kyverno cuts the names of generated rules.
	maxRuleName = 63
)

// templateOf says where the pod template is in an object that a generated rule
// looks at.
type templateOf []string

func podControllers() []string {
	return []string{"DaemonSet", "Deployment", "Job", "StatefulSet", "ReplicaSet", "ReplicationController", cronJob}
}

// controllers returns for which kinds the policy wants its rules about pods to
// be generated, in the order of podControllers.
func controllers(annotations map[string]string) ([]string, error) {
	wanted, set := annotations[autogenAnnotation]
	switch {
	case !set || wanted == "all":
		return podControllers(), nil
	case wanted == "none":
		return nil, nil
	}
	var kinds []string
	for name := range strings.SplitSeq(wanted, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !slices.Contains(podControllers(), name) {
			return nil, fail("metadata.annotations["+autogenAnnotation+"]", "unknown pod controller %q: want none, all, or some of %s",
				name, strings.Join(podControllers(), ", "))
		}
		kinds = append(kinds, name)
	}
	return kinds, nil
}

// canGenerate reports whether a rule is about pods as such, so that it means
// the same for pod templates: not if it picks pods by name, label or annotation,
// nor if it speaks of other kinds as well.
func canGenerate(match, exclude block) bool {
	pods := false
	for _, b := range []block{match, exclude} {
		for _, f := range b.filters {
			if len(f.names) > 0 || f.Resources.Selector != nil || len(f.Resources.Annotations) > 0 {
				return false
			}
			for _, kind := range f.kinds {
				if !kind.isPod() {
					return false
				}
			}
		}
	}
	for _, f := range match.filters {
		pods = pods || len(f.kinds) > 0
	}
	return pods
}

// generated is a rule that follows from one about pods.
type generated struct {
	name     string
	kinds    []string
	template templateOf
}

// generate returns the rules that follow from one about pods: one for CronJob
// and one for all other controllers.
func generate(name string, kinds []string) []generated {
	var rules []generated
	others := slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == cronJob })
	if len(others) > 0 {
		rules = append(rules, generated{cut("autogen-" + name), others, templateOf{"spec", "template"}})
	}
	if slices.Contains(kinds, cronJob) {
		rules = append(rules, generated{cut("autogen-cronjob-" + name), []string{cronJob}, templateOf{"spec", "jobTemplate", "spec", "template"}})
	}
	return rules
}

func cut(name string) string {
	if len(name) > maxRuleName {
		return strings.TrimRight(name[:maxRuleName], "-.")
	}
	return name
}

// forKinds returns the block with other kinds in place of pods.
func (b block) forKinds(kinds []string) block {
	changed := block{all: b.all}
	for _, f := range b.filters {
		if len(f.kinds) > 0 {
			f.kinds = nil
			for _, kind := range kinds {
				f.kinds = append(f.kinds, kindSelector{group: groupOf(kind), version: "*", kind: kind})
			}
		}
		changed.filters = append(changed.filters, f)
	}
	return changed
}

// groupOf keeps a generated rule from matching another group's kind of the
// same name.
func groupOf(kind string) string {
	switch kind {
	case "Job", cronJob:
		return "batch"
	case "ReplicationController":
		return ""
	}
	return "apps"
}

// view returns the object as a rule about pods sees it: with the pod template's
// specification and metadata in place of its own, as Kyverno gets by rewriting
// the rule's variables. The namespace is the object's, never the template's: pods
// run where their controller is.
func (t templateOf) view(object map[string]any) map[string]any {
	if len(t) == 0 || object == nil {
		return object
	}
	var at any = object
	for _, key := range t {
		step, _ := at.(map[string]any)
		at = step[key]
	}
	template, ok := at.(map[string]any)
	if !ok {
		return object
	}
	changed := make(map[string]any, len(object))
	for key, value := range object {
		changed[key] = value
	}
	changed["spec"] = template["spec"]
	meta := map[string]any{}
	if templates, ok := template["metadata"].(map[string]any); ok {
		for key, value := range templates {
			meta[key] = value
		}
	}
	// Last, for who writes a template may write any namespace into it.
	delete(meta, "namespace")
	if own, ok := object["metadata"].(map[string]any); ok && own["namespace"] != nil {
		meta["namespace"] = own["namespace"]
	}
	changed["metadata"] = meta
	return changed
}
