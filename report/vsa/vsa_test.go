package vsa_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/attest/predicate"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report/vsa"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

var update = flag.Bool("update", false, "write the golden files")

var (
	digest  = image.DigestOf([]byte("an image"))
	at      = time.Date(2026, 3, 14, 9, 26, 53, 589793238, time.FixedZone("", 3600))
	by      = vsa.Verifier{ID: verifierID, Release: "v1.2.3", Time: at}
	policyA = &policy.Policy{Kind: "ClusterPolicy", Name: "a"}
)

func pinned(t testing.TB, name string) image.Pinned {
	t.Helper()
	return testkit.Must(testkit.Must(image.Parse(name))(t).Pin(image.Descriptor{Digest: digest}))(t)
}

func found(t testing.TB, repository, content string) verify.Fact {
	t.Helper()
	return verify.Fact{Role: attest.Signature, Origin: attest.Origin{
		Repository: testkit.Must(image.ParseRepository(repository))(t), Via: "referrers", Manifest: image.DigestOf([]byte(content)),
	}}
}

// decision is what a check of an image came to.
func decision(result policy.Result, facts ...verify.Fact) policy.Decision {
	return policy.Decision{Check: &policy.Check{Policy: policyA}, Result: result, Facts: facts}
}

func outcomeOf(verdicts ...gate.Verdict) gate.Outcome {
	return gate.Outcome{Verdicts: verdicts, PolicyHash: strings.Repeat("ab", 32)}
}

// verdict is the verdict for an image with these decisions.
func verdict(t testing.TB, name string, answer gate.Result, decisions ...policy.Decision) gate.Verdict {
	t.Helper()
	p := pinned(t, name)
	return gate.Verdict{Image: policy.Image{Ref: p.Ref()}, Pinned: p, Result: answer, Decisions: decisions}
}

