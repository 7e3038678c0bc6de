package admission_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/quaymaster/quaymaster/webhook/admission"
)

func TestRequestsThatAreNoReview(t *testing.T) {
	good := string(review(t, "CREATE", pod("nginx"), nil, nil))
	small := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":`
	for name, row := range map[string]struct {
		reason string
		method string
		kind   string
		query  string
		body   string
		err    string // empty: a review is the answer
	}{
		"good":                {reason: "as an API server sends it", body: good},
		"charset":             {reason: "parameters of the type mean nothing", kind: "application/json; charset=utf-8", body: good},
		"timeout":             {reason: "as an API server sends it", query: "timeout=10s", body: good},
		"long timeout":        {reason: "the longest there is", query: "timeout=30s", body: good},
		"other parameter":     {reason: "means nothing to us", query: "x=y", body: good},
		"GET":                 {reason: "not how a review comes", method: http.MethodGet, body: good, err: "must be POST"},
		"PUT":                 {reason: "not how a review comes", method: http.MethodPut, body: good, err: "must be POST"},
		"YAML":                {reason: "not JSON", kind: "application/yaml", body: good, err: "must be of type application/json"},
		"no type":             {reason: "a missing type", kind: " ", body: good, err: "must be of type application/json"},
		"empty":               {reason: "no review", body: "", err: "unexpected end"},
		"a list":              {reason: "no object", body: "[]", err: "read the AdmissionReview: the body must be an object"},
		"no JSON":             {reason: "no review", body: "hello", err: "read the AdmissionReview"},
		"list":                {reason: "no review", body: "[]", err: "must be an object"},
		"two":                 {reason: "which one?", body: good + good, err: "unexpected data"},
		"cut":                 {reason: "half a review", body: good[:len(good)/2], err: "read the AdmissionReview"},
		"not UTF-8":           {reason: "parsers read it differently", body: strings.Replace(good, "jane", "jan\xff", 1), err: "UTF-8"},
		"uid twice":           {reason: "parsers read it differently", body: strings.Replace(good, `"uid":"u-1"`, `"uid":"u-2","uid":"u-1"`, 1), err: "request.uid is a duplicate"},
		"object twice":        {reason: "parsers read it differently", body: small + `{"uid":"u-1","object":null,"object":{}}}`, err: "request.object is a duplicate"},
		"escaped uid twice":   {reason: "the same name otherwise written", body: strings.Replace(good, `"uid":"u-1"`, `"\u0075id":"u-2","uid":"u-1"`, 1), err: "request.uid is a duplicate"},
		"uid a number":        {reason: "no UID", body: small + `{"uid":1}}`, err: "request.uid: must be text"},
		"object a text":       {reason: "no object", body: small + `{"uid":"u-1","object":"x"}}`, err: "request.object: must be an object"},
		"kind a text":         {reason: "no kind", body: small + `{"uid":"u-1","kind":"Pod"}}`, err: "request.kind: must be an object"},
		"groups a text":       {reason: "no groups", body: small + `{"uid":"u-1","userInfo":{"groups":"a"}}}`, err: "must be a list of texts"},
		"dryRun a text":       {reason: "neither", body: small + `{"uid":"u-1","dryRun":"yes"}}`, err: "request.dryRun: must be true or false"},
		"no uid":              {reason: "an answer must carry it", body: small + `{"operation":"CREATE"}}`, err: "no uid"},
		"no request":          {reason: "a response perhaps", body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, err: "no request"},
		"null request":        {reason: "the same", body: small + `null}`, err: "no request"},
		"v1beta1 without uid": {reason: "nothing to answer to", body: `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{}}`, err: "must be AdmissionReview of admission.k8s.io/v1"},
		"too large":           {reason: "beyond what an API server sends", body: strings.Repeat(" ", admission.MaxBody) + good, err: "MaxBody"},
		"nonsense timeout":    {reason: "no duration", query: "timeout=soon", body: good, err: "timeout: must be"},
		"no time":             {reason: "no answer could be in time", query: "timeout=0s", body: good, err: "timeout: must be"},
		"negative":            {reason: "no answer could be in time", query: "timeout=-1s", body: good, err: "timeout: must be"},
		"for ever":            {reason: "no webhook may have that long", query: "timeout=1h", body: good, err: "timeout: must be"},
		"timeout twice":       {reason: "which one?", query: "timeout=1s&timeout=2s", body: good, err: "duplicate timeout"},
		"broken query":        {reason: "cannot be read", query: "timeout=%zz", body: good, err: "the query is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, which := range []admission.Endpoint{admission.Mutate, admission.Validate} {
				method, kind := row.method, row.kind
				if method == "" {
					method = http.MethodPost
				}
				if kind == "" {
					kind = "application/json"
				}
				r := httptest.NewRequest(method, "/?"+row.query, strings.NewReader(row.body))
				r.Header.Set("Content-Type", kind)
				w := httptest.NewRecorder()
				seen := &recorder{}
				endpoint(t, which, &pinner{}, withRecorder(seen)).ServeHTTP(w, r)
				if row.err == "" {
					if a := read(t, w); !a.Response.Allowed || a.Response.UID != "u-1" {
						t.Errorf("%s: %+v", row.reason, a)
					}
					continue
				}
				message, code := w.Body.String(), http.StatusBadRequest
				if row.method+row.kind+row.query == "" && strings.Contains(row.body[:min(len(row.body), 4096)], `"uid":"u`) {
					// An HTTP error would be the failure setting's to judge.
					a := read(t, w)
					if a.Response.Allowed || !strings.HasPrefix(a.Response.UID, "u-") {
						t.Errorf("%s: %+v", row.reason, a)
					}
					message, code = a.Response.Status.Message, http.StatusOK
				}
				if w.Code != code || !strings.Contains(message, row.err) {
					t.Errorf("%s: HTTP %d %q does not say %q", row.reason, w.Code, message, row.err)
				}
				if got := seen.Last(t); got.Cause != admission.Malformed || got.Allowed || got.Err == nil {
					t.Errorf("%s: recorded %+v", row.reason, got)
				}
			}
		})
	}
}

