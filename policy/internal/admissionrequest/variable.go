// Package admissionrequest gives expressions the variable request: the AdmissionRequest as
// it came, or the members that follow with certainty from an object without a request.
package admissionrequest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// Variable is the request without its objects. Each member is made when it is read, since
// most rules read none of them. It is safe for concurrent use.
type Variable struct {
	subject *policy.Subject
	came    map[string]any // nil where nothing came
	whole   bool
}

// UnknownError reports that a part of the request is read and not known. It is neither
// null nor absent, so no default replaces it.
type UnknownError struct {
	// Member is the path of the part, such as request.options.
	Member string
}

// Error implements error.
func (e *UnknownError) Error() string { return e.Member + " is not known here" }

// Of returns the request about a subject, which must not be modified afterwards. An error
// means that the request that came cannot be read.
func Of(s *policy.Subject) (Variable, error) {
	came, err := s.Request.Members()
	return Variable{subject: s, came: came, whole: s.Request.IsWhole()}, err
}

// Whole reports whether a member that is not known is absent; else it is unknown.
func (v Variable) Whole() bool { return v.whole }

// Member returns a member that is known, decoded JSON, which must not be modified. The
// objects are no members. A text that a request leaves out where it is empty is absent.
func (v Variable) Member(name string) (any, bool) {
	if v.IsAbsent(name) {
		return nil, false
	}
	return v.member(name)
}

// IsAbsent reports whether it is known that the request has no such member, since it is empty.
func (v Variable) IsAbsent(name string) bool {
	value, known := v.member(name)
	return known && value == "" && isOmitted(name)
}

// isOmitted reports whether an AdmissionRequest has no such member where it is empty (admission.k8s.io/v1,
// omitempty): has(request.subResource) is false for an object itself.
func isOmitted(name string) bool {
	return slices.Contains([]string{"subResource", "requestSubResource", "name", "namespace"}, name)
}

// member is Member with empty texts.
func (v Variable) member(name string) (any, bool) {
	came, is := v.came[name]
	switch {
	case isObject(name):
		return nil, false
	case name == "operation" && v.subject.Operation != "": // an old object is judged as if it were created
		return v.subject.Operation, true
	case name == "roles" && v.knowsRoles():
		return list(v.subject.User.Roles), true
	case name == "clusterRoles" && v.knowsRoles():
		return list(v.subject.User.ClusterRoles), true
	case v.whole && came != nil:
		return came, true
	case v.whole:
		return v.omitted(name)
	}
	follows, known := derived(v.subject, name)
	if !is {
		return follows, known
	}
	return joined(follows, came), true
}

func isObject(name string) bool { return name == "object" || name == "oldObject" }

// knowsRoles reports whether the roles were looked up: those of no user are none.
func (v Variable) knowsRoles() bool {
	u := &v.subject.User
	return u.RolesKnown && (v.whole || u.Name != "" || len(u.Roles)+len(u.ClusterRoles) > 0)
}

// omitted returns a member that the API server omits if it is empty, or unchanged if the request
// is for the resource that the client named.
func (v Variable) omitted(name string) (any, bool) {
	switch name {
	case "subResource", "requestSubResource", "name", "namespace":
		return "", true
	case "dryRun":
		return false, true
	case "options": // the API server writes null for none
		return nil, true
	case "userInfo":
		return map[string]any{}, true
	case "requestKind":
		return v.Member("kind")
	case "requestResource":
		return v.Member("resource")
	}
	return derived(v.subject, name)
}

// joined returns a member of which some parts came, and others follow.
func joined(follows, came any) any {
	parts, ok := follows.(map[string]any)
	some, is := came.(map[string]any)
	if !ok || !is {
		return came
	}
	all := maps.Clone(parts)
	maps.Copy(all, some)
	return all
}

// derived returns a member that follows from the subject with certainty.
func derived(s *policy.Subject, name string) (any, bool) {
	switch name {
	case "subResource", "requestSubResource":
		return s.Subresource, true
	case "operation":
		return s.Operation, s.Operation != ""
	case "namespace":
		return s.Namespace, !s.Bare || s.Namespace != ""
	case "name":
		return s.Name, !s.Bare
	case "kind", "requestKind":
		if kind := kindOf(s); kind != nil {
			return kind, true
		}
		return nil, false
	case "resource", "requestResource":
		resource := map[string]any{"group": s.Group, "version": s.Version}
		if name := resourceOf(s); name != "" {
			resource["resource"] = name
		}
		return resource, true
	case "userInfo":
		if info := userInfo(&s.User); info != nil {
			return info, true
		}
		return nil, false
	}
	return nil, false
}

