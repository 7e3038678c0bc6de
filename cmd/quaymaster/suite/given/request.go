package given

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Request returns the values of the request itself, for a policy and an object of a name, by
// path without the leading "request".
func (v *Values) Request(policy, object string) map[string]any {
	said := map[string]any{}
	note := func(values map[string]any) {
		for key, value := range values {
			if rest, ok := strings.CutPrefix(key, "request."); ok {
				said[rest] = value
			}
			if key == "serviceAccountName" || key == "serviceAccountNamespace" {
				said[key] = value
			}
		}
	}
	note(v.of(policy, object))
	for _, p := range v.Policies {
		if p.Name != policy {
			continue
		}
		for _, r := range p.Rules {
			note(r.Values)
		}
	}
	return said
}

// Apply sets values in a request for an object. Without an operation it is a CREATE. At UPDATE,
// expressions read the object as the old one if no other is given; at DELETE the object is the
// old one.
func Apply(request gate.Request, said map[string]any) (gate.Request, error) {
	s := &request.Subject
	if operation, ok := said["operation"]; ok && s.Operation == "" {
		s.Operation = fmt.Sprint(operation)
		// Rules would match no other operation, and the object would be admitted.
		if !slices.Contains(operations(), s.Operation) {
			return request, fmt.Errorf("request.operation: %q: want %s", s.Operation, strings.Join(operations(), ", "))
		}
	}
	object := request.Object
	var old workload.Object
	if s.Operation == "UPDATE" || s.Operation == "DELETE" {
		old = object
	}
	members := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(said)) {
		value := said[key]
		if err := apply(s, &object, &old, members, key, value); err != nil {
			return request, fmt.Errorf("request.%s: %w", key, err)
		}
	}
	s.Request = policy.RequestOf(members)
	request.Object, request.Old = object, old
	if s.Operation == "UPDATE" && !givesOld(said) {
		// As in Kyverno's command line, expressions read the object as its own old object. It is
		// evaluated as new, because no old object was given.
		request.Old, s.OldObject = workload.Object{}, policy.AssumedFrom(object)
	}
	if s.Operation == "DELETE" {
		s.Group, s.Version, s.Kind, s.Name = object.Group(), object.Version(), object.Kind(), object.Name()
		if s.Namespace == "" {
			s.Namespace = object.Namespace()
		}
		request.Object = workload.Object{}
	}
	return request, nil
}

// operations are those of an AdmissionRequest.
func operations() []string { return []string{"CREATE", "UPDATE", "DELETE", "CONNECT"} }

func givesOld(said map[string]any) bool {
	for key := range said {
		if key == "oldObject" || strings.HasPrefix(key, "oldObject.") {
			return true
		}
	}
	return false
}

// apply sets one value in a request.
func apply(s *policy.Subject, object, old *workload.Object, members map[string]any, key string, value any) error {
	path, err := split(key)
	if err != nil {
		return err
	}
	switch path[0] {
	case "object":
		return change(object, path[1:], value)
	case "oldObject":
		if old.IsZero() {
			*old = *object
		}
		return change(old, path[1:], value)
	case "dryRun", "options", "uid", "kind", "resource", "requestKind", "requestResource", "requestSubResource":
		put(members, path, value)
		return nil
	case "userInfo":
		put(members, path, value)
		info, _ := members["userInfo"].(map[string]any)
		if name, ok := info["username"]; ok {
			s.User.Name = fmt.Sprint(name)
		}
		if groups, ok := info["groups"]; ok {
			s.User.Groups = texts(groups)
		}
		return nil
	}
	switch key {
	case "operation":
	case "namespace":
		s.Namespace = fmt.Sprint(value)
	case "name": // policies read the object's own name
	case "subResource":
		s.Subresource = fmt.Sprint(value)
	case "roles":
		s.User.Roles, s.User.RolesKnown = texts(value), true
	case "clusterRoles":
		s.User.ClusterRoles, s.User.RolesKnown = texts(value), true
	case "serviceAccountName":
		namespace, _ := account(s.User.Name)
		s.User.Name = accountPrefix + namespace + ":" + fmt.Sprint(value)
	case "serviceAccountNamespace":
		_, name := account(s.User.Name)
		s.User.Name = accountPrefix + fmt.Sprint(value) + ":" + name
	default:
		return fmt.Errorf("an AdmissionRequest has no such member")
	}
	return nil
}

const accountPrefix = "system:serviceaccount:"

func account(user string) (namespace, name string) {
	rest, ok := strings.CutPrefix(user, accountPrefix)
	if !ok {
		return "", ""
	}
	namespace, name, _ = strings.Cut(rest, ":")
	return namespace, name
}

// texts reads a list of texts, or one.
func texts(value any) []string {
	switch value := value.(type) {
	case string:
		return []string{value}
	case []any:
		list := make([]string, len(value))
		for i, item := range value {
			list[i] = fmt.Sprint(item)
		}
		return list
	}
	return nil
}

// change returns an object with a value set at a path.
func change(object *workload.Object, path []string, value any) error {
	content := maps.Clone(object.Content())
	if len(path) == 0 {
		whole, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("want an object, found %v", value)
		}
		content = whole
	} else {
		put(content, path, value)
	}
	changed, err := object.With(content)
	if err == nil {
		*object = changed
	}
	return err
}
