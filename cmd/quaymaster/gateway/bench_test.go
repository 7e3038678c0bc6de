package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// handlersOf wires a gateway with the program's own parts, and returns its handlers
// without the TLS before them.
func (d *env) handlersOf(b *testing.B, settings string) map[string]http.Handler {
	b.Helper()
	c, err := config.Parse([]byte(head + strings.ReplaceAll(`standalone: true
policies: {folders: [FOLDER/policies]}
certificate: {folder: FOLDER/certificate}
ages: {tag: 1h, none: 1h}
`, "FOLDER", d.folder) + settings))
	if err != nil {
		b.Fatal(err)
	}
	c.Listen.Address, c.Listen.Plain = "127.0.0.1:0", "127.0.0.1:0"
	ctx, stop := context.WithCancel(b.Context())
	open, ended := make(chan struct{}), make(chan error, 1)
	g, err := newAssembly(ctx, c, Options{
		Log: io.Discard, Version: "test", Replica: "test", Listening: func(string, string) { close(open) },
	})
	if err != nil {
		b.Fatal(err)
	}
	go func() { ended <- g.run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
		g.close()
	})
	select {
	case <-open:
	case err := <-ended:
		b.Fatalf("the gateway ended: %v", err)
	case <-time.After(patience):
		b.Fatal("the endpoints are not active")
	}
	handlers := map[string]http.Handler{}
	for path, endpoint := range g.serving.endpoints.Served(nil, nil) {
		handlers[path] = endpoint.Handler
	}
	return handlers
}

// sink is a response that is discarded.
type sink struct{ header http.Header }

// Header implements http.ResponseWriter, like the methods below.
func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(int)             {}

// BenchmarkAdmission measures a warm admission of a pod of eight containers of eight images, from
// decoding to encoding: without mirrors, next to a hundred entries that do not match them, and
// with a matching one among a hundred.
func BenchmarkAdmission(b *testing.B) {
	for _, row := range []struct {
		reason   string
		others   int
		mirrored bool
	}{{"mirrors=none", 0, false}, {"mirrors=100/images=others", 100, false}, {"mirrors=100/images=mirrored", 99, true}} {
		b.Run(row.reason, func(b *testing.B) {
			d := newEnv(b)
			target := registrytest.Start(registrytest.Options{})
			b.Cleanup(target.Close)
			near := gatetest.New(target, d.Sigstore)
			var images []string
			for i := range 8 {
				name := fmt.Sprintf("app%d", i)
				made := d.Build(name, "v1", name)
				if err := d.SignLegacy(made, verifytest.Claim{Signer: d.key, NoLog: true}, nil); err != nil {
					b.Fatal(err)
				}
				copyTo(near, name, "v1", name)
				images = append(images, made.Name)
			}
			settings := ""
			if row.others > 0 {
				d.mirrors(b, row.others, row.mirrored, target.Host()+"/hub")
				settings = "mirrors: {files: [" + filepath.Join(d.folder, "mirrors") + "]}\n"
			}
			handlers := d.handlersOf(b, settings)
			review := reviewOf("Pod", "shop", "")
			review["request"].(object)["object"] = podOf(images...)
			body, err := json.Marshal(review)
			if err != nil {
				b.Fatal(err)
			}
			first := httptest.NewRecorder()
			handlers["/mutate"].ServeHTTP(first, newReview(body))
			patch := admittedBy(b, first.Body.Bytes())
			if strings.Contains(patch, target.Host()) != row.mirrored {
				b.Fatalf("the patch is %s", patch)
			}
			d.Registry.Reset()
			target.Reset()
			measure(b, handlers["/mutate"], body)
			b.ReportMetric(float64(d.Registry.Count("")+target.Count(""))/float64(b.N), "requests/op")
		})
	}
}

// newReview is a request with a review, as an API server sends it.
func newReview(body []byte) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mutate?timeout=10s", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

// admittedBy returns the patch of an answer that admits.
func admittedBy(b *testing.B, text []byte) string {
	b.Helper()
	var said struct{ Response reply }
	if err := json.Unmarshal(text, &said); err != nil || !said.Response.Allowed {
		b.Fatalf("%v: %s", err, text)
	}
	return string(said.Response.Patch)
}

// measure reports the percentiles of one call.
func measure(b *testing.B, handler http.Handler, body []byte) {
	b.Helper()
	took := make([]time.Duration, 0, 1<<16)
	b.ReportAllocs()
	r := newReview(body)
	reader := bytes.NewReader(nil)
	r.Body = io.NopCloser(reader)
	for b.Loop() {
		reader.Reset(body)
		w := &sink{header: http.Header{}}
		started := time.Now()
		handler.ServeHTTP(w, r)
		took = append(took, time.Since(started))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns")
}

// mirrors writes a file of entries for other images, and optionally one of the
// env's.
func (d *env) mirrors(b *testing.B, others int, own bool, target string) {
	b.Helper()
	text := "apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: hub}\nspec:\n  mirrors:\n"
	for i := range others {
		source := fmt.Sprintf("%s/team-%d", d.Registry.Host(), i)
		if i%2 == 1 {
			source = fmt.Sprintf("registry-%d.example", i)
		}
		text += fmt.Sprintf("  - {sources: [%q], targets: [{location: mirror.example/x%d}]}\n", source, i)
	}
	if own {
		text += fmt.Sprintf("  - {sources: [%q], targets: [{location: %q}]}\n", d.Registry.Host(), target)
	}
	d.write(b, "mirrors/hub.yaml", text)
}
