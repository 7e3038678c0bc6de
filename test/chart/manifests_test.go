package chart

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/quaymaster/quaymaster/test/peers"
)

var update = flag.Bool("update", false, "write the manifests that are made from the chart")

// ofHelm are lines that mean something to Helm alone.
var ofHelm = regexp.MustCompile(`(?m)^ +(app\.kubernetes\.io/managed-by|helm\.sh/chart|helm\.sh/resource-policy): .*\n|^# Source: .*\n`)

// section is a file of the kustomize base, and the kinds in it; no kinds are all others.
type section struct {
	file  string
	kinds []string
}

func sections() []section {
	return []section{
		{"crds.yaml", []string{"CustomResourceDefinition"}},
		{"rbac.yaml", []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}},
		{"gateway.yaml", nil},
	}
}

// TestManifests: the kustomize base and install.yaml equal the chart's rendering with its
// defaults. -update writes them.
func TestManifests(t *testing.T) {
	const made = "# Made from deploy/helm/quaymaster with its defaults; do not edit it: make manifests.\n"
	parts := map[string][]string{}
	for document := range strings.SplitSeq("\n"+ofHelm.ReplaceAllString(render(t, gatewayChart), ""), "\n---\n") {
		document = strings.Trim(document, "\n")
		all := objects(t, document)
		if len(all) == 0 {
			continue
		}
		i := slices.IndexFunc(sections(), func(s section) bool { return s.kinds == nil || slices.Contains(s.kinds, all[0].GetKind()) })
		parts[sections()[i].file] = append(parts[sections()[i].file], document)
	}
	namespace, err := os.ReadFile(deploy(t, "kustomize", "base", "namespace.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	whole := []string{strings.Trim(string(namespace), "\n")}
	for _, s := range sections() {
		if len(parts[s.file]) == 0 {
			t.Errorf("%s would be empty", s.file)
		}
		whole = append(whole, parts[s.file]...)
		current(t, deploy(t, "kustomize", "base", s.file), made+strings.Join(parts[s.file], "\n---\n")+"\n")
	}
	current(t, deploy(t, "install.yaml"), made+strings.Join(whole, "\n---\n")+"\n")
}

func current(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s differs from the chart: make manifests", path)
	}
}

// TestKustomize: the base is built by kustomize to what install.yaml holds, and an
// overlay sets the image.
func TestKustomize(t *testing.T) {
	kustomize := peers.Get(t, peers.Kustomize)
	install, err := os.ReadFile(deploy(t, "install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	base := objects(t, kustomize.Must(t, "build", deploy(t, "kustomize", "base")))
	if got, want := names(base), names(objects(t, string(install))); !slices.Equal(got, want) {
		t.Errorf("the base holds %v, install.yaml %v", got, want)
	}
	overlay := t.TempDir()
	relative := relativeTo(t, overlay, deploy(t, "kustomize", "base"))
	text := strings.NewReplacer("../deploy/kustomize/base", relative, "your.registry/quaymaster", "registry.example/q").Replace(overlayOf(t))
	if err := os.WriteFile(overlay+"/kustomization.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all := objects(t, kustomize.Must(t, "build", overlay))
	if image := at(container(one(all, "Deployment", "quaymaster")), "image"); image != "registry.example/q:v1" {
		t.Errorf("the overlay runs %v", image)
	}
	equal(t, "['registry.example/q:v1']", admitted(all, "quaymaster-own-images"))
}

// overlayOf returns the overlay that deploy/README.md shows.
func overlayOf(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(deploy(t, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\nresources:")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("deploy/README.md shows no overlay")
	}
	return "resources:" + text
}

// container returns the only container of a Deployment.
func container(deployment *unstructured.Unstructured) *unstructured.Unstructured {
	content, _ := at(deployment, "spec", "template", "spec", "containers", 0).(map[string]any)
	return &unstructured.Unstructured{Object: content}
}
