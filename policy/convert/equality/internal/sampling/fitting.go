package sampling

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"
	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/tree"
)

// fitting returns the values next to a path that the type of a kind takes there, and some that it takes anyway. Others
// make objects that no API server has.
func (g *Generator) fitting(k, p int) around {
	if found, ok := g.fits[[2]int{k, p}]; ok {
		return found
	}
	places := g.kinds[k].places(g.paths[p])
	of := typeAt(&g.kinds[k], places[len(places)-1])
	refused := func(v any) bool {
		return of != nil && !takes(of, v) || g.kinds[k].custom && !g.around[p].shape.Takes(v)
	}
	fit := g.around[p]
	fit.near, fit.exact = slices.DeleteFunc(slices.Clone(fit.near), refused), slices.DeleteFunc(slices.Clone(fit.exact), refused)
	if of != nil {
		fit.near = append(fit.near, members(of)...)
		for _, v := range []any{"1", "x", true, false, float64(1), float64(0)} {
			if takes(of, v) {
				fit.near = append(fit.near, v)
			}
		}
	}
	if g.fits == nil {
		g.fits = map[[2]int]around{}
	}
	g.fits[[2]int{k, p}] = fit
	return fit
}

// valueOf draws a value for a path of a sample: one of its comparisons, that of a path with which it may be compared, one next
// to it, or any.
func (g *Generator) valueOf(s *Sample, k, p int) any {
	of := g.fitting(k, p)
	if value := g.anyValueOf(s, k, of); !g.kinds[k].custom || of.shape.Takes(value) {
		return value
	}
	return facts.Absent{}
}

func (g *Generator) anyValueOf(s *Sample, k int, of around) any {
	switch turn := g.from.IntN(8); {
	case turn < 3 && len(of.exact) > 0:
		return of.exact[g.from.IntN(len(of.exact))]
	case turn == 3 && len(of.joined) > 0:
		if value := g.valueAt(s, k, of.joined[g.from.IntN(len(of.joined))]); value != nil {
			return value
		}
	}
	return g.drawn(of.near)
}

// valueAt is the first value at a path in a sample, or in an object besides it; nil for none.
func (g *Generator) valueAt(s *Sample, k int, p facts.Path) any {
	if strings.HasPrefix(p[0], facts.Of) {
		if len(g.world) == 0 {
			return nil
		}
		return tree.First(g.world[g.from.IntN(len(g.world))], withinItems(p[1:]))
	}
	root := s.Object
	if root == nil {
		root = s.Old
	}
	places := g.kinds[k].places(p)
	return tree.First(root, places[len(places)-1])
}

// members are objects with one member each of a type, empty or with a plain value.
func members(of reflect.Type) (all []any) {
	if of.Kind() != reflect.Struct || len(of.PkgPath()) == 0 || of == reflect.TypeFor[resource.Quantity]() ||
		of == reflect.TypeFor[intstr.IntOrString]() || of == reflect.TypeFor[metav1.Time]() {
		return nil
	}
	for i := range of.NumField() {
		field := of.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		t := field.Type
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case name == "" && (field.Anonymous || strings.Contains(options, "inline")):
			all = append(all, members(t)...)
		case name != "" && name != "-":
			for _, v := range []any{map[string]any{}, "x", true, float64(1), []any{}} {
				if takes(t, v) {
					all = append(all, map[string]any{name: v})
					break
				}
			}
		}
	}
	return all
}

// typeAt is the type of the value at a path in objects of a kind; nil for none that is known.
func typeAt(of *kind, at facts.Path) reflect.Type {
	typed, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(of.apiVersion(), of.name))
	if err != nil {
		return nil
	}
	t := reflect.TypeOf(typed).Elem()
	for _, name := range at {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t.Kind() == reflect.Slice && name == facts.Each, t.Kind() == reflect.Map && name != facts.Each:
			t = t.Elem()
		case t.Kind() == reflect.Struct:
			member, ok := memberOf(t, name)
			if !ok {
				return nil
			}
			t = member
		default:
			return nil
		}
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// memberOf is the type of a member by its name in JSON.
func memberOf(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		field := t.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag == name && name != "" {
			return field.Type, true
		}
		if tag == "" && (field.Anonymous || strings.Contains(options, "inline")) && field.Type.Kind() == reflect.Struct {
			if found, ok := memberOf(field.Type, name); ok {
				return found, true
			}
		}
	}
	return nil, false
}

// takes reports whether a type takes a value, by its form.
func takes(of reflect.Type, value any) bool {
	switch value.(type) {
	case facts.Absent, nil:
		return true
	}
	text, isText := value.(string)
	number, isNumber := value.(float64)
	switch of {
	case reflect.TypeFor[resource.Quantity]():
		if !isText || limit.Quantity(text) != nil {
			return isNumber
		}
		_, err := resource.ParseQuantity(text)
		return err == nil
	case reflect.TypeFor[intstr.IntOrString]():
		return isText || isNumber
	case reflect.TypeFor[metav1.Time]():
		return isText && len(text) == len("2006-01-02T15:04:05Z")
	}
	switch of.Kind() {
	case reflect.String:
		return isText
	case reflect.Bool:
		_, is := value.(bool)
		return is
	case reflect.Int, reflect.Int32, reflect.Int64:
		return isNumber && number == float64(int32(number))
	case reflect.Slice:
		_, is := value.([]any)
		return is
	case reflect.Map, reflect.Struct:
		_, is := value.(map[string]any)
		return is
	}
	return true
}
