package engine_test

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// certificate returns a certificate of a signer's key under a name, in PEM.
func certificate(t *testing.T, signer *verifytest.Signer, name string) string {
	t.Helper()
	issuer, err := verifytest.KeySigner(verifytest.KeyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning},
	}
	parent := &x509.Certificate{Subject: pkix.Name{CommonName: "issuer"}}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, signer.Public(), issuer.Private())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestSignersCountOnce: a count needs as many different signers, by whatever attestors they are accepted.
func TestSignersCountOnce(t *testing.T) {
	v, with := newVariants(t), compilers(t)
	identity, err := v.Sigstore.Keyless(verifytest.Identity{Email: "a@example.com", Issuer: "https://token.example", NotBefore: time.Now().Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	prod, team := map[string]any{"env": "prod"}, map[string]any{"team": "a"}
	type signature struct {
		by          *verifytest.Signer
		annotations map[string]any
	}
	images := map[string]gatetest.Image{}
	for name, signatures := range map[string][]signature{
		"none": nil, "key": {{by: v.Signer}}, "twice": {{by: v.Signer}, {by: v.Signer}}, "second": {{by: v.Second}},
		"keys": {{by: v.Signer}, {by: v.Second}}, "identity": {{by: identity}}, "key-and-identity": {{by: v.Signer}, {by: identity}},
		"prod": {{v.Signer, prod}, {by: v.Second}}, "apart": {{v.Signer, prod}, {v.Signer, team}},
		"together": {{v.Signer, map[string]any{"env": "prod", "team": "a"}}},
	} {
		built := v.Build("shop/counted-"+name, "1", name)
		for _, s := range signatures {
			if err := v.SignLegacy(built, verifytest.Claim{Signer: s.by}, s.annotations); err != nil {
				t.Fatal(err)
			}
		}
		images[name] = built
	}
	quoted := func(texts ...string) string {
		text, err := json.Marshal(strings.Join(texts, ""))
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(text), "KEY", `\u004bEY`) // which Fill replaces
	}
	key, second := string(v.Signer.PublicPEM()), string(v.Second.PublicPEM())
	names := strings.NewReplacer(
		"@keys", "{keys: {publicKeys: "+quoted(key, second)+", rekor: {ignoreTlog: true}}}", "@twice", "{keys: {publicKeys: "+quoted(key, key)+"}}",
		"@key", "keys: {publicKeys: "+quoted(key)+", rekor: {ignoreTlog: true}}", "@second", "{keys: {publicKeys: "+quoted(second)+", rekor: {ignoreTlog: true}}}",
		"@identity", "{keyless: {issuer: 'https://token.example', subject: a@example.com}}",
		"@old", "{certificates: {cert: "+quoted(certificate(t, v.Signer, "old"))+", rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}",
		"@new", "{certificates: {cert: "+quoted(certificate(t, v.Signer, "new"))+", rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}",
		"@other", "{certificates: {cert: "+quoted(certificate(t, v.Second, "other"))+", rekor: {ignoreTlog: true}, ctlog: {ignoreSCT: true}}}",
	)
	admits := func(reason string, policies spelling, want string) {
		t.Helper()
		g, err := v.Gate(compile(t, with, v, policies, enforce, "")...)
		if err != nil {
			t.Fatal(err)
		}
		for name, built := range images {
			outcome := g.Decide(t.Context(), podOf(t, built.Name))
			if (outcome.Result == gate.Allow) != slices.Contains(strings.Fields(want), name) {
				t.Errorf("%s; image %s: %s, want it of %q alone: %+v", reason, name, outcome.Result, want, against(outcome))
			}
		}
	}
	for _, c := range []struct{ reason, attestors, want string }{
		{"one of two keys", "[{count: 1, entries: [{@key}, @second]}]", "key twice second keys key-and-identity prod apart together"},
		{"both keys", "[{entries: [{@key}, @second]}]", "keys prod"},
		{"two keys in one text", "[{entries: [@keys]}]", "keys prod"},
		{"one key twice in one text", "[{count: 2, entries: [@twice]}]", ""},
		{"one key twice", "[{count: 2, entries: [{@key}, {@key}]}]", ""},
		{"one key in two lists", "[{entries: [{@key}]}, {entries: [{@key}]}]", "key twice keys key-and-identity prod apart together"},
		{"two of two keys and an identity", "[{count: 2, entries: [{@key}, @second, @identity]}]", "keys key-and-identity prod"},
		{"a key, and one of it and another", "[{entries: [{@key}, {attestor: {count: 1, entries: [{@key}, @second]}}]}]", "keys prod"},
		{"certificates of two keys", "[{count: 2, entries: [@old, @other]}]", "keys prod"},
		{"two certificates of one key", "[{count: 2, entries: [@old, @new]}]", ""},
		{"one of two certificates of one key", "[{count: 1, entries: [@old, @new]}]", "key twice keys key-and-identity prod apart together"},
		{"a key and its certificate", "[{count: 2, entries: [{@key}, @new]}]", ""},
		{"a key and the certificate of another", "[{count: 2, entries: [{@key}, @other]}]", "keys prod"},
		{"annotations of one signature", "[{entries: [{@key, annotations: {env: prod, team: a}}]}]", "together"},
		{"annotations by two entries for one key", "[{count: 2, entries: [{@key, annotations: {env: prod}}, {@key, annotations: {team: a}}]}]", ""},
		{"an annotation by one of two keys", "[{count: 2, entries: [{@key, annotations: {env: prod}}, @second]}]", "prod"},
	} {
		admits(c.reason, kyverno("ClusterPolicy", "", []string{"attestors: " + names.Replace(c.attestors)}), c.want)
	}
	for _, c := range []struct{ reason, certificate, want string }{
		{"a key and its certificate, by an expression", certificate(t, v.Signer, "new"), ""},
		{"a key and the certificate of another, by an expression", certificate(t, v.Second, "other"), "keys prod"},
	} {
		admits(c.reason, imageValidating("  attestors:\n  - {name: key, cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true}}}\n" +
			"  - {name: certificate, cosign: {certificate: {cert: {value: " + quoted(c.certificate) + "}}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}}}\n" +
			"  validations: [{expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.key, attestors.certificate]) == 2)'}]\n")[0], c.want)
	}
}