// TestGolden: statements as they are written.
func TestGolden(t *testing.T) {
	const name = "registry.example/shop/app:v1"
	passed := verdict(t, name, gate.Allow, decision(policy.Pass, found(t, "registry.example/shop/app", "b"), found(t, "registry.example/shop/app", "a"), found(t, "registry.example/shop/app", "a")))
	mirrored := passed
	mirrored.Redirect = &gate.Redirect{Mirror: "RegistryMirror/all[0]", Target: pinned(t, "mirror.example/cache/shop/app:v1")}
	levelled := passed
	levelled.Decisions = append([]policy.Decision{{Check: &policy.Check{Policy: policyA}, Result: policy.Pass, BuildLevel: 3}}, passed.Decisions...)
	named := by
	named.Policy, named.Release = "https://git.example/policies?a=1&b=2", ""
	for file, row := range map[string]struct {
		by vsa.Verifier
		of gate.Verdict
	}{
		"passed":   {by, passed},
		"mirrored": {named, mirrored},
		"level":    {by, levelled},
		"failed":   {by, verdict(t, name, gate.Deny, decision(policy.Fail))},
	} {
		summaries, left, err := row.by.Summaries([]gate.Outcome{outcomeOf(row.of)})
		if err != nil || len(summaries) != 1 || len(left) != 0 {
			t.Fatal(summaries, left, err)
		}
		written := testkit.Must(summaries[0].Statement())(t)
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, written, "", "  "); err != nil {
			t.Fatal(err)
		}
		pretty.WriteString("\n")
		path := filepath.Join("testdata", file+".json")
		if *update {
			if err := os.WriteFile(path, pretty.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want := testkit.Must(os.ReadFile(path))(t); !bytes.Equal(pretty.Bytes(), want) {
			t.Errorf("%s: %s", file, pretty.Bytes())
		}
		statement := testkit.Must(attest.ParseStatement(written))(t)
		read := testkit.Must(predicate.ParseSummary(statement))(t)
		if read.Passed != summaries[0].Passed || read.VerifierID != verifierID || !read.Verified.Equal(at.Truncate(time.Second)) || read.Resource != "oci://registry.example/shop/app" {
			t.Errorf("%s is read as %+v", file, read)
		}
	}
}

// TestResults: the result for an image, and the cases without one.
func TestResults(t *testing.T) {
	const name = "registry.example/shop/app:v1"
	pass, fail := decision(policy.Pass, found(t, "registry.example/shop/app", "a")), decision(policy.Fail)
	one := func(answer gate.Result, decisions ...policy.Decision) []gate.Outcome {
		return []gate.Outcome{outcomeOf(verdict(t, name, answer, decisions...))}
	}
	excepted := decision(policy.Skipped)
	excepted.Check.Exception = &policy.Exception{Namespace: "ops", Name: "old"}
	overridden := one(gate.Allow, fail)
	overridden[0].Verdicts[0].Override = &policy.Override{Name: "night"}
	unpinned := one(gate.Allow, pass)
	unpinned[0].Verdicts[0].Pinned = image.Pinned{}
	unasked := one(gate.Allow, pass)
	unasked[0].Rules = []policy.RuleResult{{Policy: policyA, Rule: "r", Err: errors.New("gone")}}
	ofObject := one(gate.Allow, pass)
	ofObject[0].Rules = []policy.RuleResult{{Policy: policyA, Rule: "r", Kind: policy.ValidateRule, Err: errors.New("gone")}}
	for _, row := range []struct {
		reason string
		of     []gate.Outcome
		want   string // PASSED, FAILED, or why not
	}{
		{"proved", one(gate.Allow, pass), vsa.Passed},
		{"not proved", one(gate.Deny, fail), vsa.Failed},
		{"one of two is not proved", one(gate.Deny, pass, fail), vsa.Failed},
		{"not proved, and admitted under audit", one(gate.Allow, pass, fail), vsa.Failed},
		{"not proved, whatever could not be verified", one(gate.Deny, decision(policy.Indeterminate), fail), vsa.Failed},
		{"indeterminate", one(gate.Error, decision(policy.Indeterminate)), "could not be verified"},
		{"indeterminate, and admitted by the failure policy", one(gate.Allow, pass, decision(policy.Indeterminate)), "could not be verified"},
		{"not resolved", one(gate.Error), "could not be verified"},
		{"a policy could not be evaluated", unasked, "could not be evaluated"},
		{"a rule about the object could not be evaluated", ofObject, vsa.Passed},
		{"no policy", one(gate.Allow), "no policy applies"},
		{"all leave it alone", one(gate.Allow, decision(policy.Skipped)), "no policy applies"},
		{"one leaves it alone", one(gate.Allow, decision(policy.Skipped), pass), vsa.Passed},
		{"an exception leaves it alone", one(gate.Allow, excepted, pass), "an exception"},
		{"an override decided", overridden, "an override"},
		{"no digest", unpinned, "no digest"},
		{"proved in two objects", append(one(gate.Allow, pass), one(gate.Allow, pass)...), vsa.Passed},
		{"proved in one object, and not in another", append(one(gate.Allow, pass), one(gate.Deny, fail)...), vsa.Failed},
		{"the other way round", append(one(gate.Deny, fail), one(gate.Allow, pass)...), vsa.Failed},
		{"proved in one object, and not looked at in another", append(one(gate.Allow, pass), one(gate.Error, decision(policy.Indeterminate))...), "could not be verified"},
		{"not looked at in one, and proved in the other", append(one(gate.Error, decision(policy.Indeterminate)), one(gate.Allow, pass)...), "could not be verified"},
		{"not looked at in one, and failed in the other", append(one(gate.Error, decision(policy.Indeterminate)), one(gate.Deny, fail)...), vsa.Failed},
	} {
		summaries, left, err := by.Summaries(row.of)
		if err != nil || len(summaries)+len(left) != 1 {
			t.Errorf("%s: %+v, %+v, %v", row.reason, summaries, left, err)
			continue
		}
		got := vsa.Failed
		switch {
		case len(left) == 1:
			got = left[0].Why
		case summaries[0].Passed:
			got = vsa.Passed
		}
		if !strings.Contains(got, row.want) {
			t.Errorf("%s: %s, want %s", row.reason, got, row.want)
		}
	}
}

// TestNames: the name in a summary, and its inputs.
func TestNames(t *testing.T) {
	copyOf := func(source string, facts ...verify.Fact) policy.Decision {
		d := decision(policy.Pass, facts...)
		d.Check.Image = policy.Image{Ref: testkit.Must(image.Parse(source))(t), Copy: testkit.Must(image.Parse("mirror.example/cache/app:v1"))(t)}
		return d
	}
	unknown := verify.Fact{Role: attest.Signature}
	for _, row := range []struct {
		reason          string
		decisions       []policy.Decision
		resource        string
		mirror          bool
		inputs          int
		anotherDecision []policy.Decision // of the same image in another object
	}{
		{reason: "a copy of one source", decisions: []policy.Decision{copyOf("quay.io/org/app:v1", found(t, "quay.io/org/app", "a"))}, resource: "oci://quay.io/org/app", mirror: true, inputs: 1},
		{reason: "a copy of a source that policies judge by both names", decisions: []policy.Decision{copyOf("quay.io/org/app:v1"), decision(policy.Pass)}, resource: "oci://quay.io/org/app", mirror: true},
		{reason: "a copy that serves two sources", decisions: []policy.Decision{copyOf("quay.io/org/app:v1"), copyOf("ghcr.io/org/app:v1")}, resource: "oci://mirror.example/cache/app"},
		{reason: "itself", decisions: []policy.Decision{decision(policy.Pass, found(t, "a.example/b", "a"), found(t, "a.example/c", "a"))}, resource: "oci://mirror.example/cache/app", inputs: 2},
		{reason: "one of two inputs is not known", decisions: []policy.Decision{decision(policy.Pass, found(t, "a.example/b", "a"), unknown)}, resource: "oci://mirror.example/cache/app"},
		{
			reason: "two objects with different proofs", decisions: []policy.Decision{decision(policy.Pass, found(t, "a.example/b", "a"))},
			anotherDecision: []policy.Decision{decision(policy.Pass, found(t, "a.example/b", "b"))}, resource: "oci://mirror.example/cache/app", inputs: 2,
		},
	} {
		outcomes := []gate.Outcome{outcomeOf(verdict(t, "mirror.example/cache/app:v1", gate.Allow, row.decisions...))}
		if row.anotherDecision != nil {
			outcomes = append(outcomes, outcomeOf(verdict(t, "mirror.example/cache/app:v1", gate.Allow, row.anotherDecision...)))
		}
		summaries, _, err := by.Summaries(outcomes)
		if err != nil || len(summaries) != 1 {
			t.Fatal(row.reason, summaries, err)
		}
		text := string(testkit.Must(summaries[0].Statement())(t))
		if !strings.Contains(text, `"resourceUri":"`+row.resource+`"`) || !strings.Contains(text, `"name":"`+strings.TrimPrefix(row.resource, "oci://")+`"`) {
			t.Errorf("%s: %s", row.reason, text)
		}
		if got := strings.Contains(text, `"https://quaymaster.dev/vsa/mirror":"mirror.example/cache/app:v1@`+digest.String()); got != row.mirror {
			t.Errorf("%s: the mirror is named: %t: %s", row.reason, got, text)
		}
		if got := strings.Count(text, "@sha256:") - strings.Count(text, ":v1@"); got != row.inputs {
			t.Errorf("%s: %d inputs, want %d: %s", row.reason, got, row.inputs, text)
		}
	}
}

// TestVerifierRefuses: an invalid verifier is refused.
func TestVerifierRefuses(t *testing.T) {
	for reason, edit := range map[string]func(*vsa.Verifier){
		"no id":                   func(v *vsa.Verifier) { v.ID = "" },
		"an id without a scheme":  func(v *vsa.Verifier) { v.ID = "ci.example/verifier" },
		"an id of two words":      func(v *vsa.Verifier) { v.ID = "https://ci.example/a b" },
		"no time":                 func(v *vsa.Verifier) { v.Time = time.Time{} },
		"a policy without scheme": func(v *vsa.Verifier) { v.Policy = "policies" },
	} {
		v := by
		edit(&v)
		if _, _, err := v.Summaries(nil); err == nil {
			t.Errorf("%s: taken", reason)
		}
	}
	for _, id := range []string{"https://ci.example", "urn:uuid:0", "spiffe://trust.example/ci"} {
		v := by
		v.ID = id
		if _, _, err := v.Summaries(nil); err != nil {
			t.Error(err)
		}
	}
}

// TestKeys: signatures of every kind of key that is believed are believed by a real gate.
func TestKeys(t *testing.T) {
	p := newPort(t)
	for _, algorithm := range []verifytest.Algorithm{verifytest.ECDSAP256, verifytest.ECDSAP384, verifytest.ECDSAP521, verifytest.RSA2048, verifytest.Ed25519} {
		signer := testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{Algorithm: algorithm}))(t)
		p.verifier, p.public = keyOf(t, signer), signer.PublicPEM()
		built := p.Build("shop/app", "1", string(algorithm))
		if err := p.SignLegacy(built, verifytest.Claim{Signer: p.Signer, NoLog: true}, nil); err != nil {
			t.Fatal(err)
		}
		p.put(t, built, p.summary(t, built, given{verifier: verifierID, at: time.Now(), policies: "full", key: p.verifier}))
		p.Registry.Delete("shop/app", strings.ReplaceAll(built.Manifest.Digest, ":", "-")+".sig")
		for name, made := range p.accepting(t, time.Now) {
			if outcome := testkit.Must(p.Gate(made))(t).Decide(t.Context(), pod(t, built.ByDigest())); outcome.Result != gate.Allow {
				t.Errorf("%s, %s: %+v", algorithm, name, outcome.Verdicts[0].Reasons)
			}
		}
	}
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// TestParseKey: valid keys, and invalid ones.
func TestParseKey(t *testing.T) {
	signer := testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{}))(t)
	plain := testkit.Must(signer.PrivatePEM())(t)
	block, _ := pem.Decode(plain)
	locked := testkit.Must(encrypted.Encrypt(block.Bytes, []byte("open sesame")))(t)
	pkcs8 := func(key any) []byte { return pemOf("PRIVATE KEY", testkit.Must(x509.MarshalPKCS8PrivateKey(key))(t)) }
	for _, row := range []struct {
		reason         string
		text, password string
		says           string // empty: it is read
	}{
		{"PKCS #8", string(plain), "", ""},
		{"cosign's", string(pemOf("ENCRYPTED SIGSTORE PRIVATE KEY", locked)), "open sesame", ""},
		{"cosign's of old", string(pemOf("ENCRYPTED COSIGN PRIVATE KEY", locked)), "open sesame", ""},
		{"another password", string(pemOf("ENCRYPTED SIGSTORE PRIVATE KEY", locked)), "open barley", "password is wrong"},
		{"no password", string(pemOf("ENCRYPTED SIGSTORE PRIVATE KEY", locked)), "", "password is wrong"},
		{"damaged", string(pemOf("ENCRYPTED SIGSTORE PRIVATE KEY", locked[:len(locked)/2])), "open sesame", "damaged"},
		{"a public key", string(signer.PublicPEM()), "", "PUBLIC KEY"},
		{"two keys", string(plain) + string(plain), "", "one PEM block"},
		{"no key", "key", "", "one PEM block"},
		{"another form", string(pemOf("EC PRIVATE KEY", block.Bytes)), "", "openssl pkcs8"},
		{"no PKCS #8 in it", string(pemOf("PRIVATE KEY", []byte("x"))), "", "private key"},
		{"an untrusted curve", string(pkcs8(testkit.Must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))(t))), "", "P-224"},
		{"a short key", string(pkcs8(testkit.Must(rsa.GenerateKey(rand.Reader, 1024))(t))), "", "too short"},
		{"too long", strings.Repeat("x", 65<<10), "", "bound"},
	} {
		_, err := vsa.ParseKey([]byte(row.text), []byte(row.password))
		if (err == nil) != (row.says == "") || err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.reason, err, row.says)
		}
	}
}

