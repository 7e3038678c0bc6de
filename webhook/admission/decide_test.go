package admission_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// deployment runs images by way of a template.
func deployment(images ...string) object {
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "web", "namespace": "shop"},
		"spec": object{"template": object{"spec": pod(images...)["spec"]}},
	}
}

func TestGateRequests(t *testing.T) {
	sub := func(name string) func(object) { return func(r object) { r["subResource"] = name } }
	gone := func(images ...string) object {
		return with(t, pod(images...), func(o object) { o["metadata"].(object)["deletionTimestamp"] = "2026-11-21T03:30:01Z" })
	}
	kept := with(t, pod("evil"), func(o object) {
		o["metadata"].(object)["resourceVersion"] = "2"
		o["metadata"].(object)["managedFields"] = []any{object{"manager": "x"}}
		o["metadata"].(object)["generation"] = 2
	})
	running := with(t, pod("evil"), func(o object) { o["status"] = object{"phase": "Running"} })
	labelled := with(t, pod("evil"), func(o object) { o["metadata"].(object)["labels"] = object{"a": "b"} })
	const mutate, validate, both = "mutate", "validate", "mutate validate"
	for name, row := range map[string]struct {
		reason   string
		op       string
		now, old object
		change   func(object)
		asked    string // at which endpoints
		denied   string
	}{
		"create":                 {"the plain case", "CREATE", pod("evil"), nil, nil, both, both},
		"create good":            {"its twin", "CREATE", pod("nginx"), nil, nil, both, ""},
		"delete":                 {"never blocked", "DELETE", nil, pod("evil"), nil, "", ""},
		"connect":                {"no object that runs anything", "CONNECT", object{"apiVersion": "v1", "kind": "PodExecOptions"}, nil, sub("exec"), "", ""},
		"status":                 {"a report of state, no change", "UPDATE", pod("evil"), pod("nginx"), sub("status"), "", ""},
		"scale":                  {"a number", "UPDATE", object{"apiVersion": "autoscaling/v1", "kind": "Scale"}, object{"apiVersion": "autoscaling/v1", "kind": "Scale"}, sub("scale"), "", ""},
		"ephemeral":              {"an image by way of a subresource", "UPDATE", pod("nginx", "evil"), pod("nginx"), sub("ephemeralcontainers"), both, both},
		"resize":                 {"no image changes", "UPDATE", labelled, pod("evil"), sub("resize"), "", ""},
		"resize with an image":   {"an image changes after all", "UPDATE", pod("evil"), pod("nginx"), sub("resize"), both, both},
		"identical":              {"nothing changes", "UPDATE", pod("evil"), pod("evil"), nil, "", ""},
		"bookkeeping":            {"no field of a user changes", "UPDATE", kept, pod("evil"), nil, "", ""},
		"status beside it":       {"an object may keep images anywhere", "UPDATE", running, pod("evil"), nil, both, ""},
		"label":                  {"policies may match by it; the image runs already", "UPDATE", labelled, pod("evil"), nil, both, ""},
		"image":                  {"another image", "UPDATE", pod("evil"), pod("nginx"), nil, both, both},
		"deleting":               {"a finalizer goes", "UPDATE", gone("evil"), pod("evil"), nil, both, ""},
		"deleting, new image":    {"must not run as a farewell", "UPDATE", gone("evil"), pod("nginx"), nil, both, both},
		"created as deleted":     {"the mark counts at an update alone", "CREATE", gone("evil"), nil, nil, both, both},
		"deployment":             {"decided, and pinned later", "CREATE", deployment("evil"), nil, nil, validate, validate},
		"good deployment":        {"its twin", "CREATE", deployment("nginx"), nil, nil, validate, ""},
		"config map":             {"no images; policies may match it", "CREATE", object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "a", "namespace": "shop"}}, nil, nil, validate, ""},
		"pod of another group":   {"only the kind of the core group is a Pod", "CREATE", with(t, pod("nginx"), func(o object) { o["apiVersion"] = "x.io/v1" }), nil, nil, validate, ""},
		"eviction":               {"a subresource of which nothing is known", "CREATE", object{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": object{"name": "web", "namespace": "shop"}}, nil, sub("eviction"), validate, ""},
		"ephemeral, none at all": {"an update as any other", "UPDATE", pod("nginx"), pod("nginx"), sub("ephemeralcontainers"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, which := range []admission.Endpoint{admission.Mutate, admission.Validate} {
				decider, seen := &pinner{}, &recorder{}
				a := send(t, endpoint(t, which, decider, withRecorder(seen)), review(t, row.op, row.now, row.old, row.change))
				asked, denied := strings.Contains(row.asked, string(which)), strings.Contains(row.denied, string(which))
				if got := len(decider.asked()) > 0; got != asked || a.Response.Allowed == denied {
					t.Errorf("%s: %s: asked %v, answer %+v", row.reason, which, got, a.Response)
				}
				cause := admission.NotAsked
				if asked {
					cause = admission.Decided
				}
				if got := seen.Last(t); got.Cause != cause || got.Allowed == denied || got.UID != "u-1" || got.Operation != row.op || got.Endpoint != which {
					t.Errorf("%s: recorded %+v", row.reason, got)
				}
				if which == admission.Validate && a.Response.PatchType != nil {
					t.Error("the validating endpoint made a patch, which the API server refuses")
				}
			}
		})
	}
}

