package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	admission "k8s.io/api/admission/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// alive asks whether the process lives.
func alive(ctx context.Context, g *gateway.Gateway) error {
	return process.Answers(ctx, http.DefaultClient, "http://"+g.Configuration.Listen.Plain+"/healthz")
}

// TestHostile: malformed requests to the endpoints get a clear error, under the request's UID
// where it has one, and nothing ends the process.
func TestHostile(t *testing.T) {
	s := guard(t, "hostile", gateway.Configuration{})
	s.apply(t, env.Policy{Name: s.namespace, Namespaces: []string{s.namespace}})
	endpoint := s.caller(t, s.gateway)
	t.Cleanup(func() {
		must(t, alive(context.WithoutCancel(t.Context()), s.gateway))
		select {
		case <-s.gateway.Done():
			t.Error("the process has ended")
		default:
		}
	})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	t.Run("bodies", func(t *testing.T) { s.tryBodies(t, endpoint, signed.Name) })
	t.Run("objects", func(t *testing.T) {
		s.tryObjects(t, endpoint, signed.Name, signed.ByDigest(), s.env.Unsigned("shop/bare", "1.0").ByDigest())
	})
	t.Run("protocols", func(t *testing.T) { s.tryProtocols(t, signed.ByDigest()) })
	said, err := endpoint.ask(t.Context(), "/validate", s.reviewOf(pod("after", signed.ByDigest()), "ann"))
	if err != nil || !said.Allowed {
		t.Errorf("after all that a signed image gives %+v, %v", said, err)
	}
}

// edit returns a review with changes at its outermost level.
func edit(review *admission.AdmissionReview, change func(review, request map[string]any)) string {
	var fields map[string]any
	content, err := json.Marshal(review)
	if err == nil {
		err = json.Unmarshal(content, &fields)
	}
	if err == nil {
		change(fields, fields["request"].(map[string]any))
		content, err = json.Marshal(fields)
	}
	if err != nil {
		panic(err) // a review can be written and read
	}
	return string(content)
}

func (s *scene) tryBodies(t *testing.T, endpoint caller, signed string) {
	good := s.reviewOf(pod("good", signed), "ann")
	const kind = "application/json"
	for _, row := range []struct {
		reason, contentType, body string
		status                    int
		uid                       bool
		says                      string
	}{
		{"nothing is wrong", kind, edit(good, func(_, _ map[string]any) {}), 200, true, ""},
		{"nothing", kind, "", 400, false, "unexpected end"},
		{"garbage", kind, "\x00\xff{{{", 400, false, "AdmissionReview"},
		{"half a review", kind, edit(good, func(_, _ map[string]any) {})[:200], 400, false, "AdmissionReview"},
		{"a list", kind, "[]", 400, false, "the body must be an object"},
		{"nested without end", kind, strings.Repeat(`{"a":`, 20000), 400, false, "AdmissionReview"},
		{"not declared as JSON", "text/plain", edit(good, func(_, _ map[string]any) {}), 400, false, "application/json"},
		{"an old version", kind, edit(good, func(r, _ map[string]any) { r["apiVersion"] = "admission.k8s.io/v1beta1" }), 200, true, "admission.k8s.io/v1"},
		{"another kind", kind, edit(good, func(r, _ map[string]any) { r["kind"] = "ConversionReview" }), 200, true, "AdmissionReview"},
		{"no request", kind, edit(good, func(r, _ map[string]any) { delete(r, "request") }), 400, false, "no request"},
		{"no uid", kind, edit(good, func(_, q map[string]any) { delete(q, "uid") }), 400, false, "no uid"},
		{"a uid that is a number", kind, edit(good, func(_, q map[string]any) { q["uid"] = 7 }), 400, false, "request.uid"},
		{"more than the body may hold", kind, edit(good, func(r, _ map[string]any) { r["padding"] = strings.Repeat("x", 8<<20) }), 400, false, "MaxBody"},
		{"an object of 3 MiB", kind, edit(good, func(_, q map[string]any) {
			q["object"].(map[string]any)["metadata"].(map[string]any)["annotations"] = map[string]any{"a": strings.Repeat("x", 3<<20)}
		}), 200, true, ""},
	} {
		status, _, answer, err := endpoint.post(t.Context(), "/mutate", row.contentType, strings.NewReader(row.body))
		var review admission.AdmissionReview
		_ = json.Unmarshal(answer, &review)
		uid := review.Response != nil && review.Response.UID == good.Request.UID
		allowed := review.Response != nil && review.Response.Allowed
		if err != nil || status != row.status || uid != row.uid || allowed != (row.says == "") || !strings.Contains(string(answer), row.says) {
			t.Errorf("%s: %d %.300q, %v; want %d, %q, the UID: %t", row.reason, status, answer, err, row.status, row.says, row.uid)
		}
	}
	// One that does not say how much will come.
	endless := io.MultiReader(strings.NewReader(`{"padding":"`), io.LimitReader(zeros{}, 16<<20))
	if status, _, answer, err := endpoint.post(t.Context(), "/validate", kind, endless); err == nil && (status != 400 || !bytes.Contains(answer, []byte("MaxBody"))) {
		t.Errorf("a body of unknown length: %d %q", status, answer)
	}
}

