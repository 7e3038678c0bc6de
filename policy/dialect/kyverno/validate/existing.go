package validate

import (
	"context"
	"errors"
	"reflect"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
)

// failedBefore reports whether the old object of an update violated the rule, evaluated as a
// creation: as a plain object of its kind, by a user that no rule names. Kyverno then excuses an
// update, under Enforce alone. An indeterminate result is false.
func (r *Rule) failedBefore(ctx context.Context, about policy.Case) bool {
	s := about.Subject
	if r.strict || !hasBefore(s) {
		return false
	}
	before := *s
	before.Object, before.OldObject, before.Operation, before.Subresource = s.OldObject, policy.Content{}, "CREATE", ""
	anonymous := before
	anonymous.User = policy.User{Name: "system:quaymaster:none", Groups: []string{}, RolesKnown: true}
	if applies, err := r.head.Applies(&anonymous); err != nil || !applies {
		return false
	}
	unknown := func([]policy.Extractor) ([]policy.Image, error) {
		return nil, errors.New("the images of the old object are not known")
	}
	// A rule may read the operation, so that a failure for one operation proves nothing for the
	// other.
	for _, before.Operation = range []string{"CREATE", "UPDATE"} {
		found, _ := r.ask(ctx, policy.Case{Subject: &before, Find: unknown, Exempt: about.Exempt})
		if found.result != policy.Fail {
			return false
		}
	}
	return true
}

// hasBefore reports whether an update brings the state of the object before: of the same
// kind and name, and another one. The options of a subresource are no such state.
func hasBefore(s *policy.Subject) bool {
	if s.Operation != "UPDATE" || s.Object.IsZero() || s.OldObject.IsZero() || s.OldObject.IsAssumed() {
		return false
	}
	now, before := s.Object.Map(), s.OldObject.Map()
	apiVersion, kind := s.Version, s.Kind
	if s.Group != "" {
		apiVersion = s.Group + "/" + s.Version
	}
	for _, object := range []map[string]any{now, before} {
		if object["kind"] != kind || object["apiVersion"] != apiVersion {
			return false
		}
	}
	return nameOf(now) == nameOf(before) && !reflect.DeepEqual(now, before)
}

func nameOf(object map[string]any) [2]any {
	meta, _ := object["metadata"].(map[string]any)
	return [2]any{meta["namespace"], meta["name"]}
}

// aboutRequest reports whether the rule depends on the request, by its users or by its
// expressions: then a failure is no property of the object that was there before.
func (doc *Document) aboutRequest() bool {
	if doc.Match.SelectsUsers() || doc.Exclude != nil && doc.Exclude.SelectsUsers() {
		return true
	}
	var r rulecontext.Reading
	r.Entries(doc.Context)
	v := doc.Validate
	readBody(&r, body{Pattern: v.Pattern, AnyPattern: v.AnyPattern, Deny: v.Deny, ForEach: v.ForEach})
	return r.BeyondObject()
}

func readBody(r *rulecontext.Reading, b body) {
	r.Value(b.Pattern)
	r.Value(b.AnyPattern)
	if b.Deny != nil {
		r.Value(b.Deny.Conditions)
	}
	for i := range b.ForEach {
		l := &b.ForEach[i]
		r.Expression(l.List)
		r.Entries(l.Context)
		r.Value(l.Preconditions)
		readBody(r, body{Pattern: l.Pattern, AnyPattern: l.AnyPattern, Deny: l.Deny, ForEach: l.ForEach})
	}
}
