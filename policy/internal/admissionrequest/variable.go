// Package admissionrequest builds the variable request of expressions: the AdmissionRequest as it
// came, or as much of it as is certain about an object that no API server asks about.
package admissionrequest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
)

// Variable is the request without its objects.
type Variable struct {
	// Members are its known members, decoded JSON.
	Members map[string]any
	// Whole: a member that is missing is absent; else it is unknown.
	Whole bool
}

// UnknownError reports that a part of the request is read and not known. It is neither
// null nor absent, so no default replaces it.
type UnknownError struct {
	// Member is the path of the part, such as request.options.
	Member string
}

// Error implements error.
func (e *UnknownError) Error() string { return e.Member + " is not known here" }

// Of returns the request about a subject. An error means that the request that came
// cannot be read.
func Of(s *policy.Subject) (Variable, error) {
	given, err := s.Request.Members()
	if err != nil {
		return Variable{}, err
	}
	v := Variable{Members: derived(s), Whole: s.Request.IsWhole()}
	if v.Whole {
		// The API server omits empty texts, which is how expressions see them.
		for _, name := range []string{"subResource", "requestSubResource", "name", "namespace"} {
			v.Members[name] = ""
		}
		v.Members["dryRun"], v.Members["userInfo"] = false, map[string]any{}
	}
	for name, value := range given {
		if name == "object" || name == "oldObject" || v.Whole && value == nil {
			continue
		}
		v.Members[name] = joined(v.Members[name], value, v.Whole)
	}
	if s.Operation != "" { // an old object is judged as if it were created
		v.Members["operation"] = s.Operation
	}
	if v.Whole && given["requestKind"] == nil {
		v.Members["requestKind"], v.Members["requestResource"] = v.Members["kind"], v.Members["resource"]
	}
	if s.User.RolesKnown && (v.Whole || s.User.Name != "" || len(s.User.Roles)+len(s.User.ClusterRoles) > 0) {
		v.Members["roles"], v.Members["clusterRoles"] = list(s.User.Roles), list(s.User.ClusterRoles)
	}
	return v, nil
}

// joined returns a member that came, or one of which some parts are given beside those
// that follow.
func joined(follows, given any, whole bool) any {
	parts, ok := follows.(map[string]any)
	some, is := given.(map[string]any)
	if whole || !ok || !is {
		return given
	}
	all := maps.Clone(parts)
	maps.Copy(all, some)
	return all
}

// derived returns the members that follow from the subject with certainty.
func derived(s *policy.Subject) map[string]any {
	members := map[string]any{"subResource": s.Subresource, "requestSubResource": s.Subresource}
	if s.Operation != "" {
		members["operation"] = s.Operation
	}
	if !s.Bare || s.Namespace != "" {
		members["namespace"] = s.Namespace
	}
	if !s.Bare {
		members["name"] = s.Name
	}
	if kind := kindOf(s); kind != nil {
		members["kind"], members["requestKind"] = kind, kind
	}
	resource := map[string]any{"group": s.Group, "version": s.Version}
	if name := resourceOf(s); name != "" {
		resource["resource"] = name
	}
	members["resource"], members["requestResource"] = resource, resource
	if info := userInfo(s.User); len(info) > 0 {
		members["userInfo"] = info
	}
	return members
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
	known := slices.ContainsFunc(constraint.Known(), func(r constraint.Resource) bool { return r.Group == s.Group && r.Kind == s.Kind })
	if !known {
		return ""
	}
	return constraint.NameOf(s.Kind)
}

// userInfo returns what is known of the user where no request came.
func userInfo(u policy.User) map[string]any {
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
	var extra map[string]any
	if len(u.Extra) > 0 && json.Unmarshal(u.Extra, &extra) == nil {
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
	value, known := v.Members[name]
	switch {
	case name == "object" || name == "oldObject":
		return nil
	case !known && slices.Contains(members(), name) && (!v.Whole || name == "roles" || name == "clusterRoles"):
		return &UnknownError{"request." + name}
	case v.Whole || !known:
		return nil
	}
	return partial(value, name, path[1:])
}

// partial returns which member of a part of a request is unknown.
func partial(value any, name string, path []string) error {
	parts := map[string][]string{"userInfo": {"username", "uid", "groups", "extra"}, "resource": {"resource"}, "requestResource": {"resource"}}[name]
	if parts == nil {
		return nil
	}
	object, _ := value.(map[string]any)
	if len(path) > 0 {
		parts = path[:1]
	}
	for _, part := range parts {
		if _, known := object[part]; !known {
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

// With returns the members with others, which replace them.
func (v Variable) With(others map[string]any) map[string]any {
	all := maps.Clone(v.Members)
	maps.Copy(all, others)
	return all
}
