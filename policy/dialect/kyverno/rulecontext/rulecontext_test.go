package rulecontext_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func newEngine(tb testing.TB) *jmespath.Engine {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		tb.Fatal(err)
	}
	return engine
}

// world answers what entries ask, and notes it.
type world struct{ asked []string }

func (w *world) note(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	w.asked = append(w.asked, text)
	return text
}

func (w *world) ConfigMap(_ context.Context, namespace, name string) (map[string]any, error) {
	w.note("configMap %s/%s", namespace, name)
	if name == "gone" {
		return nil, errors.New("not found")
	}
	return map[string]any{"data": map[string]any{"key": "value of " + namespace + "/" + name}}, nil
}

func (w *world) API(_ context.Context, call rulecontext.APICall) (any, error) {
	w.note("%s %s %s", call.Method, call.Path, jmespath.Text(call.Body))
	if strings.Contains(call.Path, "forbidden") {
		return nil, errors.New("forbidden")
	}
	if strings.Contains(call.Path, "large") {
		return nil, fmt.Errorf("path: %w", &limit.ExceededError{What: "the answer", Most: 8})
	}
	if strings.Contains(call.Path, "unreadable") {
		return func() {}, nil
	}
	return map[string]any{"items": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}, "count": int64(2)}, nil
}

func (w *world) Service(_ context.Context, call rulecontext.ServiceCall) (any, error) {
	w.note("%s %s %v %s%s", call.Method, call.URL, call.Headers, jmespath.Text(call.Body), call.CABundle)
	if strings.Contains(call.URL, "forbidden") {
		return nil, errors.New("forbidden")
	}
	return map[string]any{"ok": true}, nil
}

func (w *world) ImageData(_ context.Context, reference string, credentials policy.Credentials) (map[string]any, error) {
	w.note("image %s %v", reference, credentials.Secrets)
	if reference == "gone" {
		return nil, errors.New("not found")
	}
	return map[string]any{"configData": map[string]any{"architecture": "arm64"}}, nil
}

func (w *world) Global(_ context.Context, name string) (any, error) {
	if name == "late" {
		return nil, errors.New("not read yet")
	}
	return []any{w.note("global %s", name)}, nil
}

func compile(tb testing.TB, w *world, namespace, text string, known ...string) (rulecontext.Entries, error) {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	var docs []rulecontext.Document
	if err := json.Unmarshal(data, &docs); err != nil {
		tb.Fatal(err)
	}
	options := rulecontext.Options{Engine: newEngine(tb), Namespace: namespace, SecretNamespace: "kyverno"}
	if w != nil {
		options.Lookup, options.Caller, options.Images, options.Globals = w, w, w, w
	}
	return rulecontext.Compile(options, docs, "context", known...)
}

func subject() *policy.Subject {
	return &policy.Subject{
		Version: "v1", Kind: "Pod", Namespace: "prod", Name: "web", Operation: "CREATE",
		User:   policy.User{Name: "system:serviceaccount:ci:deployer", Groups: []string{"a"}},
		Object: policy.ContentOf(map[string]any{"metadata": map[string]any{"name": "web"}, "spec": map[string]any{"replicas": 2.0, "nothing": nil}}),
	}
}

func source() rulecontext.Source {
	return rulecontext.Source{Subject: subject(), Images: func() ([]policy.Image, error) {
		return []policy.Image{{Container: "web", Role: "container", Ref: image.MustParse("ghcr.io/org/app:v1")}}, nil
	}}
}

// ask evaluates an expression on a context.
func ask(tb testing.TB, data variable.Context, expression string) (any, error) {
	tb.Helper()
	e, err := variable.CompileExpression(newEngine(tb), expression, "")
	if err != nil {
		tb.Fatal(err)
	}
	return e.Evaluate(data)
}

