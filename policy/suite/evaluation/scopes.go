package evaluation

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// Decider evaluates objects in batches; *gate.Gate implements it.
type Decider interface {
	DecideAll(ctx context.Context, requests []gate.Request, progress func(done, total int)) []gate.Outcome
}

// Scopes evaluates objects as cluster-scoped and as in a namespace, and takes the graver outcome, where
// only a definition next to the objects has their kind in no namespace: its author would take them out
// of rules for namespaces. The zero value evaluates each object once.
type Scopes struct {
	hints     map[groupKind]bool
	namespace string
	// Labels returns the labels of a namespace; nil if they are unknown. The function may be nil.
	Labels func(namespace string) map[string]string
	// Warn receives a message for each object whose outcome is that in the namespace. It may be nil.
	Warn func(message string)
}

// NewScopes returns the Scopes for kinds that definitions next to the objects define, without those that
// trusted definitions do. The namespace is that of objects without one.
func NewScopes(hints, trusted []constraint.Resource, namespace string) Scopes {
	s := Scopes{hints: map[groupKind]bool{}, namespace: namespace}
	for _, hint := range hints {
		isKnown := slices.ContainsFunc(trusted, func(r constraint.Resource) bool { return r.Group == hint.Group && r.Kind == hint.Kind })
		s.hints[groupKind{hint.Group, hint.Kind}] = hint.Cluster && !isKnown
	}
	return s
}

// DecideAll evaluates requests. The outcomes are in their order.
func (s Scopes) DecideAll(ctx context.Context, by Decider, requests []gate.Request, progress func(done, total int)) []gate.Outcome {
	all := slices.Clone(requests)
	var doubted []int // the indexes of the requests with a second reading, in the order of those
	for i := range requests {
		if s.doubts(&requests[i]) {
			all, doubted = append(all, s.placed(requests[i])), append(doubted, i)
		}
	}
	outcomes := by.DecideAll(ctx, all, progress)
	for n, i := range doubted {
		namespaced := outcomes[len(requests)+n]
		if compareGravity(&namespaced, &outcomes[i]) <= 0 {
			continue
		}
		if s.Warn != nil {
			s.Warn(fmt.Sprintf("%s: %s is evaluated as in the namespace %s: only a definition next to it has its kind in none, and the result would be "+
				"less strict; put the definition next to the policies", requests[i].Object.Source(), requests[i].Object, s.namespace))
		}
		namespaced.Changed = stored.In(namespaced.Changed, "")
		outcomes[i] = namespaced
	}
	return outcomes[:len(requests)]
}

// doubts reports whether it is not known if the object is in a namespace.
func (s Scopes) doubts(r *gate.Request) bool {
	return !r.ClusterScoped && !r.Object.IsZero() && r.Object.Namespace() == "" && r.Subject.Namespace == "" &&
		s.hints[groupKind{r.Object.Group(), r.Object.Kind()}]
}

// placed returns the request for the object in the namespace.
func (s Scopes) placed(r gate.Request) gate.Request {
	r.Object, r.Old = stored.In(r.Object, s.namespace), stored.In(r.Old, s.namespace)
	r.Subject.Namespace = s.namespace
	if s.Labels != nil {
		if labels := s.Labels(s.namespace); labels != nil {
			r.Subject.NamespaceKnown, r.Subject.NamespaceLabels = true, labels
		}
	}
	return r
}

// compareGravity orders outcomes by their gravity: denied, could not be verified, admitted with warnings, of the
// object or of its images, matched by no policy (--require-match refuses it), admitted.
func compareGravity(a, b *gate.Outcome) int {
	refused := func(o *gate.Outcome) gate.Result {
		if o.Result.Admits() {
			return gate.Allow
		}
		return o.Result
	}
	warnings := func(o *gate.Outcome) int {
		count := len(o.Warnings)
		for i := range o.Verdicts {
			count += len(o.Verdicts[i].Warnings)
		}
		return count
	}
	return cmp.Or(refused(b).Compare(refused(a)), cmp.Compare(warnings(a), warnings(b)), a.Result.Compare(b.Result))
}
