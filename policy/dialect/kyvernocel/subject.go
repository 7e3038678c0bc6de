package kyvernocel

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/admissionrequest"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/authorizer"
)

// Template is the path of the pod template in an object of a generated rule; nil for the object itself.
type Template []string

// View returns the object in the form for pod expressions: with the pod template's specification and metadata in place of its own, as
// Kyverno does by rewriting the expression's text. Name and namespace are the object's, never the template's.
func (t Template) View(object map[string]any) map[string]any {
	if len(t) == 0 || object == nil {
		return object
	}
	var at any = object
	for _, key := range t {
		step, _ := at.(map[string]any)
		at = step[key]
	}
	template, _ := at.(map[string]any)
	changed := maps.Clone(object)
	delete(changed, "spec") // without a template there is none to read
	if spec, ok := template["spec"]; ok {
		changed["spec"] = spec
	}
	meta := map[string]any{}
	if templates, ok := template["metadata"].(map[string]any); ok {
		maps.Copy(meta, templates)
	}
	own, _ := object["metadata"].(map[string]any)
	for _, key := range []string{"namespace", "name", "generateName"} {
		delete(meta, key)
		if own[key] != nil {
			meta[key] = own[key]
		}
	}
	changed["metadata"] = meta
	return changed
}

// Seen holds the subject data for expressions.
type Seen struct {
	Subject  *policy.Subject
	Template Template
	// Pinned are the texts, by pointer, that the stored object will have.
	Pinned map[string]string
	// Exempt are the values that exceptions for the object allow.
	Exempt []policy.PodSecurityExemption
	// Kubernetes: namespaceObject of a Namespace is null, as in Kubernetes.
	Kubernetes bool
}

var _ cel.Values = (*Seen)(nil)

// Value implements cel.Values.
func (v *Seen) Value(variable string) (any, bool) {
	s := v.Subject
	switch name := strings.TrimPrefix(variable, TriggerPrefix); name {
	case exceptionsName:
		return allowed(v.Exempt), true
	case ObjectName, OldObjectName:
		switch {
		case s.Bare:
			return types.WrapErr(&cel.UnknownError{Gaps: []error{UnknownHere(name)}}), true
		case name == ObjectName:
			return v.Template.native(withTexts(s.Object.Map(), v.Pinned)), true
		}
		return v.Template.native(s.OldObject.Map()), true
	case RequestName:
		return requestOf(s), true
	case authorizer.Name:
		return requesterOf(s, false), true
	case authorizer.ResourceName:
		return requesterOf(s, true), true
	case NamespaceName:
		if isNamespace(s) {
			return v.ownNamespace(), true
		}
		return NamespaceObject(s), true
	}
	return nil, false
}

// allowed is the variable exceptions: the values that the exceptions for the object allow.
func allowed(exempt []policy.PodSecurityExemption) map[string]any {
	images, values := []string{}, []string{}
	for i := range exempt {
		images, values = append(images, exempt[i].Images...), append(values, exempt[i].Values...)
	}
	return map[string]any{"allowedImages": images, "allowedValues": values}
}

// Variables are the values of Kubernetes' own language: those that Seen has, except that a Namespace is in none.
func Variables(s *policy.Subject, t Template, pinned map[string]string) map[string]any {
	seen := &Seen{Subject: s, Template: t, Pinned: pinned, Kubernetes: true}
	all := map[string]any{}
	for _, name := range []string{ObjectName, OldObjectName, RequestName, NamespaceName} {
		all[name] = func() any {
			value, _ := seen.Value(name)
			return value
		}
	}
	return all
}

// native keeps an absent object from being an empty one. Objects with a template compare as wholes: Kyverno rewrites paths alone.
func (t Template) native(object map[string]any) any {
	switch {
	case object == nil:
		return nil
	case len(t) == 0:
		return object
	}
	return cel.Viewed(t.View(object), object)
}

// requestOf is the received AdmissionRequest, or the certain part of it: reading any other part is reading an unknown value.
func requestOf(s *policy.Subject) any {
	known, err := admissionrequest.Of(s)
	if err != nil {
		return types.WrapErr(&cel.UnknownError{Gaps: []error{err}})
	}
	return cel.Partial(request{known, s.Bare})
}