func TestEntries(t *testing.T) {
	for _, c := range []struct {
		entries, expression string
		want                any
		asked               string // requests to the sources
		err                 string
		reason              string
	}{
		{"[{name: m, configMap: {name: keys, namespace: trust}}]", "m.data.key", "value of trust/keys", "configMap trust/keys", "", "a ConfigMap"},
		{"[{name: m, configMap: {name: 'k-{{request.name}}', namespace: '{{request.namespace}}'}}]", "m.data.key", "value of prod/k-web", "configMap prod/k-web", "", "of a computed name"},
		{"[{name: m, configMap: {name: keys}}]", "request.name", "web", "", "", "one that is not read"},
		{"[{name: m, configMap: {name: gone}}]", "m.data.key", nil, "configMap default/gone", "ConfigMap default/gone: not found", "one that is gone"},
		{"[{name: m, configMap: {name: gone}}]", "m.data.key || 'x'", nil, "configMap default/gone", "not found", "one that is gone is no default's business"},
		{"[{name: m, configMap: {name: gone}}]", "request.name || m", "web", "configMap default/gone", "not found", "in an expression that may read it"},

		{"[{name: m, configMap: {name: keys, namespace: a}}, {name: m, imageRegistry: {reference: app}}]", "[m.data.key, m.configData.architecture]", []any{"value of a/keys", "arm64"}, "image app []; configMap a/keys", "", "an entry adds to the former one of its name"},
		{"[{name: m, configMap: {name: keys, namespace: a}}, {name: m, configMap: {name: keys, namespace: b}}]", "m.data.key", "value of b/keys", "configMap b/keys; configMap a/keys", "", "and replaces its members"},
		{"[{name: m, variable: {value: {data: {other: x}}}}, {name: m, configMap: {name: keys}}]", "[m.data.other, m.data.key]", []any{"x", "value of default/keys"}, "configMap default/keys", "", "at any depth"},
		{"[{name: m, variable: {value: x}}, {name: m, configMap: {name: keys}}]", "m.data.key", "value of default/keys", "configMap default/keys", "", "a text has no members"},
		{"[{name: m, variable: {jmesPath: request.object.none}}, {name: m, configMap: {name: keys}}]", "m.data.key", "value of default/keys", "configMap default/keys", "", "an absent one neither"},
		{"[{name: m, configMap: {name: gone}}, {name: m, configMap: {name: keys}}]", "m.data.key || 'x'", nil, "configMap default/keys; configMap default/gone", "not found", "one that is gone may have had members"},
		{"[{name: m, configMap: {name: keys}}, {name: m, variable: {value: {a: b}}}]", "m.data.key || m.a", "b", "", "", "a variable replaces the former one"},

		{"[{name: v, variable: {value: {a: ['{{request.name}}', 2]}}}]", "v.a[0]", "web", "", "", "a value"},
		{"[{name: v, variable: {value: {a: {b: c}}, jmesPath: a.b}}]", "v", "c", "", "", "a part of a value"},
		{"[{name: v, variable: {value: {web: c}, jmesPath: '@.{{request.name}}'}}]", "v", "c", "", "", "data as a name"},
		{"[{name: v, variable: {value: [{x: web}], jmesPath: \"[?x == '{{request.name}}'] | length(@)\"}}]", "v", 1.0, "", "", "data in a text"},
		{"[{name: f, variable: {value: name}}, {name: a, variable: {jmesPath: '{{ f }}', value: {name: x, f: y}}}]", "a", "x", "", "", "a constant is the expression, as in Kyverno"},
		{"[{name: f, variable: {value: spec.replicas}}, {name: a, variable: {jmesPath: 'request.object.{{ f }}'}}]", "a", 2.0, "", "", "a constant as a path"},
		{"[{name: f, variable: {value: ab}}, {name: a, variable: {jmesPath: 'length({{ f }})', value: {ab: [1, 2]}}}]", "a", 2.0, "", "", "a constant in a call"},
		{"[{name: e, variable: {value: {x: name}}}, {name: f, variable: {value: '{{ e.x }}'}}, {name: a, variable: {jmesPath: '{{ f }}', value: {name: x}}}]",
			"a", "x", "", "", "a constant of a constant"},
		{"[{name: f, variable: {value: {x: name}, jmesPath: x}}, {name: a, variable: {jmesPath: '{{ f }}', value: {name: x}}}]", "a", "x", "", "", "a part of one"},
		{"[{name: f, variable: {value: '[0]'}}, {name: g, globalReference: {name: g, jmesPath: '@{{ f }}'}}]", "g", "global g", "global g", "", "of a global entry"},
		{"[{name: f, variable: {value: 'items[1].name'}}, {name: c, apiCall: {urlPath: /api/v1/pods, jmesPath: '{{ f }}'}}]", "c", "b", "GET /api/v1/pods null", "", "of an API call"},
		{"[{name: f, variable: {value: configData.architecture}}, {name: i, imageRegistry: {reference: x, jmesPath: '{{ f }}'}}]", "i", "arm64", "image x []", "", "of an image"},
		{"[{name: f, variable: {value: a}}, {name: f, variable: {value: b}}, {name: a, variable: {jmesPath: '{{ f }}', value: {a: 1, b: 2}}}]", "a", 2.0, "", "", "the latest of a name"},
		{"[{name: v, variable: {jmesPath: request.object.spec.replicas}}]", "v", 2.0, "", "", "a jmesPath"},
		{"[{name: v, variable: {jmesPath: request.object.spec.none, default: 3}}]", "v", 3.0, "", "", "a default"},
		{"[{name: v, variable: {jmesPath: request.object.spec.none, default: '{{request.name}}'}}]", "v", "web", "", "", "a computed default"},
		{"[{name: v, variable: {jmesPath: request.object.spec.nothing, default: d}}]", "v", "d", "", "", "a default for null"},
		{"[{name: v, variable: {jmesPath: to_upper(request.object), default: d}}]", "v", nil, "", "want a string", "no default for a value of another type"},
		{"[{name: v, variable: {jmesPath: to_upper(request.object) || 'x', default: d}}]", "v || 'y'", nil, "", "want a string", "nor beside other defaults"},
		{"[{name: v, variable: {jmesPath: \"divide(`1`, `0`)\", default: 1}}]", "v", nil, "", "zero", "no default for an argument that a function does not take"},
		{"[{name: v, variable: {jmesPath: to_upper(request.object.spec.none), default: d}}]", "v", "d", "", "", "a default where an argument is absent"},
		{"[{name: v, variable: {jmesPath: 'length(request.object.spec.none)', default: 0}}]", "v", 0.0, "", "", "a default where a list is absent"},
		{"[{name: v, variable: {jmesPath: 'max_by(request.object.spec.none, &a)', default: 0}}]", "v", 0.0, "", "", "a default where a list to sort is absent"},
		{"[{name: v, variable: {value: [{a: x}, {b: y}], jmesPath: '[].to_upper(a)', default: d}}]", "v", nil, "", "want a string, got null", "no default where a part of one element is absent"},
		{"[{name: v, variable: {value: [{a: x}, {b: y}], jmesPath: 'map(&to_upper(a), @)', default: d}}]", "v", nil, "", "want a string, got null", "nor in a map of elements"},
		{"[{name: v, variable: {jmesPath: 'request.object.spec.{{request.object.none}}', default: d}}]", "v", nil, "", "Unknown key", "no default for a name that is absent"},
		{"[{name: v, variable: {value: '{{request.object.none}}', default: d}}]", "v", nil, "", "Unknown key", "no default for a value that is absent"},
		{"[{name: v, variable: {value: {a: b}, jmesPath: c, default: d}}]", "v", "d", "", "", "a default for what a value does not have"},
		{"[{name: v, variable: {value: {a: b}, jmesPath: to_upper(@), default: d}}]", "v", nil, "", "want a string", "no default for a value that is of another type"},
		{"[{name: v, variable: {value: {a: null}, jmesPath: a, default: d}}]", "v", nil, "", "is null", "no default for null in a value"},
		{"[{name: v, variable: {jmesPath: request.name > `1`, default: d}}]", "v", nil, "", "have no order", "no default for an order of values that have none"},
		{"[{name: m, configMap: {name: gone}}, {name: v, variable: {jmesPath: m.data.key, default: d}}]", "v", nil, "configMap default/gone", "not found", "no default for a ConfigMap that is gone"},
		{"[{name: m, configMap: {name: keys}}, {name: v, variable: {jmesPath: m.data.none, default: d}}]", "v", "d", "configMap default/keys", "", "a default for what a ConfigMap does not have"},
		{"[{name: c, apiCall: {urlPath: /api/v1/forbidden}}, {name: v, variable: {jmesPath: 'length(c.items)', default: 0}}]", "v", nil, "GET /api/v1/forbidden null", "forbidden", "no default for a call that fails"},
		{"[{name: g, globalReference: {name: late}}, {name: v, variable: {value: {a: '{{g}}'}, default: d}}]", "v", nil, "", "not read yet", "no default for a global entry that is not there yet"},
		{"[{name: g, globalReference: {name: late}}, {name: v, variable: {jmesPath: g}}, {name: w, variable: {jmesPath: v, default: d}}]", "w", nil, "", "not read yet", "nor behind another variable"},
		{"[{name: v, variable: {jmesPath: request.object.spec.none}}]", "v || 'd'", "d", "", "", "absent, with something in its place"},
		{"[{name: v, variable: {jmesPath: request.object.spec.none}}]", "v", nil, "", "none", "absent"},
		{"[{name: v, variable: {jmesPath: request.oldObject}}]", "v", nil, "", "is null", "null"},
		{"[{name: v, variable: {jmesPath: to_upper(request.object)}}]", "v || 'd'", nil, "", "want a string", "a fault is no absence"},
		{"[{name: a, variable: {value: 1}}, {name: b, variable: {jmesPath: a}}]", "b", 1.0, "", "", "an earlier entry"},
		{"[{name: a, configMap: {name: keys}}, {name: b, variable: {jmesPath: a.data.key}}]", "b", "value of default/keys", "configMap default/keys", "", "an earlier entry that is looked up"},
		{"[{name: a, variable: {value: 1}}, {name: a, variable: {jmesPath: 'sum([a, `1`])'}}]", "a", 2.0, "", "", "an earlier entry of its name"},

		{"[{name: c, apiCall: {urlPath: '/api/v1/namespaces/{{request.namespace}}/pods', jmesPath: 'items[].name'}}]", "c", []any{"a", "b"}, "GET /api/v1/namespaces/prod/pods null", "", "a call"},
		{"[{name: c, apiCall: {urlPath: /api/v1/nodes}}]", "c.count", 2.0, "GET /api/v1/nodes null", "", "numbers are JSON's"},
		{"[{name: c, apiCall: {urlPath: /apis/authorization.k8s.io/v1/subjectaccessreviews, method: POST, data: [{key: spec, value: {user: '{{request.name}}'}}]}}]", "c.count", 2.0, `POST /apis/authorization.k8s.io/v1/subjectaccessreviews {"spec":{"user":"web"}}`, "", "a call with data"},
		{"[{name: c, apiCall: {urlPath: /api/v1/forbidden}}]", "c", nil, "GET /api/v1/forbidden null", "forbidden", "a call that fails"},
		{"[{name: c, apiCall: {urlPath: /api/v1/forbidden, default: [x]}}]", "c[0]", "x", "GET /api/v1/forbidden null", "", "with a default"},
		{"[{name: c, apiCall: {urlPath: /api/v1/large, default: [x]}}]", "c[0] || 'y'", nil, "GET /api/v1/large null", "larger than", "no default for an answer that is too large"},
		{"[{name: c, apiCall: {urlPath: /api/v1/nodes, jmesPath: missing, default: [x]}}]", "c[0]", nil, "GET /api/v1/nodes null", "missing", "a default is for calls that fail"},
		{"[{name: c, apiCall: {urlPath: /api/v1/nodes, jmesPath: \"items[?name == '{{request.namespace}}'] || 'none'\"}}]", "c", "none", "GET /api/v1/nodes null", "", "a variable in the jmesPath"},
		{"[{name: c, apiCall: {urlPath: '/api/v1/namespaces/{{to_upper(request.object)}}/pods'}}]", "c", nil, "", "want a string", "an expression that fails"},
		{"[{name: c, apiCall: {urlPath: \"/api/v1/namespaces/{{request.object.metadata.namespace || ''}}/pods\"}}]", "c", nil, "", "is a variable empty?", "an empty variable would mean every namespace"},
		{"[{name: c, apiCall: {urlPath: \"/api/v1/namespaces/{{'..%2Fnodes'}}\"}}]", "c", nil, "", "encoded character", "a variable that leads elsewhere"},
		{"[{name: c, apiCall: {urlPath: \"/api/v1/namespaces/{{'other?a='}}/pods\"}}]", "c", nil, "", "a ? in it that a variable brought", "a variable that makes a query of the rest"},
		{"[{name: c, apiCall: {urlPath: \"/api/v1/namespaces/{{'x/configmaps/y'}}\"}}]", "c", nil, "", "a / in it that a variable brought", "a variable that names another object"},
		{"[{name: c, apiCall: {urlPath: \"/api/v1/namespaces/{{'x'}}/configmaps/{{'y'}}\"}}]", "c.count", 2.0, "GET /api/v1/namespaces/x/configmaps/y null", "", "each in its place"},
		{"[{name: c, apiCall: {urlPath: \"/api/v1/namespaces/x/{{'pods'}}{{'/y'}}\"}}]", "c", nil, "", "a / in it that a variable brought", "behind another variable"},
		{"[{name: c, apiCall: {urlPath: \"/apis/{{'apps/v1'}}/namespaces/x/deployments\"}}]", "c.count", 2.0, "GET /apis/apps/v1/namespaces/x/deployments null", "", "an apiVersion"},
		{"[{name: c, apiCall: {urlPath: \"/apis/{{'apps/v1/namespaces'}}/x/deployments\"}}]", "c", nil, "", "a / in it that a variable brought", "more than an apiVersion"},
		{"[{name: c, apiCall: {urlPath: \"/apis/{{'apps'}}/{{'v1/namespaces'}}/deployments\"}}]", "c", nil, "", "a / in it that a variable brought", "more than a version"},
		{"[{name: c, apiCall: {urlPath: \"{{'/api/v1/namespaces'}}/{{'x/pods'}}\"}}]", "c", nil, "", "a / in it that a variable brought", "behind a variable that is the path"},
		{"[{name: c, apiCall: {urlPath: \"/api/v1/nodes?labelSelector={{'example.com/a=b'}}\"}}]", "c.count", 2.0, "GET /api/v1/nodes?labelSelector=example.com/a=b null", "", "the name of a label within a parameter"},
		{"[{name: c, apiCall: {urlPath: \"/api/v1/pods?labelSelector={{'a=b&watch=true'}}\"}}]", "c", nil, "", "a & in it that a variable brought", "a variable that adds a parameter"},
		{"[{name: c, apiCall: {urlPath: \"/api/v1/nodes?labelSelector={{'a=b'}}&limit=1\"}}]", "c.count", 2.0, "GET /api/v1/nodes?labelSelector=a=b&limit=1 null", "", "a variable within a parameter"},
		{"[{name: c, apiCall: {urlPath: \"{{'/api/v1/nodes?limit=1'}}\"}}]", "c.count", 2.0, "GET /api/v1/nodes?limit=1 null", "", "a variable that is the whole path"},
		{"[{name: c, apiCall: {service: {url: 'https://a.example/{{request.name}}', headers: [{key: X-A, value: '{{request.namespace}}'}]}}}]", "c.ok", true, "GET https://a.example/web map[X-A:prod] null", "", "a service"},
		{"[{name: c, apiCall: {method: POST, data: [{key: a, value: 1}], service: {url: 'https://a.example'}}}]", "c.ok", true, `POST https://a.example map[] {"a":1}`, "", "a service with data"},
		{"[{name: c, apiCall: {service: {url: '{{request.name}}'}}}]", "c", nil, "", "want https://host", "no address"},

		{"[{name: i, imageRegistry: {reference: '{{images.containers.web.reference}}', jmesPath: configData.architecture}}]", "i", "arm64", "image ghcr.io/org/app:v1 []", "", "an image"},
		{"[{name: i, imageRegistry: {reference: a, imageRegistryCredentials: {secrets: [pull, other/pull]}}}]", "i.configData.architecture", "arm64", "image a [kyverno/pull other/pull]", "", "with credentials"},
		{"[{name: i, imageRegistry: {reference: '{{request.object.spec.replicas}}'}}]", "i", nil, "", "is no text", "no reference"},
		{"[{name: g, globalReference: {name: deployments, jmesPath: '[0]'}}]", "g", "global deployments", "global deployments", "", "a global entry"},
		{"[{name: g, globalReference: {name: late}}]", "g", nil, "", "GlobalContextEntry late: not read yet", "a global entry that is not there yet"},

		{"[{name: m, configMap: {name: '{{to_upper(request.object)}}'}}]", "m", nil, "", "want a string", "a ConfigMap with a name that cannot be evaluated"},
		{"[{name: m, configMap: {name: keys, namespace: '{{to_upper(request.object)}}'}}]", "m", nil, "", "want a string", "or with such a namespace"},
		{"[{name: v, variable: {default: 3}}]", "v", 3.0, "", "", "a default alone"},
		{"[{name: v, variable: {jmesPath: request.object.spec.none}}, {name: w, variable: {jmesPath: v, default: d}}]", "w", "d", "", "", "a default for an entry that is absent"},
		{"[{name: c, apiCall: {method: POST, urlPath: /api/v1/a, data: [{key: a, value: '{{to_upper(request.object)}}'}]}}]", "c", nil, "", "want a string", "data that cannot be made"},
		{"[{name: c, apiCall: {urlPath: /api/v1/unreadable, jmesPath: \"'x'\"}}]", "c", nil, "GET /api/v1/unreadable null", "func()", "an answer that is no JSON"},
		{"[{name: c, apiCall: {service: {url: 'https://a.example/{{to_upper(request.object)}}'}}}]", "c", nil, "", "want a string", "an address that cannot be made"},
		{"[{name: c, apiCall: {service: {url: 'https://a.example', caBundle: '{{request.name}}'}}}]", "c.ok", true, "GET https://a.example map[] nullweb", "", "certificates of a variable"},
		{"[{name: c, apiCall: {service: {url: 'https://a.example', caBundle: '{{to_upper(request.object)}}'}}}]", "c", nil, "", "want a string", "certificates that cannot be made"},
		{"[{name: c, apiCall: {service: {url: 'https://a.example', headers: [{key: a, value: '{{to_upper(request.object)}}'}]}}}]", "c", nil, "", "want a string", "a header that cannot be made"},
		{"[{name: c, apiCall: {service: {url: 'https://a.example/forbidden'}}}]", "c", nil, "GET https://a.example/forbidden map[] null", "GET https://a.example/forbidden: forbidden", "a service that refuses"},
		{"[{name: i, imageRegistry: {reference: '{{to_upper(request.object)}}'}}]", "i", nil, "", "want a string", "a reference that cannot be made"},
		{"[{name: i, imageRegistry: {reference: \"{{''}}\"}}]", "i", nil, "", "is no text", "an empty reference"},
		{"[{name: i, imageRegistry: {reference: gone}}]", "i", nil, "image gone []", "image gone: not found", "an image that is gone"},
		{"[{name: g, globalReference: {name: '{{to_upper(request.object)}}'}}]", "g", nil, "", "want a string", "a global entry with a name that fails"},

		{"[]", "serviceAccountName", "deployer", "", "", "the account that asks"},
		{"[]", "serviceAccountNamespace", "ci", "", "", "its namespace"},
		{"[]", "images.containers.web.registry", "ghcr.io", "", "", "the images"},
		{"[]", "request.resource.resource", "pods", "", "", "the resource"},
		{"[]", "request.userInfo.groups[0]", "a", "", "", "the groups"},
		{"[]", "element", nil, "", "element", "no loop"},
	} {
		w := &world{}
		entries, err := compile(t, w, "", c.entries)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		got, err := ask(t, entries.Context(t.Context(), source()), c.expression)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || c.err == "" && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, %v; want %v %s", c.reason, got, err, c.want, c.err)
		}
		if asked := strings.Join(w.asked, "; "); asked != c.asked {
			t.Errorf("%s: asked %q, want %q", c.reason, asked, c.asked)
		}
	}
}

