package rulecontext

import (
	"maps"
	"sync"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/admissionrequest"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// requestVariable is the variable request. Each member is made when an expression reads it: most
// rules read the object alone.
type requestVariable struct {
	subject     *policy.Subject
	template    PodTemplate
	object, old view
	// changed is the object in place of the subject's, where replaced is set.
	changed  any
	replaced bool
}

var _ jmespath.Selective = (*requestVariable)(nil)

// view is an object in the form for pod rules, created once.
type view struct {
	once sync.Once
	seen map[string]any
}

func (v *view) of(content policy.Content, template PodTemplate) map[string]any {
	if len(template) == 0 {
		return content.Map()
	}
	v.once.Do(func() { v.seen = template.View(content.Map()) })
	return v.seen
}

// Request returns the request variable: the AdmissionRequest that came, or as much of it
// as is certain. An expression that reads another part fails. At a deletion the object is
// the one that is deleted, as in Kyverno.
func Request(s *policy.Subject, template PodTemplate) jmespath.Selective {
	return &requestVariable{subject: s, template: template}
}

// Member implements jmespath.Selective.
func (r *requestVariable) Member(name string) (any, bool) {
	s := r.subject
	switch {
	case name == "object" && r.replaced:
		return r.changed, true
	case name == "object" && !s.Object.IsZero():
		return r.object.of(s.Object, r.template), true
	case name == "oldObject" || name == "object" && s.Operation == "DELETE":
		if s.OldObject.IsZero() {
			return nil, true
		}
		return r.old.of(s.OldObject, r.template), true
	case name == "object":
		return nil, true
	}
	known, err := admissionrequest.Of(s)
	if err != nil {
		return nil, false
	}
	return known.Member(name)
}

// Value implements jmespath.Deferred.
func (r *requestVariable) Value() (any, error) {
	known, err := admissionrequest.Of(r.subject)
	if err != nil {
		return nil, unfound(err)
	}
	all := known.Members()
	all["object"], _ = r.Member("object")
	all["oldObject"], _ = r.Member("oldObject")
	return all, nil
}

// Unknown implements jmespath.Partial. No part of a request that cannot be read is known,
// the objects included.
func (r *requestVariable) Unknown(path []string) error {
	known, err := admissionrequest.Of(r.subject)
	if err == nil {
		err = known.Unknown(path)
	}
	return unfound(err)
}

// Settle finds out whether the request can be read.
func (r *requestVariable) Settle() error {
	_, err := admissionrequest.Of(r.subject)
	return unfound(err)
}

// WithObject returns the request variable of a context with another object; nil for none.
func WithObject(of, object any) any {
	if r, ok := of.(*requestVariable); ok {
		return &requestVariable{subject: r.subject, template: r.template, changed: object, replaced: true}
	}
	members, _ := of.(map[string]any)
	all := make(map[string]any, len(members)+1)
	maps.Copy(all, members)
	all["object"] = object
	return all
}
