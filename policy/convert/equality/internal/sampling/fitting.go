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
)

// fitting returns the values next to a path that the type of a kind takes there, and some that it takes anyway. Others
// make objects that no API server has.
func (g *Generator) fitting(k, p int) []any {
	if found, ok := g.fits[[2]int{k, p}]; ok {
		return found
	}
	places := g.kinds[k].places(g.paths[p])
	of := typeAt(&g.kinds[k], places[len(places)-1])
	fit := slices.DeleteFunc(slices.Clone(g.near[p]), func(v any) bool { return of != nil && !takes(of, v) })
	if of != nil {
		for _, v := range []any{"1", "x", true, false, float64(1), float64(0)} {
			if takes(of, v) {
				fit = append(fit, v)
			}
		}
	}
	if g.fits == nil {
		g.fits = map[[2]int][]any{}
	}
	g.fits[[2]int{k, p}] = fit
	return fit
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
