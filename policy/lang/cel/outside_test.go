package cel_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// recorder answers with the request that it got, and counts.
type recorder struct {
	asked []string
	err   error
}

func (r *recorder) record(kind string, question any) (map[string]any, error) {
	text, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	r.asked = append(r.asked, kind+" "+string(text))
	return map[string]any{"is": kind}, r.err
}

func (r *recorder) Get(_ context.Context, of cel.ResourceRef) (map[string]any, error) {
	return r.record("get", of)
}

func (r *recorder) List(_ context.Context, of cel.ResourceRef, labels map[string]string) (map[string]any, error) {
	return r.record("list", []any{of, labels})
}

func (r *recorder) Post(_ context.Context, of cel.ResourceRef, object map[string]any) (map[string]any, error) {
	return r.record("post", []any{of, object})
}

func (r *recorder) Kind(_ context.Context, apiVersion, kind string) (group, version, resource string, err error) {
	group, version, _ = strings.Cut(apiVersion, "/")
	return group, version, strings.ToLower(kind) + "s", r.err
}

func (r *recorder) Do(_ context.Context, request cel.HTTPRequest) (any, error) {
	return r.record("http", request)
}

func (r *recorder) Metadata(_ context.Context, reference string) (map[string]any, error) {
	return r.record("image", reference)
}

type entries struct{ *recorder }

func (e entries) Get(_ context.Context, name, projection string) (any, error) {
	return e.record("entry", []string{name, projection})
}

func outsideOf(r *recorder) cel.Outside {
	return cel.Outside{Resources: r, HTTP: r, GlobalContext: entries{r}, Images: r}
}

