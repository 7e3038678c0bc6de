package attestor_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// What fill writes into documents. The certificates are roots.
var (
	keyA, keyB                 = newKey(), newKey()
	sigstoreA, sigstoreB       = newSigstore("a"), newSigstore("b")
	certificateA, certificateB = sigstoreA.CA.RootPEM(), sigstoreB.CA.RootPEM()
	root                       = sigstoreA.TrustedRoot()
)

func newKey() []byte {
	return verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})).PublicPEM()
}

func newSigstore(name string) *verifytest.Sigstore {
	return verifytest.Must(verifytest.New(verifytest.Options{Name: name}))
}

// fill puts keys and certificates into a document.
func fill(text string) string {
	return strings.NewReplacer(
		"$OTHERS", q(certificateB), "$OTHER", q(keyB), "$KEY", q(keyA), "$CERTIFICATE", q(certificateA), "$ROOT", q(root),
		"$LEAF", q(sigstoreA.TSA.LeafPEM()), "$BROKEN", q(bytes.Replace(keyA, []byte("M"), []byte("*"), 1)),
	).Replace(text)
}

// TestRefused: what would mean nothing, or something else, is an error with its
// path.
func TestRefused(t *testing.T) {
	const at = "spec.attestors[0]."
	many := func(text string, n int) string { return strings.TrimSuffix(strings.Repeat(text+", ", n), ", ") }
	ann := "{issuer: a, subject: b}"
	keyless := func(identities string) string { return "cosign: {keyless: {identities: [" + identities + "]}}" }
	first := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	broken := func(old, with string) string {
		return q(bytes.Replace(root, []byte(old), []byte(with), 1))
	}
	for _, c := range []struct{ text, want, reason string }{
		{"name: a", "spec.attestors[0]: want one of cosign and notary, found 0", "nobody"},
		{"cosign: {key: {data: $KEY}}\nnotary: {certs: {value: $CERTIFICATE}}", "spec.attestors[0]: want one of cosign and notary, found 2", "two kinds"},
		{"cosign: {}", at + "cosign: want one of key, keyless and certificate, found 0", "no signer"},
		{"cosign: {key: {data: $KEY}, certificate: {cert: {value: $CERTIFICATE}}}", at + "cosign: want one of", "two signers"},

		{"cosign: {key: {}}", at + "cosign.key: want one of data, kms and expression, found 0", "no key"},
		{"cosign: {key: {data: $KEY, kms: 'awskms:///alias/a'}}", at + "cosign.key: want one of", "two keys"},
		{"cosign: {key: {data: text}}", at + "cosign.key.data: want 1 to 32 PEM blocks", "no PEM"},
		{"cosign: {key: {data: $BROKEN}}", at + "cosign.key.data: ", "a broken block"},
		{"cosign: {key: {data: $CERTIFICATE}}", at + `cosign.key.data: a PEM block is of type "CERTIFICATE"`, "a certificate for a key"},
		{"cosign: {key: {data: " + q(append([]byte("text\n"), keyA...)) + "}}", at + "cosign.key.data: want PEM blocks", "text between keys"},
		{"cosign: {key: {data: " + q([]byte("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----")) + "}}", at + "cosign.key.data: ", "a block that holds no key"},
		{"cosign: {key: {data: " + q(bytes.Repeat(keyA, 33)) + "}}", at + "cosign.key.data: want 1 to 32", "too many keys"},
		{"cosign: {key: {data: " + q(bytes.Repeat([]byte("a"), 300<<10)) + "}}", at + "cosign.key.data: 307200 bytes are more", "a long text"},
		{"cosign: {key: {data: $KEY, hashAlgorithm: md5}}", at + `cosign.key.hashAlgorithm: unknown algorithm "md5"`, "an unknown algorithm"},
		{"cosign: {key: {kms: 'file:///etc/key'}}", at + "cosign.key.kms: ", "a file"},
		{"cosign: {key: {kms: 'k8s://a'}}", at + "cosign.key.kms: ", "half a Secret"},
		{"cosign: {key: {expression: 'object.'}}", at + "cosign.key.expression: ", "an expression that does not compile"},
		{"cosign: {key: {expression: '1 + 1'}}", at + "cosign.key.expression: ", "an expression of another type"},
		{"cosign: {key: {expression: image}}", at + "cosign.key.expression: ", "an image where only objects are known"},

		{keyless(""), at + "cosign.keyless.identities: is empty", "no identities"},
		{keyless("{subject: b}"), at + "cosign.keyless.identities[0]: want one of issuer and issuerRegExp, found 0", "no issuer"},
		{keyless("{issuer: a}"), at + "cosign.keyless.identities[0]: want one of subject, subjectRegExp and subjectExpression, found 0", "no subject"},
		{keyless(ann + ", {issuer: a, issuerRegExp: a, subject: b}"), at + "cosign.keyless.identities[1]: want one of issuer", "two issuers"},
		{keyless("{issuer: a, subjectRegExp: a, subjectExpression: object.a}"), at + "cosign.keyless.identities[0]: want one of subject", "two subjects"},
		{keyless("{issuer: a, subject: 'b*'}"), at + "cosign.keyless.identities[0].subject: ", "a wildcard where there are none"},
		{keyless("{issuer: a, subjectRegExp: 'a)|(b'}"), at + "cosign.keyless.identities[0].subjectRegExp: ", "an expression that escapes its anchors"},
		{keyless("{issuer: a, subjectRegExp: " + strings.Repeat("a", 5000) + "}"), at + "cosign.keyless.identities[0].subjectRegExp: the expression has 5000 bytes", "a long expression"},
		{keyless("{issuer: a, subjectExpression: 'nothing.at'}"), at + "cosign.keyless.identities[0].subjectExpression: ", "an unknown name"},
		{keyless(many(ann, 101)), at + "cosign.keyless.identities: 101 are more than 100", "many identities"},
		{"cosign: {keyless: {identities: [" + ann + "], roots: $KEY}}", at + "cosign.keyless.roots: ", "a key for a root"},
		{"cosign: {keyless: {identities: [" + ann + "], additionalExtensions: {color: red}}}", at + "cosign.keyless.additionalExtensions[color]: ", "an unknown extension"},
		{"cosign: {keyless: {identities: [" + ann + "], additionalExtensions: {1.3.6.1.4.1.57264.1.7: red}}}", at + "cosign.keyless.additionalExtensions[1.3.6.1.4.1.57264.1.7]: ", "an unknown extension by its OID"},
		{"cosign: {keyless: {identities: [" + ann + "], additionalExtensions: {issuer: ''}}}", at + "cosign.keyless.additionalExtensions[issuer]: is empty", "no value"},

		{"cosign: {certificate: {}}", at + "cosign.certificate: want cert, certChain or both", "no certificate"},
		{"cosign: {certificate: {cert: {}}}", at + "cosign.certificate.cert: want one of value and expression, found 0", "nothing"},
		{"cosign: {certificate: {cert: {value: a, expression: b}}}", at + "cosign.certificate.cert: want one of", "two ways"},
		{"cosign: {certificate: {cert: {value: " + q(append(bytes.Clone(certificateA), certificateB...)) + "}}}", at + "cosign.certificate.cert.value: want one certificate", "two certificates"},
		{"cosign: {certificate: {cert: {value: " + q([]byte(first("text"))) + "}}}", at + "cosign.certificate.cert.value: ", "base64 of anything"},
		{"cosign: {certificate: {certChain: {value: " + q(bytes.Repeat(certificateA, 33)) + "}}}", at + "cosign.certificate.certChain.value: want 1 to 32", "a long chain"},

		{"cosign: {key: {data: $KEY}, ctlog: {url: rekor}}", at + "cosign.ctlog.url: ", "no address"},
		{"cosign: {key: {data: $KEY}, ctlog: {rekorPubKey: a, insecureIgnoreTlog: true}}", at + "cosign.ctlog.rekorPubKey: ", "no key, though it is not needed"},
		{"cosign: {keyless: {identities: [" + ann + "]}, ctlog: {ctLogPubKey: a}}", at + "cosign.ctlog.ctLogPubKey: ", "no key"},
		{"cosign: {key: {data: $KEY}, ctlog: {tsaCertChain: $KEY}}", at + "cosign.ctlog.tsaCertChain: ", "a key for a chain"},
		{"cosign: {key: {data: $KEY}, annotations: {'': a}}", at + "cosign.annotations: one has no name", "an annotation without a name"},

		{"cosign: {key: {data: $KEY}, source: {repository: 'UPPER/case'}}", at + "cosign.source.repository: ", "no repository"},
		{"cosign: {key: {data: $KEY}, source: {tagPrefix: '-a'}}", at + "cosign.source.tagPrefix: ", "no beginning of a tag"},
		{"cosign: {key: {data: $KEY}, source: {tagPrefix: 'a/b'}}", at + "cosign.source.tagPrefix: ", "no part of a tag"},
		{"cosign: {key: {data: $KEY}, source: {tagPrefix: " + strings.Repeat("a", 53) + "}}", at + "cosign.source.tagPrefix: ", "a long prefix"},
		{"cosign: {key: {data: $KEY}, source: {PullSecrets: [{name: a/b}]}}", at + "cosign.source.PullSecrets[0].name: ", "a Secret of another namespace"},
		{"cosign: {key: {data: $KEY}, source: {PullSecrets: [{}]}}", at + "cosign.source.PullSecrets[0].name: ", "a Secret without a name"},

		{"cosign: {key: {data: $KEY}, tuf: {root: {path: 'https://tuf.example/root.json'}}}", at + "cosign.tuf.root.path: ", "a root at an address"},
		{"cosign: {key: {data: $KEY}, tuf: {mirror: tuf}}", at + "cosign.tuf.mirror: ", "no address"},
		{"cosign: {key: {data: $KEY}, tuf: {mirror: 'https://a:b@tuf.example'}}", at + "cosign.tuf.mirror: ", "a password in an address"},
		{"cosign: {key: {data: $KEY}, tuf: {root: {data: '*'}}}", at + "cosign.tuf.root.data: ", "no base64"},
		{"cosign: {key: {data: $KEY}, tuf: {root: {data: " + first(`{"signed":{"_type":"targets"}}`) + "}}}", at + "cosign.tuf.root.data: want a root.json", "other metadata"},
		{"cosign: {key: {data: $KEY}, trustedRoot: {value: $ROOT}, tuf: {mirror: tuf}}", at + "cosign.tuf.mirror: ", "a mistake beside a root that goes before it"},
		{"cosign: {key: {data: $KEY}, trustedRoot: {value: '{}'}}", at + "cosign.trustedRoot.value: want a trusted_root.json of media type", "no trusted root"},
		{"cosign: {key: {data: $KEY}, trustedRoot: {value: '{'}}", at + "cosign.trustedRoot.value: want a trusted_root.json", "no JSON"},
		{"cosign: {key: {data: $KEY}, trustedRoot: {value: " + broken("version=0.1", "version=9") + "}}", at + "cosign.trustedRoot.value: want a trusted_root.json of media type", "another version"},
		{"cosign: {key: {data: $KEY}, trustedRoot: {value: " + broken("rawBytes\":\"MII", "rawBytes\":\"AAA") + "}}", at + "cosign.trustedRoot.value: ", "a broken certificate in it"},
		{"cosign: {key: {data: $KEY}, trustedRoot: {value: " + q(bytes.Repeat([]byte(" "), 1<<20+1)) + "}}", at + "cosign.trustedRoot.value: 1048577 bytes", "more than a MiB"},

		{"notary: {}", at + "notary.certs: is missing", "a notary without certificates"},
		{"notary: {certs: {value: $KEY}}", at + "notary.certs.value: ", "a key for a certificate"},
		{"notary: {certs: {value: $LEAF}}", at + "notary.certs: certificate", "a leaf by another issuer"},
		{"notary: {certs: {value: $CERTIFICATE}, tsaCerts: {value: $LEAF}}", at + "notary.tsaCerts: certificate", "a timestamp authority's leaf"},
	} {
		o := newLanguage(t).options()
		if _, err := attestor.Compile("spec.attestors", []v1alpha1.Attestor{parse(t, fill(c.text))}, o); !says(err, c.want) {
			t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
		}
	}
}

