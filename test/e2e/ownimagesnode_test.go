package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/pkg/imageverifier/bindir"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
)

// TestOwnImageOnNode: quaymaster in containerd's folder, with the settings and the policy of
// docs/own-images.md, proves the gateway's image while no gateway runs.
func TestOwnImageOnNode(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program")
	}
	h := openEnv(t, registrytest.Options{})
	folder, bin := t.TempDir(), t.TempDir()
	binary, err := shared.binary()
	must(t, err)
	text, err := os.ReadFile(binary)
	must(t, err, os.WriteFile(filepath.Join(bin, "quaymaster"), text, 0o700))
	own, err := h.Signed("quaymaster/quaymaster", "v2")
	must(t, err)
	foreign, err := h.SignedBy(h.Stranger, "quaymaster/quaymaster", "v3")
	must(t, err)
	bare, other := h.Unsigned("quaymaster/quaymaster", "v4"), h.Unsigned("shop/web", "v1")

	policies := filepath.Join(folder, "policies")
	must(t, os.Mkdir(policies, 0o700))
	// Of the gateway's image alone, as on the page.
	policy, err := h.YAML(env.Policy{Name: "own-image", Images: []string{h.Registry.Host() + "/quaymaster/*"}})
	must(t, err, os.WriteFile(filepath.Join(policies, "own.yaml"), []byte(policy), 0o600))
	settings := filepath.Join(folder, "node.yaml")
	must(t, os.WriteFile(settings, []byte("timeout: 15s\nlocal: {policies: ["+policies+"], plainHTTP: ["+h.Registry.Host()+"]}\n"), 0o600))
	t.Setenv("QUAYMASTER_NODE_CONFIG", settings)
	config := &bindir.Config{BinDir: bin, MaxVerifiers: 10}
	must(t, config.PerVerifierTimeout.UnmarshalText([]byte("20s")))
	verifier := bindir.NewImageVerifier(config)
	for _, row := range []struct {
		reason  string
		of      gatetest.Image
		allowed bool
		says    string
	}{
		{"of the release's signer", own, true, "allowed"},
		{"of another signer, under the gateway's name", foreign, false, "wrong-key"},
		{"unsigned, under the gateway's name", bare, false, "unsigned"},
		{"another image, which the policy does not match", other, true, "no-policy"},
	} {
		said, err := verifier.VerifyImage(t.Context(), row.of.Name, ocispec.Descriptor{
			MediaType: row.of.Manifest.MediaType, Digest: digest.Digest(row.of.Manifest.Digest), Size: row.of.Manifest.Size,
		})
		if err != nil || said.OK != row.allowed || !strings.Contains(said.Reason, row.says) {
			t.Errorf("%s: %+v, %v; want %t, saying %q", row.reason, said, err, row.allowed, row.says)
		}
	}
}
