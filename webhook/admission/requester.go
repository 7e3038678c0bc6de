package admission

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Requesters determines the objects in which the creator is recorded, for rules that run in the
// background after the request.
type Requesters interface {
	// Requester returns the name and the value of the annotation for a new object; an empty name
	// means that none is required. The object is the result of the mutation rules and must not be
	// changed. An error means that the value cannot be recorded; the name is still returned if it
	// is known.
	Requester(subject *policy.Subject, object map[string]any) (name, value string, err error)
	// Annotation returns the name of the annotation that updates must not change; empty if none is
	// required.
	Annotation(subject *policy.Subject) string
}

// requested adds the record of the creator to a response. At creation it is the authenticated user,
// which replaces any existing value; at an update it is the previous value.
func (h *Handler) requested(q *pending, object workload.Object, answer *response) {
	if h.config.Requesters == nil || q.request.subresource != "" {
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
	name, value, err := h.config.Requesters.Requester(subject, object.Content())
	if err != nil {
		answer.warnings = append(answer.warnings, warning("the creator is not recorded, so rules that need it do not apply: "+err.Error()))
		if name != "" && metadata(object).Member("annotations").Member(name).Kind() != jsontext.KindInvalid {
			answer.patch = append(answer.patch, workload.Operation{Op: "remove", Path: annotationPath(name)})
		}
		return
	}
	if name != "" {
		annotate(object, name, value, answer)
	}
}

// unchanged restores a record that an update changed or removed, and removes one that it added.
func (h *Handler) unchanged(subject *policy.Subject, old, object workload.Object, answer *response) {
	name := h.config.Requesters.Annotation(subject)
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

// annotate adds an annotation to the patch of a response.
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
