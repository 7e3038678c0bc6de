package cel

import (
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/podsecurity"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// podSecurity writes a standard as validations, one for each check.
func (r *rule) podSecurity(doc *podsecurity.Document, compiled *policy.Policy) error {
	pod, err := podOf(compiled, r.name)
	if err != nil {
		return err
	}
	now, err := podsecurity.Write(*doc, podsecurity.Options{Pod: "object" + pod, Containers: "allContainers"})
	if err != nil {
		return source.Located("validate.podSecurity", err)
	}
	old, err := podsecurity.Write(*doc, podsecurity.Options{Pod: "oldObject" + pod, Containers: "allContainersBefore"})
	if err != nil {
		return source.Located("validate.podSecurity", err)
	}
	r.variables, r.beforeVariables, r.validations = append(r.variables, now.Containers), append(r.beforeVariables, old.Containers), now.Validations
	var every []string
	for _, v := range old.Validations {
		every = append(every, v.Expression)
	}
	r.before = celtext.And(every)
	return nil
}

// podOf returns the path of the pod in the objects of a rule.
func podOf(compiled *policy.Policy, name string) (string, error) {
	i := slices.IndexFunc(compiled.Validations, func(v policy.Validation) bool { return v.Name() == name })
	if i < 0 {
		return "", errors.New("the rule is not evaluated")
	}
	var paths []string
	for _, t := range compiled.Validations[i].Targets() {
		path, known := map[string]string{
			"Pod": "", "PodTemplate": ".template", "CronJob": ".spec.jobTemplate.spec.template", "DaemonSet": ".spec.template", "Deployment": ".spec.template",
			"Job": ".spec.template", "ReplicaSet": ".spec.template", "ReplicationController": ".spec.template", "StatefulSet": ".spec.template",
		}[t.Kind]
		if !known || t.Subresource != "" && t.Subresource != "ephemeralcontainers" {
			return "", &source.Unsupported{Path: "match", Found: "podSecurity of objects without a pod: " + t.Kind + "/" + t.Subresource}
		}
		paths = append(paths, path)
	}
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	if len(paths) != 1 {
		return "", &source.Unsupported{Path: "match", Found: "podSecurity of kinds that have their pods in several places"}
	}
	return paths[0], nil
}
