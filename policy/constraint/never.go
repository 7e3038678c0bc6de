package constraint

import (
	"slices"
	"strconv"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/field"
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
	if r.scope != admission.AllScopes && !slices.ContainsFunc(r.kinds, func(k kind) bool { return k.mayBeIn(r.scope) }) {
		return field.Fail(path+".scope", "none of the resources has the scope %s, and so the rule would match nothing", r.scope)
	}
	if !slices.ContainsFunc(r.kinds, func(k kind) bool { return slices.ContainsFunc(r.operations, k.mayHave) }) {
		return field.Fail(path+".operations", "%q is no operation of the resources, and so the rule would match nothing: CONNECT is that of subresources such as pods/exec, CREATE that of pods/eviction, UPDATE that of scale and status", r.operations)
	}
	return nil
}

// isGuess reports whether the kind is not known, or any.
func (k kind) isGuess() bool { return k.name == "*" || k.guessed || k.unserved }

func (k kind) mayBeIn(scope admission.ScopeType) bool {
	return k.isGuess() || k.cluster == (scope == admission.ClusterScope)
}

// mayHave reports whether requests for a resource may have an operation.
func (k kind) mayHave(o admission.OperationType) bool {
	_, known := builtin.Find(k.group, k.name)
	return o == admission.OperationAll || builtin.MayHave(k.subresource, string(o), known && !k.isGuess())
}
