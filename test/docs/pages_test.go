package docs_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/docs"
	"github.com/quaymaster/quaymaster/test/peers"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestPages runs the commands of the pages that need no cluster, and the blocks of other
// pages that name it. What a page takes as
// given is made by the script of its name in testdata/before.
func TestPages(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs cosign, crane and a registry")
	}
	site, programs := load(t), programs(t)
	for _, name := range site.Names() {
		commands, err := site.Pages[name].Commands()
		if docs.Pages()[name] != docs.Machine {
			commands, err = site.Pages[name].CommandsOf(t.Name())
		}
		must(t, err)
		if len(commands) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shell := machine(t, programs, name)
			if err := shell.Run(t.Context(), name, commands); err != nil {
				t.Error(err)
			}
		})
	}
}

// programs returns a folder with the programs that pages call, under their own names.
func programs(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, program := range map[string]string{"cosign": peers.Cosign3, "crane": peers.Crane, "notation": peers.Notation, "helm": peers.Helm, "kustomize": peers.Kustomize} {
		path, err := peers.Build(t.Context(), program)
		must(t, err)
		must(t, os.Symlink(path, filepath.Join(folder, name)))
	}
	must(t, peers.BuildQuaymaster(t.Context(), filepath.Join(folder, "quaymaster")))
	return folder
}

// machine is the environment of a page: a folder, registries and identities.
func machine(t *testing.T, programs, page string) docs.Shell {
	t.Helper()
	folder := t.TempDir()
	shell := docs.Shell{Folder: folder, Names: map[string]string{
		"registry.example": peers.StartRegistry(t, "", ""),
		"registry.inside":  peers.StartRegistry(t, "", ""),
	}, Calls: map[string]string{"bin/quaymaster": "quaymaster", "go run ./cmd/quaymaster": "quaymaster"}}
	maps.Copy(shell.Names, sigstore(t, folder))
	shell.Env = []string{
		"HOME=" + folder, "DOCKER_CONFIG=" + folder, "XDG_CACHE_HOME=" + folder, "XDG_CONFIG_HOME=" + filepath.Join(folder, ".config"),
		"PATH=" + programs + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"COSIGN_PASSWORD=", "COSIGN_YES=true", "NO_COLOR=1",
		// Loopback needs no proxy; other connections fail at once.
		"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1",
		"CHECKOUT=" + checkout(t),
	}
	for _, script := range []string{"common", strings.TrimSuffix(filepath.Base(page), ".md")} {
		text, err := os.ReadFile(filepath.Join("testdata", "before", script+".sh"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		shell.Before += string(text)
	}
	return shell
}

// sigstore starts a registry with images that a workflow signed under a Sigstore of their
// own, since tests cannot use the public one, and writes the trusted root of that Sigstore to
// a folder.
func sigstore(t *testing.T, folder string) map[string]string {
	t.Helper()
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	ours, err := verifytest.New(verifytest.Options{Name: "company"})
	must(t, err)
	signer, err := ours.Keyless(verifytest.Identity{URI: "https://git.company.example/shop/web/release.yaml@refs/heads/main", Issuer: "https://login.company.example"})
	must(t, err)
	yard := gatetest.New(server, ours)
	must(t, yard.SignBundle(yard.Build("shop/web", "v1", "signed"), verifytest.Claim{Signer: signer}, nil))
	yard.Build("shop/unsigned", "v1", "unsigned")
	below := filepath.Join(folder, ".sigstore")
	must(t, os.Mkdir(below, 0o700))
	for name, content := range map[string][]byte{
		"trusted_root.json": ours.TrustedRoot(), "fulcio.pem": ours.CA.ChainPEM(), "rekor.pub": ours.Rekor.PublicPEM(),
		"ctfe.pub": ours.CTLog.PublicPEM(),
	} {
		must(t, os.WriteFile(filepath.Join(below, name), content, 0o600))
	}
	return map[string]string{"harbor.company.example": server.Host()}
}
