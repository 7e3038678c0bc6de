package externaldata_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/externaldata"
	"github.com/quaymaster/quaymaster/webhook/internal/endpointtest"
)

// TestRealGate is what keys come to, by policies, a registry and signatures that
// are real.
func TestRealGate(t *testing.T) {
	h := endpointtest.NewEnv(t)
	good, bad, elsewhere := testkit.Must(h.Signed("good"))(t), h.Build("shop/bad", "1", "bad"), h.Build("tools/x", "1", "x")
	exact := good.Name + "@" + good.Manifest.Digest
	labels := []string{"kinds: [Pod]", "kinds: [Pod], selector: {matchLabels: {a: b}}"}
	inShop := []string{"kinds: [Pod]", "kinds: [Pod], namespaces: [shop]"}
	for _, c := range []struct {
		endpoint externaldata.Endpoint
		changes  []string
		key      string
		value    string
		says     string
		reason   string
	}{
		{externaldata.Verify, nil, good.Name, exact, "", "signed: its exact name"},
		{externaldata.Verify, nil, bad.Name, "", "denied: no ", "not signed"},
		{externaldata.Verify, nil, "[shop]" + good.Name, exact, "", "in a namespace"},
		{externaldata.Verify, nil, "[shop/builder]" + good.Name, exact, "", "with a service account"},
		{externaldata.Verify, nil, "[shop]" + bad.Name, "", "[unsigned]", "not signed, in a namespace"},
		{externaldata.Verify, nil, elsewhere.Name, elsewhere.Name, "", "no policy matches it"},
		{externaldata.Verify, nil, h.Registry.Host() + "/shop/gone:1", "", "could not be verified", "not there"},
		{externaldata.Verify, nil, "::", "", "[malformed-reference]", "no image"},
		{externaldata.Verify, nil, "[Shop]" + good.Name, "", "[malformed-reference]", "no namespace"},
		{externaldata.Verify, labels, good.Name, "", "the object's labels", "a rule that asks for labels"},
		{externaldata.Verify, labels, elsewhere.Name, elsewhere.Name, "", "the same rule, of other images"},
		{externaldata.Verify, inShop, "[shop]" + bad.Name, "", "[unsigned]", "a rule for the namespace"},
		{externaldata.Verify, inShop, "[test]" + bad.Name, bad.Name, "", "a rule for another namespace"},
		{externaldata.Verify, inShop, bad.Name, "", "the object's namespace", "a rule for an unknown namespace"},
		{externaldata.Mutate, nil, good.Name, exact, "", "signed: the name to write"},
		{externaldata.Mutate, nil, exact, exact, "", "written again: no change"},
		{externaldata.Mutate, nil, bad.Name, "", "[unsigned]", "not signed, and not to be written"},
		{externaldata.Mutate, nil, elsewhere.Name, elsewhere.Name, "", "no policy matches it, and it stays"},
		{externaldata.Mutate, []string{"imageReferences", "mutateDigest: false\n      verifyDigest: false\n      imageReferences"}, good.Name, good.Name, "", "no policy pins, and it stays"},
		{externaldata.Mutate, inShop, "[test]" + bad.Name, "", "only images are accepted", "the writer chose a namespace"},
	} {
		kept := &recorder{}
		handler := endpoint(t, c.endpoint, endpointtest.Gate(t, h, c.changes...), withRecorder(kept), withTimeout(10*time.Second))
		values, errs := send(t, handler, c.key)
		if values[0] != c.value || !strings.Contains(errs[0], c.says) {
			t.Errorf("%s: value %q, error %q", c.reason, values[0], errs[0])
		}
		if told := kept.Last(t); told.Endpoint != c.endpoint || len(told.Items) != 1 || told.Items[0].Key != c.key || told.Items[0].Allowed != (c.value != "") {
			t.Errorf("%s: recorded %+v", c.reason, told)
		}
	}
	values, errs := send(t, endpoint(t, externaldata.Verify, endpointtest.Gate(t, h), withTimeout(10*time.Second)), bad.Name, good.Name, "", bad.Name, good.Name)
	for i, want := range []string{"", exact, "", "", exact} {
		if values[i] != want || (errs[i] == "") != (want != "") {
			t.Errorf("key %d of several: %q, %q", i, values[i], errs[i])
		}
	}
	digests := endpoint(t, externaldata.Verify, endpointtest.Gate(t, h), withDigests, withTimeout(10*time.Second))
	if _, errs := send(t, digests, good.Name); !strings.Contains(errs[0], "[missing-digest]") {
		t.Errorf("a tag, where digests are wanted: %q", errs[0])
	}
}

