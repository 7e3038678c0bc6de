package admission

import (
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Requesters knows of which objects it is to be kept who made them, for rules that
// work when nobody can be asked any more.
type Requesters interface {
	// Requester returns the annotation of an object that is created, its name and what
	// it says; an empty name for objects of which nobody wants to know. The object is
	// what mutation rules made of it, and is not to be changed. An error says why it
	// cannot be written; the name is there all the same where it is known.
	Requester(subject *policy.Subject, object map[string]any) (name, value string, err error)
	// Annotation returns the name of the annotation that no update of the object may
	// change; empty for objects of which nobody wants to know.
	Annotation(subject *policy.Subject) string
}

// WithRequesters writes into objects, at the mutating door, who made them; nobody
// does unless set.
func WithRequesters(requesters Requesters) Option {
	return func(o *options) error {
		if requesters == nil {
			return errors.New("requesters: want somebody who knows of which objects")
		}
		o.requesters = requesters
		return nil
	}
}

// requested adds to an answer who made the object: what the gateway knows at its
// creation, whatever the user wrote there, and at an update what stood there before.
func (h *Handler) requested(q *question, object workload.Object, answer *response) {
	if h.requesters == nil || q.request.subresource != "" {
		return
	}
	subject := q.outcome.Subject
	if subject == nil {
		subject = &q.subject
	}
	if q.request.operation == opUpdate {
		h.unchanged(subject, q.old, object, answer)
		return
	}
	name, value, err := h.requesters.Requester(subject, object.Content())
	if err != nil {
		answer.warnings = append(answer.warnings, warning("who makes it is not recorded, and rules that ask for that will not hold for it: "+err.Error()))
		if name != "" && metadata(object).Member("annotations").Member(name).Kind() != jsontext.KindInvalid {
			answer.patch = append(answer.patch, workload.Operation{Op: "remove", Path: annotationPath(name)})
		}
		return
	}
	if name != "" {
		annotate(object, name, value, answer)
	}
}

// unchanged puts the record back that an update changed or took away, and takes away
// one that it brought.
func (h *Handler) unchanged(subject *policy.Subject, old, object workload.Object, answer *response) {
	name := h.requesters.Annotation(subject)
	if name == "" || old.IsZero() {
		return
	}
	before, after := metadata(old).Member("annotations").Member(name), metadata(object).Member("annotations").Member(name)
	switch {
	case before.Kind() == after.Kind() && before.Text() == after.Text():
	case before.Text() != "":
		annotate(object, name, before.Text(), answer)
	case after.Kind() != jsontext.KindInvalid:
		answer.patch = append(answer.patch, workload.Operation{Op: "remove", Path: annotationPath(name)})
	}
}

// annotate adds an annotation to what an answer makes of an object.
func annotate(object workload.Object, name, value string, answer *response) {
	isThere := metadata(object).Member("annotations").IsObject() ||
		slices.ContainsFunc(answer.patch, func(op workload.Operation) bool { return op.Op == "add" && op.Path == annotationsPath })
	if !isThere {
		answer.patch = append(answer.patch, workload.Operation{Op: "add", Path: annotationsPath, Value: map[string]any{}})
	}
	answer.patch = append(answer.patch, workload.Operation{Op: "add", Path: annotationPath(name), Value: value})
}

func annotationPath(name string) string {
	return annotationsPath + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
