package globalcontext_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

func compiler(t testing.TB) *globalcontext.Compiler {
	t.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	c, err := globalcontext.NewCompiler(engine)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const head = "apiVersion: kyverno.io/v2beta1\nkind: GlobalContextEntry\nmetadata: {name: things}\nspec:\n  "

func entry(t testing.TB, spec string) *globalcontext.Entry {
	t.Helper()
	e, err := compiler(t).Compile([]byte(head + spec))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestCompile(t *testing.T) {
	deployments := entry(t, "kubernetesResource: {group: apps, version: v1, resource: deployments, namespace: shop}")
	if want := (globalcontext.Resource{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop"}); deployments.Name != "things" || deployments.Call != nil || *deployments.Resource != want {
		t.Errorf("%+v", deployments)
	}
	if core := entry(t, "kubernetesResource: {version: v1, resource: pods}"); core.Resource.Group != "" || core.Hash == deployments.Hash {
		t.Errorf("%+v", core)
	}
	path := entry(t, "apiCall: {urlPath: '/api/v1/pods?labelSelector=a%3Db'}").Call
	if path.Method != http.MethodGet || path.Path != "/api/v1/pods?labelSelector=a%3Db" || path.Interval != 10*time.Minute || path.Retries != 3 || path.Body != nil {
		t.Errorf("%+v", path)
	}
	service := entry(t, "apiCall: {method: POST, data: [{key: b, value: {c: 1}}, {key: a, value: x}], refreshInterval: 30s, retryLimit: 1, service: {url: 'https://list.example', headers: [{key: X-A, value: b}]}}").Call
	if service.URL != "https://list.example" || string(service.Body) != `{"a":"x","b":{"c":1}}` || service.Interval != 30*time.Second || service.Retries != 1 || len(service.Headers) != 1 || service.Headers[0] != (globalcontext.Header{Name: "X-A", Value: "b"}) {
		t.Errorf("%+v %s", service, service.Body)
	}
	for _, version := range []string{"v2", "v2beta1", "v2alpha1"} {
		if !globalcontext.Recognises("kyverno.io/"+version, "GlobalContextEntry") {
			t.Errorf("%s is not recognised", version)
		}
	}
	if globalcontext.Recognises("kyverno.io/v1", "GlobalContextEntry") || globalcontext.Recognises("kyverno.io/v2", "PolicyException") {
		t.Error("something else is recognised")
	}
}

func TestCompileErrors(t *testing.T) {
	const call = "apiCall: {service: {url: 'https://a.example'}"
	for _, row := range []struct{ name, spec, path, says string }{
		{"nothing", "projections: []", "spec", "either"},
		{"both", call + "}\n  kubernetesResource: {version: v1, resource: pods}", "spec", "either"},
		{"an unknown field", "kubernetesResource: {version: v1, resource: pods, name: a}", "spec.kubernetesResource.name", "unknown"},
		{"no version", "kubernetesResource: {group: apps, resource: pods}", "spec.kubernetesResource.version", "v1"},
		{"a kind for a resource", "kubernetesResource: {version: v1, resource: Pod}", "spec.kubernetesResource.resource", "lower case"},
		{"a resource with a path", "kubernetesResource: {version: v1, resource: pods/../secrets}", "spec.kubernetesResource.resource", "lower case"},
		{"no group", "kubernetesResource: {version: v1beta1, resource: things}", "spec.kubernetesResource.group", "core group"},
		{"a group that is none", "kubernetesResource: {group: a_b, version: v1, resource: things}", "spec.kubernetesResource.group", "a_b"},
		{"a namespace that is none", "kubernetesResource: {version: v1, resource: pods, namespace: a/b}", "spec.kubernetesResource.namespace", "a/b"},
		{"Secrets", "kubernetesResource: {version: v1, resource: secrets}", "spec.kubernetesResource.resource", "Secrets"},
		{"Secrets by a path", "apiCall: {urlPath: /api/v1/namespaces/a/secrets/b}", "spec.apiCall.urlPath", "Secrets"},
		{"Secrets by an encoded path", "apiCall: {urlPath: /api/v1/namespaces/a/%73ecrets}", "spec.apiCall.urlPath", "plain path"},
		{"dots in a path", "apiCall: {urlPath: /api/v1/namespaces/../secrets}", "spec.apiCall.urlPath", "plain path"},
		{"encoded dots in a path", "apiCall: {urlPath: /api/v1/%2e%2e/nodes}", "spec.apiCall.urlPath", "plain path"},
		{"an encoded slash", "apiCall: {urlPath: /api/v1/namespaces/a%2fb}", "spec.apiCall.urlPath", "plain path"},
		{"two slashes", "apiCall: {urlPath: /api//v1}", "spec.apiCall.urlPath", "plain path"},
		{"another server", "apiCall: {urlPath: 'https://a.example/api'}", "spec.apiCall.urlPath", "plain path"},
		{"another endpoint", "apiCall: {urlPath: /metrics}", "spec.apiCall.urlPath", "plain path"},
		{"an endpoint that begins alike", "apiCall: {urlPath: /apiextension/x}", "spec.apiCall.urlPath", "below /api"},
		{"what runs in the cluster", "apiCall: {urlPath: /api/v1/namespaces/a/services/b/proxy/c}", "spec.apiCall.urlPath", "service"},
		{"a log", "apiCall: {urlPath: /api/v1/namespaces/a/pods/b/log}", "spec.apiCall.urlPath", "service"},
		{"a watch", "apiCall: {urlPath: '/api/v1/pods?watch=1'}", "spec.apiCall.urlPath", "kubernetesResource"},
		{"something is made", "apiCall: {method: POST, urlPath: /api/v1/namespaces}", "spec.apiCall.urlPath", "change nothing"},
		{"something of another group is made", "apiCall: {method: POST, urlPath: /apis/example.com/v1/reviews}", "spec.apiCall.urlPath", "change nothing"},
		{"something that is no review is made", "apiCall: {method: POST, urlPath: /apis/authorization.k8s.io/v1/things}", "spec.apiCall.urlPath", "change nothing"},
		{"a review of the core group", "apiCall: {method: POST, urlPath: /api/authorization.k8s.io/v1/reviews}", "spec.apiCall.urlPath", "change nothing"},
		{"all groups are posted to", "apiCall: {method: POST, urlPath: /apis}", "spec.apiCall.urlPath", "change nothing"},
		{"an encoded space", "apiCall: {urlPath: /api/v1/a%20b}", "spec.apiCall.urlPath", "plain path"},
		{"an encoding that is none", "apiCall: {urlPath: /api/v1/%zz}", "spec.apiCall.urlPath", "plain path"},
		{"a fragment", "apiCall: {urlPath: '/api/v1/pods#a'}", "spec.apiCall.urlPath", "plain path"},
		{"neither path nor service", "apiCall: {method: GET}", "spec.apiCall", "either"},
		{"a path and a service", "apiCall: {urlPath: /api/v1/pods, service: {url: 'https://a.example'}}", "spec.apiCall", "either"},
		{"a service that is no URL", "apiCall: {service: {url: a.example}}", "spec.apiCall.service.url", "https://"},
		{"a scheme that is none", "apiCall: {service: {url: 'file:///etc/passwd'}}", "spec.apiCall.service.url", "https://"},
		{"another method", call + ", method: DELETE}", "spec.apiCall.method", "GET or POST"},
		{"data without POST", call + ", data: [{key: a, value: b}]}", "spec.apiCall.data", "POST"},
		{"data twice", call + ", method: POST, data: [{key: a, value: b}, {key: a, value: c}]}", "spec.apiCall.data[1].key", "twice"},
		{"data without a name", call + ", method: POST, data: [{key: '', value: b}]}", "spec.apiCall.data[0].key", "empty"},
		{"a long time between calls", call + ", refreshInterval: 168h0m1s}", "spec.apiCall.refreshInterval", "168h"},
		{"one call more than may be", call + ", retryLimit: 11}", "spec.apiCall.retryLimit", "1 to 10"},
		{"too many headers", "apiCall: {service: {url: 'https://a.example', headers: [" + strings.Repeat("{key: A, value: b}, ", 51) + "]}}", "spec.apiCall.service.headers", "50"},
		{"too many projections", call + "}\n  projections: [" + projections(101) + "]", "spec.projections", "100"},
		{"data without value", call + ", method: POST, data: [{key: a}]}", "spec.apiCall.data[0].value", "missing"},
		{"no time between calls", call + ", refreshInterval: 0s}", "spec.apiCall.refreshInterval", "1s"},
		{"a time without a unit", call + ", refreshInterval: '10'}", "spec.apiCall.refreshInterval", "10m"},
		{"no call", call + ", retryLimit: 0}", "spec.apiCall.retryLimit", "1 to 10"},
		{"calls without end", call + ", retryLimit: 1000}", "spec.apiCall.retryLimit", "1 to 10"},
		{"a bundle that is none", "apiCall: {service: {url: 'https://a.example', caBundle: abc}}", "spec.apiCall.service.caBundle", "PEM"},
		{"a bundle of somewhere", "apiCall: {service: {url: 'https://a.example', caBundleFrom: {secretKeyRef: {name: a, key: b}}}}", "spec.apiCall.service.caBundleFrom", "caBundle"},
		{"a header of somewhere", "apiCall: {service: {url: 'https://a.example', headers: [{key: A, valueFrom: {}}]}}", "spec.apiCall.service.headers[0].valueFrom", "value"},
		{"a header that is none", "apiCall: {service: {url: 'https://a.example', headers: [{key: 'A b', value: c}]}}", "spec.apiCall.service.headers[0].key", "A b"},
		{"two headers in one", "apiCall: {service: {url: 'https://a.example', headers: [{key: A, value: \"b\\nC: d\"}]}}", "spec.apiCall.service.headers[0].value", "line break"},
		{"a projection without a name", call + "}\n  projections: [{jmesPath: a}]", "spec.projections[0].name", "empty"},
		{"a projection without a path", call + "}\n  projections: [{name: a}]", "spec.projections[0].jmesPath", "empty"},
		{"a projection that is no expression", call + "}\n  projections: [{name: a, jmesPath: 'a['}]", "spec.projections[0].jmesPath", "a["},
		{"a projection named as the entry", call + "}\n  projections: [{name: things, jmesPath: a}]", "spec.projections[0].name", "its own"},
		{"two projections of a name", call + "}\n  projections: [{name: a, jmesPath: a}, {name: a, jmesPath: b}]", "spec.projections[1].name", "twice"},
		{"a projection with a dot", call + "}\n  projections: [{name: a.b, jmesPath: a}]", "spec.projections[0].name", "dot"},
	} {
		_, err := compiler(t).Compile([]byte(head + row.spec))
		wrong, ok := errors.AsType[*globalcontext.FieldError](err)
		if !ok || wrong.Path != row.path || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v; want %s about %q", row.name, err, row.path, row.says)
		}
	}
	if _, err := compiler(t).Compile([]byte("apiVersion: kyverno.io/v1\nkind: GlobalContextEntry\nmetadata: {name: a}\nspec: {kubernetesResource: {version: v1, resource: pods}}")); err == nil {
		t.Error("a version that is none is compiled")
	}
	if _, err := compiler(t).Compile([]byte(strings.Replace(head, "name: things", "", 1) + "kubernetesResource: {version: v1, resource: pods}")); err == nil {
		t.Error("an entry without a name is compiled")
	}
	if _, err := globalcontext.NewCompiler(nil); err == nil {
		t.Error("a compiler without an engine is made")
	}
}

func projections(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("{name: p%d, jmesPath: a}", i))
	}
	return strings.Join(list, ", ")
}

