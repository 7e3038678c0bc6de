package attestor_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// list writes a list of n entries for YAML.
func list(n int, entry func(i int) string) string {
	var entries []string
	for i := range n {
		entries = append(entries, entry(i))
	}
	return strings.Join(entries, ", ")
}

// TestBounds: the last that is taken, and the first that is not.
func TestBounds(t *testing.T) {
	const maxRoot, maxPEM, maxFirstRoot = 1 << 20, 256 << 10, 512_000
	key := func(rest string) string { return "cosign: {key: {data: $KEY}, " + rest + "}" }
	ann := func(rest string) string { return "cosign: {keyless: {" + rest + "}}" }
	keys := func(n int) string { return "cosign: {key: {data: " + q(bytes.Repeat(keyA, n)) + "}}" }
	rooted := func(size int) string {
		return key("trustedRoot: {value: " + q(append(bytes.Clone(root), bytes.Repeat([]byte(" "), size-len(root))...)) + "}")
	}
	// Between certificates there may be text.
	certificate := func(size int) string {
		return ann("identities: [{issuer: a, subject: b}], roots: " + q(append(bytes.Repeat([]byte("x"), size-len(certificateA)-1), append([]byte("\n"), certificateA...)...)))
	}
	notary := func(bits int) string {
		c := verifytest.Must(verifytest.CertificateOf(verifytest.LongKey(bits)))
		return "notary: {certs: {value: " + q(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})) + "}}"
	}
	const tuf = `{"signed":{"_type":"root"}}`
	first := func(text string) string {
		return key("tuf: {mirror: 'https://tuf.example', root: {data: " + q([]byte(text)) + "}}")
	}
	padded := func(size int) string { return b64(tuf + strings.Repeat(" ", size-len(tuf))) }
	for _, c := range []struct {
		reason, last, first string
	}{
		{"annotations", key("annotations: {" + list(100, func(i int) string { return fmt.Sprintf("a%d: b", i) }) + "}"), key("annotations: {" + list(101, func(i int) string { return fmt.Sprintf("a%d: b", i) }) + "}")},
		{"pull secrets", key("source: {PullSecrets: [" + list(100, func(int) string { return "{name: a}" }) + "]}"), key("source: {PullSecrets: [" + list(101, func(int) string { return "{name: a}" }) + "]}")},
		{"identities", ann("identities: [" + list(100, func(int) string { return "{issuer: a, subject: b}" }) + "]"), ann("identities: [" + list(101, func(int) string { return "{issuer: a, subject: b}" }) + "]")},
		{"the length of an expression", ann("identities: [{issuer: a, subjectRegExp: " + strings.Repeat("a", 4096) + "}]"), ann("identities: [{issuer: a, subjectRegExp: " + strings.Repeat("a", 4097) + "}]")},
		{"the size of an expression", ann("identities: [{issuer: a, subjectRegExp: 'a{300}'}]"), ann("identities: [{issuer: a, subjectRegExp: '" + strings.Repeat("a{1000}", 4) + "'}]")},
		{"the size of an issuer's expression", ann("identities: [{subject: a, issuerRegExp: 'a{300}'}]"), ann("identities: [{subject: a, issuerRegExp: '" + strings.Repeat("a{1000}", 4) + "'}]")},
		{"the length of a notary's key", notary(8192), notary(8193)},
		{"keys", keys(32), keys(33)},
		{"PEM", certificate(maxPEM), certificate(maxPEM + 1)},
		{"a trusted root", rooted(maxRoot), rooted(maxRoot + 1)},
		{"the beginning of a tag", key("source: {tagPrefix: " + strings.Repeat("a", 52) + "}"), key("source: {tagPrefix: " + strings.Repeat("a", 53) + "}")},
		{"a first root", first(padded(maxFirstRoot)), first(padded(maxFirstRoot + 1))},
		{"a first root with lines between", first(b64(tuf) + strings.Repeat("\n", 2*maxFirstRoot-len(b64(tuf)))), first(b64(tuf) + strings.Repeat("\n", 2*maxFirstRoot+1-len(b64(tuf))))},
	} {
		for text, good := range map[string]bool{c.last: true, c.first: false} {
			if _, err := attestor.Compile("spec.attestors", []v1alpha1.Attestor{parse(t, fill(text))}, attestor.Options{}); (err == nil) != good {
				t.Errorf("%s: taken %t, %v", c.reason, err == nil, err)
			}
		}
	}
	extensions := func(n int) string {
		return ann("identities: [{issuer: a, subject: b}], additionalExtensions: {" + list(n, func(i int) string { return fmt.Sprintf("1.3.6.1.4.1.57264.1.%d: a", 100+i) }) + "}")
	}
	for n, refused := range map[int]bool{100: false, 101: true} {
		_, err := attestor.Compile("spec.attestors", []v1alpha1.Attestor{parse(t, extensions(n))}, attestor.Options{})
		if says(err, "are more than 100") != refused {
			t.Errorf("%d extensions: %v", n, err)
		}
	}
	many := make([]v1alpha1.Attestor, 100)
	statements := make([]v1alpha1.Attestation, 100)
	for i := range many {
		many[i] = parse(t, fill(fmt.Sprintf("name: a%d\ncosign: {key: {data: $KEY}}", i)))
		statements[i] = v1alpha1.Attestation{Name: fmt.Sprint("a", i), InToto: &v1alpha1.InToto{Type: "a:b"}}
	}
	if _, err := attestor.Compile("spec.attestors", many, attestor.Options{}); err != nil {
		t.Error(err)
	}
	if _, err := attestor.Attestations("spec.attestations", statements); err != nil {
		t.Error(err)
	}
	l := newLanguage(t)
	computed := compile(t, fill("cosign: {key: {data: $KEY}, trustedRoot: {expression: object.root}}"), l.options())
	for size, good := range map[int]bool{maxRoot: true, maxRoot + 1: false} {
		text := string(root) + strings.Repeat(" ", size-len(root))
		if _, err := computed.Authorities(t.Context(), l.about(map[string]any{"root": text}, "")); (err == nil) != good {
			t.Errorf("an expression that yields %d bytes: %v", size, err)
		}
	}
}

