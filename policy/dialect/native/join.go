package native

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/workload"
)

// The kinds of policies. Those of their bindings end in Binding.
const (
	Group          = "admissionregistration.k8s.io"
	ValidatingKind = "ValidatingAdmissionPolicy"
	MutatingKind   = "MutatingAdmissionPolicy"
	bindingSuffix  = "Binding"
)

// bindingsField is the member of a joined document with the bindings of the policy. No document of the
// API server has it.
const bindingsField = "bindings"

// isVersion reports whether an apiVersion is one in which API servers serve the kinds.
func isVersion(apiVersion string) bool {
	return slices.Contains([]string{Group + "/v1", Group + "/v1beta1", Group + "/v1alpha1"}, apiVersion)
}

func isKind(kind string) bool { return kind == ValidatingKind || kind == MutatingKind }

// IsPolicy reports whether a document is one of the policies.
func IsPolicy(apiVersion, kind string) bool { return isVersion(apiVersion) && isKind(kind) }

// IsBinding reports whether a document is a binding of one.
func IsBinding(apiVersion, kind string) bool {
	of, is := strings.CutSuffix(kind, bindingSuffix)
	return is && isVersion(apiVersion) && isKind(of)
}

// Join puts the bindings among documents into those of their policies, and returns the documents
// without bindings, and a warning for each binding of a policy that is not there. Other documents are
// returned unchanged.
func Join(documents []workload.Object) (joined []workload.Object, warnings []string, err error) {
	bindings := map[string][]workload.Object{} // by the policy
	for _, o := range documents {
		if IsBinding(o.APIVersion(), o.Kind()) {
			of := strings.TrimSuffix(o.Kind(), bindingSuffix) + " " + policyOf(o)
			bindings[of] = append(bindings[of], o)
		}
	}
	var errs []error
	for _, o := range documents {
		switch {
		case IsBinding(o.APIVersion(), o.Kind()):
			continue
		case IsPolicy(o.APIVersion(), o.Kind()):
			of := o.Kind() + " " + o.Name()
			o, err = withBindings(o, bindings[of])
			errs = append(errs, err)
			delete(bindings, of)
		}
		joined = append(joined, o)
	}
	for _, of := range slices.Sorted(maps.Keys(bindings)) {
		for _, o := range bindings[of] {
			warnings = append(warnings, fmt.Sprintf("%s: %s %s has no effect: there is no %s", o.Source(), o.Kind(), o.Name(), of))
		}
	}
	return joined, warnings, errors.Join(errs...)
}

// policyOf returns the policy that a binding names.
func policyOf(binding workload.Object) string {
	spec, _ := binding.Content()["spec"].(map[string]any)
	name, _ := spec["policyName"].(string)
	return name
}

func withBindings(o workload.Object, bindings []workload.Object) (workload.Object, error) {
	content := maps.Clone(o.Content())
	if _, is := content[bindingsField]; is {
		return o, fmt.Errorf("%s: %s %s: %s: unknown field", o.Source(), o.Kind(), o.Name(), bindingsField)
	}
	if len(bindings) == 0 {
		return o, nil
	}
	slices.SortStableFunc(bindings, func(a, b workload.Object) int { return strings.Compare(a.Name(), b.Name()) })
	list := make([]any, len(bindings))
	for i, b := range bindings {
		list[i] = b.Content()
	}
	content[bindingsField] = list
	return o.With(content)
}