func TestOutside(t *testing.T) {
	tests := []struct {
		reason, expression string
		namespaced         bool
		asked              string
	}{
		{reason: "an object", expression: "resource.Get('apps/v1', 'deployments', 'ns', 'web').is == 'get'",
			asked: `get {"Group":"apps","Version":"v1","Resource":"deployments","Namespace":"ns","Name":"web"}`},
		{reason: "in the other spelling, of the core group", expression: "resource.get('v1', 'pods', 'ns', 'web').is == 'get'",
			asked: `get {"Group":"","Version":"v1","Resource":"pods","Namespace":"ns","Name":"web"}`},
		{reason: "by a kind", expression: "resource.Get(resource.ToGVR('apps/v1', 'Deployment'), 'ns', 'web').is == 'get'",
			asked: `get {"Group":"apps","Version":"v1","Resource":"deployments","Namespace":"ns","Name":"web"}`},
		{reason: "a subresource", expression: "resource.Get('v1', 'pods', 'ns', 'web', ['log']).is == 'get'",
			asked: `get {"Group":"","Version":"v1","Resource":"pods/log","Namespace":"ns","Name":"web"}`},
		{reason: "objects", expression: "resource.List('v1', 'pods', 'ns').is == 'list'",
			asked: `list [{"Group":"","Version":"v1","Resource":"pods","Namespace":"ns","Name":""},null]`},
		{reason: "objects by labels", expression: "resource.list(resource.toGVR('x/v1', 'Pod'), '', {'app': 'web'}).is == 'list'",
			asked: `list [{"Group":"x","Version":"v1","Resource":"pods","Namespace":"","Name":""},{"app":"web"}]`},
		{reason: "a review", expression: "resource.Post('authorization.k8s.io/v1', 'subjectaccessreviews', {'spec': {'user': dyn('a'), 'n': dyn(1)}}).is == 'post'",
			asked: `post [{"Group":"authorization.k8s.io","Version":"v1","Resource":"subjectaccessreviews","Namespace":"","Name":""},{"spec":{"n":1,"user":"a"}}]`},
		{reason: "a review in a namespace", expression: "resource.post('v1', 'reviews', 'ns', {'a': [dyn(true), dyn(null)]}).is == 'post'",
			asked: `post [{"Group":"","Version":"v1","Resource":"reviews","Namespace":"ns","Name":""},{"a":[true,null]}]`},
		{reason: "in the policy's own namespace", namespaced: true, expression: "resource.Get('v1', 'pods', 'web').is == 'get' && resource.List('v1', 'pods').is == 'list'",
			asked: `get {"Group":"","Version":"v1","Resource":"pods","Namespace":"own","Name":"web"}|list [{"Group":"","Version":"v1","Resource":"pods","Namespace":"own","Name":""},null]`},
		{reason: "by labels in the policy's own namespace", namespaced: true, expression: "resource.List('v1', 'pods', {'a': 'b'}).is == 'list' && resource.Post('v1', 'x', {}).is == 'post'",
			asked: `list [{"Group":"","Version":"v1","Resource":"pods","Namespace":"own","Name":""},{"a":"b"}]|post [{"Group":"","Version":"v1","Resource":"x","Namespace":"own","Name":""},{}]`},
		{reason: "a call", expression: "http.Get('https://a.example').is == 'http'",
			asked: `http {"Method":"GET","URL":"https://a.example","Headers":null,"Body":null,"CABundle":""}`},
		{reason: "a call with headers and a bundle", expression: "http.Client('PEM').Get('https://a.example', {'X': 'y'}).is == 'http'",
			asked: `http {"Method":"GET","URL":"https://a.example","Headers":{"X":"y"},"Body":null,"CABundle":"PEM"}`},
		{reason: "a call with a body", expression: "http.post('https://a.example', {'a': [1]}).is == 'http' && http.Put('u', 'b', {'X': 'y'}).is == 'http'",
			asked: `http {"Method":"POST","URL":"https://a.example","Headers":null,"Body":{"a":[1]},"CABundle":""}|http {"Method":"PUT","URL":"u","Headers":{"X":"y"},"Body":"b","CABundle":""}`},
		{reason: "an entry", expression: "globalContext.Get('a').is == 'entry' && globalContext.get('a', 'b').is == 'entry'",
			asked: `entry ["a",""]|entry ["a","b"]`},
		{reason: "an image's data", expression: "image.GetMetadata('ghcr.io/a').is == 'image' && image('ghcr.io/a').registry() == 'ghcr.io'",
			asked: `image "ghcr.io/a"`},
		{reason: "the same question is asked once", expression: "image.GetMetadata('a').is == 'image' && image.getMetadata('a').is == 'image'",
			asked: `image "a"`},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			o := options()
			o.Namespaced = test.namespaced
			env, err := cel.NewEnv(o)
			if err != nil {
				t.Fatal(err)
			}
			s, r := scopeOf(t, env), &recorder{}
			in := inputs()
			in.Outside, in.Namespace = outsideOf(r), "own"
			p := compile(t, s, test.expression)
			if held, err := p.Bool(t.Context(), s.NewActivation(in)); !held || err != nil {
				t.Fatal(held, err)
			}
			if got := strings.Join(r.asked, "|"); got != test.asked {
				t.Errorf("asked %s\nwant  %s", got, test.asked)
			}

			broken := errors.New("connection refused")
			in.Outside = outsideOf(&recorder{err: broken})
			if _, err := p.Bool(t.Context(), s.NewActivation(in)); test.asked != "" && !errors.Is(err, broken) {
				t.Errorf("an error became %v", err)
			}
			in.Outside = cel.Outside{}
			_, err = p.Bool(t.Context(), s.NewActivation(in))
			if _, ok := errors.AsType[*cel.UnknownError](err); !ok {
				t.Errorf("without a service, the error is %v", err)
			}
		})
	}
}

// TestNonJSONIsNotSent: of what an expression made, nothing is sent where JSON has no
// word for a part of it.
func TestNonJSONIsNotSent(t *testing.T) {
	s := newScope(t)
	for _, c := range []struct {
		expression string
		asked      int
	}{
		{"resource.Post('v1', 'x', {'a': dyn(1)}).is == 'post'", 1},
		{"resource.Post('v1', 'x', {'a': dyn(type(1))}).is == 'post'", 0},
		{"resource.Post('v1', 'x', {'a': dyn(double('NaN'))}).is == 'post'", 0},
		{"http.Post('u', {'a': 1}).is == 'http'", 1},
		{"http.Post('u', type(1)).is == 'http'", 0},
		{"http.Put('u', double('NaN')).is == 'http'", 0},
	} {
		r, in := &recorder{}, inputs()
		in.Outside = outsideOf(r)
		held, err := compile(t, s, c.expression).Bool(t.Context(), s.NewActivation(in))
		if len(r.asked) != c.asked || held != (c.asked > 0) || (err == nil) != held {
			t.Errorf("%s: asked %q: %t %v", c.expression, r.asked, held, err)
		}
	}
}

