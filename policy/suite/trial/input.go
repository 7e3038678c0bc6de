package trial

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// Advice is how a user gives what is missing, in the words of the command or page.
type Advice struct {
	// Missing says that an object is not there, as in "no file has it", and Object how it is given.
	Missing, Object string
	// Value is how the value that a rule reads is given, as in "set it with --set".
	Value string
}

// Input are the documents of a trial.
type Input struct {
	Policies   []evaluation.Policy
	Exceptions []workload.Object
	// Roots are TrustRoots.
	Roots []workload.Object
	// Objects are evaluated; SetObjects sets them.
	Objects []workload.Object
	// Warnings are about empty files.
	Warnings []string
	// Unread are errors about policies, which hide no other policy.
	Unread []error
	// Known are what policies look up by name.
	Known *engine.Resources

	advice      Advice
	globals     []workload.Object // GlobalContextEntries next to the policies
	beside      []workload.Object // objects next to the policies, for look-ups
	kinds       []constraint.Resource
	definitions []workload.Object     // of kinds, next to the policies
	evaluated   []constraint.Resource // of definitions among the objects: hints
	scopes      evaluation.Scopes
}

// NewInput returns an empty Input.
func NewInput(advice Advice) *Input {
	return &Input{advice: advice, Known: engine.NewResources().Advising(advice.Object), kinds: constraint.Known()}
}

// Named implements constraint.Resources.
func (r *Input) Named(group, name string) []constraint.Resource {
	return constraint.In(r.kinds, group, name)
}

// Hints returns the kinds of definitions among the objects.
func (r *Input) Hints(group, name string) []constraint.Resource {
	return constraint.In(r.evaluated, group, name)
}

// CheckDefinitions refuses custom resource definitions next to the policies that contradict each other.
func (r *Input) CheckDefinitions() error {
	_, err := constraint.CheckDefinitions(r.definitions, constraint.Known())
	return err
}

// SetObjects sets the evaluated objects, in their namespaces; those without one are in the given namespace.
// All policies have to be added before. An error is about the objects.
func (r *Input) SetObjects(objects []workload.Object, namespace string) error {
	r.Objects = objects
	if _, err := constraint.CheckDefinitions(r.Objects, r.kinds); err != nil {
		return err
	}
	r.evaluated = constraint.Definitions(r.Objects)
	return r.place(cmp.Or(namespace, "default"))
}

// KnowObjects makes the evaluated objects known to look-ups.
func (r *Input) KnowObjects() error {
	if err := r.contradiction(); err != nil {
		return err
	}
	for _, object := range r.Objects {
		if err := r.Known.Add(object); err != nil {
			return fmt.Errorf("%s: %w", object.Source(), err)
		}
	}
	return nil
}

// place puts the objects into their namespaces.
func (r *Input) place(namespace string) error {
	if err := evaluation.CheckKinds(r.Objects, r.kinds); err != nil {
		return err
	}
	r.Objects = evaluation.InNamespace(r.Objects, namespace, slices.Concat(r.evaluated, r.kinds))
	r.scopes = evaluation.NewScopes(r.evaluated, r.kinds, namespace)
	return nil
}

// contradiction refuses evaluated objects that replace those next to the policies, which look them up:
// the author of the objects does not choose what the policies allow.
func (r *Input) contradiction() error {
	of := func(o workload.Object) string {
		return strings.Join([]string{o.Group(), o.Kind(), o.Namespace(), o.Name()}, "/")
	}
	own := map[string]workload.Object{}
	for _, object := range evaluation.InNamespace(slices.Concat(r.beside, r.globals), "default", r.kinds) {
		own[of(object)] = stored.Object(object)
	}
	for _, object := range r.Objects {
		if next, is := own[of(object)]; is && !reflect.DeepEqual(next.Content(), object.Content()) {
			return fmt.Errorf("%s: %s differs from the one in %s, which policies look up: leave one of them out", object.Source(), object, next.Source())
		}
	}
	return nil
}

// Beside returns the objects next to the policies, for look-ups, in their namespaces.
func (r *Input) Beside() []workload.Object {
	return evaluation.InNamespace(r.beside, "default", r.kinds)
}

// AddPolicy keeps one document of those next to the policies: a policy, or what policies read.
func (r *Input) AddPolicy(object workload.Object) error {
	kind, defines := constraint.Defined(object)
	switch {
	case defines:
		r.definitions, r.kinds = append(r.definitions, object), append([]constraint.Resource{kind}, r.kinds...)
	case object.Kind() == "PolicyException":
		r.Exceptions = append(r.Exceptions, object)
	case isGlobalEntry(object):
		r.globals = append(r.globals, object)
	case engine.IsResource(object):
		r.beside = append(r.beside, object)
		return r.Known.Add(object)
	case trustroot.Recognises(object.APIVersion(), object.Kind()):
		r.Roots = append(r.Roots, object)
	default:
		r.Policies = append(r.Policies, evaluation.Policy{Object: evaluation.InNamespace([]workload.Object{object}, "default", r.kinds)[0]})
	}
	return nil
}