// requesterOf is the user of the request, for authorizer, or for authorizer.requestResource.
func requesterOf(s *policy.Subject, withResource bool) any {
	known, err := admissionrequest.Of(s)
	err = errors.Join(err, known.Unknown([]string{"userInfo"}))
	who := authorizer.Requester{Name: s.User.Name, UID: s.User.UID, Groups: s.User.Groups}
	if len(s.User.Extra) > 0 {
		err = errors.Join(err, json.Unmarshal(s.User.Extra, &who.Extra))
	}
	if withResource {
		member, _ := known.Member("resource")
		resource, _ := member.(map[string]any)
		group, _ := resource["group"].(string)
		name, _ := resource["resource"].(string)
		if name == "" {
			err = errors.Join(err, UnknownHere("the resource of the request"))
		}
		who.Resource = &authorizer.Resource{Group: group, Resource: name, Subresource: s.Subresource, Namespace: s.Namespace, Name: s.Name}
	}
	if err != nil || s.Bare {
		return types.WrapErr(&cel.UnknownError{Gaps: []error{cmp.Or(err, UnknownHere("the request"))}})
	}
	return who
}

// request is the request without its objects.
type request struct {
	known admissionrequest.Variable
	bare  bool
}

// Member implements cel.PartialObject.
func (r request) Member(name string) (any, bool) {
	if r.isHidden(name) {
		return nil, false
	}
	value, known := r.known.Member(name)
	if admissionrequest.Parts(name) == nil || r.known.Unknown([]string{name}) == nil {
		return value, known
	}
	if part, ok := value.(map[string]any); ok || !known {
		return partialOf(RequestName+"."+name, part), true
	}
	return value, true
}

// isHidden reports whether a member is unknown since only images are known: the role of an image in its object is.
func (r request) isHidden(name string) bool {
	return r.bare && !r.known.Whole() && slices.Contains([]string{"operation", "subResource", "requestSubResource", "userInfo"}, name)
}

// Unknown implements cel.PartialObject.
func (r request) Unknown(name string) error {
	if !r.known.Whole() && (!r.known.IsAbsent(name) || r.isHidden(name)) {
		return unknownMember{RequestName, name}
	}
	return nil
}

// Members implements cel.PartialObject.
func (r request) Members() (map[string]any, error) {
	if !r.known.Whole() {
		return nil, &admissionrequest.UnknownError{Member: "a part of " + RequestName}
	}
	return r.known.Members(), nil
}

func isNamespace(s *policy.Subject) bool {
	return s.Group == "" && s.Kind == "Namespace" && !s.Bare
}

// ownNamespace is namespaceObject of a request for a Namespace, which the API server sends with its own name as the namespace: for Kyverno the
// stored Namespace, never the new one, of which the requester writes the labels. A subresource brings a body that is not it.
func (v *Seen) ownNamespace() any {
	s := v.Subject
	switch old := s.OldObject.Map(); {
	case v.Kubernetes, s.Namespace == "":
		return nil
	case old != nil && !s.OldObject.IsAssumed() && !s.IsBody():
		return Template(nil).native(old)
	case s.Operation == "CREATE" && s.Subresource == "":
		return nil
	}
	return types.WrapErr(&cel.UnknownError{Gaps: []error{errors.New("the stored Namespace is not known here")}})
}

// NamespaceObject is the object's namespace with its name and labels, the only known fields; null for a cluster-scoped object.
func NamespaceObject(s *policy.Subject) any {
	if s.Namespace == "" {
		if s.Bare {
			return types.WrapErr(&cel.UnknownError{Gaps: []error{UnknownHere("the object's namespace")}})
		}
		return nil
	}
	meta := map[string]any{"name": s.Namespace}
	if s.NamespaceKnown {
		labels := make(map[string]any, len(s.NamespaceLabels))
		for key, value := range s.NamespaceLabels {
			labels[key] = value
		}
		meta["labels"] = labels
	}
	return partialOf(NamespaceName, map[string]any{"metadata": partialOf(NamespaceName+".metadata", meta)})
}

// partial is an object of which some members are known: the others are unknown, and not
// absent.
type partial struct {
	name    string
	members map[string]any
}

func partialOf(name string, members map[string]any) ref.Val {
	return cel.Partial(partial{name, members})
}

// Member implements cel.PartialObject.
func (p partial) Member(name string) (any, bool) {
	value, known := p.members[name]
	return value, known
}

// Unknown implements cel.PartialObject.
func (p partial) Unknown(name string) error { return unknownMember{p.name, name} }

// Members implements cel.PartialObject.
func (p partial) Members() (map[string]any, error) {
	return nil, &admissionrequest.UnknownError{Member: "a part of " + p.name}
}

// unknownMember is the error for a member that is unknown.
type unknownMember struct{ of, name string }

// Error implements error.
func (u unknownMember) Error() string { return u.of + "." + u.name + " is not known here" }

// withTexts returns the object with other texts at some pointers (RFC 6901).
func withTexts(object map[string]any, texts map[string]string) map[string]any {
	for _, pointer := range slices.Sorted(maps.Keys(texts)) {
		object = policy.WithText(object, pointer, func(string) string { return texts[pointer] })
	}
	return object
}
