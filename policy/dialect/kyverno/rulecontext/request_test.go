package rulecontext_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/admissionrequest"
)

// attach is a request that came: its kind is not that of the object it is about.
const attach = `{"uid": "u1",
	"kind": {"group": "", "version": "v1", "kind": "PodAttachOptions"}, "resource": {"group": "", "version": "v1", "resource": "pods"},
	"subResource": "attach", "requestKind": {"group": "", "version": "v1", "kind": "PodAttachOptions"}, "name": "web", "namespace": "prod",
	"operation": "CONNECT", "userInfo": {"username": "ann", "groups": ["dev"], "extra": {"scopes": ["view"]}},
	"object": {"kind": "Forged"}, "options": {"fieldManager": "ci"}, "dryRun": true}`

// TestRequestThatCame: expressions read the original request, and its missing members are
// absent.
func TestRequestThatCame(t *testing.T) {
	s := subject()
	s.Request, s.Subresource, s.Operation = policy.RequestFrom([]byte(attach)), "attach", "CONNECT"
	s.User = policy.User{Name: "ann", Roles: []string{"prod:writer"}, RolesKnown: true}
	data := rulecontext.Entries{}.Context(t.Context(), rulecontext.Source{Subject: s})
	for expression, want := range map[string]any{
		"request.kind.kind": "PodAttachOptions", "request.requestKind.kind": "PodAttachOptions", "request.requestResource.resource || 'none'": "pods",
		"request.resource.resource": "pods", "request.subResource": "attach", "request.requestSubResource || 'none'": "none",
		"not_null(request.requestSubResource, 'none')": "none", "request.requestSubResource == `null`": true,
		"request.uid": "u1", "request.options.fieldManager": "ci", "request.options.propagationPolicy || 'none'": "none", "request.dryRun": true,
		"request.userInfo.extra.scopes[0]": "view", "request.userInfo.uid || 'none'": "none", "request.roles[0]": "prod:writer",
		"length(request.clusterRoles)": 0.0, "request.object.metadata.name": "web", "request.oldObject || 'none'": "none",
		"serviceAccountName": "", "request.other || 'none'": "none",
	} {
		if got, err := ask(t, data, expression); !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("%s = %v, %v, want %v", expression, got, err, want)
		}
	}
	s.User.RolesKnown = false
	data = rulecontext.Entries{}.Context(t.Context(), rulecontext.Source{Subject: s})
	if got, err := ask(t, data, "request.clusterRoles || `[]`"); !isUnknown(err, "request.clusterRoles") {
		t.Errorf("roles that were not looked up: %v, %v", got, err)
	}
}

// TestUnknownRequest: where no request came, what follows from the object is known, and
// no default replaces the rest.
func TestUnknownRequest(t *testing.T) {
	plain := subject()
	plain.User = policy.User{}
	user, custom, exec, given := *plain, *plain, *plain, *plain
	user.User = policy.User{Name: "ann", Groups: []string{"dev"}, RolesKnown: true}
	custom.Group, custom.Kind = "example.test", "Widget"
	exec.Subresource, exec.Object = "exec", policy.Content{}
	given.Request = policy.RequestOf(map[string]any{"resource": map[string]any{"resource": "pods"}, "dryRun": false})
	for _, c := range []struct {
		reason, expression string
		subject            *policy.Subject
		want               any
		unknown            string
	}{
		{"the operation", "request.operation", plain, "CREATE", ""},
		{"the kind", "request.kind.kind", plain, "Pod", ""},
		{"the resource of a built-in kind", "request.resource.resource", plain, "pods", ""},
		{"the object", "request.object.spec.replicas", plain, 2.0, ""},
		{"a member of the object that is absent", "request.object.spec.none || 'none'", plain, "none", ""},
		{"options with a default", "request.options.propagationPolicy || ''", plain, nil, "request.options"},
		{"options in a comparison", "request.options == null", plain, nil, "request.options"},
		{"a projection of options", "request.options.dryRun[?@ == 'All'] | length(@)", plain, nil, "request.options"},
		{"options behind a pipe", "request | options.x || 'none'", plain, nil, "request.options"},
		{"options in a hash", "{a: request.options}", plain, nil, "request.options"},
		{"options as an argument", "to_string(request.options)", plain, nil, "request.options"},
		{"every member", "length(values(request))", plain, nil, "request.uid"},
		{"every member by a wildcard", "length(request.*)", plain, nil, "request.uid"},
		{"all of the data", "@ | request.options || 'x'", plain, nil, "request.options"},
		{"roles with a default", "request.clusterRoles || `[]`", plain, nil, "request.clusterRoles"},
		{"roles of a user", "length(request.clusterRoles)", &user, 0.0, ""},
		{"the user with a default", "request.userInfo.username || 'ann'", plain, nil, "request.userInfo"},
		{"a user", "request.userInfo.username", &user, "ann", ""},
		{"groups of a user", "request.userInfo.groups[0]", &user, "dev", ""},
		{"extra of a user", "request.userInfo.extra || `{}`", &user, nil, "request.userInfo.extra"},
		{"all of a user", "to_string(request.userInfo)", &user, nil, "request.userInfo.uid"},
		{"a service account", "serviceAccountName || 'none'", plain, nil, "request.userInfo.username"},
		{"no service account", "serviceAccountName", &user, "", ""},
		{"a dry run", "request.dryRun || `false`", plain, nil, "request.dryRun"},
		{"no dry run", "request.dryRun", &given, false, ""},
		{"a resource that is given", "request.resource.resource", &given, "pods", ""},
		{"the resource of a custom kind", "request.resource.resource || 'widgets'", &custom, nil, "request.resource.resource"},
		{"its group", "request.resource.group", &custom, "example.test", ""},
		{"its kind", "request.kind.kind", &custom, "Widget", ""},
		{"the kind of a subresource without an object", "request.kind.kind || 'Pod'", &exec, nil, "request.kind"},
		{"its resource", "request.resource.resource", &exec, "pods", ""},
		{"what no request has", "request.other || 'none'", plain, "none", ""},
	} {
		data := rulecontext.Entries{}.Context(t.Context(), rulecontext.Source{Subject: c.subject})
		got, err := ask(t, data, c.expression)
		if c.unknown != "" && !isUnknown(err, c.unknown) || c.unknown == "" && (!reflect.DeepEqual(got, c.want) || err != nil) {
			t.Errorf("%s: %s = %v, %v, want %v %s", c.reason, c.expression, got, err, c.want, c.unknown)
		}
	}
}