func TestEntryErrors(t *testing.T) {
	for _, c := range []struct{ namespace, entries, want, reason string }{
		{"", "[{name: request, variable: {value: 1}}]", "context[0].name: ", "a name that is taken"},
		{"", "[{name: request.object, variable: {value: 1}}]", "context[0].name: \"request.object\" cannot", "a part of one that is taken"},
		{"", "[{name: images.containers, configMap: {name: x}}]", "context[0].name: ", "a part of one that is taken, of a ConfigMap"},
		{"", "[{name: a, variable: {value: {}}}, {name: a.b, variable: {value: 1}}]", "context[1].name: \"a.b\" is a path into \"a\"", "a path"},
		{"", "[{name: '', variable: {value: 1}}]", "context[0].name: ", "no name"},
		{"", "[{name: a}]", "context[0]: want one of", "nothing"},
		{"", "[{name: a, variable: {value: 1}, configMap: {name: x}}]", "context[0]: want one of", "two things"},
		{"", "[{name: a, variable: {}}]", "context[0].variable: want", "an empty variable"},
		{"", "[{name: a, variable: {jmesPath: 'a b'}}]", "context[0].variable.jmesPath: ", "no expression"},
		{"", "[{name: a, variable: {jmesPath: '{{ request.name }}'}}]", "context[0].variable.jmesPath: value: variable {{{{ request.name }}}}: the variable {{request.name}} is in the place of an expression", "an expression from data"},
		{"", "[{name: f, variable: {value: '{{ request.name }}'}}, {name: a, variable: {jmesPath: 'length({{ f }})', value: {}}}]", "context[1].variable.jmesPath: ", "an expression from an entry with data"},
		{"", "[{name: f, variable: {value: x}}, {name: f, configMap: {name: x}}, {name: a, variable: {jmesPath: '{{ f }}'}}]", "context[2].variable.jmesPath: ", "no longer a constant"},
		{"", "[{name: f, variable: {value: {x: y}}}, {name: f.x, configMap: {name: x}}, {name: a, variable: {jmesPath: '{{ f.x }}'}}]", "context[2].variable.jmesPath: ", "a constant to which data is added"},
		{"", "[{name: f, variable: {value: x, jmesPath: '@ && time_now()'}}, {name: a, variable: {jmesPath: '{{ f }}'}}]", "context[1].variable.jmesPath: ", "the time is no constant"},
		{"", "[{name: f, variable: {jmesPath: request.x, default: x}}, {name: a, variable: {jmesPath: '{{ f }}'}}]", "context[1].variable.jmesPath: ", "a default in place of data"},
		{"", "[{name: f, variable: {value: [x]}}, {name: a, variable: {jmesPath: '{{ f }}', value: {}}}]", "context[1].variable.jmesPath: ", "a constant that is no text"},
		{"", "[{name: f, configMap: {name: x}}, {name: a, globalReference: {name: x, jmesPath: '{{ f.data.x }}'}}]", "context[1].globalReference.jmesPath: ", "data for a global entry"},
		{"", "[{name: a, variable: {jmesPath: a}}]", "reads a, which is itself", "itself"},
		{"", "[{name: a, variable: {jmesPath: b}}, {name: b, variable: {value: 1}}]", "context[0]: reads b, which comes later: put it before", "a later one"},
		{"", "[{name: a, variable: {jmesPath: b.x}}, {name: b, configMap: {name: '{{a}}'}}]", "context[0]: reads b, which comes later", "a circle"},
		{"", "[{name: a, configMap: {name: '{{b}}'}}, {name: b, variable: {value: 1}}]", "context[0]: reads b, which comes later", "a later one, in a name"},
		{"", "[{name: a, configMap: {}}]", "context[0].configMap.name: is empty", "no ConfigMap"},
		{"", "[{name: a, configMap: {name: '{{ a b }}'}}]", "context[0].configMap.name", "no expression as its name"},
		{"", "[{name: a, configMap: {name: a, namespace: '{{ a b }}'}}]", "context[0].configMap.namespace", "no expression as its namespace"},
		{"", "[{name: a, apiCall: {urlPath: '/api/{{ a b }}'}}]", "context[0].apiCall.urlPath", "no expression in the path"},
		{"", "[{name: a, apiCall: {service: {url: 'https://{{ a b }}'}}}]", "context[0].apiCall.service.url", "no expression in the address"},
		{"", "[{name: a, apiCall: {service: {url: 'https://a', caBundle: '{{ a b }}'}}}]", "context[0].apiCall.service.caBundle", "no expression as certificates"},
		{"", "[{name: a, apiCall: {service: {url: 'https://a', headers: [{key: x, value: a}, {key: x, value: b}]}}}]", "context[0].apiCall.service.headers[1].key: ", "a header twice"},
		{"", "[{name: a, apiCall: {urlPath: /api/v1, method: POST, data: [{key: '', value: c}]}}]", "context[0].apiCall.data[0].key: ", "data without a name"},
		{"team", "[{name: a, configMap: {name: x, namespace: other}}]", "use a ClusterPolicy", "another namespace's ConfigMap"},
		{"", "[{name: a, apiCall: {urlPath: /api, service: {url: 'https://a'}}}]", "context[0].apiCall: want one of urlPath and service", "two addresses"},
		{"", "[{name: a, apiCall: {}}]", "context[0].apiCall: want one of", "no address"},
		{"", "[{name: a, apiCall: {urlPath: /api/v1, method: PUT}}]", "context[0].apiCall.method: ", "another method"},
		{"", "[{name: a, apiCall: {urlPath: /api/v1, data: [{key: a, value: b}]}}]", "context[0].apiCall.data: ", "data with GET"},
		{"", "[{name: a, apiCall: {urlPath: /api/v1, method: POST, data: [{key: a, value: b}, {key: a, value: c}]}}]", "context[0].apiCall.data[1].key: ", "data twice"},
		{"", "[{name: a, apiCall: {urlPath: /api/../x}}]", "context[0].apiCall.urlPath: ", "a path that is not canonical"},
		{"team", "[{name: a, apiCall: {urlPath: /api/v1/namespaces/other/secrets}}]", "leads out of namespace team", "another namespace's secrets"},
		{"", "[{name: a, apiCall: {service: {url: 'ftp://a'}}}]", "context[0].apiCall.service.url: ", "no HTTP"},
		{"", "[{name: a, apiCall: {service: {url: 'https://a', caBundle: x}}}]", "context[0].apiCall.service.caBundle: ", "no certificates"},
		{"", "[{name: a, apiCall: {service: {url: 'https://a', headers: [{key: '', value: x}]}}}]", "context[0].apiCall.service.headers[0].key: ", "a header without name"},
		{"", "[{name: a, imageRegistry: {}}]", "context[0].imageRegistry.reference: is empty", "no image"},
		{"", "[{name: a, imageRegistry: {reference: x, imageRegistryCredentials: {providers: [me]}}}]", "context[0].imageRegistry.imageRegistryCredentials.providers[0]: ", "an unknown provider"},
		{"team", "[{name: a, imageRegistry: {reference: x, imageRegistryCredentials: {secrets: [other/pull]}}}]", "use a ClusterPolicy", "another namespace's secret"},
		{"", "[{name: a, imageRegistry: {reference: x, imageRegistryCredentials: {secrets: ['']}}}]", "context[0].imageRegistry.imageRegistryCredentials.secrets[0]: ", "a secret without a name"},
		{"", "[{name: a, imageRegistry: {reference: x, imageRegistryCredentials: {secrets: [/pull]}}}]", "context[0].imageRegistry.imageRegistryCredentials.secrets[0]: ", "a secret of no namespace"},
		{"", "[{name: a, imageRegistry: {reference: x, imageRegistryCredentials: {secrets: [a/b/c]}}}]", "context[0].imageRegistry.imageRegistryCredentials.secrets[0]: ", "a secret of three parts"},
		{"", "[{name: a, globalReference: {}}]", "context[0].globalReference.name: is empty", "no entry"},
		{"", "[{name: a, globalReference: {name: x, jmesPath: 'a b'}}]", "context[0].globalReference.jmesPath", "no expression on an entry"},
		{"team", "[{name: a, globalReference: {name: deployments}}]", "use a ClusterPolicy", "an entry that has objects of all namespaces"},
		{"", "[" + strings.Repeat("{name: a, variable: {value: 1}},", 201) + "]", "exceeds the bound", "too many"},
	} {
		if _, err := compile(t, &world{}, c.namespace, c.entries); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
	if _, err := compile(t, &world{}, "", "[{name: a, variable: {jmesPath: a}}]", "a"); err != nil {
		t.Errorf("an entry may read what its name meant before: %v", err)
	}
}

func TestWithoutAWorld(t *testing.T) {
	for _, c := range []struct{ entry, want string }{
		{"configMap: {name: keys}", "there is no cluster to read it from"},
		{"apiCall: {urlPath: /api/v1/nodes}", "there is no cluster to ask"},
		{"apiCall: {service: {url: 'https://a.example'}}", "no calls are made here"},
		{"imageRegistry: {reference: nginx}", "no registry is asked here"},
		{"globalReference: {name: a}", "there are none here"},
	} {
		entries, err := compile(t, nil, "", "[{name: x, "+c.entry+"}]")
		if err != nil {
			t.Fatal(err)
		}
		data := entries.Context(t.Context(), source())
		if _, err := ask(t, data, "x"); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "context[0]") {
			t.Errorf("%s: %v", c.entry, err)
		}
		if _, err := ask(t, data, "request.name"); err != nil {
			t.Errorf("%s: an entry that is not read fails: %v", c.entry, err)
		}
	}
}

