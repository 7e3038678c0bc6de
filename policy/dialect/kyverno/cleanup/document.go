package cleanup

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// policyDocument is a policy as it is written.
type policyDocument struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Metadata   json.RawMessage `json:"metadata"`
	Spec       spec            `json:"spec"`
	Status     json.RawMessage `json:"status,omitempty"`
}

// metadata is not decoded strictly: the API server adds to it.
type metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	Annotations map[string]string `json:"annotations"`
	Labels      map[string]any    `json:"labels"`
	Created     *time.Time        `json:"creationTimestamp"`
}

type spec struct {
	Context                   []rulecontext.Document `json:"context"`
	Match                     match.Document         `json:"match"`
	Exclude                   *match.Document        `json:"exclude"`
	Schedule                  string                 `json:"schedule"`
	Conditions                any                    `json:"conditions"`
	DeletionPropagationPolicy *string                `json:"deletionPropagationPolicy"`
}

// The kinds of policies.
const (
	Kind        = "CleanupPolicy"
	ClusterKind = "ClusterCleanupPolicy"
)

// Recognises reports whether a document of this apiVersion and kind is a policy of this dialect.
func Recognises(apiVersion, kind string) bool {
	return slices.Contains([]string{"kyverno.io/v2", "kyverno.io/v2beta1"}, apiVersion) && (kind == Kind || kind == ClusterKind)
}

// IgnoredField is a field that is accepted and means nothing here.
type IgnoredField struct{ Path, Reason string }

// Ignored returns the fields that are accepted and mean nothing here. Every other one is honoured
// or refused.
func Ignored() []IgnoredField {
	return []IgnoredField{{Path: "status", Reason: "the API server's record of what Kyverno did"}}
}

// checkSelection refuses what a block cannot select by: there is no request.
func checkSelection(m match.Document, path string) error {
	var errs []error
	if m.OldForm() {
		errs = append(errs, field.Fail(path, "the old form without any and all is not part of this version: write any or all"))
	}
	const none = "a schedule and no request deletes the object: remove the field"
	check := func(i int, name string, operations []string, lengths ...int) {
		at := path + "." + name + "[" + strconv.Itoa(i) + "]"
		if len(operations) > 0 {
			errs = append(errs, field.Fail(at+".resources.operations", none))
		}
		for n, who := range []string{"subjects", "roles", "clusterRoles"} {
			if lengths[n] > 0 {
				errs = append(errs, field.Fail(at+"."+who, none))
			}
		}
	}
	for i, f := range m.Any {
		check(i, "any", f.Resources.Operations, len(f.Subjects), len(f.Roles), len(f.ClusterRoles))
	}
	for i, f := range m.All {
		check(i, "all", f.Resources.Operations, len(f.Subjects), len(f.Roles), len(f.ClusterRoles))
	}
	return errors.Join(errs...)
}

// checkNamespaces refuses a selector of namespaces for Namespaces, which are in none. Kyverno ignores
// it, and deletes all of them.
func checkNamespaces(m match.Document) error {
	var errs []error
	check := func(path string, kinds []string, selector *match.Selector) {
		if selector != nil && slices.ContainsFunc(kinds, func(kind string) bool { return kind == "Namespace" || kind == "v1/Namespace" }) {
			errs = append(errs, field.Fail(path+".resources.namespaceSelector", "selects no Namespace, because it is in none: write selector for its own labels"))
		}
	}
	for i, f := range m.Any {
		check("spec.match.any["+strconv.Itoa(i)+"]", f.Resources.Kinds, f.Resources.NamespaceSelector)
	}
	for i, f := range m.All {
		check("spec.match.all["+strconv.Itoa(i)+"]", f.Resources.Kinds, f.Resources.NamespaceSelector)
	}
	return errors.Join(errs...)
}

// checkReads refuses variables of a request. Those of a context entry or a condition that is
// certain to have none would keep every object.
func checkReads(s spec) error {
	var errs []error
	check := func(r rulecontext.Reading, path string) {
		if beyond := r.Beyond(); beyond != "" && beyond != "images" {
			errs = append(errs, field.Fail(path, "a variable reads %s, and there is no request: write target for the object, or request.namespace", beyond))
		}
	}
	for i, entry := range s.Context {
		var r rulecontext.Reading
		r.Entries([]rulecontext.Document{entry})
		check(r, "spec.context["+strconv.Itoa(i)+"]")
		if entry.ImageRegistry != nil {
			errs = append(errs, field.Fail("spec.context["+strconv.Itoa(i)+"].imageRegistry", "is not supported, as in Kyverno: remove the entry"))
		}
	}
	conditions, _ := s.Conditions.(map[string]any)
	for _, name := range []string{"any", "all"} {
		list, _ := conditions[name].([]any)
		for i, condition := range list {
			var r rulecontext.Reading
			r.Value(condition)
			check(r, "spec.conditions."+name+"["+strconv.Itoa(i)+"]")
		}
	}
	return errors.Join(errs...)
}
