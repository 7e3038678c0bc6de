package apply

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/policy/suite/fixtures"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// read are the documents of a run.
type read struct {
	policies    []evaluation.Policy
	exceptions  []workload.Object
	roots       []workload.Object
	globals     []workload.Object // GlobalContextEntries from the policies' files
	objects     []workload.Object
	beside      []workload.Object // objects from the policies' files, for look-ups
	leftAside   []string          // warnings about documents of kinds that are not implemented, and empty files
	unread      []error           // about policies
	known       *engine.Resources
	kinds       []constraint.Resource
	definitions []workload.Object     // of kinds, in the policies' files
	evaluated   []constraint.Resource // of definitions among the objects: hints
	scopes      evaluation.Scopes
}

// Named implements constraint.Resources.
func (r *read) Named(group, name string) []constraint.Resource {
	return constraint.In(r.kinds, group, name)
}

// Hints returns the kinds of definitions among the objects.
func (r *read) Hints(group, name string) []constraint.Resource {
	return constraint.In(r.evaluated, group, name)
}

// given reads the values that replace look-ups, and the requesting user.
func (f *applyFlags) given() (*fixtures.Values, *policy.User, error) {
	values := &fixtures.Values{}
	if f.values != "" {
		var err error
		values, err = fixtures.LoadValues(f.values, nil)
		if err != nil {
			return nil, nil, fmt.Errorf("--values-file: %w", err)
		}
	}
	for _, pair := range f.set {
		for one := range strings.SplitSeq(pair, ",") {
			if err := values.Set(one); err != nil {
				return nil, nil, fmt.Errorf("--set: %w", err)
			}
		}
	}
	if f.user == "" {
		return values, nil, nil
	}
	user, err := fixtures.LoadUser(f.user, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("--userinfo: %w", err)
	}
	return values, &user, nil
}

// read reads policies and objects.
func (f *applyFlags) read(t command.Terminal, policies []string) (*read, error) {
	from := &read{known: engine.NewResources().Advising("give it with -r FILE"), kinds: constraint.Known()}
	for _, name := range policies {
		objects, err := manifest.ReadPolicies(name, t.In)
		if err != nil {
			from.unread = append(from.unread, fmt.Errorf("%s: %w", name, err))
		}
		for _, object := range objects {
			if err := from.document(object); err != nil {
				return nil, err
			}
		}
	}
	if _, err := constraint.CheckDefinitions(from.definitions, constraint.Known()); err != nil {
		return nil, err
	}
	if len(from.policies)+len(from.leftAside) == 0 {
		if err := errors.Join(from.unread...); err != nil {
			return nil, err
		}
		if len(from.exceptions) > 0 {
			return nil, fmt.Errorf("%s: only exceptions in it; pass them with --exception", strings.Join(policies, ", "))
		}
		return nil, fmt.Errorf("%s: no policy in it", strings.Join(policies, ", "))
	}
	for _, name := range f.exceptions {
		objects, err := manifest.ReadPolicies(name, nil)
		if err != nil {
			return nil, fmt.Errorf("--exception %s: %w", name, err)
		}
		from.exceptions = append(from.exceptions, objects...)
	}
	for _, name := range f.resources {
		objects, err := manifest.Read(name, t.In)
		if err != nil {
			return nil, fmt.Errorf("-r %s: %w", name, err)
		}
		if len(objects) == 0 {
			from.leftAside = append(from.leftAside, "-r "+name+": no objects in it")
		}
		from.objects = append(from.objects, objects...)
	}
	if _, err := constraint.CheckDefinitions(from.objects, from.kinds); err != nil {
		return nil, fmt.Errorf("-r: %w", err)
	}
	from.evaluated = constraint.Definitions(from.objects)
	if len(from.objects) == 0 && !f.cluster {
		return nil, fmt.Errorf("-r %s: no objects in it", strings.Join(f.resources, ", "))
	}
	if err := from.place(cmp.Or(f.namespace, "default")); err != nil {
		return nil, err
	}
	for _, object := range from.objects {
		if err := from.known.Add(object); err != nil {
			return nil, fmt.Errorf("%s: %w", object.Source(), err)
		}
	}
	return from, nil
}

// place puts the objects into their namespaces.
func (r *read) place(namespace string) error {
	if err := manifest.CheckKinds(r.objects, r.kinds); err != nil {
		return fmt.Errorf("-r: %w", err)
	}
	r.objects = evaluation.InNamespace(r.objects, namespace, slices.Concat(r.evaluated, r.kinds))
	r.scopes = evaluation.NewScopes(r.evaluated, r.kinds, namespace)
	return r.contradiction()
}

// contradiction refuses evaluated objects that replace those next to the policies, which look them up:
// the author of the objects does not choose what the policies allow.
func (r *read) contradiction() error {
	of := func(o workload.Object) string {
		return strings.Join([]string{o.Group(), o.Kind(), o.Namespace(), o.Name()}, "/")
	}
	own := map[string]workload.Object{}
	for _, object := range evaluation.InNamespace(slices.Concat(r.beside, r.globals), "default", r.kinds) {
		own[of(object)] = stored.Object(object)
	}
	for _, object := range r.objects {
		if next, is := own[of(object)]; is && !reflect.DeepEqual(next.Content(), object.Content()) {
			return fmt.Errorf("%s: %s differs from the one in %s, which policies look up: leave one of them out", object.Source(), object, next.Source())
		}
	}
	return nil
}

// document keeps one document of the policies' files.
func (r *read) document(object workload.Object) error {
	left := engine.LeftAside(object)
	kind, defines := constraint.Defined(object)
	switch {
	case left != "":
		r.leftAside = append(r.leftAside, left)
	case defines:
		r.definitions, r.kinds = append(r.definitions, object), append([]constraint.Resource{kind}, r.kinds...)
	case object.Kind() == "PolicyException":
		r.exceptions = append(r.exceptions, object)
	case isGlobalEntry(object):
		r.globals = append(r.globals, object)
	case engine.IsResource(object):
		r.beside = append(r.beside, object)
		return r.known.Add(object)
	case trustroot.Recognises(object.APIVersion(), object.Kind()):
		r.roots = append(r.roots, object)
	default:
		r.policies = append(r.policies, evaluation.Policy{Object: evaluation.InNamespace([]workload.Object{object}, "default", r.kinds)[0]})
	}
	return nil
}
