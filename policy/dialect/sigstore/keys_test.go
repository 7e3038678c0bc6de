package sigstore_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// TestKeysThatCanNeverVerify are refused when a policy is loaded, alone or beside a good
// one.
func TestKeysThatCanNeverVerify(t *testing.T) {
	const before = "apiVersion: policy.sigstore.dev/v1beta1\nkind: ClusterImagePolicy\nmetadata: {name: keys}\nspec:\n  images: [{glob: '**'}]\n  authorities: [{name: a, "
	load := func(authority string) error {
		_, err := sigstore.New(sigstore.Options{}).Compile([]byte(before+authority+"}]\n"), "x")
		return err
	}
	refused := func(reason, authority, path string) {
		t.Helper()
		if err := load(authority); err == nil || !strings.Contains(err.Error(), path+": ") {
			t.Errorf("%s: %v, want an error at %s", reason, err, path)
		}
	}
	for _, algorithm := range []verifytest.Algorithm{verifytest.ECDSAP256, verifytest.ECDSAP384, verifytest.ECDSAP521, verifytest.RSA2048, verifytest.Ed25519} {
		good := string(verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{Algorithm: algorithm})).PublicPEM())
		if err := load("key: {data: " + strconv.Quote(good) + ", hashAlgorithm: sha512}"); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
	}
	good := string(verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{Algorithm: verifytest.RSA2048})).PublicPEM())
	refused("no RSA signature has SHA-224", "key: {data: "+strconv.Quote(good)+", hashAlgorithm: sha224}", "spec.authorities[0].key.data")
	for name, text := range verifytest.Must(verifytest.UnusableKeys()) {
		refused(name, "key: {data: "+strconv.Quote(text)+"}", "spec.authorities[0].key.data")
		refused(name+" after a good one", "key: {data: "+strconv.Quote(good+text)+"}", "spec.authorities[0].key.data")
	}
	for _, ref := range []string{"awskms:///a", "awskms://alias/a", "azurekms://vault", "gcpkms://projects/p", "hashivault://a/b", "k8s://team/key", "file:///a"} {
		refused(ref, "key: {kms: "+strconv.Quote(ref)+"}", "spec.authorities[0].key.kms")
	}
	root := string(verifytest.Must(verifytest.New(verifytest.Options{})).CA.RootPEM())
	keyless := func(certificates string) string {
		return "keyless: {identities: [{issuer: a, subject: b}], ca-cert: {data: " + strconv.Quote(certificates) + "}}"
	}
	if err := load(keyless(root)); err != nil {
		t.Error(err)
	}
	junk := "-----BEGIN CERTIFICATE-----\nbm90IGEga2V5\n-----END CERTIFICATE-----\n"
	refused("bytes that are no certificate", keyless(junk), "spec.authorities[0].keyless.ca-cert.data")
	refused("a good one before them", keyless(root+junk), "spec.authorities[0].keyless.ca-cert.data")
}
