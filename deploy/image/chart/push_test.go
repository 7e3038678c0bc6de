package chart_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/quaymaster/quaymaster/deploy/image/chart"
)

// file is a member of a package.
type file struct{ name, content string }

const metadata = "apiVersion: v2\nname: web\nversion: 1.2.3\ndescription: a chart\n"

func pack(t testing.TB, files ...file) string {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, f := range files {
		check(t, w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.content))}))
		_, err := w.Write([]byte(f.content))
		check(t, err)
	}
	check(t, errors.Join(w.Close(), zipped.Close()))
	path := filepath.Join(t.TempDir(), "web.tgz")
	check(t, os.WriteFile(path, out.Bytes(), 0o600))
	return path
}

func TestPush(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	// A chart within the chart comes first, and is not the one.
	path := pack(t, file{"web/charts/db/Chart.yaml", "name: db\nversion: 9.9.9\n"}, file{"web/Chart.yaml", metadata}, file{"web/values.yaml", "a: b\n"})
	pushed, err := chart.Push(t.Context(), path, host+"/charts/")
	check(t, err)
	if !strings.HasPrefix(pushed, host+"/charts/web@sha256:") {
		t.Fatalf("pushed %s", pushed)
	}
	again, err := chart.Push(t.Context(), path, host+"/charts")
	if err != nil || again != pushed {
		t.Errorf("pushed again: %s, %v, want %s", again, err, pushed)
	}
	at, err := name.NewDigest(pushed)
	check(t, err)
	artifact, err := remote.Image(at)
	check(t, err)
	manifest, err := artifact.Manifest()
	check(t, err)
	if manifest.Config.MediaType != "application/vnd.cncf.helm.config.v1+json" || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != "application/vnd.cncf.helm.chart.content.v1.tar+gzip" {
		t.Errorf("manifest %+v", manifest)
	}
	config, err := artifact.RawConfigFile()
	check(t, err)
	var read struct{ Name, Version string }
	check(t, json.Unmarshal(config, &read))
	if read.Name != "web" || read.Version != "1.2.3" {
		t.Errorf("configuration %s", config)
	}
	if tags, err := remote.List(at.Context()); err != nil || len(tags) > 0 {
		t.Errorf("it is tagged %q (%v) before it was verified", tags, err)
	}
}

func TestPushRefused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.tgz")
	check(t, os.WriteFile(text, []byte("no archive"), 0o600))
	for _, row := range []struct{ reason, file, says string }{
		{"no file", text + "x", "no such file"},
		{"no archive", text, "gzip"},
		{"a folder that was packed", pack(t, file{"Chart.yaml", metadata}), "no Chart.yaml"},
		{"a chart within nothing", pack(t, file{"web/charts/db/Chart.yaml", metadata}), "no Chart.yaml"},
		{"no name", pack(t, file{"web/Chart.yaml", "version: 1.2.3\n"}), "no name"},
		{"no version", pack(t, file{"web/Chart.yaml", "name: web\n"}), "no version"},
		{"no YAML", pack(t, file{"web/Chart.yaml", "name: [web"}), "Chart.yaml"},
		{"a name that is no repository", pack(t, file{"web/Chart.yaml", "name: ../Web\nversion: 1.2.3\n"}), "push "},
	} {
		if _, err := chart.Push(t.Context(), row.file, "127.0.0.1:1/charts"); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.reason, err, row.says)
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ExamplePush() {
	_, err := chart.Push(context.Background(), "no-chart.tgz", "registry.example/charts")
	fmt.Println(err)
	// Output: open no-chart.tgz: no such file or directory
}
