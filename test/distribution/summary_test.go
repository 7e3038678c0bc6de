package distribution

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

const summaryType = "https://slsa.dev/verification_summary/v1"

// TestSummaries: quaymaster stores a verification summary in a real registry, beside what
// cosign has there, and cosign 2 and 3 verify it.
func TestSummaries(t *testing.T) {
	c := muster(t)
	// Cosign 2 wants a trusted root for any bundle, also where nothing of it is asked.
	root := c.write(t, "root.json", []byte(`{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`))
	for _, kind := range []struct {
		name string
		open func() *privateRegistry
	}{
		{"basic authentication", func() *privateRegistry { return openBasic(t, c) }},
		{"tokens", func() *privateRegistry { return openTokens(t, c, jose.ES256) }},
	} {
		t.Run(kind.name, func(t *testing.T) {
			h := kind.open()
			image := h.push(t, "app", "v1")
			c.cosign3.With(h.login).Must(t, "sign", "--key", c.file("signer.key"), "--use-signing-config=false", "--tlog-upload=false", image)
			h.gangway.take()
			file := filepath.Join(t.TempDir(), "vsa.jsonl")
			c.ours.With(h.login).Must(t, "verify", "--key", c.file("signer.pub"), "--insecure-ignore-tlog", image,
				"-o", "vsa="+file, "--vsa-verifier-id", "https://ci.example/verifier", "--vsa-key", c.file("stranger.key"), "--vsa-push")
			h.checkPushed(t, h.gangway.take())
			const bundle = "application/vnd.dev.sigstore.bundle.v0.3+json"
			if types := h.referrers(t, image); !slices.Equal(types, []string{bundle, bundle}) {
				t.Errorf("the referrers tag lists %q, want cosign's signature and the summary", types)
			}
			for _, row := range []struct {
				reason string
				args   []string
				says   string
			}{
				{"by the verifier", []string{"--key", c.file("stranger.pub"), "--type", summaryType}, ""},
				{"by another", []string{"--key", c.file("signer.pub"), "--type", summaryType}, "none of the attestations"},
				{"of another type", []string{"--key", c.file("stranger.pub"), "--type", "slsaprovenance1"}, "none of the attestations"},
			} {
				args := append([]string{"verify-attestation", "--insecure-ignore-tlog"}, row.args...)
				for name, run := range map[string]func() (string, error){
					"cosign 3": func() (string, error) { return c.cosign3.With(h.login).Run(t.Context(), append(args, image)...) },
					"cosign 2": func() (string, error) {
						return c.cosign2.With(h.login).Run(t.Context(), append(args, "--new-bundle-format", "--trusted-root", root, image)...)
					},
				} {
					if said, err := run(); (err == nil) != (row.says == "") || !strings.Contains(said, row.says) {
						t.Errorf("%s, %s: %v\n%s", name, row.reason, err, said)
					}
				}
			}
			accept := []string{"--accept-vsa", "https://ci.example/verifier", "--insecure-ignore-tlog", image, "--key"}
			h.ask(t, h.login, append(accept, c.file("stranger.pub"))...).expect(t, 0, "verified")
			h.ask(t, h.login, append(accept, c.file("signer.pub"))...).expect(t, 1, "wrong-key")
		})
	}
}

// checkPushed: the push is a few writes, with the credential that the registry requires
// and nothing else.
func (h *privateRegistry) checkPushed(t *testing.T, calls []call) {
	t.Helper()
	writes := 0
	for _, c := range calls {
		if strings.Contains(c.query, password) || h.office != nil && c.carriesPassword() {
			t.Errorf("%s came with the password", c.request)
		}
		isWrite := strings.HasPrefix(c.request, "POST ") || strings.HasPrefix(c.request, "PUT ")
		if isWrite && c.status != http.StatusUnauthorized {
			writes++
		}
	}
	if writes != 4 { // an upload of the summary in two steps (cosign has stored the empty configuration), a manifest, the list
		t.Errorf("%d writes", writes)
	}
}
