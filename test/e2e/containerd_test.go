package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/containerd/v2/pkg/imageverifier/bindir"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/peers"
)

// maxNode is how large the node's binary may be, in bytes.
const maxNode = 12_000_000

// node builds quaymaster-node, as it is released, into a folder of its own: all that
// is there, containerd runs.
func node(t *testing.T) (folder string) {
	t.Helper()
	checkout, err := peers.Checkout()
	must(t, err)
	folder = t.TempDir()
	file := filepath.Join(folder, "quaymaster-node")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, "./cmd/quaymaster-node")
	build.Dir = checkout
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build quaymaster-node: %v\n%s", err, output)
	}
	info, err := os.Stat(file)
	must(t, err)
	if info.Size() >= maxNode {
		t.Errorf("it has %d bytes, want less than %d", info.Size(), maxNode)
	}
	return folder
}

// foreignAuthority is one that signed nothing here.
func foreignAuthority(t *testing.T) string {
	t.Helper()
	authority, err := controlplane.NewAuthority("another")
	must(t, err)
	return string(authority.PEM())
}

// TestContainerd: containerd's own code runs our verifier, which asks the gateway.
func TestContainerd(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	// Nothing but the file knows it.
	const token, wrong = "node-token-of-the-test-0123456789abcdef", "another-token-of-the-test-0123456789abc"
	c := gateway.Configuration{}
	c.Endpoints.API.Tokens = file("tokens", token+",node\n")
	c.Listen.Socket = filepath.Join(folder, "gateway.sock")
	s := guard(t, "containerd", c)
	s.enforce(t, env.Policy{Name: "containerd", Namespaces: []string{s.namespace}})
	config := &bindir.Config{BinDir: node(t), MaxVerifiers: -1}
	must(t, config.PerVerifierTimeout.UnmarshalText([]byte("20s")))
	verifier := bindir.NewImageVerifier(config)

	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	foreign, err := s.env.SignedBy(s.env.Stranger, "shop/foreign", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")
	authorities := file("ca.crt", string(s.secret(t).Data["ca.crt"]))
	https := map[string]any{"url": "https://" + s.gateway.Configuration.Listen.Address, "caFile": authorities, "tokenFile": file("token", token)}
	socket := map[string]any{"socket": c.Listen.Socket}
	use := func(t *testing.T, reached map[string]any, more ...string) {
		t.Helper()
		settings := map[string]any{"namespace": s.namespace, "timeout": "15s", "gateway": reached}
		for i := 0; i+1 < len(more); i += 2 {
			settings[more[i]] = more[i+1]
		}
		text, err := yaml.Marshal(settings)
		must(t, err)
		t.Setenv("QUAYMASTER_NODE_CONFIG", file("node.yaml", string(text)))
	}
	judge := func(ctx context.Context, name string, of gatetest.Image) (bool, string, error) {
		said, err := verifier.VerifyImage(ctx, name, ocispec.Descriptor{
			MediaType: of.Manifest.MediaType, Digest: digest.Digest(of.Manifest.Digest), Size: of.Manifest.Size,
		})
		if err != nil {
			return false, "", err
		}
		return said.OK, said.Reason, nil
	}
	for way, reached := range map[string]map[string]any{"HTTPS": https, "a socket": socket} {
		t.Run("by "+way, func(t *testing.T) {
			use(t, reached)
			for _, row := range []struct {
				reason, name string
				of           gatetest.Image
				allowed      bool
				says         string
			}{
				{"signed, by tag", signed.Name, signed, true, "allowed"},
				{"signed, by tag and digest", env.Pinned(signed), signed, true, "allowed"},
				{"unsigned", bare.Name, bare, false, "unsigned"},
				{"by another key", foreign.Name, foreign, false, "wrong-key"},
				{"signed by name, and other bytes", signed.Name, bare, false, ""},
			} {
				ok, reason, err := judge(t.Context(), row.name, row.of)
				if err != nil || ok != row.allowed || !strings.Contains(reason, row.says) {
					t.Errorf("%s: %t, %q, %v; want %t, saying %q", row.reason, ok, reason, err, row.allowed, row.says)
				}
			}
		})
	}
	for _, row := range []struct {
		reason  string
		reached map[string]any
		says    string
	}{
		{"a wrong token", map[string]any{"url": https["url"], "caFile": authorities, "tokenFile": file("wrong", wrong)}, "401"},
		{"an authority that did not sign the gateway's certificate", map[string]any{"url": https["url"], "caFile": file("other.crt", foreignAuthority(t)), "tokenFile": https["tokenFile"]}, "certificate"},
		{"no server behind the socket", map[string]any{"socket": filepath.Join(folder, "nobody.sock")}, "ask the gateway"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			use(t, row.reached)
			ok, reason, err := judge(t.Context(), signed.Name, signed)
			if err != nil || ok || !strings.Contains(reason, row.says) {
				t.Errorf("%t, %q, %v; want a refusal with %q", ok, reason, err, row.says)
			}
		})
	}
	t.Run("the gateway is gone", func(t *testing.T) {
		use(t, https)
		if ok, reason, err := judge(t.Context(), signed.Name, signed); err != nil || !ok {
			t.Fatalf("before: %t, %q, %v", ok, reason, err)
		}
		s.gateway.Kill()
		for _, reached := range []map[string]any{https, socket} {
			use(t, reached)
			if ok, reason, err := judge(t.Context(), signed.Name, signed); err != nil || ok || !strings.Contains(reason, "could not be verified") {
				t.Errorf("%t, %q, %v; want a refusal for want of an answer", ok, reason, err)
			}
		}
	})
	if strings.Contains(s.gateway.Log(), token) {
		t.Error("the log holds the token")
	}
}
