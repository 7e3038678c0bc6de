package distribution

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/peers"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestSLSAVerifier: slsa-verifier accepts a summary with a build level, and refuses it where one thing differs.
// A summary without one it refuses always: it reads a number in each level that begins with SLSA_.
func TestSLSAVerifier(t *testing.T) {
	peers.Long(t)
	slsa, ours := peers.Get(t, peers.SLSAVerifier), peers.Quaymaster(t)
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	yard := gatetest.New(server, verifytest.Must(verifytest.New(verifytest.Options{})))
	ci := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	private, public := write("ci.key", verifytest.Must(ci.PrivatePEM())), write("ci.pub", ci.PublicPEM())
	stranger := write("stranger.pub", verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})).PublicPEM())
	root := write("root.json", yard.Sigstore.TrustedRoot())
	const builder = "https://github.com/org/app/.github/workflows/release.yml@refs/tags/v1"
	signer := verifytest.Must(yard.Sigstore.Keyless(verifytest.Identity{
		URI: builder, Issuer: "https://token.actions.githubusercontent.com",
		Extensions: map[verifytest.Extension]string{verifytest.RunnerEnvironment: "github-hosted", verifytest.SourceRepositoryURI: "https://github.com/org/app"},
	}))
	built := yard.Build("app", "v1", "app")
	workflow := map[string]any{"repository": "https://github.com/org/app", "ref": "refs/tags/v1"}
	if err := yard.AttestBundle(built, verifytest.Claim{Signer: signer}, attest.PredicateSLSAv1, map[string]any{
		"buildDefinition": map[string]any{"buildType": "https://actions.github.io/buildtypes/workflow/v1", "externalParameters": map[string]any{"workflow": workflow}},
		"runDetails":      map[string]any{"builder": map[string]any{"id": builder}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := yard.SignLegacy(built, verifytest.Claim{Signer: ci, NoLog: true}, nil); err != nil {
		t.Fatal(err)
	}
	summary := func(name string, args ...string) string {
		file := filepath.Join(folder, name)
		ours.Must(t, append([]string{"verify", built.Name, "-o", "vsa=" + file, "--vsa-verifier-id", "https://ci.example/verifier", "--vsa-key", private}, args...)...)
		var bundle struct {
			DSSEEnvelope json.RawMessage `json:"dsseEnvelope"`
		}
		if err := json.Unmarshal(verifytest.Must(os.ReadFile(file)), &bundle); err != nil {
			t.Fatal(err)
		}
		return write(name+".json", bundle.DSSEEnvelope)
	}
	levelled := summary("level", "--slsa-build-level", "2", "--source-uri", "github.com/org/app", "--trusted-root", root)
	plain := summary("plain", "--key", public, "--insecure-ignore-tlog")
	resource := "oci://" + server.Host() + "/app"
	for _, c := range []struct{ reason, summary, key, digest, verifier, resource, level, says string }{
		{"as it is", levelled, public, built.Manifest.Digest, "https://ci.example/verifier", resource, "SLSA_BUILD_LEVEL_2", ""},
		{"a lower level", levelled, public, built.Manifest.Digest, "https://ci.example/verifier", resource, "SLSA_BUILD_LEVEL_1", ""},
		{"a higher level", levelled, public, built.Manifest.Digest, "https://ci.example/verifier", resource, "SLSA_BUILD_LEVEL_3", "expected SLSA level"},
		{"another verifier", levelled, public, built.Manifest.Digest, "https://other.example", resource, "SLSA_BUILD_LEVEL_2", "verifier ID mismatch"},
		{"another image", levelled, public, "sha256:" + strings.Repeat("a", 64), "https://ci.example/verifier", resource, "SLSA_BUILD_LEVEL_2", "expected digest not found"},
		{"another name", levelled, public, built.Manifest.Digest, "https://ci.example/verifier", resource + "2", "SLSA_BUILD_LEVEL_2", "resource URI mismatch"},
		{"another key", levelled, stranger, built.Manifest.Digest, "https://ci.example/verifier", resource, "SLSA_BUILD_LEVEL_2", "verifying envelope"},
		{"no level", plain, public, built.Manifest.Digest, "https://ci.example/verifier", resource, "SLSA_BUILD_LEVEL_1", "invalid SLSA level"},
	} {
		said, err := slsa.Run(t.Context(), "verify-vsa", "--attestation-path", c.summary, "--public-key-path", c.key, "--subject-digest", c.digest,
			"--verifier-id", c.verifier, "--resource-uri", c.resource, "--verified-level", c.level)
		if (err == nil) != (c.says == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: %v\n%s", c.reason, err, said)
		}
	}
}
