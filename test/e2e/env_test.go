package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/peers"
)

// openEnv opens an environment for a test.
func openEnv(t *testing.T, options registrytest.Options) *env.Env {
	t.Helper()
	h, err := env.Open(options)
	must(t, err)
	t.Cleanup(h.Close)
	return h
}

// TestEnv asks the command line about the images and the policy that the
// other tests rest on.
func TestEnv(t *testing.T) {
	h := openEnv(t, registrytest.Options{})
	policy, err := h.YAML(env.Policy{Name: "signed", Kinds: []string{"Pod"}, FailurePolicy: "Fail"})
	must(t, err)
	file := filepath.Join(t.TempDir(), "policy.yaml")
	must(t, os.WriteFile(file, []byte(policy), 0o600))
	ours := peers.Quaymaster(t)

	signed, err := h.Signed("shop/web", "1.0")
	must(t, err)
	foreign, err := h.SignedBy(h.Stranger, "shop/foreign", "1.0")
	must(t, err)
	moved, err := h.Signed("shop/moved", "1.0")
	must(t, err)
	bare := h.Unsigned("shop/moved", "1.0")
	if moved.Manifest.Digest == bare.Manifest.Digest {
		t.Fatal("the tag did not move")
	}
	for _, row := range []struct{ reason, image, refused string }{
		{"signed by the signer", signed.Name, ""},
		{"by digest", signed.ByDigest(), ""},
		{"signed by another key", foreign.Name, "wrong-key"},
		{"a tag that moved to an unsigned image", bare.Name, "unsigned"},
		{"the tag's former digest", moved.ByDigest(), ""},
	} {
		said, err := ours.Run(t.Context(), "verify", "--policy", file, row.image)
		if (err == nil) != (row.refused == "") || !strings.Contains(said, row.refused) {
			t.Errorf("%s: got %v, want refused for %q:\n%s", row.reason, err, row.refused, said)
		}
	}
	if count := h.Registry.Count(""); count == 0 {
		t.Error("the registry counted no request")
	}
}