// kindOf returns the kind of the object in the request. The object of a subresource is of
// a kind of its own, which the object names; nil where it does not.
func kindOf(s *policy.Subject) map[string]any {
	if s.Subresource == "" {
		return map[string]any{"group": s.Group, "version": s.Version, "kind": s.Kind}
	}
	object := s.Object.Map()
	if object == nil {
		object = s.OldObject.Map()
	}
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if apiVersion == "" || kind == "" {
		return nil
	}
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group, version = "", apiVersion
	}
	return map[string]any{"group": group, "version": version, "kind": kind}
}

// resourceOf returns the resource of a built-in kind; empty for another, of which the
// definition may choose any name.
func resourceOf(s *policy.Subject) string {
	r, _ := builtin.Find(s.Group, s.Kind)
	return r.Name
}

// userInfo returns the known parts of the user where no request came; nil for none.
func userInfo(u *policy.User) map[string]any {
	var extra map[string]any
	if len(u.Extra) > 0 && json.Unmarshal(u.Extra, &extra) != nil {
		extra = nil // a part of it may have been read
	}
	if u.Name == "" && u.Groups == nil && u.UID == "" && extra == nil {
		return nil
	}
	info := map[string]any{}
	if u.Name != "" {
		info["username"] = u.Name
	}
	if u.Groups != nil {
		info["groups"] = list(u.Groups)
	}
	if u.UID != "" {
		info["uid"] = u.UID
	}
	if extra != nil {
		info["extra"] = extra
	}
	return info
}

func list(texts []string) []any {
	values := make([]any, len(texts))
	for i, text := range texts {
		values[i] = text
	}
	return values
}

// Unknown returns why the value at a path of member names, or a part of it, is unknown;
// nil where it is known or absent. The empty path is the whole request.
func (v Variable) Unknown(path []string) error {
	if len(path) == 0 {
		for _, name := range members() {
			if err := v.Unknown([]string{name}); err != nil {
				return err
			}
		}
		return nil
	}
	name := path[0]
	if isObject(name) || v.whole && name != "roles" && name != "clusterRoles" {
		return nil
	}
	value, known := v.member(name)
	switch {
	case !known && slices.Contains(members(), name):
		return &UnknownError{"request." + name}
	case v.whole || !known:
		return nil
	}
	return v.partial(value, name, path[1:])
}

// Parts returns the names of the parts of a member that may be unknown although the member
// is known; none for a member that is known as a whole or not at all.
func Parts(name string) []string {
	switch name {
	case "userInfo":
		return []string{"username", "uid", "groups", "extra"}
	case "resource", "requestResource":
		return []string{"resource"}
	}
	return nil
}

// partial returns which part of a member is unknown.
func (v Variable) partial(value any, name string, path []string) error {
	parts := Parts(name)
	if parts == nil {
		return nil
	}
	object, _ := value.(map[string]any)
	if len(path) > 0 {
		parts = path[:1]
	}
	for _, part := range parts {
		if _, known := object[part]; !known && (!v.subject.User.Whole || part != "uid" && part != "extra") {
			return &UnknownError{"request." + name + "." + part}
		}
	}
	return nil
}

// members are those of an AdmissionRequest without its objects, and those that Kyverno
// adds.
func members() []string {
	return []string{
		"uid", "kind", "resource", "subResource", "requestKind", "requestResource", "requestSubResource", "name", "namespace",
		"operation", "userInfo", "options", "dryRun", "roles", "clusterRoles",
	}
}

// Misspelt returns the member of a request that a name writes in other cases; empty for other names, which suites may
// define. An expression that reads such a member finds nothing in every request.
func Misspelt(name string) string {
	for _, member := range append(members(), "object", "oldObject") {
		if strings.EqualFold(member, name) && member != name {
			return member
		}
	}
	return ""
}

// Members returns all members that are known.
func (v Variable) Members() map[string]any {
	all := make(map[string]any, len(v.came)+len(members()))
	for _, names := range [][]string{members(), slices.Collect(maps.Keys(v.came))} {
		for _, name := range names {
			if value, known := v.Member(name); known {
				all[name] = value
			}
		}
	}
	return all
}