func TestBodyOfUnknownLength(t *testing.T) {
	good := review(t, "CREATE", pod("nginx"), nil, nil)
	for name, row := range map[string]struct {
		body []byte
		code int
	}{
		"fits":      {good, http.StatusOK},
		"too large": {append(bytes.Repeat([]byte(" "), admission.MaxBody), good...), http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", iotest.HalfReader(bytes.NewReader(row.body)))
			r.ContentLength = -1
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			endpoint(t, admission.Validate, &pinner{}).ServeHTTP(w, r)
			if w.Code != row.code {
				t.Errorf("HTTP %d: %s", w.Code, w.Body)
			}
		})
	}
}

func TestOtherVersionsAreAnsweredWithTheirUID(t *testing.T) {
	body := bytes.Replace(review(t, "CREATE", pod("nginx"), nil, nil), []byte("admission.k8s.io/v1"), []byte("admission.k8s.io/v1beta1"), 1)
	a := send(t, endpoint(t, admission.Validate, &pinner{}), body)
	if a.Response.Allowed || a.Response.UID != "u-1" || a.Response.Status.Code != 400 || !strings.Contains(a.Response.Status.Message, "admissionReviewVersions") {
		t.Errorf("%+v", a)
	}
}

func TestRequestsThatMakeNoSense(t *testing.T) {
	set := func(name string, value any) func(object) { return func(r object) { r[name] = value } }
	for name, row := range map[string]struct {
		reason string
		op     string
		now    object
		old    object
		change func(object)
		err    string // empty: admitted
	}{
		"good":             {"its twin", "CREATE", pod("nginx"), nil, nil, ""},
		"no namespace":     {"an object need not name its own", "CREATE", with(t, pod("nginx"), func(o object) { delete(o["metadata"].(object), "namespace") }), nil, set("namespace", "shop"), ""},
		"generated name":   {"there is no name yet", "CREATE", with(t, pod("nginx"), func(o object) { o["metadata"] = object{"generateName": "web-", "namespace": "shop"} }), nil, set("name", nil), ""},
		"asked as another": {"matchPolicy Equivalent: the object is of request.kind", "CREATE", pod("nginx"), nil, set("requestKind", object{"group": "apps", "version": "v1", "kind": "Deployment"}), ""},
		"update":           {"its twin", "UPDATE", pod("nginx:2"), pod("nginx:1"), nil, ""},
		"operation":        {"an unknown operation", "PATCH", pod("nginx"), nil, nil, `operation "PATCH"`},
		"no operation":     {"an empty operation", "", pod("nginx"), nil, nil, "must be CREATE"},
		"no kind":          {"policies are matched by it", "CREATE", pod("nginx"), nil, set("kind", nil), "request.kind"},
		"empty kind":       {"policies are matched by it", "CREATE", pod("nginx"), nil, set("kind", object{}), "no kind or version"},
		"no object":        {"nothing to judge", "CREATE", nil, pod("nginx"), nil, "no object"},
		"no old object":    {"an update has one", "UPDATE", pod("nginx"), nil, nil, "one is missing"},
		"other kind":       {"policies are matched by one, and the other runs", "CREATE", pod("nginx"), nil, set("kind", object{"group": "", "version": "v1", "kind": "ConfigMap"}), `the object has kind "Pod"`},
		"other group":      {"the same", "CREATE", pod("nginx"), nil, set("kind", object{"group": "x.io", "version": "v1", "kind": "Pod"}), `has group ""`},
		"other version":    {"the same", "CREATE", pod("nginx"), nil, set("kind", object{"group": "", "version": "v2", "kind": "Pod"}), `has version "v1"`},
		"other namespace":  {"policies are matched by one, and it runs in the other", "CREATE", pod("nginx"), nil, set("namespace", "bank"), `has namespace "shop"`},
		"other name":       {"it is about one of them", "CREATE", pod("nginx"), nil, set("name", "other"), `has name "web"`},
		"other old kind":   {"it is no former state of this", "UPDATE", pod("nginx"), with(t, pod("nginx:1"), func(o object) { o["kind"] = "Node" }), nil, "the oldObject has kind"},
		"no apiVersion":    {"the object has no version", "CREATE", with(t, pod("nginx"), func(o object) { delete(o, "apiVersion") }), nil, set("kind", object{"group": "", "version": "v1", "kind": "Pod"}), "no apiVersion"},
		"image a number":   {"cannot be read", "CREATE", with(t, pod("nginx"), func(o object) { o["spec"] = object{"containers": "all"} }), nil, nil, "want a list, got text"},
	} {
		t.Run(name, func(t *testing.T) {
			w := post(endpoint(t, admission.Validate, &pinner{}), "/", review(t, row.op, row.now, row.old, row.change))
			if w.Code == http.StatusBadRequest && row.err != "" && strings.Contains(w.Body.String(), row.err) {
				return
			}
			a := read(t, w)
			if a.Response.Allowed != (row.err == "") || a.Response.UID != "u-1" || !strings.Contains(a.Response.Status.Message, row.err) {
				t.Errorf("%s: %+v does not say %q", row.reason, a.Response, row.err)
			}
		})
	}
}