// zeros are digits without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func (s *scene) tryObjects(t *testing.T, endpoint caller, tagged, signed, bare string) {
	many := pod("many")
	for i := range 500 {
		many.Spec.Containers = append(many.Spec.Containers, core.Container{Name: fmt.Sprint("c", i), Image: signed})
	}
	manyBad := many.DeepCopy()
	manyBad.Spec.Containers[499].Image = bare
	whole := func(raw string) func(*admission.AdmissionReview) {
		return func(r *admission.AdmissionReview) { r.Request.Object.Raw = []byte(raw) }
	}
	kind := func(group, version, name string) func(*admission.AdmissionReview) {
		return func(r *admission.AdmissionReview) {
			r.Request.Kind = meta.GroupVersionKind{Group: group, Version: version, Kind: name}
		}
	}
	for _, row := range []struct {
		reason  string
		pod     *core.Pod
		change  func(*admission.AdmissionReview)
		allowed bool
		says    string
	}{
		{"500 containers", many, nil, true, ""},
		{"500 containers, one of them unsigned", manyBad, nil, false, "c499"},
		{"an image that does not parse", pod("bad", "UPPER/Case@sha256:1"), nil, false, "/spec/containers/0/image"},
		{"an image of nothing but a digest", pod("bad", "@sha256:"+strings.Repeat("a", 64)), nil, false, "/spec/containers/0/image"},
		{"an image with a newline", pod("bad", signed+"\n"), nil, false, "/spec/containers/0/image"},
		{"an image of 1 MiB", pod("bad", strings.Repeat("a", 1<<20)), nil, false, "/spec/containers/0/image"},
		{"no object", pod("none", signed), func(r *admission.AdmissionReview) { r.Request.Object.Raw = nil }, false, "object"},
		{"an object that is a ConfigMap", pod("none", signed), whole(`{"apiVersion":"v1","kind":"ConfigMap","data":{}}`), false, "ConfigMap"},
		{"containers that are a text", pod("none", signed), whole(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":"x"}}`), false, "containers"},
		{"an image that is a number", pod("none", signed), whole(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"c0","image":7}]}}`), false, "image"},
		{"containers that stand twice", pod("none", signed), whole(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"c0","image":"` + tagged + `"}],"containers":[]}}`), false, "twice"},
		{"a kind that is not the object's", pod("none", signed), kind("example.com", "v1", "Boat"), false, "example.com"},
		{"an object without images", pod("none"), nil, true, ""},
	} {
		review := s.reviewOf(row.pod, "ann")
		if row.change != nil {
			row.change(review)
		}
		said, err := endpoint.ask(t.Context(), "/validate", review)
		switch {
		case err != nil:
			t.Errorf("%s: %v", row.reason, err)
		case said.Allowed != row.allowed, !row.allowed && !strings.Contains(said.Result.Message, row.says):
			t.Errorf("%s: %+v, want allowed: %t, saying %q", row.reason, said, row.allowed, row.says)
		case len(said.Warnings) > 10:
			t.Errorf("%s: %d warnings", row.reason, len(said.Warnings))
		}
	}
}

func (s *scene) tryProtocols(t *testing.T, signed string) {
	authorities := s.secret(t).Data["ca.crt"]
	review := edit(s.reviewOf(pod("protocol", signed), "ann"), func(_, _ map[string]any) {})
	for _, row := range []struct {
		reason   string
		change   func(*tls.Config)
		protocol string // empty: refused
	}{
		{"an API server's protocol", nil, "HTTP/2.0"},
		{"HTTP/1.1", func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }, "HTTP/1.1"},
		{"TLS 1.2", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, "HTTP/2.0"},
		{"TLS 1.1", func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }, ""},
		{"another name", func(c *tls.Config) { c.ServerName = "registry.example" }, ""},
	} {
		endpoint := newCaller(t, s.gateway, authorities, row.change)
		if row.protocol == "HTTP/1.1" {
			endpoint.client.Transport.(*http.Transport).ForceAttemptHTTP2 = false
		}
		status, protocol, answer, err := endpoint.post(t.Context(), "/validate", "application/json", strings.NewReader(review))
		switch {
		case row.protocol == "" && err == nil:
			t.Errorf("%s: it was answered %d %s", row.reason, status, answer)
		case row.protocol != "" && (err != nil || status != 200 || protocol != row.protocol):
			t.Errorf("%s: %d over %q, %v: %s", row.reason, status, protocol, err, answer)
		}
	}
}
