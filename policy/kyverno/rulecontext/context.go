package rulecontext

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
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
	data["request"] = variable.Defer(func() (any, error) { return Request(s, source.Template), nil })
	data["images"] = variable.Defer(func() (any, error) {
		if source.Images == nil {
			return nil, unfound(errors.New("the images: nobody looked for them"))
		}
		images, err := source.Images()
		if err != nil {
			return nil, unfound(fmt.Errorf("the images: %w", err))
		}
		return imagesOf(images), nil
	})
	data["serviceAccountName"], data["serviceAccountNamespace"] = "", ""
	if rest, ok := strings.CutPrefix(s.User.Name, "system:serviceaccount:"); ok {
		namespace, name, _ := strings.Cut(rest, ":")
		data["serviceAccountName"], data["serviceAccountNamespace"] = name, namespace
	}
	e.Add(ctx, data)
	return data
}

// commonNames is how many members every context has, with room for those of a loop.
const commonNames = 8

// Request builds the request variable: what is known of an AdmissionRequest. At a
// deletion the object is what is deleted, as expressions of Kyverno's have it.
func Request(s *policy.Subject, template PodTemplate) map[string]any {
	kind := map[string]any{"group": s.Group, "version": s.Version, "kind": s.Kind}
	resource := map[string]any{"group": s.Group, "version": s.Version, "resource": constraint.NameOf(s.Kind)}
	request := map[string]any{
		"kind": kind, "requestKind": kind, "resource": resource, "requestResource": resource,
		"namespace": s.Namespace, "name": s.Name, "operation": s.Operation,
		"subResource": s.Subresource, "requestSubResource": s.Subresource, "dryRun": s.DryRun,
		"userInfo": userInfo(s.User),
		"object":   nil, "oldObject": nil,
	}
	if s.User.RolesKnown {
		request["roles"], request["clusterRoles"] = texts(s.User.Roles), texts(s.User.ClusterRoles)
	}
	if !s.OldObject.IsZero() {
		request["oldObject"] = template.View(s.OldObject.Map())
	}
	switch {
	case !s.Object.IsZero():
		request["object"] = template.View(s.Object.Map())
	case s.Operation == "DELETE":
		request["object"] = request["oldObject"]
	}
	return request
}

// userInfo is who asks, with what the API server says and nothing else.
func userInfo(u policy.User) map[string]any {
	info := map[string]any{"username": u.Name, "groups": texts(u.Groups)}
	if u.UID != "" {
		info["uid"] = u.UID
	}
	var extra map[string]any
	if len(u.Extra) > 0 && json.Unmarshal(u.Extra, &extra) == nil && len(extra) > 0 {
		info["extra"] = extra
	}
	return info
}

func texts(list []string) []any {
	values := make([]any, len(list))
	for i, text := range list {
		values[i] = text
	}
	return values
}

// imagesOf builds Kyverno's images variable: group, name of the container, and
// the parts of the reference. Of an image that a mirror serves they are those of
// its source, and the parts of what stands in the object are under copy.
func imagesOf(images []policy.Image) map[string]any {
	groups := map[string]any{}
	for _, i := range images {
		group, name := groupAndName(i)
		members, ok := groups[group].(map[string]any)
		if !ok {
			members = map[string]any{}
			groups[group] = members
		}
		one := partsOf(i.Ref)
		if one["jsonPointer"] = i.Pointer; !i.Copy.IsZero() {
			one["copy"] = partsOf(i.Copy)
		}
		members[name] = one
	}
	return groups
}

func partsOf(ref image.Ref) map[string]any {
	path := ref.Repository().Path()
	if ref.Registry() == "docker.io" {
		path = strings.TrimPrefix(path, "library/")
	}
	base := ref.Registry() + "/" + path
	one := map[string]any{
		"registry": ref.Registry(), "path": path, "name": path[strings.LastIndexByte(path, '/')+1:],
		"reference": base + ":" + ref.Tag(), "referenceWithTag": base + ":" + ref.Tag(),
	}
	if tag := ref.Tag(); tag != "" {
		one["tag"] = tag
	}
	if digest := ref.Digest(); !digest.IsZero() {
		one["digest"], one["reference"] = digest.String(), base+"@"+digest.String()
	}
	return one
}

func groupAndName(i policy.Image) (group, name string) {
	switch i.Role {
	case "container":
		return "containers", i.Container
	case "init":
		return "initContainers", i.Container
	case "ephemeral":
		return "ephemeralContainers", i.Container
	case "volume":
		return "volumes", i.Container
	}
	if extractor, key, ok := strings.Cut(i.Container, "/"); ok {
		return extractor, key
	}
	return i.Container, i.Pointer
}

// WithObject returns the request variable of a context with another object.
func WithObject(request any, object map[string]any) (any, error) {
	if d, ok := request.(*variable.Deferred); ok {
		var err error
		if request, err = d.Value(); err != nil {
			return nil, err
		}
	}
	members, _ := request.(map[string]any)
	changed := make(map[string]any, len(members))
	for name, value := range members {
		changed[name] = value
	}
	changed["object"] = object
	return changed, nil
}