// TestTaken: the fields that a document may have, and may not have.
func TestTaken(t *testing.T) {
	key := func(rest string) string { return "cosign: {key: {data: $KEY}, " + rest + "}" }
	at := func(url string) string { return key("ctlog: {url: '" + url + "'}") }
	kms := func(reference string) string { return "cosign: {key: {kms: '" + reference + "'}}" }
	first := func(text string) string {
		return key("tuf: {mirror: 'https://tuf.example', root: {data: '" + text + "'}}")
	}
	const tuf = `{"signed":{"_type":"root"}}`
	rooted := func(change func(map[string]any)) string {
		var value map[string]any
		if err := json.Unmarshal(root, &value); err != nil {
			t.Fatal(err)
		}
		change(value)
		return key("trustedRoot: {value: " + q(verifytest.Must(json.Marshal(value))) + "}")
	}
	chain := func(n int) func(map[string]any) {
		return func(value map[string]any) {
			ca := value["certificateAuthorities"].([]any)[0].(map[string]any)
			one := ca["certChain"].(map[string]any)["certificates"].([]any)[0]
			var all []any
			for range n {
				all = append(all, one)
			}
			ca["certChain"] = map[string]any{"certificates": all}
		}
	}
	for _, c := range []struct {
		reason, text string
		good         bool
	}{
		{"the address of a key's service", kms("awskms:///alias/a"), true},
		{"the address of a key's service for the key", "cosign: {key: {data: 'awskms:///alias/a'}}", false},
		{"a key in a Secret", kms("k8s://a/b"), true},
		{"a key in a Secret by another name", kms("a/b"), false},
		{"a key in a Secret of no namespace", kms("k8s:///b"), false},
		{"a key in a Secret of two names", kms("k8s://a/b/c"), false},
		{"a certificate in base64", "cosign: {certificate: {cert: {value: " + b64(string(certificateA)) + "}}}", true},
		{"two certificates for one", "cosign: {certificate: {cert: {value: " + q(append(bytes.Clone(certificateA), certificateB...)) + "}}}", false},
		{"a log", at("https://log.example/a"), true},
		{"a log without encryption", at("http://log.example"), true},
		{"a log by another protocol", at("ftp://log.example"), false},
		{"a log without a host", at("https:///a"), false},
		{"a log that is no address", at("https://%zz"), false},
		{"a log with a password", at("https://a:b@log.example"), false},
		{"the beginning of a tag", key("source: {tagPrefix: a.-}"), true},
		{"the beginning of no tag: a dot", key("source: {tagPrefix: .a}"), false},
		{"the beginning of no tag: a dash", key("source: {tagPrefix: -a}"), false},
		{"a first root", first(b64(tuf)), true},
		{"a first root that ends in something else", first(b64(tuf+" ") + "!"), false},
		{"a first root that is none in the end", first(b64(`{"signed":{"_type":"root"},"signed":5}`)), false},
		{"another document of TUF", first(b64(`{"signed":{"_type":"snapshot"}}`)), false},
		{"a trusted root", rooted(func(map[string]any) {}), true},
		{"a trusted root with more than is known", rooted(func(v map[string]any) { v["zzz"] = 1 }), false},
		{"a trusted root with a log without a key", rooted(func(v map[string]any) { v["tlogs"] = []any{map[string]any{"baseUrl": "https://log.example"}} }), false},
		{"an authority without certificates", rooted(chain(0)), false},
		{"an authority with as many as may be", rooted(chain(32)), true},
		{"an authority with more", rooted(chain(33)), false},
	} {
		if _, err := attestor.Compile("spec.attestors", []v1alpha1.Attestor{parse(t, fill(c.text))}, attestor.Options{}); (err == nil) != c.good {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestLog: the public log's address means any log of the gateway's root, and itself in
// another root.
func TestLog(t *testing.T) {
	const public = "https://rekor.sigstore.dev"
	for _, c := range []struct{ reason, text, want string }{
		{"the gateway's root", "cosign: {key: {data: $KEY}, ctlog: {url: '" + public + "'}}", ""},
		{"the gateway's root, and another log", "cosign: {key: {data: $KEY}, ctlog: {url: 'https://log.example'}}", "https://log.example"},
		{"a root of its own", "cosign: {key: {data: $KEY}, ctlog: {url: '" + public + "'}, trustedRoot: {value: $ROOT}}", public},
		{"a repository of its own", "cosign: {key: {data: $KEY}, ctlog: {url: '" + public + "', rekorPubKey: $KEY}, tuf: {}}", public},
	} {
		authorities, err := compile(t, fill(c.text), attestor.Options{}).Authorities(t.Context(), attestor.Activations{})
		if err != nil || authorities[0].Log.URL != c.want {
			t.Errorf("%s: %v, %+v", c.reason, err, authorities)
		}
	}
	key := "cosign: {certificate: {cert: {value: $CERTIFICATE}}, ctlog: {insecureIgnoreTlog: true, ctLogPubKey: $KEY}, tuf: {}}"
	if a := compile(t, fill(key), attestor.Options{}); a.TUF != nil {
		t.Error("with both logs known a certificate needs no trusted root")
	}
	two := compile(t, fill("cosign: {key: {data: "+q(append(bytes.Clone(keyA), keyB...))+"}}"), attestor.Options{})
	authorities, err := two.Authorities(t.Context(), attestor.Activations{})
	if err != nil || len(authorities) != 2 || authorities[0].Name == authorities[1].Name {
		t.Errorf("two keys have one name: %v, %v", authorities, err)
	}
}

// TestScopes: an expression that does not read the image is the same for all images, and
// one that does is refused where there is no image.
func TestScopes(t *testing.T) {
	l := newLanguage(t)
	who := func(expression string) string {
		return "cosign: {keyless: {identities: [{issuer: a, subjectExpression: " + expression + "}]}}"
	}
	for _, c := range []struct {
		reason, text string
		o            attestor.Options
		good, each   bool
	}{
		{"of the object", who("object.who"), l.options(), true, false},
		{"of the image", who("image"), l.options(), true, true},
		{"of the object, with the image's scope alone", who("object.who"), attestor.Options{Images: l.image}, true, true},
		{"of the object, with the object's scope alone", who("object.who"), attestor.Options{Scope: l.document}, true, false},
		{"of the image, with the object's scope alone", who("image"), attestor.Options{Scope: l.document}, false, false},
		{"of nothing that there is", who("nothing"), l.options(), false, false},
	} {
		list, err := attestor.Compile("spec.attestors", []v1alpha1.Attestor{parse(t, c.text)}, c.o)
		if (err == nil) != c.good || err == nil && list[0].PerImage() != c.each {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// issue makes a certificate in PEM; without an issuer it is self-signed.
func issue(t *testing.T, name string, isCA bool, issuer *x509.Certificate, by crypto.Signer) ([]byte, *x509.Certificate, crypto.Signer) {
	t.Helper()
	key := verifytest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true, IsCA: isCA,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	if issuer == nil {
		issuer, by = template, key
	}
	der := verifytest.Must(x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), by))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), verifytest.Must(x509.ParseCertificate(der)), key
}

// TestStores: which certificates may be in a trust store of notation, and which in one of
// timestamp authorities.
func TestStores(t *testing.T) {
	rootPEM, rootCA, rootKey := issue(t, "root", true, nil, nil)
	intermediate, _, _ := issue(t, "intermediate", true, rootCA, rootKey)
	leaf, _, _ := issue(t, "leaf", false, rootCA, rootKey)
	selfSigned, _, _ := issue(t, "self", false, nil, nil)
	namesake, _, _ := issue(t, "root", false, rootCA, rootKey) // its issuer is itself by name, and another key signed it
	namedCA, _, _ := issue(t, "root", true, rootCA, rootKey)
	renamed := &x509.Certificate{ // signed by its own key, in another name
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a"}, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	foreign := verifytest.Must(x509.CreateCertificate(rand.Reader, renamed, &x509.Certificate{Subject: pkix.Name{CommonName: "b"}}, rootKey.Public(), rootKey))
	for _, c := range []struct {
		reason            string
		certificates      []byte
		signers, stampers bool
	}{
		{"a leaf that names another issuer", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: foreign}), false, false},
		{"a root", rootPEM, true, true},
		{"an intermediate", intermediate, true, false},
		{"a self-signed certificate", selfSigned, true, false},
		{"a leaf", leaf, false, false},
		{"a leaf named as its issuer", namesake, false, false},
		{"an intermediate named as its issuer", namedCA, true, false},
		{"a leaf before a root", append(bytes.Clone(leaf), rootPEM...), false, false},
		{"a leaf behind a root", append(bytes.Clone(rootPEM), leaf...), false, false},
	} {
		for text, good := range map[string]bool{
			"notary: {certs: {value: " + q(c.certificates) + "}}":                                  c.signers,
			"notary: {certs: {value: $CERTIFICATE}, tsaCerts: {value: " + q(c.certificates) + "}}": c.stampers,
		} {
			if _, err := attestor.Compile("spec.attestors", []v1alpha1.Attestor{parse(t, fill(text))}, attestor.Options{}); (err == nil) != good {
				t.Errorf("%s: %.20s: %v", c.reason, text, err)
			}
		}
	}
}
