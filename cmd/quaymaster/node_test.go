package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/node"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestNodeVerify has quaymaster itself answer containerd, from files.
func TestNodeVerify(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	signed, unsigned, foreign := h.Build("shop/signed", "v1", "1"), h.Build("shop/unsigned", "v1", "2"), h.Build("other/app", "v1", "3")
	ok(t, h.SignLegacy(signed, verifytest.Claim{Signer: h.key, NoLog: true}, nil))
	ok(t, h.SignLegacy(foreign, verifytest.Claim{Signer: h.stranger, NoLog: true}, nil))
	closed := registrytest.Start(registrytest.Options{})
	nowhere := closed.Host() + "/app:v1"
	closed.Close()
	policy := h.file(t, "policy.yaml", fmt.Sprintf(`
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
    - name: shop
      match: {any: [{resources: {kinds: [Pod]}}]}
      verifyImages:
        - imageReferences: [%q]
          attestors: [{entries: [{keys: {publicKeys: %q, rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}]}]
`, h.Registry.Host()+"/shop/*", string(h.key.PublicPEM())))
	byKey := "local: {keys: [" + h.path("key.pub") + "], insecureIgnoreTlog: true, trustedRoot: " + h.path("trusted_root.json") + "}\n"
	byPolicy := "local: {policies: [" + policy + "]}\n"
	for _, row := range []struct {
		reason, settings, name, digest string
		status                         int
		says                           string
	}{
		{"signed by the key", byKey, signed.Name, signed.Manifest.Digest, 0, "allowed"},
		{"not signed", byKey, unsigned.Name, unsigned.Manifest.Digest, 1, "denied: unsigned"},
		{"signed by another", byKey, foreign.Name, foreign.Manifest.Digest, 1, "denied"},
		{"a registry that does not answer", byKey, nowhere, signed.Manifest.Digest, 1, "could not be verified"},
		{"a policy that is met", byPolicy, signed.Name, signed.Manifest.Digest, 0, "allowed"},
		{"a policy that is not", byPolicy, unsigned.Name, unsigned.Manifest.Digest, 1, "denied"},
		{"no policy matches it", byPolicy, foreign.Name, foreign.Manifest.Digest, 0, "no-policy"},
		{"no policy matches it, and one must", byPolicy + "requireMatch: true\n", foreign.Name, foreign.Manifest.Digest, 1, "requireMatch"},
		{"allowed by its digest", byKey + "unverified: [" + unsigned.ByDigest() + "]\n", unsigned.Name, unsigned.Manifest.Digest, 0, "without proof"},
		{"another digest there", byKey + "unverified: [" + unsigned.ByDigest() + "]\n", unsigned.Name, signed.Manifest.Digest, 1, ""},
		{"no section", "{}\n", signed.Name, signed.Manifest.Digest, 1, "no section local"},
		{"a key that is not there", "local: {keys: [/none.pub]}\n", signed.Name, signed.Manifest.Digest, 1, "none.pub"},
		{"nothing to prove", "local: {trustedRoot: /none}\n", signed.Name, signed.Manifest.Digest, 1, "nothing is proved"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Setenv("QUAYMASTER_NODE_CONFIG", h.file(t, "node.yaml", row.settings))
			var out, log bytes.Buffer
			stdin := strings.NewReader(fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":%q,"size":7}`, row.digest))
			args := []string{"-name", row.name, "-digest", row.digest, "-stdin-media-type", "application/vnd.oci.descriptor.v1+json"}
			status := node.Verify(t.Context(), args, stdin, &out, &log)
			if status != row.status || !strings.Contains(out.String(), row.says) || strings.Count(out.String(), "\n") != 1 {
				t.Errorf("status %d: %s%s", status, &out, &log)
			}
		})
	}
}