// TestKeys holds the gate's request for each key. The author of an
// image reference must not choose the pull secrets.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		keys      externaldata.Keys
		key       string
		namespace string
		image     string // empty: the gate is not asked
		reason    string
	}{
		{externaldata.Either, "nginx", "", "nginx", "an image"},
		{externaldata.Either, "[shop]nginx", "shop", "nginx", "in a namespace"},
		{externaldata.Either, "[::1]:5000/app", "", "[::1]:5000/app", "a registry by its address"},
		{externaldata.Either, "[shop][::1]:5000/app", "shop", "[::1]:5000/app", "both"},
		{externaldata.Qualified, "[shop/builder]nginx", "shop", "nginx", "with an account"},
		{externaldata.Qualified, "[shop][other/admin]nginx", "shop", "[other/admin]nginx", "another namespace is part of the image"},
		{externaldata.Qualified, "nginx", "", "", "no namespace"},
		{externaldata.Plain, "nginx", "", "nginx", "an image alone"},
		{externaldata.Plain, "[other]nginx", "", "", "a namespace that the writer chose"},
		{externaldata.Either, "[shop]", "", "", "no image"},
		{externaldata.Either, "[shop]" + strings.Repeat("a", externaldata.MaxKey), "", "", "too long"},
	} {
		var requested []gate.Request
		handler := endpoint(t, externaldata.Verify, decide(func(_ context.Context, request gate.Request) gate.Outcome {
			requested = append(requested, request)
			return gate.Outcome{Result: gate.Allow}
		}), withKeys(c.keys))
		values, errs := send(t, handler, c.key)
		if c.image == "" {
			if len(requested) != 0 || errs[0] == "" {
				t.Errorf("%s: %q, asked %d times", c.reason, errs[0], len(requested))
			}
			continue
		}
		s := requested[0].Subject
		if values[0] != c.image || s.Namespace != c.namespace || !s.Bare || s.NamespaceKnown != (c.namespace == "shop") ||
			requested[0].Anonymous != (c.keys != externaldata.Qualified) || requested[0].Pinning != gate.PinLater {
			t.Errorf("%s: %q of %+v", c.reason, values[0], requested[0])
		}
	}
}

// TestUndecided holds that silence is an error of each key.
func TestUndecided(t *testing.T) {
	silent := decide(func(context.Context, gate.Request) gate.Outcome {
		<-time.After(time.Minute) // longer than any timeout
		return gate.Outcome{Result: gate.Allow}
	})
	for _, c := range []struct {
		decider externaldata.Decider
		queue   queue
		cause   externaldata.Cause
		says    string
	}{
		{decide(allow), queue{}, externaldata.Decided, ""},
		{decide(allow), queue{Full: true}, externaldata.QueueFull, "limit of concurrent requests"},
		{silent, queue{}, externaldata.TimedOut, "timed out"},
		{decide(func(context.Context, gate.Request) gate.Outcome { panic("password") }), queue{}, externaldata.Panicked, "internal error"},
		{short{}, queue{}, externaldata.Panicked, "internal error"},
	} {
		kept := &recorder{}
		config := configOf(externaldata.Verify, c.decider)
		config.Queue, config.Namespaces = c.queue, told{}
		handler := endpointWith(t, config, withRecorder(kept), withTimeout(50*time.Millisecond))
		_, errs := send(t, handler, "a", "[shop]b")
		for i, err := range errs {
			if (err == "") != (c.says == "") || !strings.Contains(err, c.says) || strings.Contains(err, "password") || kept.Last(t).Items[i].Cause != c.cause {
				t.Errorf("%s: %q", c.cause, err)
			}
		}
	}
}

// short is a Decider that loses outcomes.
type short struct{}

func (short) DecideAll(context.Context, []gate.Request, func(int, int)) []gate.Outcome { return nil }

type told struct{}

func (told) Labels(context.Context, string) (map[string]string, error) {
	return nil, errors.New("password")
}