// TestCompileAccepts: documents that are close to refused ones.
func TestCompileAccepts(t *testing.T) {
	const call = "apiCall: {service: {url: 'https://a.example'}"
	for name, spec := range map[string]string{
		"a version of a group":               "kubernetesResource: {group: batch, version: v1beta1, resource: cronjobs}",
		"Secrets of another group":           "kubernetesResource: {group: example.com, version: v1, resource: secrets}",
		"Secrets of another group by a path": "apiCall: {urlPath: /apis/example.com/v1/secrets}",
		"a path of a group":                  "apiCall: {urlPath: /apis/apps/v1/deployments}",
		"dots in a name":                     "apiCall: {urlPath: /api/v1/namespaces/a...b}",
		"a review":                           "apiCall: {method: POST, urlPath: /apis/authorization.k8s.io/v1/subjectaccessreviews}",
		"the shortest time":                  call + ", refreshInterval: 1s}",
		"the longest time":                   call + ", refreshInterval: 168h}",
		"as many calls as may be":            call + ", retryLimit: 10}",
		"as many headers as may be":          "apiCall: {service: {url: 'https://a.example', headers: [" + strings.Repeat("{key: A, value: b}, ", 50) + "]}}",
		"as many projections as may be":      call + "}\n  projections: [" + projections(100) + "]",
	} {
		if _, err := compiler(t).Compile([]byte(head + spec)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzCompile: whatever is compiled has one source, and a path of the API server
// stays below /api.
func FuzzCompile(f *testing.F) {
	f.Add("apiCall: {urlPath: /api/v1/pods}")
	f.Add("kubernetesResource: {version: v1, resource: pods}\n  projections: [{name: a, jmesPath: 'b'}]")
	f.Add("apiCall: {urlPath: /api/v1/namespaces/a...b}") // two dots that lead nowhere
	f.Add("apiCall: {urlPath: /api/v1/namespaces/..}")
	c := compiler(f)
	f.Fuzz(func(t *testing.T, spec string) {
		e, err := c.Compile([]byte(head + spec))
		if err != nil {
			return
		}
		if (e.Resource == nil) == (e.Call == nil) || e.Name == "" || e.Hash == "" {
			t.Errorf("%+v", e)
		}
		if e.Call == nil || e.Call.URL != "" {
			return
		}
		plain, _, _ := strings.Cut(e.Call.Path, "?")
		if !strings.HasPrefix(plain, "/api") || slices.Contains(strings.Split(plain, "/"), "..") {
			t.Errorf("%q", e.Call.Path)
		}
	})
}
