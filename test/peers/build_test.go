package peers

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestProgramsArePinned(t *testing.T) {
	versions := map[string]string{
		Cosign2: "v2.6.5", Cosign3: "v3.1.3", Crane: "v0.22.1", Registry: "v3.1.2",
		Fulcio: "v1.8.8", TimestampServer: "v2.0.6", GolangCILint: "v2.15.0",
		Prometheus: "v0.316.0", Promtool: "v0.316.0",
		Etcd: "v3.7.0", KubeAPIServer: "v1.37.2", KubeControllerManager: "v1.37.2", Kubectl: "v1.37.2",
		OldestKubeAPIServer: "v1.30.14", Helm: "v4.3.1", Helm3: "v3.15.4",
		Actionlint: "v1.7.12", Notation: "v1.3.2", Kustomize: "v5.8.2", Govulncheck: "v1.9.0", KubectlSigstore: "v0.5.4",
		SLSAVerifier: "v2.7.1",
	}
	for name, want := range versions {
		tool, err := find(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if tool.version != want {
			t.Errorf("%s is pinned to %s, want %s", name, tool.version, want)
		}
	}
	all := append(Programs(true), GolangCILint)
	slices.Sort(all)
	if want := slices.Sorted(maps.Keys(versions)); !slices.Equal(all, want) {
		t.Errorf("all programs are %q, want %q", all, want)
	}
	if _, err := find("nobody"); err == nil {
		t.Error("a program that is not under test/tools was found")
	}
}

// TestProgramsOfOneModule: each is built from its own package, and has its
// Kubernetes version.
func TestProgramsOfOneModule(t *testing.T) {
	for _, name := range []string{KubeAPIServer, KubeControllerManager, Kubectl} {
		tool, err := find(name)
		if err != nil {
			t.Fatal(err)
		}
		if want := "k8s.io/kubernetes/cmd/" + name; tool.path != want {
			t.Errorf("%s is built from %s, want %s", name, tool.path, want)
		}
		for _, want := range []string{"gitVersion=v1.37.2", "gitMajor=1", "gitMinor=37"} {
			if !slices.ContainsFunc(strings.Fields(tool.flags), func(flag string) bool { return strings.HasSuffix(flag, "."+want) }) {
				t.Errorf("%s: the linker flags lack %s: %s", name, want, tool.flags)
			}
		}
	}
	if tool, err := find(OldestKubeAPIServer); err != nil || !strings.Contains(tool.flags, ".gitVersion=v1.30.14") {
		t.Errorf("the linker flags lack the oldest Kubernetes version: %+v, %v", tool, err)
	}
	if tool, err := find(Helm3); err != nil || !strings.HasSuffix(tool.flags, ".k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=30") {
		t.Errorf("the linker flags lack the Kubernetes version of Helm 3: %+v, %v", tool, err)
	}
	if tool, err := find(Etcd); err != nil || tool.flags != "-s -w" {
		t.Errorf("etcd is built with the flags of another project: %+v, %v", tool, err)
	}
	if tool, err := find(kubernetes); err == nil {
		t.Errorf("a module with several programs gave %s for its own name", tool.path)
	}
}

// TestBuildOnce uses the smallest program.
func TestBuildOnce(t *testing.T) {
	first, err := Build(t.Context(), Crane)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Build(t.Context(), Crane)
	if err != nil || second != first {
		t.Fatalf("the second build gave %s, %v; want %s", second, err, first)
	}
	after, err := os.Stat(second)
	if err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the program was built twice (%v)", err)
	}
	if root, err := tools(); err != nil || strings.HasPrefix(first, filepath.Dir(root)) {
		t.Errorf("the program %s is in the tree (%v)", first, err)
	}
}

func TestLockIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(gone, path); !errors.Is(err, context.Canceled) {
		t.Errorf("a held lock was taken, or the wait did not end: %v", err)
	}
	unlock()
	again, err := lock(t.Context(), path)
	if err != nil {
		t.Fatalf("a free lock was not taken: %v", err)
	}
	again()
}