// TestMutateRedirects: the value is the reference that the gate would write.
func TestMutateRedirects(t *testing.T) {
	ref := image.MustParse("nginx:1")
	outcome := gate.Outcome{Result: gate.Allow, Verdicts: []gate.Verdict{{Result: gate.Allow, Image: policy.Image{Ref: ref}}}}
	outcome.Patch = append(outcome.Patch, testkit.Must(patchOf("mirror.example/nginx:1@sha256:0"))(t)...)
	values, _ := send(t, endpoint(t, externaldata.Mutate, decide(func(context.Context, gate.Request) gate.Outcome { return outcome })), "nginx:1")
	if values[0] != "mirror.example/nginx:1@sha256:0" {
		t.Error(values)
	}
	outcome.Result = gate.Deny
	values, errs := send(t, endpoint(t, externaldata.Mutate, decide(func(context.Context, gate.Request) gate.Outcome { return outcome })), "nginx:1")
	if values[0] != "" || errs[0] == "" {
		t.Errorf("denied: %q, %q", values, errs)
	}
}

func TestMalformed(t *testing.T) {
	const head = `{"apiVersion":"externaldata.gatekeeper.sh/v1beta1","kind":"ProviderRequest",`
	handler := endpoint(t, externaldata.Verify, decide(allow))
	for reason, body := range map[string]string{
		"nothing": "", "a list": "[]", "half a request": head + `"request":{"keys":["a"]}`, "more after it": head + `"request":{"keys":["a"]}} {}`,
		"another version": `{"apiVersion":"externaldata.gatekeeper.sh/v1alpha1","kind":"ProviderRequest","request":{"keys":["a"]}}`,
		"another kind":    `{"apiVersion":"externaldata.gatekeeper.sh/v1beta1","kind":"ProviderResponse","request":{"keys":["a"]}}`,
		"no keys":         head + `"request":{}}`, "keys in another case": head + `"request":{"Keys":["a"]}}`, "keys twice": head + `"request":{"keys":["a"],"keys":["b"]}}`,
		"a number": head + `"request":{"keys":[1]}}`, "too many": string(request(t, make([]string, externaldata.MaxKeys+1)...)),
		"too large": head + strings.Repeat(" ", externaldata.MaxBody) + `"request":{"keys":["a"]}}`,
	} {
		if r := read(t, post(handler, []byte(body))); r.Response.SystemError == "" {
			t.Errorf("%s: %+v", reason, r)
		}
	}
	if values, _ := send(t, handler, "a"); values[0] != "a" {
		t.Error("their twin is refused")
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if r := read(t, w); r.Response.SystemError == "" {
		t.Errorf("%+v", r)
	}
}

// TestCauseOfNoItems: a full queue is not an error of the client.
func TestCauseOfNoItems(t *testing.T) {
	for cause, c := range map[externaldata.Cause]struct {
		queue queue
		body  string
	}{
		externaldata.QueueFull: {queue{Dry: true}, string(request(t, "a"))},
		externaldata.Malformed: {queue{}, "[]"},
	} {
		kept := &recorder{}
		config := configOf(externaldata.Verify, decide(allow))
		config.Queue = c.queue
		r := read(t, post(endpointWith(t, config, withRecorder(kept)), []byte(c.body)))
		if batch := kept.Last(t); r.Response.SystemError == "" || batch.Cause != cause || len(batch.Items) > 0 {
			t.Errorf("%s: recorded as %q, answered %+v", cause, batch.Cause, r)
		}
	}
}

func TestNew(t *testing.T) {
	for reason, option := range map[string]setting{
		"no recorder": withRecorder(nil), "no time": withTimeout(-time.Second), "unknown keys": withKeys("some"),
		"keys with a namespace from their author": withKeys(externaldata.Qualified), "tags refused where they are pinned": withDigests,
	} {
		config := configOf(externaldata.Mutate, decide(allow))
		option(&config)
		if _, err := externaldata.New(config); err == nil {
			t.Errorf("%s: want an error", reason)
		}
	}
	if _, err := externaldata.New(externaldata.Config{Endpoint: externaldata.Verify}); err == nil {
		t.Error("nothing: want an error")
	}
	if _, err := externaldata.New(configOf("other", decide(allow))); err == nil {
		t.Error("another endpoint: want an error")
	}
}

// FuzzRequest holds that whatever is sent, the answer keeps the contract, with an
// item for each key.
func FuzzRequest(f *testing.F) {
	f.Add(request(f, "nginx", "[shop/builder]nginx:1", "[::1]:5000/a"))
	f.Add([]byte(`{"apiVersion":"externaldata.gatekeeper.sh/v1beta1","kind":"ProviderRequest","request":null}`))
	verify, mutate := endpoint(f, externaldata.Verify, decide(allow)), endpoint(f, externaldata.Mutate, decide(allow))
	f.Fuzz(func(t *testing.T, body []byte) {
		read(t, post(verify, body))
		read(t, post(mutate, body))
	})
}