// TestKeysThatCanNeverVerify are refused when a policy is loaded, alone or beside a good
// one, in every field that has keys.
func TestKeysThatCanNeverVerify(t *testing.T) {
	good := string(keyA)
	for path, text := range map[string]string{
		"cosign.key.data": "cosign: {key: {data: TEXT}}", "cosign.ctlog.rekorPubKey": "cosign: {key: {data: $KEY}, ctlog: {rekorPubKey: TEXT}}",
		"cosign.ctlog.ctLogPubKey": "cosign: {keyless: {identities: [{issuer: a, subject: b}]}, ctlog: {ctLogPubKey: TEXT}}",
	} {
		with := func(key string) error {
			_, err := attestor.Compile("spec.attestors", []v1alpha1.Attestor{parse(t, fill(strings.Replace(text, "TEXT", q([]byte(key)), 1)))}, attestor.Options{})
			return err
		}
		if err := with(good); err != nil {
			t.Errorf("%s, a good key: %v", path, err)
		}
		for name, key := range verifytest.Must(verifytest.UnusableKeys()) {
			for _, list := range []string{key, good + key} {
				if err := with(list); err == nil || !strings.Contains(err.Error(), "spec.attestors[0]."+path+": ") {
					t.Errorf("%s, %s: %v", path, name, err)
				}
			}
		}
	}
}

