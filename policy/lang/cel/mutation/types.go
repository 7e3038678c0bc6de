package mutation

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
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
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Target is the object of a mutation.
type Target struct {
	Kind schema.GroupVersionKind
	// Object is decoded JSON, which is not changed.
	Object map[string]any
}

// Types hold the merge rules for the parts of objects. They are immutable.
type Types struct{ own, others managedfields.TypeConverter }

// NewTypes reads the types of Kubernetes, which takes some 100 ms.
func NewTypes() *Types {
	return &Types{own: applyconfigurations.NewTypeConverter(scheme.Scheme), others: managedfields.NewDeducedTypeConverter()}
}

// of returns the types for a kind, and whether they are Kubernetes' own. Some that
// nothing stores have none, as Scale: they are merged as custom resources are.
func (t *Types) of(kind schema.GroupVersionKind) (converter managedfields.TypeConverter, isOwn bool) {
	if scheme.Scheme.Recognizes(kind) {
		bare := &unstructured.Unstructured{}
		bare.SetGroupVersionKind(kind)
		if _, err := t.own.ObjectToTyped(bare); err == nil {
			return t.own, true
		}
	}
	return t.others, false
}

// Apply merges the configuration that an expression created into an object. An atomic field is
// replaced as a whole, which loses values that the author did not write. It is therefore refused
// unless the policy enables it. For a kind that is not Kubernetes' own, it is always refused.
func (t *Types) Apply(made ref.Val, about Target, serverSide bool) (map[string]any, error) {
	configuration, err := patchtype.Object(made)
	if err != nil {
		return nil, err
	}
	converter, isOwn := t.of(about.Kind)
	if _, err := plain(configuration); err != nil {
		return nil, err
	}
	changes, err := fit(converter, about.Kind, configuration)
	if err != nil {
		return nil, err
	}
	if !serverSide || !isOwn {
		if err := checkAtomic(changes, isOwn); err != nil {
			return nil, err
		}
	}
	if object, ok := mergeObject(changes, about, configuration); ok {
		return object, nil
	}
	return merge(converter, changes, about)
}

// merge has the library merge changes into an object.
func merge(converter managedfields.TypeConverter, changes *typed.TypedValue, about Target) (map[string]any, error) {
	live, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: about.Object}, typed.AllowDuplicates)
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
func (t *Types) Check(kind schema.GroupVersionKind, configuration map[string]any) error {
	converter, isOwn := t.of(kind)
	changes, err := fit(converter, kind, maps.Clone(configuration))
	if err != nil {
		return err
	}
	return checkAtomic(changes, isOwn)
}

func fit(converter managedfields.TypeConverter, kind schema.GroupVersionKind, patch map[string]any) (*typed.TypedValue, error) {
	patch["apiVersion"], patch["kind"] = kind.GroupVersion().String(), kind.Kind
	changes, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: patch})
	if err != nil {
		return nil, &FitError{Kind: kind.Kind, Err: err}
	}
	return changes, nil
}

func checkAtomic(changes *typed.TypedValue, isOwn bool) error {
	if atomic := atomics("", changes.Schema(), changes.TypeRef(), changes.AsValue()); len(atomic) > 0 {
		return &AtomicError{Paths: atomic, own: isOwn}
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

// atomics returns where a value holds lists, maps and structures that are replaced as
// a whole.
func atomics(path string, known *fields.Schema, of fields.TypeRef, v value.Value) (found []string) {
	atom, ok := known.Resolve(of)
	if !ok {
		return nil
	}
	switch {
	case v.IsMap() && atom.Map != nil:
		if atom.Map.ElementRelationship == fields.Atomic {
			return []string{path}
		}
		v.AsMap().Iterate(func(key string, member value.Value) bool {
			next := atom.Map.ElementType
			if f, ok := atom.FindField(key); ok {
				next = f.Type
			}
			found = append(found, atomics(path+"."+key, known, next, member)...)
			return true
		})
	case v.IsList() && atom.List != nil:
		if atom.List.ElementRelationship == fields.Atomic {
			return []string{path}
		}
		for i := range v.AsList().Length() {
			found = append(found, atomics(path+"["+strconv.Itoa(i)+"]", known, atom.List.ElementType, v.AsList().At(i))...)
		}
	}
	return found
}
