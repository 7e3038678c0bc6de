package mutating

import (
	"errors"
	"fmt"
	"regexp"
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

// target is the object of a mutation.
type target struct {
	kind   schema.GroupVersionKind
	object map[string]any
}

// types hold the merge rules for the parts of objects.
type types struct{ own, others managedfields.TypeConverter }

// newTypes reads the types of Kubernetes, which takes some 100 ms.
func newTypes() *types {
	return &types{own: applyconfigurations.NewTypeConverter(scheme.Scheme), others: managedfields.NewDeducedTypeConverter()}
}

// of returns the types for a kind, and whether they are Kubernetes' own. Some that
// nothing stores have none, as Scale: they are merged as custom resources are.
func (t *types) of(kind schema.GroupVersionKind) (converter managedfields.TypeConverter, isOwn bool) {
	if scheme.Scheme.Recognizes(kind) {
		bare := &unstructured.Unstructured{}
		bare.SetGroupVersionKind(kind)
		if _, err := t.own.ObjectToTyped(bare); err == nil {
			return t.own, true
		}
	}
	return t.others, false
}

// apply merges the configuration that an expression created into an object. An atomic field is
// replaced as a whole, which loses values that the author did not write. It is therefore refused
// unless the policy enables it. For a kind that is not Kubernetes' own, it is always refused.
func (t *types) apply(made ref.Val, about target, serverSide bool) (map[string]any, error) {
	configuration, err := patchtype.Object(made)
	if err != nil {
		return nil, err
	}
	converter, isOwn := t.of(about.kind)
	if _, err := plain(configuration); err != nil {
		return nil, err
	}
	patch := configuration
	patch["apiVersion"], patch["kind"] = about.kind.GroupVersion().String(), about.kind.Kind
	changes, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: patch})
	if err != nil {
		return nil, fmt.Errorf("the configuration does not fit the type %s: %w", about.kind.Kind, plainly(err))
	}
	if !serverSide || !isOwn {
		if atomic := atomics(nil, changes.Schema(), changes.TypeRef(), changes.AsValue()); len(atomic) > 0 {
			return nil, fmt.Errorf("the configuration would replace all of %s: %s", strings.Join(atomic, ", "), instead(isOwn))
		}
	}
	live, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: about.object}, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("the object does not fit the type %s as Kubernetes 1.37 has it: %w", about.kind.Kind, plainly(err))
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

// atomics returns where a value holds lists, maps and structures that are replaced as
// a whole.
func atomics(path []string, known *fields.Schema, of fields.TypeRef, v value.Value) (found []string) {
	atom, ok := known.Resolve(of)
	if !ok {
		return nil
	}
	switch {
	case v.IsMap() && atom.Map != nil:
		if atom.Map.ElementRelationship == fields.Atomic {
			return []string{strings.Join(path, ".")}
		}
		v.AsMap().Iterate(func(key string, member value.Value) bool {
			next := atom.Map.ElementType
			if f, ok := atom.FindField(key); ok {
				next = f.Type
			}
			found = append(found, atomics(append(path[:len(path):len(path)], key), known, next, member)...)
			return true
		})
	case v.IsList() && atom.List != nil:
		if atom.List.ElementRelationship == fields.Atomic {
			return []string{strings.Join(path, ".")}
		}
		for i := range v.AsList().Length() {
			found = append(found, atomics(path, known, atom.List.ElementType, v.AsList().At(i))...)
		}
	}
	return found
}