// TestUnknownInEntries: the default of an entry does not replace an unknown value either.
func TestUnknownInEntries(t *testing.T) {
	entries, err := compile(t, nil, "", "[{name: by, variable: {jmesPath: request.options.fieldManager, default: argocd}}]")
	if err != nil {
		t.Fatal(err)
	}
	s := subject()
	if got, err := ask(t, entries.Context(t.Context(), rulecontext.Source{Subject: s}), "by || 'argocd'"); !isUnknown(err, "request.options") {
		t.Errorf("options that did not come: %v, %v", got, err)
	}
	s.Request = policy.RequestFrom([]byte(`{}`))
	if got, err := ask(t, entries.Context(t.Context(), rulecontext.Source{Subject: s}), "by"); got != "argocd" || err != nil {
		t.Errorf("a request without options: %v, %v", got, err)
	}
}

// TestUserInfo: the user that expressions read without a request.
func TestUserInfo(t *testing.T) {
	for _, c := range []struct {
		reason string
		user   policy.User
		want   string // of userInfo, the unknown members aside
	}{
		{"a name alone", policy.User{Name: "ann"}, `{"username":"ann"}`},
		{"all there is", policy.User{Name: "ann", UID: "u1", Groups: []string{"a"}, Extra: json.RawMessage(`{"k":["v"]}`)}, `{"username":"ann","uid":"u1","groups":["a"],"extra":{"k":["v"]}}`},
		{"no extra", policy.User{Name: "ann", Extra: json.RawMessage(`{}`)}, `{"username":"ann","extra":{}}`},
		{"an extra that is none", policy.User{Name: "ann", Extra: json.RawMessage(`["v"]`)}, `{"username":"ann"}`},
		{"an extra of which a part cannot be read", policy.User{Name: "ann", Extra: json.RawMessage(`{"n":1e999}`)}, `{"username":"ann"}`},
	} {
		s := subject()
		s.User = c.user
		known, err := admissionrequest.Of(s)
		var want map[string]any
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if info, _ := known.Member("userInfo"); !reflect.DeepEqual(info, any(want)) || err != nil {
			t.Errorf("%s: %v, %v", c.reason, info, err)
		}
	}
}

// TestRequestThatCannotBeRead: no part of it is known then, its object included.
func TestRequestThatCannotBeRead(t *testing.T) {
	for reason, text := range map[string]string{"no object": `[]`, "too long": `{"uid": "` + strings.Repeat("u", policy.MaxRequest) + `"}`} {
		s := subject()
		s.Request = policy.RequestFrom([]byte(text))
		data := rulecontext.Entries{}.Context(t.Context(), rulecontext.Source{Subject: s})
		if got, err := ask(t, data, "request.uid || 'none'"); err == nil {
			t.Errorf("%s: %v", reason, got)
		}
	}
}

func isUnknown(err error, member string) bool {
	unknown, ok := errors.AsType[*admissionrequest.UnknownError](err)
	return ok && unknown.Member == member
}

// TestImagesOfOneKey: a projection sees every image, and an expression that names a key
// which several have fails.
func TestImagesOfOneKey(t *testing.T) {
	found := func(names ...string) rulecontext.Source {
		return rulecontext.Source{Subject: subject(), Images: func() ([]policy.Image, error) {
			var images []policy.Image
			for i, name := range names {
				images = append(images, policy.Image{Container: name, Role: "custom", Pointer: "/" + string(rune('a'+i)), Ref: image.MustParse("ghcr.io/org/" + string(rune('a'+i)) + ":v1")})
			}
			return images, nil
		}}
	}
	shared := found("steps/s", "steps/s", "steps/t")
	for _, c := range []struct {
		reason, expression string
		source             rulecontext.Source
		want               any // nil: it fails
	}{
		{"a projection", "length(images.steps.*)", shared, 3.0},
		{"each of them", "sort(images.steps.*.name)", shared, []any{"a", "b", "c"}},
		{"the shared key", "images.steps.s.name", shared, nil},
		{"the shared key with a default", "images.steps.s.name || 'none'", shared, nil},
		{"another key", "images.steps.t.name", shared, "c"},
		{"keys of their own", "images.steps.s.name", found("steps/s", "steps/t"), "a"},
		{"without a key, by their places", "length(images.steps.*)", found("steps", "steps"), 2.0},
		{"one key in two groups", "images.steps.s.name", found("steps/s", "others/s"), "a"},
	} {
		got, err := ask(t, rulecontext.Entries{}.Context(t.Context(), c.source), c.expression)
		if !reflect.DeepEqual(got, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%s: %s = %v, %v, want %v", c.reason, c.expression, got, err, c.want)
		}
	}
}
