package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/quaymaster/quaymaster/test/peers"
)

// TestLocal runs the whole demonstration with a real API server: a denial, an admission, and the end.
func TestLocal(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-form", "local", "-once"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"denied the request: Pod quay-start/unsigned", "[unsigned]", "pod/web created", "shop/web:v1@sha256:"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// TestChosen: a cluster that people may use is named explicitly.
func TestChosen(t *testing.T) {
	for _, row := range []struct{ reason, current, named, want, problem string }{
		{"kind", "kind-dev", "", "kind-dev", ""},
		{"minikube", "minikube", "", "minikube", ""},
		{"another one", "production", "", "", "CONTEXT=production"},
		{"a name that only contains it", "my-kind-cluster", "", "", "CONTEXT=my-kind-cluster"},
		{"another one, named", "production", "staging", "staging", ""},
		{"none", "", "", "", "no current context"},
	} {
		got, err := chosen(row.current, row.named)
		if got != row.want || (err == nil) != (row.problem == "") || err != nil && !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: %q, %v", row.reason, got, err)
		}
	}
	if err := run(t.Context(), []string{"-form", "other"}, &bytes.Buffer{}); err == nil {
		t.Error("an unknown form runs")
	}
}

// TestArchive: the archive holds the image of the architecture, under the name that the chart uses.
func TestArchive(t *testing.T) {
	folder := t.TempDir()
	index := v1.ImageIndex(empty.Index)
	var amd v1.Image
	for _, architecture := range []string{"arm64", "amd64"} {
		image, err := random.Image(64, 1)
		if err != nil {
			t.Fatal(err)
		}
		amd = image
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
	}
	nested := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: index})
	if _, err := layout.Write(filepath.Join(folder, "layout"), nested); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(folder, "image.tar")
	if err := writeArchive(filepath.Join(folder, "layout"), archive, "amd64"); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("quaymaster:dev")
	if err != nil {
		t.Fatal(err)
	}
	read, err := tarball.ImageFromPath(archive, &tag)
	if err != nil {
		t.Fatal(err)
	}
	got, err := read.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := amd.ConfigName(); err != nil || got != want {
		t.Errorf("image %s, want %s (%v)", got, want, err)
	}
	if err := writeArchive(filepath.Join(folder, "layout"), archive, "s390x"); err == nil {
		t.Error("an architecture without an image has an archive")
	}
}

// TestCharts: the charts render with the loaded image, and never pull it.
func TestCharts(t *testing.T) {
	checkout, err := peers.Checkout()
	if err != nil {
		t.Fatal(err)
	}
	helm := peers.Get(t, peers.Helm)
	text := helm.Must(t, append([]string{"template", "quaymaster", filepath.Join(checkout, "deploy", "helm", "quaymaster"), "--namespace", "quaymaster"}, values()...)...)
	for _, want := range []string{"image: quaymaster:dev", "imagePullPolicy: Never", "replicas: 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the chart", want)
		}
	}
	commands := install(checkout, "kind-dev")
	for _, command := range append(commands, load("kind-dev", "a.tar"), load("minikube", "a.tar")) {
		if line := strings.Join(command, " "); !strings.Contains(line, "kind-dev") && !strings.Contains(line, "--name dev") && !strings.Contains(line, "--profile minikube") {
			t.Errorf("%s: in whichever cluster", line)
		}
	}
}
