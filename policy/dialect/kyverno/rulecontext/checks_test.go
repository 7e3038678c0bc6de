package rulecontext_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// TestOfAPolicy: references without a namespace are in the Policy's own, and nothing is
// read from another one, whatever the value of a variable.
func TestOfAPolicy(t *testing.T) {
	for _, c := range []struct{ entry, asked, err, reason string }{
		{"configMap: {name: keys}", "configMap team/keys", "", "a ConfigMap without a namespace"},
		{"configMap: {name: keys, namespace: team}", "configMap team/keys", "", "in words"},
		{"configMap: {name: keys, namespace: \"{{'team'}}\"}", "configMap team/keys", "", "a variable with that value"},
		{"configMap: {name: keys, namespace: '{{request.namespace}}'}", "", "use a ClusterPolicy", "a variable that leads elsewhere"},
		{"imageRegistry: {reference: a, imageRegistryCredentials: {secrets: [pull, team/pull]}}", "image a [team/pull team/pull]", "", "Secrets"},
		{"apiCall: {urlPath: \"/api/v1/namespaces/{{'team'}}/pods\"}", "GET /api/v1/namespaces/team/pods null", "", "a call"},
		{"apiCall: {urlPath: '/api/v1/namespaces/{{request.namespace}}/pods'}", "", "leads out of namespace team", "a call that leads elsewhere"},
	} {
		w := &world{}
		entries, err := compile(t, w, "team", "[{name: x, "+c.entry+"}]")
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		_, err = ask(t, entries.Context(t.Context(), source()), "x")
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.err)
		}
		if asked := strings.Join(w.asked, "; "); asked != c.asked {
			t.Errorf("%s: asked %q, want %q", c.reason, asked, c.asked)
		}
	}
}

func TestBounds(t *testing.T) {
	pairs := func(format string, n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(format, i))
		}
		return strings.Join(list, ", ")
	}
	for _, c := range []struct {
		entries string // of so many
		most    int
	}{
		{"[%s]", 200},
		{"[{name: x, apiCall: {service: {url: 'https://a', headers: [%s]}}}]", 200},
		{"[{name: x, apiCall: {method: POST, urlPath: /api/v1/a, data: [%s]}}]", 200},
	} {
		each := "{name: v%[1]d, key: k%[1]d, value: v}"
		if c.entries == "[%s]" {
			each = "{name: v%d, variable: {value: 1}}"
		} else {
			each = strings.Replace(each, "name: v%[1]d, ", "", 1)
		}
		if _, err := compile(t, &world{}, "", fmt.Sprintf(c.entries, pairs(each, c.most))); err != nil {
			t.Errorf("%s of %d: %v", c.entries, c.most, err)
		}
		if _, err := compile(t, &world{}, "", fmt.Sprintf(c.entries, pairs(each, c.most+1))); !errors.Is(err, jmespath.ErrTooLarge) {
			t.Errorf("%s of %d: %v", c.entries, c.most+1, err)
		}
	}
	list, err := variable.CompileExpression(newEngine(t), "long", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := rulecontext.List(list, variable.Context{"long": make([]any, 20_000)}); len(got) != 20_000 || err != nil {
		t.Errorf("a list as long as may be: %d, %v", len(got), err)
	}
	if got, err := rulecontext.List(list, variable.Context{"long": make([]any, 20_001)}); got != nil || !errors.Is(err, jmespath.ErrTooLarge) {
		t.Errorf("a list that is longer: %d, %v", len(got), err)
	}
	if got, err := rulecontext.List(list, variable.Context{}); got != nil || err == nil {
		t.Errorf("a list that is not there: %d, %v", len(got), err)
	}
}