// oddKey signs with one key and names another.
type oddKey struct {
	vsa.Key
	public crypto.PublicKey
	err    error
}

func (k oddKey) Sign(ctx context.Context, message []byte) ([]byte, crypto.PublicKey, error) {
	signed, _, err := k.Key.Sign(ctx, message)
	return signed, k.public, errors.Join(err, k.err)
}

// TestSignRefuses: a key that no verifier accepts is refused at signing.
func TestSignRefuses(t *testing.T) {
	p := newPort(t)
	summaries, _, err := by.Summaries([]gate.Outcome{outcomeOf(verdict(t, "a.example/b:1", gate.Allow, decision(policy.Pass)))})
	if err != nil {
		t.Fatal(err)
	}
	for reason, key := range map[string]vsa.Key{
		"another public key":           oddKey{p.verifier, p.Signer.Public(), nil},
		"none":                         oddKey{p.verifier, nil, nil},
		"a curve that is not believed": oddKey{p.verifier, testkit.Must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))(t).Public(), nil},
		"a service that is down":       oddKey{p.verifier, p.Signer.Public(), errors.New("down")},
	} {
		if _, err := summaries[0].Sign(t.Context(), key); err == nil || !strings.Contains(err.Error(), "a.example/b:1") {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// FuzzParseKey: whatever a file holds, it is a key that signs or none.
func FuzzParseKey(f *testing.F) {
	signer := testkit.Must(verifytest.KeySigner(verifytest.KeyOptions{}))(f)
	f.Add(testkit.Must(signer.PrivatePEM())(f))
	f.Add(pemOf("ENCRYPTED SIGSTORE PRIVATE KEY", []byte(`{"kdf":{"name":"scrypt","params":{"N":1,"r":1,"p":1},"salt":""},"cipher":{"name":"nacl/secretbox","nonce":""},"ciphertext":""}`)))
	f.Add(pemOf("PRIVATE KEY", nil))
	f.Fuzz(func(t *testing.T, text []byte) {
		key, err := vsa.ParseKey(text, nil)
		if err != nil {
			return
		}
		if _, public, err := key.Sign(t.Context(), []byte("message")); err != nil || public == nil {
			t.Fatal(err)
		}
	})
}

func ExampleVerifier_Summaries() {
	ref, _ := image.Parse("registry.example/shop/app:v1")
	pinned, _ := ref.Pin(image.Descriptor{Digest: image.DigestOf([]byte("an image"))})
	outcome := gate.Outcome{PolicyHash: strings.Repeat("0", 64), Verdicts: []gate.Verdict{{
		Image: policy.Image{Ref: ref}, Pinned: pinned, Result: gate.Allow,
		Decisions: []policy.Decision{{Check: &policy.Check{}, Result: policy.Pass}},
	}}}
	verifier := vsa.Verifier{ID: "https://ci.example/verifier", Time: time.Now()}
	summaries, left, err := verifier.Summaries([]gate.Outcome{outcome})
	fmt.Println(len(summaries), left, err)
	fmt.Println(summaries[0].Image.Repository(), summaries[0].Passed)
	// Output:
	// 1 [] <nil>
	// registry.example/shop/app true
}

// TestLevels: the level is the highest of one verdict, and of several objects the lowest.
func TestLevels(t *testing.T) {
	of := func(levels ...int) gate.Verdict {
		var decisions []policy.Decision
		for _, level := range levels {
			decisions = append(decisions, policy.Decision{Check: &policy.Check{Policy: policyA}, Result: policy.Pass, BuildLevel: level})
		}
		return verdict(t, "registry.example/shop/app:v1", gate.Allow, decisions...)
	}
	for _, c := range []struct {
		reason   string
		verdicts []gate.Verdict
		want     string
	}{
		{"none", []gate.Verdict{of(0)}, "UNEVALUATED"},
		{"one", []gate.Verdict{of(0, 2)}, "2"},
		{"the highest of a verdict", []gate.Verdict{of(3, 2)}, "3"},
		{"the lowest of several", []gate.Verdict{of(3), of(2)}, "2"},
		{"the lowest of several, in another order", []gate.Verdict{of(2), of(3)}, "2"},
		{"one object without a requirement", []gate.Verdict{of(3), of(0)}, "UNEVALUATED"},
	} {
		summaries, _, err := by.Summaries([]gate.Outcome{outcomeOf(c.verdicts...)})
		if err != nil || len(summaries) != 1 {
			t.Fatal(summaries, err)
		}
		if text := string(testkit.Must(summaries[0].Statement())(t)); !strings.Contains(text, `"verifiedLevels":["SLSA_BUILD_LEVEL_`+c.want+`"]`) {
			t.Errorf("%s: %s, want %s", c.reason, text, c.want)
		}
	}
}
