package generate_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

const benchPod = `{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop, labels: {sidecar: "true", app: web}}}`

// BenchmarkSelects is what every object of a watched kind costs that no rule means.
func BenchmarkSelects(b *testing.B) {
	g := generation(b, "", certificateRule)
	s := subject(b, `{apiVersion: v1, kind: Pod, metadata: {name: web-1, namespace: shop, labels: {app: web}}}`, policy.User{})
	b.ReportAllocs()
	for b.Loop() {
		if g.Selects(s) {
			b.Fatal("it selects")
		}
	}
}

// BenchmarkGenerate is the cost of one generated object, without requests to the API
// server.
func BenchmarkGenerate(b *testing.B) {
	g := generation(b, "", certificateRule)
	s := subject(b, benchPod, policy.User{})
	b.ReportAllocs()
	for b.Loop() {
		if got := g.Generate(b.Context(), policy.Case{Subject: s}); got.Result != policy.Pass {
			b.Fatal(got.Reasons)
		}
	}
}