// TestTextsOfQuestions: the library checks one entry of a map or a list alone. Another one that is
// no text is an error, and no request has an empty text in place of it.
func TestTextsOfQuestions(t *testing.T) {
	s := newScope(t)
	for _, c := range []struct {
		expression string
		asked      int
	}{
		{"resource.List('v1', 'pods', 'ns', {'app': object.app, 'owner': object.owner}).is == 'list'", 1},
		{"resource.List('v1', 'pods', 'ns', object.labels).is == 'list'", 1},
		{"resource.List('v1', 'pods', 'ns', {}).is == 'list'", 1},
		{"resource.List('v1', 'pods', 'ns', {'app': object.app, 'owner': object.number}).is == 'list'", 0},
		{"resource.List('v1', 'pods', 'ns', {'app': object.app, 'owner': object.large}).is == 'list'", 0},
		{"resource.List('v1', 'pods', 'ns', {'app': dyn('a'), 'owner': dyn(null)}).is == 'list'", 0},
		{"resource.List('v1', 'pods', 'ns', {dyn('app'): 'a', dyn(1): 'b'}).is == 'list'", 0},
		{"resource.List('v1', 'pods', 'ns', object.mixed).is == 'list'", 0},
		{"resource.List(resource.ToGVR('v1', 'Pod'), 'ns', object.mixed).is == 'list'", 0},
		{"http.Get('u', {'a': object.app, 'b': object.owner}).is == 'http'", 1},
		{"http.Get('u', {'a': object.app, 'b': object.number}).is == 'http'", 0},
		{"http.Post('u', 'body', {'a': dyn('a'), 'b': dyn(null)}).is == 'http'", 0},
		{"http.Put('u', 'body', object.mixed).is == 'http'", 0},
		{"resource.Get('v1', 'pods', 'ns', 'web', [object.app, object.owner]).is == 'get'", 1},
		{"resource.Get('v1', 'pods', 'ns', 'web', [object.app, object.number]).is == 'get'", 0},
		{"resource.Get('v1', 'pods', 'ns', 'web', [dyn('a'), dyn(null)]).is == 'get'", 0},
		{"resource.Get('v1', 'pods', 'ns', object.number).is == 'get'", 0},
		{"resource.Get('v1', object.number, 'ns', 'web').is == 'get'", 0},
		{"http.Get(object.number).is == 'http'", 0},
		{"globalContext.Get('a', object.number).is == 'entry'", 0},
	} {
		// Maps are read in any order.
		for range 20 {
			r, in := &recorder{}, inputs()
			in.Outside = outsideOf(r)
			in.Variables = map[string]any{"object": map[string]any{
				"app": "a", "owner": "b", "number": 5.0, "large": float64(1 << 60), "labels": map[string]any{"a": "b", "c": "d"},
				"mixed": map[string]any{"a": "b", "c": true, "d": "e"},
			}}
			held, err := compile(t, s, c.expression).Bool(t.Context(), s.NewActivation(in))
			if len(r.asked) != c.asked || held != (c.asked > 0) || (err == nil) != held {
				t.Fatalf("%s: asked %q: %t %v", c.expression, r.asked, held, err)
			}
		}
	}
}

// TestKindsOfResources: what a kind's resource is called is compared and is of a type.
func TestKindsOfResources(t *testing.T) {
	s := newScope(t)
	for _, expression := range []string{
		"resource.ToGVR('v1', 'Pod') == resource.toGVR('v1', 'Pod') && resource.ToGVR('v1', 'Pod') != resource.ToGVR('v1', 'Node')",
		"dyn(resource.ToGVR('v1', 'Pod')) != 'pods' && type(resource.ToGVR('v1', 'Pod')) == type(resource.ToGVR('v1', 'Node'))",
	} {
		in := inputs()
		in.Outside = outsideOf(&recorder{})
		held, err := compile(t, s, expression).Bool(t.Context(), s.NewActivation(in))
		if !held || err != nil {
			t.Errorf("%s: %t %v", expression, held, err)
		}
	}
}

func TestOutsideIsNotDeclared(t *testing.T) {
	env, err := cel.NewEnv(cel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, expression := range []string{"resource.Get('v1', 'pods', 'a', 'b')", "http.Get('a')", "globalContext.Get('a')", "image.GetMetadata('a')"} {
		if _, err := scopeOf(t, env).Compile("spec.expression", expression); err == nil {
			t.Errorf("%s compiled", expression)
		}
	}
}

func TestOutsideIsBounded(t *testing.T) {
	s, r := newScope(t), &recorder{}
	in := inputs()
	in.Outside = outsideOf(r)
	_, err := compile(t, s, "lists.range(1000).all(i, http.Get('https://a.example/' + string(i)).is == 'http')").Bool(t.Context(), s.NewActivation(in))
	if _, ok := errors.AsType[*cel.BudgetError](err); !ok || len(r.asked) > 100 {
		t.Errorf("%d questions, %v", len(r.asked), err)
	}
}
