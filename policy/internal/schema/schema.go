// Package schema holds the fields of Kubernetes' own kinds, from the Go types of its API. An
// expression that reads a nonexistent field fails when its policy is loaded.
package schema

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling1 "k8s.io/api/autoscaling/v1"
	autoscaling2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	disruption "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// Finder finds the schemas of kinds. It is safe for concurrent use.
type Finder struct {
	types func() map[schema.GroupVersionKind]reflect.Type
}

// NewFinder creates a Finder. The kinds are collected at the first request.
func NewFinder() *Finder {
	return &Finder{types: sync.OnceValue(func() map[schema.GroupVersionKind]reflect.Type {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{
			admissionregistration.AddToScheme, apps.AddToScheme, autoscaling1.AddToScheme, autoscaling2.AddToScheme, batch.AddToScheme,
			certificates.AddToScheme, coordination.AddToScheme, core.AddToScheme, discovery.AddToScheme, events.AddToScheme, networking.AddToScheme,
			node.AddToScheme, disruption.AddToScheme, rbac.AddToScheme, scheduling.AddToScheme, storage.AddToScheme,
		} {
			if add(scheme) != nil {
				return nil // no kind is known, and nothing refused
			}
		}
		return scheme.AllKnownTypes()
	})}
}

// Kind is a kind that a policy matches. Group and Version may be *.
type Kind struct {
	Group, Version, Kind, Subresource string
	// Named: the policy has the group * in its own text, and so selects the kind of any group.
	Named bool
}

// Known are the schemas of kinds.
type Known struct {
	Schemas []cel.Schema
	// Exact: the schemas are all that objects of the kinds may have. Else a field that none
	// of them has may be one of another group or version.
	Exact bool
}

// Of returns the schemas of kinds. Of a version that is not known they are those of the
// versions that are; of a kind that is not known, or may be another group's, the metadata
// that all kinds have, and anything else.
func (f *Finder) Of(kinds []Kind) Known {
	known := Known{Exact: true}
	for _, k := range kinds {
		some, exact := f.of(k)
		known.Schemas, known.Exact = append(known.Schemas, some...), known.Exact && exact
	}
	return known
}

func (f *Finder) of(k Kind) ([]cel.Schema, bool) {
	if !slices.Contains([]string{"", "status", "ephemeralcontainers", "resize"}, k.Subresource) {
		return []cel.Schema{nil}, false
	}
	var exact, others []cel.Schema
	for known, of := range f.types() {
		switch {
		case known.Kind != k.Kind || k.Group != "*" && k.Group != known.Group:
		case k.Version == "*" || k.Version == known.Version:
			exact = append(exact, fieldsOf(of))
		default:
			others = append(others, fieldsOf(of))
		}
	}
	foreign := k.Group == "*" && (k.Named || isShared(k.Kind))
	switch {
	case len(exact) > 0 && !foreign:
		return exact, true
	case foreign || len(others) == 0:
		return append(exact, custom{}), false
	}
	return others, false
}

// Types returns the Go types of kinds, such as Pod of version v1, in their order; false if one of them is not known.
func (f *Finder) Types(kinds []schema.GroupVersionKind) (types []reflect.Type, known bool) {
	for _, kind := range kinds {
		of, is := f.types()[kind]
		if !is {
			return nil, false
		}
		types = append(types, of)
	}
	return types, true
}

// isShared reports whether widely used APIs of other groups have a kind of this name, so that
// a rule which names no group may be about theirs.
func isShared(kind string) bool {
	return slices.Contains([]string{
		"ClusterRole", "ClusterRoleBinding", "CronJob", "DaemonSet", "Endpoints", "Event", "Ingress", "Job", "Lease", "Namespace",
		"NetworkPolicy", "Node", "Role", "RoleBinding", "Secret", "Service", "StatefulSet",
	}, kind)
}

// custom is the schema of an object of which only the metadata is known.
type custom struct{}

// Field returns the type of metadata, and anything for every other name.
func (custom) Field(name string) (cel.Schema, bool) {
	if name == "metadata" {
		return fieldsOf(reflect.TypeFor[meta.ObjectMeta]()), true
	}
	return nil, true
}

// Element returns nil: an object is no list.
func (custom) Element() cel.Schema { return nil }

// IsMap returns false.
func (custom) IsMap() bool { return false }

// ValueKind returns that it is an object.
func (custom) ValueKind() cel.ValueKind { return cel.ObjectValue }

// goType is a cel.Schema. The type is no embedded field: promoted methods such as
// MethodByName would make the linker keep every exported method of the program.
type goType struct{ is reflect.Type }

// fieldsOf returns nil for a type with its own JSON encoding, such as a quantity.
func fieldsOf(t reflect.Type) cel.Schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	opaque := reflect.TypeFor[json.Unmarshaler]()
	if t.Kind() == reflect.Interface || t.Implements(opaque) || reflect.PointerTo(t).Implements(opaque) {
		return nil
	}
	return goType{t}
}

// Field returns a member of an object, which is nil where its own are not known; false
// where there is none.
func (g goType) Field(name string) (cel.Schema, bool) {
	switch g.is.Kind() {
	case reflect.Map:
		return fieldsOf(g.is.Elem()), true
	case reflect.Struct:
	default:
		return nil, true // another error, which evaluation returns
	}
	for i := range g.is.NumField() {
		f := g.is.Field(i)
		written, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if written == name {
			return fieldsOf(f.Type), true
		}
		if f.Anonymous && written == "" || strings.Contains(options, "inline") {
			inner, known := fieldsOf(f.Type).(goType)
			if !known {
				return nil, true
			}
			if found, ok := inner.Field(name); ok {
				return found, true
			}
		}
	}
	return nil, false
}

// Element returns the elements of a list, or the values of a map; nil for others.
func (g goType) Element() cel.Schema {
	if g.is.Kind() == reflect.Slice && g.is.Elem().Kind() != reflect.Uint8 || g.is.Kind() == reflect.Map {
		return fieldsOf(g.is.Elem())
	}
	return nil
}

// IsMap reports whether it is a map, which always has text keys.
func (g goType) IsMap() bool { return g.is.Kind() == reflect.Map }

// ValueKind returns the kind of the JSON that the type is written as.
func (g goType) ValueKind() cel.ValueKind {
	switch g.is.Kind() {
	case reflect.String:
		return cel.TextValue
	case reflect.Bool:
		return cel.BooleanValue
	case reflect.Struct, reflect.Map:
		return cel.ObjectValue
	case reflect.Slice:
		if g.is.Elem().Kind() == reflect.Uint8 {
			return cel.TextValue // in base64
		}
		return cel.ListValue
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64, reflect.Float64:
		return cel.NumberValue
	}
	return cel.AnyValue
}