func TestObjectsWithNamesThatStandTwice(t *testing.T) {
	body := review(t, "CREATE", pod("nginx"), nil, nil)
	if a := send(t, endpoint(t, admission.Validate, &pinner{}), body); !a.Response.Allowed {
		t.Fatalf("%+v", a)
	}
	body = bytes.Replace(body, []byte(`"image":"nginx"`), []byte(`"image":"nginx","image":"evil"`), 1)
	a := send(t, endpoint(t, admission.Validate, &pinner{}), body)
	if a.Response.Allowed || a.Response.Status.Code != 400 || !strings.Contains(a.Response.Status.Message, `the name "image" stands twice`) {
		t.Errorf("%+v", a)
	}
}

func TestLargeObjects(t *testing.T) {
	images := make([]string, 500)
	for i := range images {
		images[i] = fmt.Sprintf("registry.example/team/app-%d:1", i)
	}
	many := pod(images...)
	a := send(t, endpoint(t, admission.Mutate, &pinner{}), review(t, "CREATE", many, nil, nil))
	if got := texts(t, patched(t, many, a)); len(got) != 500 || got["c499"] != pinned(images[499]) {
		t.Errorf("%d images, the last %s", len(got), got["c499"])
	}
	big := with(t, pod("nginx"), func(o object) { annotate(o, map[string]string{"big": strings.Repeat("x", 3<<20)}) })
	if a := send(t, endpoint(t, admission.Mutate, &pinner{}), review(t, "CREATE", big, nil, nil)); !a.Response.Allowed {
		t.Errorf("3 MiB: %+v", a.Response.Status)
	}
	for i := range images {
		images[i] = fmt.Sprintf("registry.example/evil/app-%d:1", i)
	}
	a = send(t, endpoint(t, admission.Mutate, &pinner{}), review(t, "CREATE", pod(images...), nil, nil))
	message := a.Response.Status.Message
	if a.Response.Allowed || len(message) > 4096 || !strings.HasPrefix(message, "Pod shop/web: 500 of 500 images denied: registry.example/evil/app-0:1 and 499 more\n") || !strings.Contains(message, "... and ") {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}
