package rulecontext

import (
	"context"
	"strings"
	"sync"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/admissionrequest"
	"github.com/quaymaster/quaymaster/policy/variable"
)

// Source is what the variables of every rule speak of.
type Source struct {
	Subject *policy.Subject
	// Template is where the rule looks for pods in the object; nil where it reads the
	// object as it is.
	Template PodTemplate
	// Images finds the object's images, if an expression reads them; nil where nobody
	// looks.
	Images func() ([]policy.Image, error)
}

// Context builds what expressions are evaluated on: what every rule's have, and the
// entries. The caller may add to it.
func (e Entries) Context(ctx context.Context, source Source) variable.Context {
	data := make(variable.Context, commonNames+len(e.list))
	s := source.Subject
	data["request"] = Request(s, source.Template)
	data["images"] = imagesFrom(source.Images)
	data["serviceAccountNamespace"], data["serviceAccountName"] = serviceAccount(s)
	e.Add(ctx, data)
	return data
}

// commonNames is how many members every context has, with room for those of a loop.
const commonNames = 8

// Request returns the request variable: the AdmissionRequest that came, or as much of it
// as is certain. An expression that reads another part fails. At a deletion the object is
// the one that is deleted, as in Kyverno.
func Request(s *policy.Subject, template PodTemplate) *variable.Deferred {
	of := sync.OnceValues(func() (admissionrequest.Variable, error) { return admissionrequest.Of(s) })
	return variable.DeferPartial(func() (any, error) {
		known, err := of()
		if err != nil {
			return nil, unfound(err)
		}
		objects := map[string]any{"object": nil, "oldObject": nil}
		if !s.OldObject.IsZero() {
			objects["oldObject"] = template.View(s.OldObject.Map())
		}
		switch {
		case !s.Object.IsZero():
			objects["object"] = template.View(s.Object.Map())
		case s.Operation == "DELETE":
			objects["object"] = objects["oldObject"]
		}
		return known.With(objects), nil
	}, func(_ any, path []string) error {
		known, err := of()
		if err != nil {
			return unfound(err)
		}
		return unfound(known.Unknown(path))
	})
}

// serviceAccount returns the variables of the service account that asks: empty for another
// user, and unknown where the user is.
func serviceAccount(s *policy.Subject) (namespace, name any) {
	if s.User.Name == "" && !s.Request.IsWhole() {
		unknown := variable.DeferPartial(func() (any, error) { return "", nil }, func(any, []string) error {
			return unfound(&admissionrequest.UnknownError{Member: "request.userInfo.username"})
		})
		return unknown, unknown
	}
	rest, ok := strings.CutPrefix(s.User.Name, "system:serviceaccount:")
	if !ok {
		return "", ""
	}
	first, second, _ := strings.Cut(rest, ":")
	return first, second
}

// WithObject returns the request variable of a context with another object.
func WithObject(variableOf any, object map[string]any) (any, error) {
	d, ok := variableOf.(*variable.Deferred)
	if !ok {
		return withObject(variableOf, object), nil
	}
	value, err := d.Value()
	if err != nil {
		return nil, err
	}
	changed := withObject(value, object)
	return variable.DeferPartial(func() (any, error) { return changed, nil }, func(_ any, path []string) error { return d.Unknown(path) }), nil
}

func withObject(request any, object map[string]any) map[string]any {
	members, _ := request.(map[string]any)
	changed := make(map[string]any, len(members)+1)
	for name, value := range members {
		changed[name] = value
	}
	changed["object"] = object
	return changed
}
