package chart

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/quaymaster/quaymaster/test/peers"
)

// The charts.
const gatewayChart, definitionsChart, policiesChart = "quaymaster", "quaymaster-crds", "quaymaster-policies"

// deploy returns the path of something under deploy/.
func deploy(t *testing.T, path ...string) string {
	t.Helper()
	checkout, err := peers.Checkout()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{checkout, "deploy"}, path...)...)
}

// relativeTo returns a path as seen from a folder.
func relativeTo(t *testing.T, from, path string) string {
	t.Helper()
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(from, absolute)
	if err != nil {
		t.Fatal(err)
	}
	return relative
}

func folder(t *testing.T, chart string) string {
	t.Helper()
	return deploy(t, "helm", chart)
}

// render returns what a chart makes of values, which are given as Helm's
// arguments; the release is called like the chart.
func render(t *testing.T, chart string, arguments ...string) string {
	t.Helper()
	return renderAs(t, chart, chart, "quaymaster", arguments...)
}

// renderAs is the same for a release of another name, in another namespace.
func renderAs(t *testing.T, release, chart, namespace string, arguments ...string) string {
	t.Helper()
	return peers.Get(t, peers.Helm).Must(t, append([]string{"template", release, folder(t, chart), "--namespace", namespace}, arguments...)...)
}

// refuse returns why a chart cannot be rendered.
func refuse(t *testing.T, chart string, arguments ...string) string {
	t.Helper()
	said, err := peers.Get(t, peers.Helm).Run(t.Context(), append([]string{"template", chart, folder(t, chart), "--namespace", "quaymaster"}, arguments...)...)
	if err == nil {
		t.Errorf("%v is rendered", arguments)
	}
	return said
}

// file writes a file of values and returns the argument for it.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--values=" + path
}

// objects parses rendered text.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4<<10)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}

// one returns the object of a kind and name, or nil.
func one(all []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	i := slices.IndexFunc(all, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if i < 0 {
		return nil
	}
	return all[i]
}

// at returns what stands at a path of an object: a field, or an element of a list by its
// number.
func at(o *unstructured.Unstructured, path ...any) any {
	var here any
	if o != nil {
		here = o.Object
	}
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := here.(map[string]any)
			here = fields[step]
		case int:
			list, _ := here.([]any)
			if step >= len(list) {
				return nil
			}
			here = list[step]
		}
	}
	return here
}

// names returns kind/name of all, sorted.
func names(all []*unstructured.Unstructured) []string {
	list := make([]string, len(all))
	for i, o := range all {
		list[i] = o.GetKind() + "/" + o.GetName()
	}
	slices.Sort(list)
	return list
}

// lint runs helm lint.
func lint(ctx context.Context, t *testing.T, chart string, arguments ...string) {
	t.Helper()
	if said, err := peers.Get(t, peers.Helm).Run(ctx, append([]string{"lint", "--strict", folder(t, chart)}, arguments...)...); err != nil {
		t.Error(said)
	}
}
