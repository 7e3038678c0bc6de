package trustroot_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func encode(text []byte) string { return base64.StdEncoding.EncodeToString(text) }

// keysOf is a TrustRoot of the keys of a Sigstore.
func keysOf(name string, s *verifytest.Sigstore) string {
	return rootDocument(name, map[string]any{"sigstoreKeys": map[string]any{
		"certificateAuthorities": []any{map[string]any{
			"subject": map[string]any{"organization": "o", "commonName": "c"}, "uri": "https://fulcio.example", "certChain": encode(s.CA.ChainPEM()),
		}},
		"tLogs":                []any{map[string]any{"baseURL": s.Rekor.URL(), "hashAlgorithm": "sha-256", "publicKey": encode(s.Rekor.PublicPEM())}},
		"ctLogs":               []any{map[string]any{"baseURL": s.CTLog.URL(), "hashAlgorithm": "sha-256", "publicKey": encode(s.CTLog.PublicPEM())}},
		"timestampAuthorities": []any{map[string]any{"subject": map[string]any{}, "uri": "https://tsa.example", "certChain": encode(s.TSA.ChainPEM())}},
	}})
}

func rootDocument(name string, spec map[string]any) string {
	text, err := json.Marshal(map[string]any{
		"apiVersion": "policy.sigstore.dev/v1alpha1", "kind": "TrustRoot", "metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil { // made of our own values only
		panic(err)
	}
	return string(text)
}

func parseRoot(t *testing.T, text string) *trustroot.TrustRoot {
	t.Helper()
	root, err := trustroot.Parse([]byte(text), "root.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// archive is a tar.gz of entries.
func archive(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	files := tar.NewWriter(zipped)
	for _, h := range headers {
		content := bytes.Repeat([]byte("x"), int(h.Size))
		if err := files.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(files.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestForms(t *testing.T) {
	root := encode([]byte(`{"signed":{"_type":"root"}}`))
	remote := parseRoot(t, rootDocument("r", map[string]any{"remote": map[string]any{"root": root, "mirror": "https://tuf.example", "trustedRootTarget": "corp.json"}}))
	if remote.TUF.Mirror != "https://tuf.example" || remote.TUF.Targets != "targets" || remote.TUF.Target != "corp.json" || remote.TrustedRoot != nil {
		t.Errorf("remote: %+v", remote.TUF)
	}
	files := archive(t, tar.Header{Name: "./repo/", Typeflag: tar.TypeDir, Mode: 0o755}, tar.Header{Name: "./repo/1.root.json", Typeflag: tar.TypeReg, Size: 7, Mode: 0o644})
	repository := parseRoot(t, rootDocument("r", map[string]any{"repository": map[string]any{"root": root, "mirrorFS": encode(files), "targets": "targets"}}))
	if len(repository.TUF.Files) != 1 || len(repository.TUF.Files["repo/1.root.json"]) != 7 || repository.TUF.Target != "trusted_root.json" || repository.TUF.Mirror != "" {
		t.Errorf("repository: %+v", repository.TUF)
	}
	keys := parseRoot(t, keysOf("r", verifytest.Must(verifytest.New(verifytest.Options{}))))
	written := verifytest.Must(verifytest.New(verifytest.Options{})).TrustedRoot()
	whole := parseRoot(t, rootDocument("r", map[string]any{"trustedRootJSON": string(written)}))
	if root, err := trustroot.Unmarshal(whole.TrustedRoot); err != nil || whole.TUF != nil || len(root.GetCertificateAuthorities()) == 0 || len(root.GetTlogs()) == 0 {
		t.Errorf("a trusted_root.json: %+v, %v", whole, err)
	}
	if keys.TUF != nil || !bytes.Contains(keys.TrustedRoot, []byte("trustedroot+json")) {
		t.Errorf("keys: %+v", keys)
	}
}

// twoOfOneName is a trusted_root.json with two logs of one identifier and different keys.
func twoOfOneName(t *testing.T) string {
	t.Helper()
	root, err := trustroot.Unmarshal(verifytest.Must(verifytest.New(verifytest.Options{})).TrustedRoot())
	if err != nil {
		t.Fatal(err)
	}
	other, err := trustroot.Unmarshal(verifytest.Must(verifytest.New(verifytest.Options{})).TrustedRoot())
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range other.GetTlogs() {
		log.LogId = root.GetTlogs()[0].GetLogId()
		root.Tlogs = append(root.GetTlogs(), log)
	}
	text, err := trustroot.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRefuses(t *testing.T) {
	s := verifytest.Must(verifytest.New(verifytest.Options{}))
	root := encode([]byte(`{"signed":{"_type":"root"}}`))
	file := func(h tar.Header) map[string]any {
		return map[string]any{"repository": map[string]any{"root": root, "targets": "targets", "mirrorFS": encode(archive(t, h))}}
	}
	keys := func(field string, value map[string]any) map[string]any {
		return map[string]any{"sigstoreKeys": map[string]any{field: []any{value}}}
	}
	for _, c := range []struct {
		spec         map[string]any
		want, reason string
	}{
		{map[string]any{}, "spec: want one of", "no form"},
		{map[string]any{"remote": map[string]any{}, "sigstoreKeys": map[string]any{}}, "spec: want one of", "two forms"},
		{map[string]any{"sigstoreKeys": map[string]any{}}, "spec.sigstoreKeys: is empty", "no keys"},
		{map[string]any{"trustedRootJSON": ""}, "spec: want one of", "an empty trusted_root.json"},
		{map[string]any{"trustedRootJSON": string(s.TrustedRoot()), "sigstoreKeys": map[string]any{}}, "spec: want one of", "a trusted_root.json beside keys"},
		{map[string]any{"trustedRootJSON": string(s.TrustedRoot()[1:])}, "spec.trustedRootJSON: want trusted_root.json", "a trusted_root.json that is cut off"},
		{map[string]any{"trustedRootJSON": `{"mediaType":"` + trustroot.MediaType + `"}`}, "spec.trustedRootJSON: is empty", "a trusted_root.json without keys"},
		{map[string]any{"trustedRootJSON": `{"mediaType":"` + trustroot.MediaType + `","tlog":[]}`}, "spec.trustedRootJSON: want trusted_root.json", "a trusted_root.json with an unknown field"},
		{map[string]any{"trustedRootJSON": twoOfOneName(t)}, "is the one of an earlier log with another key", "two logs of one identifier"},
		{map[string]any{"trustedRootJSON": map[string]any{"mediaType": trustroot.MediaType}}, "spec.trustedRootJSON", "an object instead of its text"},
		{map[string]any{"remote": map[string]any{"root": root, "mirror": "ftp://tuf.example"}}, "spec.remote.mirror: ", "no address"},
		{map[string]any{"remote": map[string]any{"root": encode([]byte("{}")), "mirror": "https://tuf.example"}}, "spec.remote.root: want a root.json", "no root"},
		{map[string]any{"remote": map[string]any{"root": root, "mirror": "https://tuf.example", "trustedRootTarget": "../x"}}, "spec.remote.trustedRootTarget: ", "a target outside"},
		{map[string]any{"remote": map[string]any{"root": root, "mirror": "https://tuf.example", "url": "x"}}, "spec.remote.url: unknown field", "an unknown field"},
		{map[string]any{"repository": map[string]any{"root": root, "mirrorFS": root}}, "spec.repository.targets: is missing", "no targets (import trap)"},
		{map[string]any{"repository": map[string]any{"root": root, "targets": "targets"}}, "spec.repository.mirrorFS: is empty", "no repository"},
		{map[string]any{"repository": map[string]any{"root": root, "targets": "targets", "mirrorFS": root}}, "spec.repository.mirrorFS: want a tar.gz", "no archive"},
		{file(tar.Header{Name: "../x", Typeflag: tar.TypeReg, Size: 1}), "outside the repository", "a path upwards"},
		{file(tar.Header{Name: "/x", Typeflag: tar.TypeReg, Size: 1}), "outside the repository", "a path from the root"},
		{file(tar.Header{Name: "x", Typeflag: tar.TypeSymlink, Linkname: "/etc"}), "is no file", "a link"},
		{file(tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 17 << 20}), "exceed the bound", "much out of little"},
		{keys("certificateAuthorities", map[string]any{"certChain": encode([]byte("x"))}), "spec.sigstoreKeys.certificateAuthorities[0].certChain: ", "no certificate"},
		{keys("certificateAuthorities", map[string]any{"certChain": encode(append(s.CA.RootPEM(), s.CA.IntermediatePEM()...))}), "not signed by the next one", "a chain the wrong way round"},
		{keys("timestampAuthorities", map[string]any{"certChain": encode(s.TSA.LeafPEM())}), "spec.sigstoreKeys.timestampAuthorities[0].certChain: ", "a leaf alone"},
		{keys("tLogs", map[string]any{"baseURL": "https://log.example", "hashAlgorithm": "md5", "publicKey": encode(s.Rekor.PublicPEM())}), "spec.sigstoreKeys.tLogs[0].hashAlgorithm: ", "another algorithm"},
		{keys("ctLogs", map[string]any{"baseURL": "https://log.example", "hashAlgorithm": "sha-256", "publicKey": encode([]byte("x"))}), "spec.sigstoreKeys.ctLogs[0].publicKey: ", "no key"},
		{keys("tLogs", map[string]any{"baseURL": "log", "hashAlgorithm": "sha-256", "publicKey": encode(s.Rekor.PublicPEM())}), "spec.sigstoreKeys.tLogs[0].baseURL: ", "no address of a log"},
		{keys("tLogs", map[string]any{"baseURL": "https://log.example", "hashAlgorithm": "sha-256", "publicKey": encode(append(s.Rekor.PublicPEM(), s.CTLog.PublicPEM()...))}), "want one key, found 2", "two keys"},
	} {
		if _, err := trustroot.Parse([]byte(rootDocument("r", c.spec)), "root.yaml"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.reason, err, c.want)
		}
	}
}

// TestLogKeys: the kinds of key that a log may have.
func TestLogKeys(t *testing.T) {
	for _, c := range []struct {
		key  func() (crypto.Signer, error)
		want string // empty: refused
	}{
		{func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }, "PKIX_ECDSA_P256_SHA_256"},
		{func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) }, "PKIX_ECDSA_P384_SHA_384"},
		{func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P521(), rand.Reader) }, "PKIX_ECDSA_P521_SHA_512"},
		{func() (crypto.Signer, error) { _, key, err := ed25519.GenerateKey(rand.Reader); return key, err }, "PKIX_ED25519"},
		{func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) }, "PKIX_RSA_PKCS1V15_2048_SHA256"},
		{func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P224(), rand.Reader) }, ""},
		{func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 1024) }, ""},
	} {
		key := verifytest.Must(c.key())
		der := verifytest.Must(x509.MarshalPKIXPublicKey(key.Public()))
		text := rootDocument("r", map[string]any{"sigstoreKeys": map[string]any{"tLogs": []any{map[string]any{
			"baseURL": "https://log.example", "hashAlgorithm": "sha-256", "publicKey": encode(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})),
		}}}})
		root, err := trustroot.Parse([]byte(text), "root.yaml")
		switch {
		case c.want == "" && (err == nil || !strings.Contains(err.Error(), "spec.sigstoreKeys.tLogs[0].publicKey: ")):
			t.Errorf("a weak key: %v", err)
		case c.want != "" && (err != nil || !bytes.Contains(root.TrustedRoot, []byte(c.want))):
			t.Errorf("%s: %v", c.want, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(keysOf("r", verifytest.Must(verifytest.New(verifytest.Options{})))))
	f.Add([]byte(rootDocument("r", map[string]any{"remote": map[string]any{"root": "e30=", "mirror": "https://a"}})))
	f.Fuzz(func(t *testing.T, text []byte) {
		root, err := trustroot.Parse(text, "fuzz")
		if err == nil && (root.TUF == nil) == (root.TrustedRoot == nil) {
			t.Errorf("%q: neither or both of TUF and a trusted root", text)
		}
	})
}

func Example() {
	roots := &trustroot.Roots{}
	root, err := trustroot.Parse([]byte(keysOf("corp", verifytest.Must(verifytest.New(verifytest.Options{})))), "corp.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	roots.Put(root)
	for _, name := range []string{"corp", "other"} {
		text, err := roots.TrustedRoot(name)
		fmt.Println(json.Valid(text), err)
	}
	// Output:
	// true <nil>
	// false there is no TrustRoot other
}
