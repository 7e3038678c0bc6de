package report_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/workload"
)

var update = flag.Bool("update", false, "write the golden files anew")

// scenario is one or more outcomes worth seeing.
type scenario struct {
	name, reason string
	images       []string // named alone
	manifest     string
	extras       bool // a rule about objects, and an exception
}

var scenarios = []scenario{
	{name: "allowed-by-key", reason: "everything holds", images: []string{"registry.example/shop/web:1.4"}},
	{name: "allowed-keyless", reason: "certificate identity, log entry and attestation", images: []string{"registry.example/acme/web:1.4"}},
	{name: "unsigned", reason: "no signature at all", images: []string{"registry.example/shop/unsigned:1"}},
	{name: "wrong-identity", reason: "the nearest miss has an expected and a found side", images: []string{"registry.example/acme/forked:1"}},
	{name: "too-few", reason: "one of two signed", images: []string{"registry.example/vault/safe:1"}},
	{name: "registry-down", reason: "it could not be verified; that is no denial", images: []string{"registry.example/shop/down:1"}},
	{name: "fail-open", reason: "it could not be verified, and the policy fails open", images: []string{"registry.example/lenient/down:1"}},
	{name: "condition-failed", reason: "the statement is verified and has a wrong value", images: []string{"registry.example/acme/laptop:1"}},
	{name: "audit", reason: "a failure that only warns", images: []string{"registry.example/lab/unsigned:1"}},
	{name: "skipped", reason: "the policy leaves it alone", images: []string{"registry.example/shop/exempt:1"}},
	{name: "no-policy", reason: "no policy matches it", images: []string{"nginx"}},
	{name: "rule-error", reason: "a rule that could not be evaluated, and an image that it may match", manifest: `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: red}
spec: {containers: [{name: web, image: "registry.example/shop/web:1.4"}]}
`},
	{name: "malformed", reason: "a reference that cannot be read concerns the object", manifest: `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: web, image: "registry.example/Shop/web@sha256:../../x"}]}
`},
	{name: "no-images", reason: "nothing to say", manifest: `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
`},
	{name: "pod", reason: "every image at once, in the order of the object, each with its own answer", manifest: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  template:
    spec:
      initContainers:
      - {name: migrate, image: "registry.example/shop/unsigned:7"}
      containers:
      - {name: web, image: "registry.example/shop/web:1.4"}
      - {name: metrics-exporter-with-a-long-name, image: "registry.example/acme/forked:1"}
      - {name: down, image: "registry.example/shop/down:1"}
      - {name: c4, image: "nginx:1.27"}
      - {name: c5, image: "registry.example/lab/unsigned:1"}
      - {name: c6, image: "registry.example/acme/a-rather-long-path/that-goes-on/and-on/until-it-ends/web@sha256:4f2a8c1d9e034f2a8c1d9e034f2a8c1d9e034f2a8c1d9e034f2a8c1d9e034f2a"}
      - {name: c7, image: "registry.example/shop/exempt:1"}
      - {name: c8, image: "registry.example/shop/web:1.4"}
      - {name: c9, image: "registry.example/shop/web:1.4"}
      - {name: c10, image: "registry.example/shop/web:1.4"}
`},
	{name: "exception", reason: "left alone until a day, for a reason", extras: true, manifest: `
# Source: vault/templates/safe.yaml
apiVersion: v1
kind: Pod
metadata: {name: safe, namespace: vault, labels: {team: ops}}
spec: {containers: [{name: safe, image: "registry.example/vault/safe:1"}]}
`},
	{name: "object-rule", reason: "the object itself is not as it should be, and its images are", extras: true, manifest: `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  containers:
  - name: web
    image: &web registry.example/shop/web:1.4
  - {name: again, image: *web}
---
apiVersion: v1
kind: Pod
metadata: {name: fine, namespace: shop, labels: {team: blue}}
spec: {containers: [{name: web, image: "registry.example/shop/web:1.4"}]}
`},
	{name: "hostile", reason: "no foreign text reaches the terminal as it is", manifest: `
apiVersion: v1
kind: Pod
metadata: {name: "web\e[31m\nPod shop/other", namespace: "\u202eshop"}
spec: {containers: [{name: "web\r\e[2K", image: "registry.example/acme/hostile:1"}]}
`},
}

// outcomes runs the scenario through the gate.
func (s scenario) outcomes(t testing.TB) []gate.Outcome {
	t.Helper()
	var requests []gate.Request
	for _, image := range s.images {
		request, err := gate.ForImage(image, "default")
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, request)
	}
	if s.manifest != "" {
		objects, err := workload.Read(strings.NewReader(s.manifest), "deploy/"+s.name+".yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			requests = append(requests, gate.Request{Object: object, Subject: policy.Subject{NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true}}})
		}
	}
	return newGate(t, s.extras).DecideAll(t.Context(), requests, nil)
}

func find(t testing.TB, name string) scenario {
	t.Helper()
	for _, s := range scenarios {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("no scenario %q", name)
	return scenario{}
}

// all returns the outcomes of every scenario.
func all(t testing.TB) []gate.Outcome {
	t.Helper()
	var outcomes []gate.Outcome
	for _, s := range scenarios {
		outcomes = append(outcomes, s.outcomes(t)...)
	}
	return outcomes
}

// golden compares what write writes with a file, or writes the file.
func golden(t *testing.T, file string, write func(io.Writer) error) {
	t.Helper()
	var got bytes.Buffer
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run go test ./report -update and review the output", err)
	}
	if got.String() != string(want) {
		t.Errorf("%s differs: run go test ./report -update and read the difference\ngot:\n%s\nwant:\n%s", path, got.String(), want)
	}
}

func reproduce(_ report.Record, v report.Image) string {
	return fmt.Sprintf("quaymaster explain --policy policies/ '%s'", v.Written)
}