// TestRefusedLists: names, and lists as a whole.
func TestRefusedLists(t *testing.T) {
	good := parse(t, fill("name: a\ncosign: {key: {data: $KEY}}"))
	nameless := good
	nameless.Name = ""
	computed := parse(t, "name: b\ncosign: {key: {expression: object.key}}")
	secret := parse(t, "name: c\ncosign: {key: {kms: 'k8s://other/key'}}")
	for _, c := range []struct {
		list         []v1alpha1.Attestor
		o            attestor.Options
		want, reason string
	}{
		{[]v1alpha1.Attestor{good, good}, attestor.Options{}, `spec.attestors[1].name: "a" is the name of an earlier`, "a name twice"},
		{[]v1alpha1.Attestor{nameless}, attestor.Options{}, "spec.attestors[0].name: is empty", "no name"},
		{[]v1alpha1.Attestor{good, computed}, attestor.Options{}, "spec.attestors[1].cosign.key.expression: expressions are not understood", "no language"},
		{[]v1alpha1.Attestor{secret}, attestor.Options{Namespace: "mine"}, "spec.attestors[0].cosign.key.kms: a policy of namespace mine", "a Secret of another namespace"},
		{make([]v1alpha1.Attestor, 101), attestor.Options{}, "spec.attestors: 101 are more than 100", "many attestors"},
		{[]v1alpha1.Attestor{good}, attestor.Options{}, "", "none of that"},
		{[]v1alpha1.Attestor{secret}, attestor.Options{Namespace: "other"}, "", "a Secret of its own namespace"},
		{[]v1alpha1.Attestor{secret}, attestor.Options{}, "", "a Secret for the whole cluster"},
	} {
		list, err := attestor.Compile("spec.attestors", c.list, c.o)
		if c.want == "" && (err != nil || len(list) != 1) || c.want != "" && (!says(err, c.want) || list != nil) {
			t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
		}
	}
}

