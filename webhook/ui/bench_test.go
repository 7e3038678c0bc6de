package ui_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/webhook/ui"
)

// large shows 10,000 images in 200 namespaces.
func large(t testing.TB) *ui.Handler {
	t.Helper()
	known, err := inventory.New(inventory.Options{Replica: "a"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10_000 {
		name := fmt.Sprintf("registry.example/team-%d/service-%d:1.%d", n%40, n, n%9)
		known.Add(report.Occasion{Time: time.Now(), Process: report.ProcessAdmission, Operation: "CREATE", Allowed: true}, report.Record{Result: gate.Allow, Images: []report.Image{{
			Container: "c", Reference: name, Written: name, Digest: image.DigestOf([]byte(name)), Result: gate.Allow, Matched: true,
			Decisions: []report.Decision{{
				Policy: report.Policy{Kind: "ClusterPolicy", Name: fmt.Sprintf("p-%d", n%20)}, Rule: "r",
				Proofs: []report.Proof{{Signer: verify.Signer{Subject: fmt.Sprintf("https://github.com/example/team-%d/.github/workflows/release.yaml@refs/heads/main", n%40), Issuer: "https://token.actions.githubusercontent.com"}}},
			}},
		}}}, report.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: fmt.Sprintf("namespace-%d", n%200), Name: fmt.Sprintf("service-%d", n)})
	}
	h, err := ui.New(ui.Config{Inventory: known}, ui.WithoutTokens())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// BenchmarkFirstPage is the first page over loopback, as a browser asks for it.
func BenchmarkFirstPage(b *testing.B) {
	server := httptest.NewServer(large(b))
	defer server.Close()
	paths := []string{"/", "/assets/theme.js", "/assets/app.css", "/assets/mark.svg", "/assets/app.js", "/assets/dom.js", "/assets/api.js", "/assets/format.js", "/assets/parts.js",
		"/assets/overview.js", "/assets/chart.js", "/assets/images.js", "/assets/image.js", "/assets/chain.js", "/assets/decisions.js", "/assets/policies.js", "/api/v1/overview"}
	transport := &http.Transport{DisableCompression: true}
	client := &http.Client{Transport: transport}
	sum := 0
	for b.Loop() {
		sum = 0
		for _, path := range paths {
			r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, server.URL+path, nil)
			if err != nil {
				b.Fatal(err)
			}
			r.Header.Set("Accept-Encoding", "gzip")
			answer, err := client.Do(r)
			if err != nil {
				b.Fatal(err)
			}
			n, err := io.Copy(io.Discard, answer.Body)
			if err != nil || answer.StatusCode != http.StatusOK {
				b.Fatal(path, answer.Status, err)
			}
			_ = answer.Body.Close() // it was read
			sum += int(n)
		}
	}
	b.ReportMetric(float64(sum), "bytes")
	b.ReportMetric(float64(len(paths)), "requests")
}

// BenchmarkImages is the list of images, by what each question costs.
func BenchmarkImages(b *testing.B) {
	h := large(b)
	for _, row := range []struct{ name, path string }{
		{"First", "/api/v1/images?limit=50"}, {"Search", "/api/v1/images?q=service-77&limit=50"}, {"Signer", "/api/v1/images?signer=team-7/&limit=50"},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := get(h, row.path, "Accept-Encoding", "gzip"); got.Code != http.StatusOK {
					b.Fatal(got.Code)
				}
			}
		})
	}
}