func TestSubject(t *testing.T) {
	decider := &pinner{}
	change := func(r object) {
		r["dryRun"] = true
		r["userInfo"] = object{"username": "joan", "groups": []any{"a", "b"}}
	}
	handler := endpoint(t, admission.Validate, decider, withRoles(roles{}))
	send(t, handler, review(t, "UPDATE", pod("nginx:2"), pod("nginx:1"), change))
	got := decider.asked()[0]
	s := got.Subject
	if s.Operation != "UPDATE" || s.Namespace != "shop" || s.User.Name != "joan" || !slices.Equal(s.User.Groups, []string{"a", "b"}) ||
		!s.NamespaceKnown || s.NamespaceLabels["team"] != "a" || s.NamespaceLabels["kubernetes.io/metadata.name"] != "shop" ||
		!s.User.RolesKnown || !slices.Equal(s.User.Roles, []string{"shop:joan"}) || !slices.Equal(s.User.ClusterRoles, []string{"view"}) {
		t.Errorf("%+v", s)
	}
	if got.Old.IsZero() || got.Pinning != gate.PinDone {
		t.Errorf("old %v, pinning %q", got.Old, got.Pinning)
	}
	if len(shop["shop"]) != 1 {
		t.Error("the labels of the namespace were changed in the cache")
	}
}

// TestRequest: rules see the AdmissionRequest as it came, without its objects, which they
// read for themselves; the text lives on when the body does not.
func TestRequest(t *testing.T) {
	var sent object
	change := func(r object) {
		r["dryRun"], r["options"] = true, object{"kind": "UpdateOptions", "fieldManager": "a \"{ b", "dryRun": []any{"All"}}
		r["requestKind"] = object{"group": "old.example", "version": "v0", "kind": "Pod"}
		r["userInfo"] = object{"username": "joan", "extra": object{"scopes": []any{"view"}}}
		r["later"] = object{"object": object{"kind": "Forged"}}
		sent = r
	}
	for reason, old := range map[string]object{"an update": pod("nginx:1"), "an old object like a request": {
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "web", "namespace": "shop", "annotations": object{"a": `"oldObject": null`}},
	}} {
		decider := &pinner{}
		send(t, endpoint(t, admission.Validate, decider), review(t, "UPDATE", pod("nginx:2"), old, change))
		asked := decider.asked()
		if len(asked) != 1 {
			t.Fatalf("%s: asked %d times", reason, len(asked))
		}
		got, err := asked[0].Subject.Request.Members()
		want := maps.Clone(sent)
		want["object"], want["oldObject"] = nil, nil
		if gotText, wantText := encode(t, got), encode(t, want); err != nil || !bytes.Equal(gotText, wantText) || !asked[0].Subject.Request.IsWhole() {
			t.Errorf("%s: %s, %v, want %s", reason, gotText, err, wantText)
		}
	}
}

