package mutation

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types/ref"
	"github.com/quaymaster/quaymaster/policy/lang/cel/patchtype"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	fields "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Target is the object of a mutation.
type Target struct {
	Kind schema.GroupVersionKind
	// Object is decoded JSON, which is not changed.
	Object map[string]any
}

// Types hold the merge rules for the parts of objects. They are immutable.
type Types struct {
	own    map[schema.GroupVersionKind]rules
	others rules
}

// rules are the merge rules of a kind.
type rules struct {
	converter managedfields.TypeConverter
	known     *fields.Schema
	ref       fields.TypeRef
	isOwn     bool // the types are Kubernetes' own
}

// NewTypes reads the types of Kubernetes, which takes some 100 ms.
func NewTypes() *Types {
	t := &Types{own: map[schema.GroupVersionKind]rules{}}
	own := applyconfigurations.NewTypeConverter(scheme.Scheme)
	for name := range scheme.Scheme.AllKnownTypes() {
		if of, ok := rulesOf(own, name); ok {
			of.isOwn = true
			t.own[name] = of
		}
	}
	t.others, _ = rulesOf(managedfields.NewDeducedTypeConverter(), schema.GroupVersionKind{})
	return t
}

func rulesOf(converter managedfields.TypeConverter, name schema.GroupVersionKind) (rules, bool) {
	bare := &unstructured.Unstructured{Object: map[string]any{}}
	bare.SetGroupVersionKind(name)
	typed, err := converter.ObjectToTyped(bare)
	if err != nil {
		return rules{}, false
	}
	return rules{converter: converter, known: typed.Schema(), ref: typed.TypeRef()}, true
}

// of returns the rules of a kind. Kinds of Kubernetes that nothing stores have none, as Scale: they are merged as
// custom resources are.
func (t *Types) of(name schema.GroupVersionKind) rules {
	if own, ok := t.own[name]; ok {
		return own
	}
	return t.others
}

// Apply merges the configuration that an expression created into an object. An atomic field is
// replaced as a whole, which loses values that the author did not write. It is therefore refused
// unless the policy enables it. For a kind that is not Kubernetes' own, it is always refused.
func (t *Types) Apply(made ref.Val, about Target, serverSide bool) (map[string]any, error) {
	configuration, err := patchtype.Object(made)
	if err != nil {
		return nil, err
	}
	of := t.of(about.Kind)
	if _, err := plain(configuration); err != nil {
		return nil, err
	}
	if err := of.check(about.Kind, configuration, !serverSide || !of.isOwn); err != nil {
		return nil, err
	}
	if object, ok := mergeObject(of, about, configuration); ok {
		return object, nil
	}
	return of.merge(about, configuration)
}

// merge has the library merge a configuration into an object.
func (r rules) merge(about Target, configuration map[string]any) (map[string]any, error) {
	changes, err := r.converter.ObjectToTyped(&unstructured.Unstructured{Object: configuration})
	if err != nil {
		return nil, &FitError{Kind: about.Kind.Kind, Err: err}
	}
	live, err := r.converter.ObjectToTyped(&unstructured.Unstructured{Object: about.Object}, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("the object does not fit the type %s as Kubernetes 1.37 has it: %w", about.Kind.Kind, plainly(err))
	}
	merged, err := live.Merge(changes)
	if err != nil {
		return nil, fmt.Errorf("merge the configuration: %w", err)
	}
	object, ok := merged.AsValue().Unstructured().(map[string]any)
	if !ok {
		return nil, fmt.Errorf("merge the configuration: no object is left")
	}
	return object, nil
}

// Check reports whether a configuration of decoded JSON can be merged into objects of a kind: a *FitError
// if it is not of the type, an *AtomicError if it would replace fields as a whole. It is not changed.
func (t *Types) Check(name schema.GroupVersionKind, configuration map[string]any) error {
	return t.of(name).check(name, maps.Clone(configuration), true)
}

// check is Types.Check; it adds the kind to the configuration.
func (r rules) check(name schema.GroupVersionKind, configuration map[string]any, refusesAtomic bool) error {
	configuration["apiVersion"], configuration["kind"] = name.GroupVersion().String(), name.Kind
	m := merger{r.known}
	if !m.fits(r.ref, configuration, true) {
		if _, err := r.converter.ObjectToTyped(&unstructured.Unstructured{Object: configuration}); err != nil {
			return &FitError{Kind: name.Kind, Err: err}
		}
	}
	if !refusesAtomic {
		return nil
	}
	if paths := m.atomics(r.ref, configuration); len(paths) > 0 {
		slices.Sort(paths)
		return &AtomicError{Paths: paths, own: r.isOwn}
	}
	return nil
}

// goValue is the form in which the library writes a value that is no string.
var goValue = regexp.MustCompile(`&?value\.valueUnstructured\{Value:(.*)\}`)

// plainly returns the error with the value in place of Go's form of it.
func plainly(err error) error { return errors.New(goValue.ReplaceAllString(err.Error(), "$1")) }

func instead(isOwn bool) string {
	if isOwn {
		return "use a JSONPatch, or set spec.evaluation.useServerSideApply if that is meant"
	}
	return "use a JSONPatch, for which lists of this kind have keys is not known"
}

// AtomicError is the error for a configuration with lists, maps and structures that are replaced as a
// whole.
type AtomicError struct {
	// Paths are theirs, as the API server writes them: .spec.containers[0].args.
	Paths []string
	own   bool
}

// Error implements error.
func (e *AtomicError) Error() string {
	paths := make([]string, len(e.Paths))
	for i, path := range e.Paths {
		paths[i] = strings.TrimPrefix(indexed.ReplaceAllString(path, ""), ".")
	}
	return fmt.Sprintf("the configuration would replace all of %s: %s", strings.Join(paths, ", "), instead(e.own))
}

// indexed is the index of an element in a path.
var indexed = regexp.MustCompile(`\[[0-9]+\]`)

// FitError is the error for a configuration that is not of the type of its kind.
type FitError struct {
	Kind string
	// Err is the error of the library, which may have values in Go's form.
	Err error
}

// Error implements error.
func (e *FitError) Error() string {
	return fmt.Sprintf("the configuration does not fit the type %s: %v", e.Kind, plainly(e.Err))
}

// Unwrap returns the error of the library.
func (e *FitError) Unwrap() error { return e.Err }

// atomics returns where a value holds lists, maps and structures that are replaced as a whole.
func (m merger) atomics(of fields.TypeRef, v any) (found []string) {
	atom, ok := m.known.Resolve(of)
	if !ok {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		if atom.Map == nil {
			return nil
		}
		if atom.Map.ElementRelationship == fields.Atomic {
			return []string{""}
		}
		for key, member := range v {
			next := atom.Map.ElementType
			if f, ok := atom.FindField(key); ok {
				next = f.Type
			}
			for _, path := range m.atomics(next, member) {
				found = append(found, "."+key+path)
			}
		}
	case []any:
		if atom.List == nil {
			return nil
		}
		if atom.List.ElementRelationship == fields.Atomic {
			return []string{""}
		}
		for i := range v {
			for _, path := range m.atomics(atom.List.ElementType, v[i]) {
				found = append(found, "["+strconv.Itoa(i)+"]"+path)
			}
		}
	}
	return found
}
