package generation

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// Document is the object of a `generate`, which the compiler of the dialect has checked.
type Document struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Name       string     `json:"name"`
	Namespace  string     `json:"namespace"`
	Data       any        `json:"data"`
	Clone      *Clone     `json:"clone"`
	CloneList  *CloneList `json:"cloneList"`
}

// Clone names the original of a copy.
type Clone struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// CloneList selects originals.
type CloneList struct {
	Namespace string   `json:"namespace"`
	Kinds     []string `json:"kinds"`
	Selector  *struct {
		MatchLabels      map[string]string `json:"matchLabels"`
		MatchExpressions []any             `json:"matchExpressions"`
	} `json:"selector"`
}

// Options give the texts of a rule their meaning.
type Options struct {
	// Scope has the names of their variables.
	Scope jmespath.Scope
	// Namespaced: the policy is of a namespace, in which it generates.
	Namespaced bool
}

// Of writes one object, or the copies of several. What has no form is a *source.Unsupported with the path
// below generate.
func Of(from Document, o Options) (Entry, error) {
	switch {
	case from.CloneList != nil:
		return o.copies(from)
	case from.Clone != nil:
		return o.copyOf(from)
	}
	return o.template(from)
}

// text writes a text with variables as an expression.
func (o Options) text(text, where string) (string, error) {
	if !strings.Contains(text, "{{") {
		return celtext.String(text), nil
	}
	e, err := jmespath.Template(text, o.Scope)
	if err == nil && (e.Type != jmespath.String || e.Optional) {
		err = &source.Unsupported{Found: fmt.Sprintf("the text %q, which may be no text", text)}
	}
	return e.Text, below(where, err)
}

// below puts a path before that of an error.
func below(where string, err error) error {
	if found, ok := errors.AsType[*source.Unsupported](err); ok {
		return &source.Unsupported{Path: source.Below(where, found.Path), Found: found.Found}
	}
	return err
}

// copyOf writes the copy of one object.
func (o Options) copyOf(from Document) (Entry, error) {
	resource, err := resourceOf(from.APIVersion, from.Kind, "kind")
	if err != nil {
		return Entry{}, err
	}
	name, err1 := o.text(from.Clone.Name, "clone.name")
	origin, err2 := o.text(from.Clone.Namespace, "clone.namespace")
	to, err3 := o.text(from.Name, "name")
	namespace, err4 := o.text(from.Namespace, "namespace")
	if err := cmp.Or(err1, err2, err3, err4); err != nil {
		return Entry{}, err
	}
	switch {
	case to != name:
		return Entry{}, &source.Unsupported{Path: "clone.name", Found: "the name of an object whose copy has another one"}
	case from.Clone.Namespace == "":
		return Entry{}, &source.Unsupported{Path: "clone", Found: "the copy of an object that is in no namespace"}
	}
	return o.applied(namespace, "resource.Get("+o.reached(celtext.String(from.APIVersion), celtext.String(resource), origin)+", "+name+")"), nil
}

// reached are the first arguments of a function that reads: a policy of a namespace reads in that alone.
func (o Options) reached(apiVersion, resource, namespace string) string {
	if o.Namespaced {
		return apiVersion + ", " + resource
	}
	return apiVersion + ", " + resource + ", " + namespace
}

// applied writes objects into a namespace.
func (o Options) applied(namespace string, objects ...string) Entry {
	arguments := "[" + strings.Join(objects, ", ") + "])"
	if len(objects) > 1 {
		arguments = "[\n  " + strings.Join(objects, ",\n  ") + "\n])"
	}
	if !o.Namespaced {
		arguments = namespace + ", " + arguments
	}
	return Entry{Expression: "generator.Apply(" + arguments}
}

// copies writes the copies of the objects of a namespace.
func (o Options) copies(from Document) (Entry, error) {
	list := from.CloneList
	origin, err1 := o.text(list.Namespace, "cloneList.namespace")
	namespace, err2 := o.text(from.Namespace, "namespace")
	if err := cmp.Or(err1, err2); err != nil {
		return Entry{}, err
	}
	labels := ""
	if s := list.Selector; s != nil {
		if len(s.MatchExpressions) > 0 {
			return Entry{}, &source.Unsupported{Path: "cloneList.selector.matchExpressions", Found: "a selection that is no equality of labels"}
		}
		var each []string
		for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
			each = append(each, celtext.String(key)+": "+celtext.String(s.MatchLabels[key]))
		}
		labels = ", {" + strings.Join(each, ", ") + "}"
	}
	var objects []string
	for i, written := range list.Kinds {
		at := strings.LastIndex(written, "/")
		resource, err := resourceOf(written[:at], written[at+1:], source.Index("cloneList.kinds", i))
		if err != nil {
			return Entry{}, err
		}
		objects = append(objects, "resource.List("+o.reached(celtext.String(written[:at]), celtext.String(resource), origin)+labels+")")
	}
	return o.applied(namespace, objects...), nil
}

// resourceOf returns the resource of a kind of Kubernetes that is in namespaces.
func resourceOf(apiVersion, kind, where string) (string, error) {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	of, known := builtin.Find(group, kind)
	if !known {
		return "", &source.Unsupported{Path: where, Found: fmt.Sprintf("the resource of the kind %s/%s, which is not known", apiVersion, kind)}
	}
	return of.Name, nil
}
