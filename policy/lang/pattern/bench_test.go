package pattern_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/pattern"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func newEngine(tb testing.TB) *jmespath.Engine {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		tb.Fatal(err)
	}
	return engine
}

func decode(tb testing.TB, text string) any {
	tb.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return value
}

func compile(tb testing.TB, text string) *pattern.Pattern {
	tb.Helper()
	p, err := pattern.Compile(newEngine(tb), decode(tb, text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return p
}

const (
	notPrivileged = `{"spec": {
		"=(ephemeralContainers)": [{"=(securityContext)": {"=(privileged)": "false"}}],
		"=(initContainers)":      [{"=(securityContext)": {"=(privileged)": "false"}}],
		"containers":             [{"=(securityContext)": {"=(privileged)": "false"}}]}}`
	threeContainers = `{"kind": "Pod", "metadata": {"name": "web"}, "spec": {
		"initContainers": [{"name": "init", "image": "busybox:1", "securityContext": {"privileged": false}}],
		"containers": [
			{"name": "web", "image": "nginx:1", "securityContext": {"privileged": false, "runAsUser": 1000}},
			{"name": "sidecar", "image": "envoy:1"}]}}`
)

func BenchmarkMatch(b *testing.B) {
	p, pod := compile(b, notPrivileged), decode(b, threeContainers)
	b.ReportAllocs()
	for b.Loop() {
		if r := p.Match(nil, pod); !r.Held {
			b.Fatal(r)
		}
	}
}

// BenchmarkOperators has quantities, wildcards, a condition and a variable.
func BenchmarkOperators(b *testing.B) {
	p := compile(b, `{"spec": {"containers": [{"(image)": "*/*:* & !*:latest", "name": "{{ names }}",
		"resources": {"limits": {"memory": "1Mi-4Gi", "cpu": "<=2"}}}]}}`)
	pod := decode(b, `{"spec": {"containers": [
		{"name": "web", "image": "ghcr.io/example/web:1", "resources": {"limits": {"memory": "1Gi", "cpu": "500m"}}},
		{"name": "log", "image": "ghcr.io/example/log:1", "resources": {"limits": {"memory": "64Mi", "cpu": 1}}}]}}`)
	data := variable.Context{"names": "web | log"}
	b.ReportAllocs()
	for b.Loop() {
		if r := p.Match(data, pod); !r.Held {
			b.Fatal(r)
		}
	}
}

func BenchmarkFailure(b *testing.B) {
	p := compile(b, notPrivileged)
	pod := decode(b, `{"spec": {"containers": [{"securityContext": {"privileged": true}}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if r := p.Match(nil, pod); r.Path != "/spec/containers/0/securityContext/privileged/" {
			b.Fatal(r)
		}
	}
}

func TestMatchAllocates(t *testing.T) {
	p, pod := compile(t, notPrivileged), decode(t, threeContainers)
	if allocations := testing.AllocsPerRun(100, func() { p.Match(nil, pod) }); allocations > 1 {
		t.Errorf("%v allocations, want one", allocations)
	}
}