func TestAttestations(t *testing.T) {
	slsa := v1alpha1.Attestation{Name: "slsa", InToto: &v1alpha1.InToto{Type: "slsaprovenance1"}}
	sbom := v1alpha1.Attestation{Name: "sbom", Referrer: &v1alpha1.Referrer{Type: "sbom/cyclone-dx"}}
	list, err := attestor.Attestations("spec.attestations", []v1alpha1.Attestation{slsa, sbom})
	if err != nil || len(list) != 2 || list[0] != (attestor.Attestation{Name: "slsa", Type: attest.PredicateSLSAv1}) ||
		list[1] != (attestor.Attestation{Name: "sbom", Type: "sbom/cyclone-dx", Artifact: true}) {
		t.Errorf("got %+v, %v", list, err)
	}
	cosign, notary := compile(t, fill("cosign: {key: {data: $KEY}}"), attestor.Options{}), compile(t, fill("notary: {certs: {value: $CERTIFICATE}}"), attestor.Options{})
	if cosign.Proves(list[0]) != nil || notary.Proves(list[1]) != nil {
		t.Error("an attestor cannot verify a type that it supports")
	}
	if !says(cosign.Proves(list[1]), "attestations.sbom is a referrer") || !says(notary.Proves(list[0]), "attestations.slsa is an in-toto statement") {
		t.Error("an attestor verifies a type that it does not support")
	}
	both, none, empty, nameless := slsa, slsa, slsa, slsa
	both.Referrer, none.InToto, empty.InToto, nameless.Name = sbom.Referrer, nil, &v1alpha1.InToto{}, ""
	for _, c := range []struct {
		list         []v1alpha1.Attestation
		want, reason string
	}{
		{[]v1alpha1.Attestation{both}, "spec.attestations[0]: want one of intoto and referrer, found 2", "two types"},
		{[]v1alpha1.Attestation{slsa, none}, "spec.attestations[1]: want one of intoto and referrer, found 0", "no type"},
		{[]v1alpha1.Attestation{empty}, "spec.attestations[0].intoto.type: is empty", "an empty type"},
		{[]v1alpha1.Attestation{nameless}, "spec.attestations[0].name: is empty", "no name"},
		{[]v1alpha1.Attestation{sbom, sbom}, "spec.attestations[1].name: ", "a name twice"},
		{make([]v1alpha1.Attestation, 101), "spec.attestations: 101", "many"},
	} {
		if list, err := attestor.Attestations("spec.attestations", c.list); !says(err, c.want) || list != nil {
			t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
		}
	}
}