func TestTheTimeEnds(t *testing.T) {
	entries, err := compile(t, &world{}, "", "[{name: v, variable: {value: 1}}]")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	data := entries.Context(ctx, source())
	cancel()
	if got, err := ask(t, data, "v"); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestImages(t *testing.T) {
	const digest = "sha256:4355a46b19d348dc2f57c046f8ef63d4538ebb936000f3c9ee954a27460dd865"
	s := rulecontext.Source{Subject: subject(), Images: func() ([]policy.Image, error) {
		return []policy.Image{
			{Container: "web", Role: "container", Pointer: "/a", Ref: image.MustParse("nginx:v1")},
			{Container: "setup", Role: "init", Pointer: "/b", Ref: image.MustParse("ghcr.io/library/app@" + digest)},
			{Container: "volume", Role: "volume", Pointer: "/c", Ref: image.MustParse("ghcr.io/org/app:v2"), Copy: image.MustParse("mirror.example/app:v2")},
			{Container: "tasks/step", Role: "custom", Pointer: "/d", Ref: image.MustParse("ghcr.io/org/app:v3")},
			{Container: "tasks", Role: "custom", Pointer: "/e", Ref: image.MustParse("ghcr.io/org/app:v4")},
		}, nil
	}}
	data := rulecontext.Entries{}.Context(t.Context(), s)
	for expression, want := range map[string]any{
		"images.containers.web.path": "library/nginx", "images.containers.web.name": "nginx", "images.containers.web.reference": "docker.io/library/nginx:v1", "images.containers.web.referenceWithTag": "docker.io/library/nginx:v1", "images.containers.web.registry": "docker.io", "images.containers.web.jsonPointer": "/a",
		"images.initContainers.setup.path": "library/app", "images.initContainers.setup.digest": digest, "images.initContainers.setup.name": "app",
		"images.volumes.volume.copy.registry": "mirror.example", "images.volumes.volume.registry": "ghcr.io",
		"images.tasks.step.tag": "v3", "images.tasks.\"/e\".tag": "v4", "images.containers.web.copy || 'none'": "none",
	} {
		if got, err := ask(t, data, expression); got != want || err != nil {
			t.Errorf("%s = %v, %v", expression, got, err)
		}
	}
	s.Images = func() ([]policy.Image, error) { return nil, errors.New("a volume that is none") }
	if got, err := ask(t, rulecontext.Entries{}.Context(t.Context(), s), "images || 'none'"); got != nil || err == nil || !strings.Contains(err.Error(), "the images: a volume that is none") {
		t.Errorf("images that cannot be found: %v, %v", got, err)
	}
	s.Images = nil
	if got, err := ask(t, rulecontext.Entries{}.Context(t.Context(), s), "images || 'none'"); got != nil || err == nil || !strings.Contains(err.Error(), "the images of the object are not known") {
		t.Errorf("images without a finder: %v, %v", got, err)
	}
}

// TestWithObject: the object is replaced, and unknown values of the request stay unknown.
func TestWithObject(t *testing.T) {
	object := map[string]any{"kind": "Other"}
	plain := map[string]any{"name": "web", "object": nil}
	if got := rulecontext.WithObject(plain, object); !reflect.DeepEqual(got, map[string]any{"name": "web", "object": object}) || plain["object"] != nil {
		t.Errorf("%v, and the request before is %v", got, plain)
	}
	data := variable.Context{"request": rulecontext.WithObject(rulecontext.Request(subject(), nil), object)}
	for expression, want := range map[string]any{"request.object": object, "request.name": "web", "request.operation": "CREATE"} {
		if got, err := ask(t, data, expression); !reflect.DeepEqual(got, want) || err != nil {
			t.Errorf("%s = %v, %v", expression, got, err)
		}
	}
	for _, expression := range []string{"request.options || 'none'", "request"} {
		if got, err := ask(t, data, expression); err == nil {
			t.Errorf("%s = %v", expression, got)
		}
	}
	data["request"] = rulecontext.WithObject(rulecontext.Request(subject(), nil), nil)
	if got, err := ask(t, data, "request.object || 'none'"); got != "none" || err != nil {
		t.Errorf("an object that is taken away: %v, %v", got, err)
	}
}

// TestView: which object a rule about pods sees in one that has a template of them.
func TestView(t *testing.T) {
	parsed := func(text string) map[string]any {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		return object
	}
	template := rulecontext.PodTemplate{"spec", "template"}
	for _, c := range []struct {
		reason, object, want string
		template             rulecontext.PodTemplate
	}{
		{"the object itself", "{kind: ConfigMap, data: {}}", "{kind: ConfigMap, data: {}}", nil},
		{"its template", "{kind: Job, metadata: {name: a, namespace: b}, spec: {template: {metadata: {labels: {c: d}, namespace: e}, spec: {f: g}}}}",
			"{kind: Job, metadata: {labels: {c: d}, namespace: b}, spec: {f: g}}", template},
		{"in no namespace", "{kind: Job, metadata: {name: a}, spec: {template: {metadata: {namespace: e}, spec: {f: g}}}}", "{kind: Job, metadata: {}, spec: {f: g}}", template},
		{"without a template", "{kind: Job, spec: {parallelism: 1}}", "{kind: Job, spec: {parallelism: 1}}", template},
		{"with something else in its place", "{kind: Job, spec: {template: a}}", "{kind: Job, spec: {template: a}}", template},
	} {
		if got := c.template.View(parsed(c.object)); !reflect.DeepEqual(got, parsed(c.want)) {
			t.Errorf("%s: %v, want %s", c.reason, got, c.want)
		}
	}
}

// TestReadingOfEntries: every place of an entry in which a variable may stand is looked
// at.
func TestReadingOfEntries(t *testing.T) {
	bare := &policy.Subject{Shape: policy.Shape{Bare: true}, Kind: "Pod"}
	for _, c := range []struct{ reason, entry string }{
		{"the name of a ConfigMap", "configMap: {name: '%s'}"},
		{"its namespace", "configMap: {name: a, namespace: '%s'}"},
		{"a default", "variable: {default: '%s'}"},
		{"a path", "apiCall: {urlPath: '/api/%s'}"},
		{"a path in the response", "apiCall: {urlPath: /api, jmesPath: 'a.%s'}"},
		{"the default of a call", "apiCall: {urlPath: /api, default: ['%s']}"},
		{"a key in the request body", "apiCall: {urlPath: /api, data: [{key: '%s', value: a}]}"},
		{"a value in the request body", "apiCall: {urlPath: /api, data: [{key: a, value: {b: '%s'}}]}"},
		{"an address", "apiCall: {service: {url: 'https://%s'}}"},
		{"certificates", "apiCall: {service: {url: 'https://a', caBundle: '%s'}}"},
		{"the name of a header", "apiCall: {service: {url: 'https://a', headers: [{key: '%s', value: a}]}}"},
		{"a header", "apiCall: {service: {url: 'https://a', headers: [{key: a, value: '%s'}]}}"},
		{"an image", "imageRegistry: {reference: '%s'}"},
		{"a path in it", "imageRegistry: {reference: a, jmesPath: 'a.%s'}"},
		{"a global entry", "globalReference: {name: '%s'}"},
		{"a path in that", "globalReference: {name: a, jmesPath: 'a.%s'}"},
	} {
		for expression, good := range map[string]bool{"{{ request.name }}": false, "{{ request.operation }}": true} {
			var docs []rulecontext.Document
			if err := yaml.Unmarshal(fmt.Appendf(nil, "[{name: x, "+c.entry+"}]", expression), &docs); err != nil {
				t.Fatal(err)
			}
			var r rulecontext.Reading
			r.Entries(docs)
			if err := r.Of(bare); (err == nil) != good {
				t.Errorf("%s, %s: %v", c.reason, expression, err)
			}
		}
	}
}
