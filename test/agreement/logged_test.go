package agreement

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/peers"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const (
	workflow = "https://github.com/example/app/.github/workflows/release.yml@refs/tags/v1"
	issuer   = "https://token.actions.githubusercontent.com"
)

// tryLogged asks both sides with the transparency log on. A test cannot upload
// to a log here, so a throw-away Sigstore writes the entries that cosign would.
func (c *crew) tryLogged(t *testing.T) {
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	home, foreign := newSigstore(t, "home"), newSigstore(t, "foreign")
	root := c.write(t, "home.json", home.TrustedRoot())
	key, err := verifytest.KeySigner(verifytest.KeyOptions{})
	check(t, err)
	public := c.write(t, "logged.pub", key.PublicPEM())

	byKey := []string{"--key", public}
	byIdentity := []string{"--certificate-identity", workflow, "--certificate-oidc-issuer", issuer}
	other := []string{"--certificate-identity", strings.Replace(workflow, "release", "nightly", 1), "--certificate-oidc-issuer", issuer}
	otherIssuer := []string{"--certificate-identity", workflow, "--certificate-oidc-issuer", "https://accounts.example.com"}
	keyless := func(change func(*verifytest.Identity)) *verifytest.Signer {
		id := verifytest.Identity{URI: workflow, Issuer: issuer}
		if change != nil {
			change(&id)
		}
		signer, err := home.Keyless(id)
		check(t, err)
		return signer
	}
	fault := func(f verifytest.LogFault) []verifytest.Record { return []verifytest.Record{{Fault: f}} }

	for _, row := range []struct {
		reason string
		claim  verifytest.Claim
		flags  []string
		code   string // why we refuse; empty where both accept
	}{
		{"a key and an entry", verifytest.Claim{Signer: key}, byKey, ""},
		{"a key without an entry", verifytest.Claim{Signer: key, NoLog: true}, byKey, "no-log-entry"},
		{"a key without an entry, which is not required", verifytest.Claim{Signer: key, NoLog: true}, with(byKey, "--insecure-ignore-tlog"), ""},
		{"a key and an entry of a foreign log", verifytest.Claim{Signer: key, Records: []verifytest.Record{{Log: foreign.Rekor}}}, byKey, "bad-log-entry"},
		{"a key and a broken promise", verifytest.Claim{Signer: key, Records: fault(verifytest.WrongPromise)}, byKey, "bad-log-entry"},
		{"a key and the entry of another signature", verifytest.Claim{Signer: key, Records: fault(verifytest.OtherSignature)}, byKey, "bad-log-entry"},
		{"an identity", verifytest.Claim{Signer: keyless(nil)}, byIdentity, ""},
		{"another identity", verifytest.Claim{Signer: keyless(nil)}, other, "wrong-identity"},
		{"another issuer", verifytest.Claim{Signer: keyless(nil)}, otherIssuer, "wrong-identity"},
		{"an identity in place of the key", verifytest.Claim{Signer: keyless(nil)}, byKey, "wrong-key"},
		{"a key in place of the identity", verifytest.Claim{Signer: key}, byIdentity, "wrong-identity"},
		{"an identity without an entry", verifytest.Claim{Signer: keyless(nil), NoLog: true}, byIdentity, "no-log-entry"},
		{"an identity of a foreign certificate authority", verifytest.Claim{Signer: keyless(func(id *verifytest.Identity) { id.CA = foreign.CA })}, byIdentity, "untrusted-chain"},
		{"an identity without a certificate timestamp", verifytest.Claim{Signer: keyless(func(id *verifytest.Identity) { id.NoSCT = true })}, byIdentity, "no-sct"},
		{"an identity without a certificate timestamp, which is not required", verifytest.Claim{Signer: keyless(func(id *verifytest.Identity) { id.NoSCT = true })}, with(byIdentity, "--insecure-ignore-sct"), ""},
		{"an identity with a foreign certificate timestamp", verifytest.Claim{Signer: keyless(func(id *verifytest.Identity) { id.CTLog = foreign.CTLog })}, byIdentity, "bad-sct"},
	} {
		for _, style := range []struct {
			name, program string
			put           func(*testing.T, *registrytest.Server, *verifytest.Sigstore, verifytest.Claim) string
			flags         []string
		}{
			{"tags by cosign 2", peers.Cosign2, putTag, []string{"--new-bundle-format=false"}},
			{"tags by cosign 3", peers.Cosign3, putTag, []string{"--new-bundle-format=false"}},
			{"bundles by cosign 2", peers.Cosign2, putBundle, []string{"--new-bundle-format=true"}},
			{"bundles by cosign 3", peers.Cosign3, putBundle, nil},
		} {
			t.Run(style.name+"/"+row.reason, func(t *testing.T) {
				image := style.put(t, server, home, row.claim)
				p := &port{crew: c}
				flags := with(row.flags, "--trusted-root", root)
				theirs := with([]string{"verify"}, with(with(flags, style.flags...), image)...)
				p.both(t, row.reason, c.cosign[style.program], theirs, with(flags, image), expectation{theirs: row.code == "", code: row.code})
			})
		}
	}
}

func newSigstore(t *testing.T, name string) *verifytest.Sigstore {
	t.Helper()
	s, err := verifytest.New(verifytest.Options{Name: name})
	check(t, err)
	return s
}

const repository = "app"

// putTag stores an image and a signature of it under cosign's tag.
func putTag(t *testing.T, server *registrytest.Server, s *verifytest.Sigstore, c verifytest.Claim) string {
	t.Helper()
	image := server.PutImage(repository, "latest", t.Name())
	c.Image = &verifytest.SimpleSigning{Reference: server.Host() + "/" + repository, Digest: image.Digest}
	layer, err := s.Layer(c)
	check(t, err)
	blob := server.PutBlob(repository, layer.MediaType, layer.Payload)
	config := server.PutBlob(repository, "application/vnd.oci.image.config.v1+json", []byte(`{"architecture":"","os":"","config":{},"rootfs":{"type":"layers","diff_ids":["`+blob.Digest+`"]}}`))
	manifest, err := json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": config,
		"layers": []any{map[string]any{"mediaType": layer.MediaType, "digest": blob.Digest, "size": blob.Size, "annotations": layer.Annotations}},
	})
	check(t, err)
	server.PutManifest(repository, strings.Replace(image.Digest, ":", "-", 1)+".sig", "application/vnd.oci.image.manifest.v1+json", manifest)
	return server.Host() + "/" + repository + "@" + image.Digest
}

// putBundle stores an image and a bundle that refers to it.
func putBundle(t *testing.T, server *registrytest.Server, s *verifytest.Sigstore, c verifytest.Claim) string {
	t.Helper()
	image := server.PutImage(repository, "latest", t.Name())
	c.Statement = verifytest.CosignSignature(image.Digest, nil)
	bundle, err := s.Bundle(c)
	check(t, err)
	server.PutReferrer(repository, image, "application/vnd.dev.sigstore.bundle.v0.3+json", bundle)
	return server.Host() + "/" + repository + "@" + image.Digest
}
