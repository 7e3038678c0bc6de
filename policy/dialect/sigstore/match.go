package sigstore

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/clusterimagepolicy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/requirement"
)

// resource is a kind of object that policy-controller looks at.
type resource struct{ name, group, kind string }

// resources are all of them.
func resources() []resource {
	return []resource{
		{"pods", "", "Pod"}, {"replicasets", "apps", "ReplicaSet"}, {"deployments", "apps", "Deployment"},
		{"statefulsets", "apps", "StatefulSet"}, {"daemonsets", "apps", "DaemonSet"},
		{"jobs", "batch", "Job"}, {"cronjobs", "batch", "CronJob"},
	}
}

// includeLabel on a namespace opts it in.
const includeLabel = group + "/include"

// selected is one entry of match.
type selected struct {
	resource
	labels labels.Selector // nil: none, or one that selects all
}

// compileMatch reads match; none means every resource. An entry that can match nothing is
// an error: its policy would not have the effect that its author intends.
func compileMatch(list []clusterimagepolicy.MatchResource) ([]selected, error) {
	var out []selected
	var errs []error
	for _, r := range resources() {
		if len(list) == 0 {
			out = append(out, selected{resource: r})
		}
	}
	for i, m := range list {
		path := "spec.match[" + strconv.Itoa(i) + "]"
		at := slices.IndexFunc(resources(), func(r resource) bool { return r.name == m.Resource })
		switch {
		case m.Resource == "":
			errs = append(errs, field.Fail(path+".resource", "is missing, and so would match nothing"))
			continue
		case at < 0:
			errs = append(errs, field.Fail(path+".resource",
				"unknown resource %q: want pods, replicasets, deployments, statefulsets, daemonsets, jobs or cronjobs", m.Resource))
			continue
		}
		r := resources()[at]
		// policy-controller looks for daemonsets in the core group.
		if m.Group != r.group && (m.Group != "" || r.name != "daemonsets") {
			errs = append(errs, field.Fail(path+".group", "%q has no %s, and so would match nothing: want %q", m.Group, r.name, r.group))
		}
		if m.Version != "v1" && m.Version != "*" {
			errs = append(errs, field.Fail(path+".version", "%q would match nothing: want v1 or *", m.Version))
		}
		selector, err := compileSelector(m.Selector, path+".selector")
		errs = append(errs, err)
		out = append(out, selected{resource: r, labels: selector})
	}
	return out, errors.Join(errs...)
}

// targets returns the objects that the entries may match.
func targets(list []selected) []policy.Target {
	var out []policy.Target
	add := func(t policy.Target) {
		if !slices.ContainsFunc(out, func(have policy.Target) bool {
			return have.Kind == t.Kind && have.Group == t.Group && have.Subresource == t.Subresource
		}) {
			out = append(out, t)
		}
	}
	for _, s := range list {
		t := policy.Target{Group: s.group, Version: "*", Kind: s.kind}
		add(t)
		if s.kind == "Pod" { // containers that are added later are the pod's
			t.Subresource = ephemeral
			add(t)
		}
	}
	return out
}

const ephemeral = "ephemeralcontainers"

// is reports whether a subject is of the kind.
func (r resource) is(s *policy.Subject) bool {
	return r.kind == s.Kind && r.group == s.Group && (s.Subresource == "" || r.kind == "Pod" && s.Subresource == ephemeral)
}

// matches reports whether one of the entries matches. An error means that this depends on
// unknown values.
func matches(list []selected, s *policy.Subject) (bool, error) {
	var unknown error
	for _, entry := range list {
		switch {
		case !entry.is(s):
		case entry.labels == nil:
			return true, nil
		case s.Bare:
			unknown = errors.New("only images and their namespace are known here, and the policy selects by the object's labels; the admission webhook knows the whole object")
		default:
			given, err := labelsOf(s)
			switch {
			case err != nil:
				unknown = err
			case entry.labels.Matches(given):
				return true, nil
			}
		}
	}
	return false, unknown
}

// optedIn reports whether the subject's namespace is labelled for verification.
func optedIn(s *policy.Subject) (bool, error) {
	if !s.NamespaceKnown {
		return false, fmt.Errorf("policies hold for namespaces with the label %s alone, and the labels of the object's namespace are not known; on the command line, give the Namespace with --resource FILE", includeLabel)
	}
	return s.NamespaceLabels[includeLabel] == "true", nil
}

// labelsOf returns the object's labels. The API server accepts texts alone, a file may hold
// anything.
func labelsOf(s *policy.Subject) (labels.Set, error) {
	metadata, _ := s.Object.Map()["metadata"].(map[string]any)
	switch given := metadata["labels"].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		texts := make(labels.Set, len(given))
		for key, value := range given {
			text, ok := value.(string)
			if !ok {
				return nil, fmt.Errorf("the policy selects by labels, and the object's label %s is no text", key)
			}
			texts[key] = text
		}
		return texts, nil
	}
	return nil, errors.New("the policy selects by labels, and the object's are no map of texts")
}

// compileSelector refuses selectors that could not be evaluated, or that no labels meet.
func compileSelector(s *clusterimagepolicy.LabelSelector, path string) (labels.Selector, error) {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return nil, nil
	}
	doc := &meta.LabelSelector{MatchLabels: s.MatchLabels}
	for i, e := range s.MatchExpressions {
		place := path + ".matchExpressions[" + strconv.Itoa(i) + "]"
		switch {
		case e.Key == "":
			return nil, field.Fail(place+".key", "is empty")
		case !slices.Contains([]string{"In", "NotIn", "Exists", "DoesNotExist"}, e.Operator):
			return nil, field.Fail(place+".operator", "unknown operator %q: want In, NotIn, Exists or DoesNotExist", e.Operator)
		case (len(e.Values) > 0) != (e.Operator == "In" || e.Operator == "NotIn"):
			return nil, field.Fail(place+".values", "In and NotIn want values, Exists and DoesNotExist none")
		}
		doc.MatchExpressions = append(doc.MatchExpressions, meta.LabelSelectorRequirement{
			Key: e.Key, Operator: meta.LabelSelectorOperator(e.Operator), Values: e.Values,
		})
	}
	compiled, err := requirement.Selector(doc)
	return compiled, field.Below(path, err)
}
