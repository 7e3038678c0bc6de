package admission

import (
	"errors"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Requesters knows of which objects it is to be kept who made them, for rules that
// work when nobody can be asked any more.
type Requesters interface {
	// Requester returns the annotation of an object that is created, its name and what
	// it says; an empty name for objects of which nobody wants to know. The object is
	// what mutation rules made of it, and is not to be changed. An error says why it
	// cannot be written.
	Requester(subject *policy.Subject, object map[string]any) (name, value string, err error)
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

// requested adds to an answer who made the object, whatever the user wrote there.
func (h *Handler) requested(q *question, object workload.Object, answer *response) {
	if h.requesters == nil || q.request.operation != opCreate || q.request.subresource != "" {
		return
	}
	subject := q.outcome.Subject
	if subject == nil {
		subject = &q.subject
	}
	name, value, err := h.requesters.Requester(subject, object.Content())
	if err != nil {
		answer.warnings = append(answer.warnings, warning("who makes it is not recorded, and rules that ask for that will not hold for it: "+err.Error()))
		return
	}
	if name == "" {
		return
	}
	isThere := metadata(object).Member("annotations").IsObject() ||
		slices.ContainsFunc(answer.patch, func(op workload.Operation) bool { return op.Op == "add" && op.Path == annotationsPath })
	if !isThere {
		answer.patch = append(answer.patch, workload.Operation{Op: "add", Path: annotationsPath, Value: map[string]any{}})
	}
	path := annotationsPath + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	answer.patch = append(answer.patch, workload.Operation{Op: "add", Path: path, Value: value})
}
