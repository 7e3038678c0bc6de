package verifyimages_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestKeysThatCanNeverVerify are refused when a policy is loaded, alone or beside a good
// one, in every field that has keys or certificates.
func TestKeysThatCanNeverVerify(t *testing.T) {
	good := string(verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{Algorithm: verifytest.RSA2048})).PublicPEM())
	s := verifytest.Must(verifytest.New(verifytest.Options{}))
	root, tsa := string(s.CA.RootPEM()), string(s.TSA.ChainPEM())
	junk := "-----BEGIN CERTIFICATE-----\nbm90IGEga2V5\n-----END CERTIFICATE-----\n"
	play := func(reason, entry, path string) {
		t.Helper()
		_, err := entryOf(t, "", "imageReferences: ['*'], attestors: [{entries: [{"+entry+"}]}]")
		switch {
		case path == "" && err != nil:
			t.Errorf("%s: %v", reason, err)
		case path != "" && (err == nil || !strings.Contains(err.Error(), "attestors[0].entries[0]."+path+": ")):
			t.Errorf("%s: %v, want an error at %s", reason, err, path)
		}
	}
	fields := map[string]string{ // the path of the field, and an entry with it
		"keys.publicKeys":           "keys: {publicKeys: TEXT}",
		"keys.rekor.pubkey":         "keys: {publicKeys: GOOD, rekor: {pubkey: TEXT}}",
		"keyless.rekor.pubkey":      "keyless: {issuer: a, subject: b, rekor: {pubkey: TEXT}}",
		"keyless.ctlog.pubkey":      "keyless: {issuer: a, subject: b, ctlog: {pubkey: TEXT}}",
		"certificates.ctlog.pubkey": "certificates: {certChain: ROOT, ctlog: {pubkey: TEXT}}",
	}
	fill := func(entry, text string) string {
		return strings.NewReplacer("TEXT", strconv.Quote(text), "GOOD", strconv.Quote(good), "ROOT", strconv.Quote(root)).Replace(entry)
	}
	bad := verifytest.Must(verifytest.UnusableKeys())
	for path, entry := range fields {
		play(path+", a good key", fill(entry, good), "")
		for name, text := range bad {
			play(path+", "+name, fill(entry, text), path)
			play(path+", a good key, then "+name, fill(entry, good+text), path)
		}
	}
	for path, entry := range map[string]string{
		"certificates.cert": "certificates: {cert: TEXT}", "certificates.certChain": "certificates: {certChain: TEXT}",
		"keyless.roots": "keyless: {issuer: a, subject: b, roots: TEXT}",
	} {
		play(path, fill(entry, root), "")
		play(path+", bytes that are none", fill(entry, junk), path)
		play(path+", a good one, then bytes that are none", fill(entry, root+junk), path)
	}
	const stamped = "keys: {publicKeys: GOOD, ctlog: {tsaCertChain: TEXT}}"
	play("a chain of timestamps", fill(stamped, tsa), "")
	play("a leaf alone", fill(stamped, string(s.TSA.LeafPEM())), "keys.ctlog.tsaCertChain")
	play("no RSA signature has SHA-224", fill("keys: {publicKeys: TEXT, signatureAlgorithm: sha224}", good), "keys.publicKeys")
	play("RSA with SHA-512", fill("keys: {publicKeys: TEXT, signatureAlgorithm: sha512}", good), "")
	for ref, path := range map[string]string{
		"awskms:///alias/a": "", "azurekms://vault.vault.azure.net/key": "", "gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k": "", "hashivault://a": "", "k8s://team/key": "",
		"awskms:///a": "kms", "awskms://alias/a": "kms", "azurekms://vault": "kms", "gcpkms://projects/p": "kms", "hashivault://a/b": "kms", "k8s://team": "kms", "k8s://Team/key": "kms",
	} {
		for _, name := range []string{"kms", "publicKeys"} {
			want := path
			if want != "" {
				want = "keys." + name
			}
			play(name+" "+ref, "keys: {"+name+": "+strconv.Quote(ref)+"}", want)
		}
	}
	play("a Secret", "keys: {secret: {namespace: team, name: key}}", "")
	play("a name that no Secret has", "keys: {secret: {namespace: team, name: a b}}", "keys.secret")
}

// TestSecretsOfOtherNamespaces: a policy of a namespace names them in no way.
func TestSecretsOfOtherNamespaces(t *testing.T) {
	for _, name := range []string{"kms", "publicKeys"} {
		for namespace, good := range map[string]bool{"team": true, "other": false} {
			_, err := entryOf(t, "team", "imageReferences: ['*'], attestors: [{entries: [{keys: {"+name+": 'k8s://"+namespace+"/key'}}]}]")
			if (err == nil) != good {
				t.Errorf("%s of namespace %s: %v", name, namespace, err)
			}
		}
	}
}