// TestRequestTwice: parsers take either of two members of a name.
func TestRequestTwice(t *testing.T) {
	for _, member := range []string{"options", "requestKind", "requestResource", "requestSubResource"} {
		body := bytes.Replace(review(t, "CREATE", pod("nginx"), nil, nil), []byte(`"userInfo":`), []byte(`"`+member+`":null,"`+member+`":null,"userInfo":`), 1)
		decider := &pinner{}
		if a := send(t, endpoint(t, admission.Validate, decider), body); a.Response.Allowed || len(decider.asked()) != 0 {
			t.Errorf("%s stands twice: %+v", member, a.Response)
		}
	}
}

type roles struct{ err error }

func (r roles) Roles(_ context.Context, user policy.User, _ string) (bound, cluster []string, err error) {
	return []string{"shop:" + user.Name}, []string{"view"}, r.err
}

func TestFailedLookupsStayUnknown(t *testing.T) {
	move := func(o object) { o["metadata"].(object)["namespace"] = "gone" }
	decider, seen := &pinner{}, &recorder{}
	handler := endpoint(t, admission.Validate, decider, withRoles(roles{errors.New("no")}), withRecorder(seen))
	send(t, handler, review(t, "CREATE", with(t, pod("nginx"), move), nil, nil))
	s := decider.asked()[0].Subject
	if s.NamespaceKnown || s.NamespaceLabels != nil || s.User.RolesKnown || s.User.Roles != nil {
		t.Errorf("%+v", s)
	}
	if seen.Last(t).Err == nil {
		t.Error("the cause is not recorded")
	}
	namespace := object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "new", "labels": object{"a": "b"}}}
	send(t, handler, review(t, "CREATE", namespace, nil, func(r object) { r["namespace"] = "new" }))
	if s := decider.asked()[1].Subject; !s.NamespaceKnown || s.NamespaceLabels["a"] != "b" {
		t.Errorf("a namespace on its way in has the labels that it brings: %+v", s)
	}
	send(t, handler, review(t, "CREATE", object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": "n"}}, nil, nil))
	if s := decider.asked()[2].Subject; s.NamespaceKnown || s.Namespace != "" {
		t.Errorf("a cluster-scoped object: %+v", s)
	}
}

func TestNamesThatAreYetToBeGenerated(t *testing.T) {
	seen := &recorder{}
	now := with(t, pod("evil"), func(o object) { o["metadata"] = object{"generateName": "web-", "namespace": "shop"} })
	a := send(t, endpoint(t, admission.Validate, &pinner{}, withRecorder(seen)), review(t, "CREATE", now, nil, nil))
	if got := seen.Last(t); got.Name != "web-*" || !strings.HasPrefix(a.Response.Status.Message, "Pod shop/web-*: ") {
		t.Errorf("recorded %q, answered %s", got.Name, a.Response.Status.Message)
	}
}

func TestPinning(t *testing.T) {
	for name, row := range map[string]struct {
		reason   string
		endpoint admission.Endpoint
		now      object
		mutated  []admission.Kind
		want     gate.Pinning
		patched  bool
	}{
		"pod, mutate":          {"pinned here", admission.Mutate, pod("nginx"), nil, gate.PinHere, true},
		"pod, validate":        {"pinned before", admission.Validate, pod("nginx"), nil, gate.PinDone, false},
		"deployment, validate": {"its pods are pinned", admission.Validate, deployment("nginx"), nil, gate.PinLater, false},
		"listed, mutate":       {"pinned here, as was asked for", admission.Mutate, deployment("nginx"), []admission.Kind{{Group: "apps", Kind: "Deployment"}}, gate.PinHere, true},
		"listed, validate":     {"pinned before", admission.Validate, deployment("nginx"), []admission.Kind{{Group: "apps", Kind: "Deployment"}}, gate.PinDone, false},
		"other group listed":   {"not this kind", admission.Validate, deployment("nginx"), []admission.Kind{{Group: "x", Kind: "Deployment"}}, gate.PinLater, false},
	} {
		t.Run(name, func(t *testing.T) {
			decider := &pinner{}
			a := send(t, endpoint(t, row.endpoint, decider, withControllers(row.mutated...)), review(t, "CREATE", row.now, nil, nil))
			if asked := decider.asked(); len(asked) != 1 || asked[0].Pinning != row.want || (len(a.Response.Patch) > 0) != row.patched {
				t.Errorf("%s: asked %+v, patch %s", row.reason, asked, a.Response.Patch)
			}
		})
	}
	a := send(t, endpoint(t, admission.Mutate, &pinner{}, withControllers(admission.Kind{Group: "apps", Kind: "Deployment"})), review(t, "CREATE", deployment("nginx"), nil, nil))
	if strings.Contains(string(a.Response.Patch), "annotations") {
		t.Errorf("only Pods are annotated: %s", a.Response.Patch)
	}
}

// ruling knows a kind in which a rule pins.
type ruling string

func (ruling) MayMutate(*policy.Subject) bool   { return false }
func (ruling) MayValidate(*policy.Subject) bool { return false }
func (r ruling) MayPin(s *policy.Subject) bool  { return s.Kind == string(r) }

// TestPinsNamed: images that rules name are pinned at the mutating endpoint, unless only pods may be
// changed, or a Deployment compares its ReplicaSets with its own template.
func TestPinsNamed(t *testing.T) {
	made := func(kind string, owners ...any) object {
		o := deployment("nginx")
		o["kind"] = kind
		o["metadata"].(object)["ownerReferences"] = owners
		return o
	}
	owner := func(controller bool) object {
		return object{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": controller}
	}
	only := []setting{withOnlyPods}
	for _, row := range []struct {
		reason   string
		endpoint admission.Endpoint
		now      object
		named    string
		options  []setting
		want     gate.Pinning // empty with silent
		silent   bool
	}{
		{"it is named", admission.Mutate, deployment("nginx"), "Deployment", nil, gate.PinNamed, false},
		{"it was pinned", admission.Validate, deployment("nginx"), "Deployment", nil, gate.PinLater, false},
		{"another kind is named", admission.Mutate, deployment("nginx"), "StatefulSet", nil, "", true},
		{"only pods may be changed", admission.Mutate, deployment("nginx"), "Deployment", only, "", true},
		{"which is checked", admission.Validate, deployment("nginx"), "Deployment", only, gate.PinKept, false},
		{"pods are changed as ever", admission.Mutate, pod("nginx"), "Deployment", only, gate.PinHere, false},
		{"a ReplicaSet that stands alone", admission.Mutate, made("ReplicaSet"), "ReplicaSet", nil, gate.PinNamed, false},
		{"one that a Deployment made", admission.Mutate, made("ReplicaSet", owner(true)), "ReplicaSet", nil, gate.PinKept, false},
		{"which is checked", admission.Validate, made("ReplicaSet", owner(true)), "ReplicaSet", nil, gate.PinKept, false},
		{"one that belongs to something else", admission.Mutate, made("ReplicaSet", owner(false)), "ReplicaSet", nil, gate.PinNamed, false},
		{"a StatefulSet that something made", admission.Mutate, made("StatefulSet", owner(true)), "StatefulSet", nil, gate.PinNamed, false},
	} {
		decider := &pinner{}
		send(t, endpoint(t, row.endpoint, decider, append(row.options, withRules(ruling(row.named)))...), review(t, "CREATE", row.now, nil, nil))
		asked := decider.asked()
		if row.silent {
			if len(asked) > 0 {
				t.Errorf("%s: asked %+v", row.reason, asked)
			}
			continue
		}
		if len(asked) != 1 || asked[0].Pinning != row.want {
			t.Errorf("%s: asked %+v, want %s", row.reason, asked, row.want)
		}
	}
}

func TestMirrorPods(t *testing.T) {
	mirror := with(t, pod("evil"), func(o object) {
		annotate(o, map[string]string{"kubernetes.io/config.mirror": "hash"})
		o["spec"].(object)["nodeName"] = "n1"
	})
	user := func(name string, groups ...any) func(object) {
		return func(r object) { r["userInfo"] = object{"username": name, "groups": groups} }
	}
	node := user("system:node:n1", "system:nodes", "system:authenticated")
	for name, row := range map[string]struct {
		reason  string
		now     object
		change  func(object)
		allowed bool
	}{
		"mirror":        {"the pod runs already", mirror, node, true},
		"other user":    {"any user may write the annotation", mirror, user("jane", "system:nodes"), false},
		"other node":    {"it is not that node's pod", mirror, user("system:node:n2", "system:nodes"), false},
		"no group":      {"a name alone is no node", mirror, user("system:node:n1", "system:authenticated"), false},
		"no annotation": {"a node creates no other pods", with(t, mirror, func(o object) { delete(o["metadata"].(object), "annotations") }), node, false},
		"no node":       {"of no node", with(t, mirror, func(o object) { delete(o["spec"].(object), "nodeName") }), user("system:node:", "system:nodes"), false},
		"deployment":    {"no pod", with(t, deployment("evil"), func(o object) { annotate(o, map[string]string{"kubernetes.io/config.mirror": "hash"}) }), node, false},
	} {
		t.Run(name, func(t *testing.T) {
			seen := &recorder{}
			a := send(t, endpoint(t, admission.Validate, &pinner{}, withRecorder(seen)), review(t, "CREATE", row.now, nil, row.change))
			got := seen.Last(t)
			if a.Response.Allowed != row.allowed || got.Mirror != row.allowed || got.Outcome.Result != gate.Deny {
				t.Errorf("%s: %+v, recorded %+v", row.reason, a.Response, got)
			}
		})
	}
	good := with(t, mirror, func(o object) { o["spec"].(object)["containers"] = pod("nginx")["spec"].(object)["containers"] })
	decider := &pinner{}
	if a := send(t, endpoint(t, admission.Mutate, decider), review(t, "CREATE", good, nil, node)); !a.Response.Allowed || a.Response.Patch != nil || len(decider.asked()) > 0 {
		t.Errorf("a mirror pod is left alone: %+v", a.Response)
	}
}

func TestNewRefuses(t *testing.T) {
	whole := completed(t, admission.Config{Endpoint: admission.Mutate, Decider: &pinner{}, Namespaces: shop, Failure: failure(false)})
	if _, err := admission.New(whole); err != nil {
		t.Fatal(err)
	}
	for reason, change := range map[string]setting{
		"no endpoint":      func(c *admission.Config) { c.Endpoint = "" },
		"another endpoint": func(c *admission.Config) { c.Endpoint = admission.Policies },
		"no decider":       func(c *admission.Config) { c.Decider = nil },
		"no namespaces":    func(c *admission.Config) { c.Namespaces = nil },
		"no failure":       func(c *admission.Config) { c.Failure = nil },
		"no recorder":      withRecorder(nil),
		"no queue":         withQueue(nil),
		"no kind":          withControllers(admission.Kind{Group: "apps"}),
	} {
		config := whole
		change(&config)
		if _, err := admission.New(config); err == nil {
			t.Errorf("%s: no error", reason)
		}
	}
	for reason, option := range map[string]setting{"no roles": withRoles(nil), "no command": withReproduce(nil), "no copies": withCopies(nil)} {
		config := whole
		option(&config)
		if _, err := admission.New(config); err != nil {
			t.Errorf("%s, which is optional: %v", reason, err)
		}
	}
	for reason, bounds := range map[string]admission.QueueBounds{"requests": {Requests: -1}, "bytes": {Bytes: admission.MaxBody - 1}} {
		if _, err := admission.NewQueue(bounds); err == nil {
			t.Errorf("%s: no error", reason)
		}
	}
}