func TestRequest(t *testing.T) {
	s := subject()
	s.Operation, s.OldObject, s.Object = "DELETE", s.Object, policy.Content{}
	if got, err := ask(t, variable.Context{"request": rulecontext.Request(s, nil)}, "request.object.metadata.name"); got != "web" || err != nil {
		t.Errorf("the object of a deletion is %v, %v", got, err)
	}
	entries := rulecontext.Entries{}
	data := entries.Context(t.Context(), source())
	request := rulecontext.WithObject(data["request"], map[string]any{"kind": "Other"})
	if got, err := ask(t, data.With("request", request), "request.object.kind"); got != "Other" || err != nil {
		t.Error(got, err)
	}
	if got, err := ask(t, data, "request.object.metadata.name"); got != "web" || err != nil {
		t.Errorf("the former object is changed: %v, %v", got, err)
	}
}

func TestLoops(t *testing.T) {
	entries := rulecontext.Entries{}
	outer, inner := entries.Context(t.Context(), source()), variable.Context{}
	rulecontext.Element(inner, outer, "x", 1, 0)
	deeper := variable.Context{}
	rulecontext.Element(deeper, inner, "y", 2, 1)
	for expression, want := range map[string]any{
		"element": "y", "elementIndex": 2.0, "element0": "x", "elementIndex0": 1.0, "element1": "y", "elementIndex1": 2.0, "request.name": "web",
	} {
		if got, err := ask(t, deeper, expression); got != want || err != nil {
			t.Errorf("%s = %v, %v", expression, got, err)
		}
	}
	for _, c := range []struct {
		list string
		want int
	}{{"['a', 'b']", 2}, {"request.object", 1}, {"`[]`", 0}, {"request.oldObject", 1}} {
		list, err := variable.CompileExpression(newEngine(t), c.list, "")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rulecontext.List(list, outer); len(got) != c.want || err != nil {
			t.Errorf("%s: %v, %v", c.list, got, err)
		}
	}
}

func TestCheckPath(t *testing.T) {
	for _, c := range []struct {
		path, namespace string
		good            bool
		reason          string
	}{
		{"/api/v1/namespaces/team/secrets", "", true, "a ClusterPolicy reads anywhere"},
		{"/api/v1/nodes", "", true, "a cluster-scoped resource"},
		{"/apis/apps/v1/namespaces/team/deployments/a/scale", "team", true, "a subresource"},
		{"/api/v1/namespaces/team/pods?labelSelector=app%3Dweb", "team", true, "a query"},
		{"/api/v1/namespaces/team", "team", true, "the namespace itself"},
		{"/api/v1/namespaces/team/services/proxy", "", true, "something that is called proxy"},
		{"/healthz", "", true, "no resource"},
		{"/apis/apps/v1", "", true, "a group and its version, and no resource"},
		{"/" + strings.Repeat("a", 8191), "", true, "as long as may be"},
		{"/" + strings.Repeat("a", 8192), "", false, "a byte more"},
		{"/other/apps/v1/namespaces/team/deployments", "team", false, "a path outside the API, for a Policy"},
		{`/api/v1/nodes\x`, "", false, "a backslash"},
		{"/api/v1/nodes\x7f", "", false, "a deletion"},

		{"/api/v1/namespaces/other/secrets", "team", false, "another namespace"},
		{"/api/v1/namespaces/team/../other/secrets", "team", false, "dots"},
		{"/api/v1/namespaces/./team/secrets", "team", false, "a dot"},
		{"/api/v1/namespaces/team/%2e%2e/other/secrets", "team", false, "encoded dots"},
		{"/api/v1/namespaces/team%2fsecrets", "team", false, "an encoded slash"},
		{"/api/v1/namespaces/team%252fsecrets", "team", false, "a slash that is encoded twice"},
		{`/api/v1/namespaces/team\..\prod`, "team", false, "backslashes"},
		{"/api/v1/namespaces//secrets", "", false, "an empty part"},
		{"//api/v1/nodes", "", false, "an empty part at the beginning"},
		{"/api/v1/secrets", "team", false, "every namespace's secrets"},
		{"/api/v1/nodes", "team", false, "a cluster-scoped resource"},
		{"/healthz", "team", false, "no resource, for a Policy"},
		{"/api/v1/namespaces", "team", false, "all namespaces"},
		{"/api/v1/watch/namespaces/team/secrets", "team", false, "the old form of a watch"},
		{"/api/v1/namespaces/team/pods/a/proxy/x", "team", false, "a pod through the server's proxy"},
		{"/api/v1/namespaces/team/services/a/proxy", "", false, "a service through the server's proxy"},
		{"/api/v1/nodes/a/proxy/run", "", false, "a node through the server's proxy"},
		{"/api/v1/proxy/namespaces/team/pods/a", "", false, "a pod through the server's older proxy"},
		{"/api/v1/namespaces/team/pods/a/exec?command=id", "team", false, "a command in a container"},
		{"/api/v1/namespaces/team/pods/a/portforward", "", false, "a port of a pod"},
		{"/api/v1/namespaces/team/pods/a/log", "team", false, "what a container writes"},
		{"/api/v1/namespaces/team/pods/log", "team", true, "a pod that is called log"},
		{"/api/v1/namespaces/team/pods/a/status", "team", true, "a subresource that is an object"},
		{"/api/v1/pods?watch=true", "", false, "a watch"},
		{"/api/v1/watch/pods", "", false, "a watch of the older form"},
		{"/api/v1/pods?labelSelector=watch", "", true, "a selector that names a watch"},
		{"api/v1/nodes", "", false, "a relative path"},
		{"https://elsewhere/api/v1/nodes", "", false, "an address"},
		{"/api/v1/nodes#x", "", false, "a fragment"},
		{"/api/v1/no des", "", false, "a space"},
		{"/api/v1/nodes\n", "", false, "a line break"},
		{"/api/v1/nodes?a=%zz", "", false, "a query that cannot be read"},
		{"/api/v1/nodes?" + strings.Repeat("a", 9000), "", false, "too long"},
		{"", "", false, "nothing"},
	} {
		if err := rulecontext.CheckPath(c.path, c.namespace); (err == nil) != c.good {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	f.Add("/api/v1/namespaces/team/secrets", "team")
	f.Add("/api/v1/namespaces/team/../x", "team")
	f.Fuzz(func(t *testing.T, path, namespace string) {
		if rulecontext.CheckPath(path, namespace) != nil || namespace == "" {
			return
		}
		at, _, _ := strings.Cut(path, "?")
		if !strings.Contains(at+"/", "/namespaces/"+namespace+"/") || strings.Contains(at, "..") && strings.Contains(at, "/../") || strings.Contains(at, "%") {
			t.Errorf("%q is held to be in namespace %q", path, namespace)
		}
	})
}

func TestReading(t *testing.T) {
	bare := &policy.Subject{Shape: policy.Shape{Bare: true}, Kind: "Pod"}
	for _, c := range []struct{ text, want string }{
		{"{{ request.operation }}", ""},
		{"{{ request.object.metadata.labels.a }}", "request.object.metadata.labels"},
		{"{{ request.namespace }}", "the object's namespace"},
		{"{{ images }}", "images"},
		{"{{ a b }}", "the target of the expression"},
		{"a request.name }}", ""},
		{"{{ `{\"a\": {{ request.operation }}}`.a }}", ""},
		{"{{ {a: {b: request.operation}} }}", ""},
		{"{{ {a: {b: request.name}} }}", "request.name"},
		{"{{ '}' || request.name }}", "request.name"},
		{"{{ '}' || request.operation }}", ""},
		{"{{ request.object.namespace }}", "request.object.namespace"},
	} {
		var r rulecontext.Reading
		r.Value(c.text)
		if err := r.Of(bare); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

func Example() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		fmt.Println(err)
		return
	}
	entries, err := rulecontext.Compile(rulecontext.Options{Engine: engine}, []rulecontext.Document{}, "spec.rules[0].context")
	if err != nil {
		fmt.Println(err)
		return
	}
	data := entries.Context(context.Background(), rulecontext.Source{Subject: &policy.Subject{Kind: "Pod", Name: "web", Namespace: "prod"}})
	message, err := variable.Compile(engine, "{{ request.kind.kind }} {{ request.name }} in {{ request.namespace }}")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(message.Execute(data))
	// Output: Pod web in prod <nil>
}
