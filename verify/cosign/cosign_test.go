package cosign_test

import (
	"crypto"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const (
	issuer   = "https://token.example"
	workflow = "https://git.example/org/app/.github/workflows/release.yml@refs/heads/main"
	slsa     = "https://slsa.dev/provenance/v1"
)

const (
	signatureAnnotation   = "dev.cosignproject.cosign/signature"
	certificateAnnotation = "dev.sigstore.cosign/certificate"
	chainAnnotation       = "dev.sigstore.cosign/chain"
	entryAnnotation       = "dev.sigstore.cosign/bundle"
)

var (
	digest = image.DigestOf([]byte(`{"schemaVersion":2}`))
	other  = image.DigestOf([]byte("another image"))
)

// lab is one throw-away Sigstore that is trusted, and one that is not.
type lab struct {
	own, foreign *verifytest.Sigstore
	verifier     *cosign.Verifier
	subject      image.Pinned
}

func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{
		own:     verifytest.Must(verifytest.New(verifytest.Options{Name: "own"})),
		foreign: verifytest.Must(verifytest.New(verifytest.Options{Name: "foreign"})),
	}
	store, err := trust.New(trust.Options{TrustedRoot: l.own.TrustedRoot()})
	if err != nil {
		t.Fatal(err)
	}
	l.verifier = cosign.New(store.Snapshot())
	ref, err := image.Parse("registry.example/org/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	l.subject, err = ref.Pin(image.Descriptor{Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) evidence(t testing.TB, claim verifytest.Claim) attest.Evidence {
	t.Helper()
	layer, err := l.own.Layer(claim)
	if err != nil {
		t.Fatalf("write the layer: %v", err)
	}
	role := attest.Signature
	if layer.MediaType == verifytest.EnvelopeMediaType {
		role = attest.Attestation
	}
	return attest.Evidence{
		Format: attest.Cosign, Role: role, MediaType: layer.MediaType,
		Payload: layer.Payload, Annotations: layer.Annotations, Origin: attest.Origin{Via: "sig"},
	}
}

func (l *lab) keyless(t testing.TB, change func(*verifytest.Identity)) *verifytest.Signer {
	t.Helper()
	identity := verifytest.Identity{
		URI: workflow, Issuer: issuer,
		Extensions: map[verifytest.Extension]string{
			verifytest.WorkflowTrigger: "push", verifytest.RunnerEnvironment: "github-hosted",
		},
	}
	if change != nil {
		change(&identity)
	}
	return verifytest.Must(l.own.Keyless(identity))
}

func signature(annotations map[string]any) *verifytest.SimpleSigning {
	return &verifytest.SimpleSigning{Reference: "registry.example/org/app", Digest: digest.String(), Annotations: annotations}
}

func provenance() *verifytest.Statement {
	return verifytest.Attestation(digest.String(), slsa, map[string]string{"builder": "b"})
}

func keyless(change func(*verify.Authority)) verify.Authority {
	a := verify.Authority{Name: "release", Keyless: &verify.Keyless{
		Identities: []verify.Identity{{Issuer: verify.Exactly(issuer), Subject: verify.Exactly(workflow)}},
	}}
	if change != nil {
		change(&a)
	}
	return a
}

func byKey(signer *verifytest.Signer, change func(*verify.Authority)) verify.Authority {
	a := verify.Authority{Name: "key", Key: &verify.Key{PEM: signer.PublicPEM()}}
	if change != nil {
		change(&a)
	}
	return a
}

func noLog(a *verify.Authority) { a.Log.Ignore = true }

func check(t *testing.T, fact verify.Fact, err error, want verify.Code) {
	t.Helper()
	rejection, isRejection := errors.AsType[*verify.Rejection](err)
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want == "":
		if fact.Subject != digest {
			t.Errorf("the fact is about %s, want %s", fact.Subject, digest)
		}
	case err == nil:
		t.Errorf("proved %s by %s, want %s", fact.Role, fact.Signer, want)
	case !isRejection:
		t.Errorf("indeterminate: %v, want %s", err, want)
	case rejection.Code != want:
		t.Errorf("refused as %s (%v), want %s", rejection.Code, rejection, want)
	case rejection.Origin.Via != "sig" || rejection.Authority == "":
		t.Errorf("the rejection lacks its origin or authority: %+v", rejection)
	}
}

type row struct {
	name, reason string
	claim        verifytest.Claim
	authority    verify.Authority
	want         verify.Code
}

func (l *lab) run(t *testing.T, tests []row) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fact, err := l.verifier.Verify(t.Context(), l.subject, l.evidence(t, test.claim), test.authority)
			check(t, fact, err, test.want)
			if t.Failed() {
				t.Log("reason:", test.reason)
			}
		})
	}
}

func TestKey(t *testing.T) {
	l := newLab(t)
	key := func(o verifytest.KeyOptions) *verifytest.Signer { return verifytest.Must(verifytest.KeySigner(o)) }
	p256, stranger := key(verifytest.KeyOptions{}), key(verifytest.KeyOptions{})
	past := time.Now().Add(-time.Hour)
	tests := []row{
		{"without log", "the signature is all that is asked", verifytest.Claim{Signer: p256, Image: signature(nil), NoLog: true}, byKey(p256, noLog), ""},
		{"with log", "the entry is there", verifytest.Claim{Signer: p256, Image: signature(nil)}, byKey(p256, nil), ""},
		{"no log entry", "the log is asked for", verifytest.Claim{Signer: p256, Image: signature(nil), NoLog: true}, byKey(p256, nil), verify.NoLogEntry},
		{"foreign log", "an entry of a log that is not trusted", verifytest.Claim{Signer: p256, Image: signature(nil), Records: []verifytest.Record{{Log: l.foreign.Rekor}}}, byKey(p256, nil), verify.BadLogEntry},
		{"given log key", "the foreign log is the policy's", verifytest.Claim{Signer: p256, Image: signature(nil), Records: []verifytest.Record{{Log: l.foreign.Rekor}}}, byKey(p256, func(a *verify.Authority) { a.Log.Keys = l.foreign.Rekor.PublicPEM() }), ""},
		{"foreign log under our name", "the promise is not by the log that it names", verifytest.Claim{Signer: p256, Image: signature(nil), Records: []verifytest.Record{{Log: l.foreign.Rekor, As: l.own.Rekor}}}, byKey(p256, nil), verify.BadLogEntry},
		{"wrong promise", "the promise does not hold", verifytest.Claim{Signer: p256, Image: signature(nil), Records: []verifytest.Record{{Fault: verifytest.WrongPromise}}}, byKey(p256, nil), verify.BadLogEntry},
		{"entry of another signature", "GHSA-ccxc-vr6p-4858: a genuine entry that is not of this signature", verifytest.Claim{Signer: p256, Image: signature(nil), Records: []verifytest.Record{{Fault: verifytest.OtherSignature}}}, byKey(p256, nil), verify.BadLogEntry},
		{"other digest", "a good signature of another image", verifytest.Claim{Signer: p256, Image: &verifytest.SimpleSigning{Digest: other.String()}, NoLog: true}, byKey(p256, noLog), verify.WrongDigest},
		{"other type of payload", "a payload that means something else", verifytest.Claim{Signer: p256, Image: &verifytest.SimpleSigning{Digest: digest.String(), Type: "atomic container signature"}, NoLog: true}, byKey(p256, noLog), verify.Malformed},
		{"no payload", "the signature is over other bytes that are no claim", verifytest.Claim{Signer: p256, Artifact: []byte("text"), NoLog: true}, byKey(p256, noLog), verify.Malformed},
		{"stranger", "signed by another key", verifytest.Claim{Signer: stranger, Image: signature(nil), NoLog: true}, byKey(p256, noLog), verify.WrongKey},
		{"stranger with log", "signed and recorded by another key", verifytest.Claim{Signer: stranger, Image: signature(nil)}, byKey(p256, nil), verify.WrongKey},
		{"signed by a certificate", "the certificate is not of this key", verifytest.Claim{Signer: l.keyless(t, nil), Image: signature(nil)}, byKey(p256, nil), verify.WrongKey},
		{"wrong signature", "the log has this key, but other bytes", verifytest.Claim{Signer: p256, Image: signature(nil), WrongSignature: true}, byKey(p256, nil), verify.BadSignature},
		{"annotation", "the payload carries it", verifytest.Claim{Signer: p256, Image: signature(map[string]any{"env": "prod"}), NoLog: true}, byKey(p256, func(a *verify.Authority) { a.Log.Ignore, a.Annotations = true, map[string]string{"env": "prod"} }), ""},
		{"annotation of another value", "the payload carries another", verifytest.Claim{Signer: p256, Image: signature(map[string]any{"env": "test"}), NoLog: true}, byKey(p256, func(a *verify.Authority) { a.Log.Ignore, a.Annotations = true, map[string]string{"env": "prod"} }), verify.WrongAnnotation},
		{"annotation of another kind", "a number is not its text", verifytest.Claim{Signer: p256, Image: signature(map[string]any{"n": 1}), NoLog: true}, byKey(p256, func(a *verify.Authority) { a.Log.Ignore, a.Annotations = true, map[string]string{"n": "1"} }), verify.WrongAnnotation},
		{"within validity", "the log gives the time", verifytest.Claim{Signer: p256, Image: signature(nil)}, byKey(p256, func(a *verify.Authority) { a.NotBefore = past }), ""},
		{"before validity", "the log's time is earlier", verifytest.Claim{Signer: p256, Image: signature(nil), Time: past.Add(-time.Hour)}, byKey(p256, func(a *verify.Authority) { a.NotBefore = past }), verify.OutsideValidity},
		{"validity by timestamp", "the timestamp gives the time", verifytest.Claim{Signer: p256, Image: signature(nil), NoLog: true, Stamps: []verifytest.Stamp{{}}}, byKey(p256, func(a *verify.Authority) { a.Log.Ignore, a.NotBefore = true, past }), ""},
		{"validity without time", "there is no trusted time", verifytest.Claim{Signer: p256, Image: signature(nil), NoLog: true}, byKey(p256, func(a *verify.Authority) { a.Log.Ignore, a.NotBefore = true, past }), verify.NoTimestamp},
		{"timestamp required", "there is one", verifytest.Claim{Signer: p256, Image: signature(nil), NoLog: true, Stamps: []verifytest.Stamp{{}}}, byKey(p256, func(a *verify.Authority) { a.Log.Ignore, a.Timestamp.Required = true, true }), ""},
		{"timestamp required, none", "there is none", verifytest.Claim{Signer: p256, Image: signature(nil), NoLog: true}, byKey(p256, func(a *verify.Authority) { a.Log.Ignore, a.Timestamp.Required = true, true }), verify.NoTimestamp},
		{"timestamp of a foreign authority", "cosign's library would panic", verifytest.Claim{Signer: p256, Image: signature(nil), NoLog: true, Stamps: []verifytest.Stamp{{TSA: l.foreign.TSA}}}, byKey(p256, func(a *verify.Authority) { a.Log.Ignore, a.Timestamp.Required = true, true }), verify.BadTimestamp},
		{"timestamp of another signature, not needed", "it is not required, and the log gives the time", verifytest.Claim{Signer: p256, Image: signature(nil), Stamps: []verifytest.Stamp{{OtherSignature: true}}}, byKey(p256, nil), ""},
		{"timestamp of another signature", "a genuine timestamp of other bytes", verifytest.Claim{Signer: p256, Image: signature(nil), Stamps: []verifytest.Stamp{{OtherSignature: true}}}, byKey(p256, func(a *verify.Authority) { a.Timestamp.Required = true }), verify.BadTimestamp},
		{"given timestamp chain", "the foreign timestamp authority is the policy's", verifytest.Claim{Signer: p256, Image: signature(nil), NoLog: true, Stamps: []verifytest.Stamp{{TSA: l.foreign.TSA}}}, byKey(p256, func(a *verify.Authority) {
			a.Log.Ignore, a.Timestamp = true, verify.Timestamp{Required: true, Chain: l.foreign.TSA.ChainPEM()}
		}), ""},
		{"other format asked for", "the authority accepts bundles only", verifytest.Claim{Signer: p256, Image: signature(nil)}, byKey(p256, func(a *verify.Authority) { a.Formats = []attest.Format{attest.Bundle} }), verify.WrongFormat},
	}
	for _, o := range []struct {
		name        string
		options     verifytest.KeyOptions
		hash, wrong string
	}{
		{"P-256 sha224", verifytest.KeyOptions{Hash: crypto.SHA224}, "sha224", "sha256"},
		{"P-256 sha384", verifytest.KeyOptions{Hash: crypto.SHA384}, "sha384", ""},
		{"P-256 sha512", verifytest.KeyOptions{Hash: crypto.SHA512}, "sha512", "sha384"},
		{"P-384 sha256", verifytest.KeyOptions{Algorithm: verifytest.ECDSAP384, Hash: crypto.SHA256}, "", "sha512"},
		{"P-521", verifytest.KeyOptions{Algorithm: verifytest.ECDSAP521}, "", "sha256"},
		{"RSA", verifytest.KeyOptions{Algorithm: verifytest.RSA2048}, "", "sha512"},
	} {
		signer := key(o.options)
		hash := func(name string) func(*verify.Authority) {
			return func(a *verify.Authority) { a.Log.Ignore, a.Key.Hash = true, name }
		}
		claim := verifytest.Claim{Signer: signer, Image: signature(nil), NoLog: true}
		tests = append(tests,
			row{o.name, "the digest algorithm is the policy's", claim, byKey(signer, hash(o.hash)), ""},
			row{o.name + ", another named", "the digest algorithm is not the policy's", claim, byKey(signer, hash(o.wrong)), verify.WrongKey})
	}
	ed := key(verifytest.KeyOptions{Algorithm: verifytest.Ed25519})
	tests = append(tests,
		row{"Ed25519", "over the payload", verifytest.Claim{Signer: ed, Image: signature(nil), NoLog: true}, byKey(ed, noLog), ""},
		row{"Ed25519, another key", "another kind of key", verifytest.Claim{Signer: ed, Image: signature(nil), NoLog: true}, byKey(p256, noLog), verify.WrongKey})
	l.run(t, tests)
}

func TestAttestation(t *testing.T) {
	l := newLab(t)
	key := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	stranger := verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{}))
	old := provenance()
	old.Version = "v0.1"
	l.run(t, []row{
		{"without log", "the signature is all that is asked", verifytest.Claim{Signer: key, Statement: provenance(), NoLog: true}, byKey(key, noLog), ""},
		{"statement v0.1", "as cosign attest writes", verifytest.Claim{Signer: key, Statement: old, NoLog: true}, byKey(key, noLog), ""},
		{"with log, dsse", "the entry is there", verifytest.Claim{Signer: key, Statement: provenance()}, byKey(key, nil), ""},
		{"with log, intoto", "an older type of entry", verifytest.Claim{Signer: key, Statement: provenance(), Records: []verifytest.Record{{Kind: "intoto"}}}, byKey(key, nil), ""},
		{"with log, intoto with its payload", "some logs keep the payload in the entry", verifytest.Claim{Signer: key, Statement: provenance(), Records: []verifytest.Record{{Kind: "intoto", Payload: true}}}, byKey(key, nil), ""},
		{"with log, intoto with another payload", "the entry's signature is not over its payload", verifytest.Claim{Signer: key, Statement: provenance(), Records: []verifytest.Record{{Kind: "intoto", Payload: true, Fault: verifytest.OtherPayload}}}, byKey(key, nil), verify.BadLogEntry},
		{"entry of another envelope", "a genuine entry that is not of this envelope", verifytest.Claim{Signer: key, Statement: provenance(), Records: []verifytest.Record{{Fault: verifytest.OtherSignature}}}, byKey(key, nil), verify.BadLogEntry},
		{"no log entry", "a raw DSSE referrer carries none", verifytest.Claim{Signer: key, Statement: provenance(), NoLog: true}, byKey(key, nil), verify.NoLogEntry},
		{"stranger", "an envelope by a random key", verifytest.Claim{Signer: stranger, Statement: provenance(), NoLog: true}, byKey(key, noLog), verify.WrongKey},
		{"nobody", "an envelope without a signature", verifytest.Claim{Signer: key, Statement: provenance(), NoLog: true, NoSignatures: true}, byKey(key, noLog), verify.Malformed},
		{"wrong signature", "over other bytes", verifytest.Claim{Signer: key, Statement: provenance(), NoLog: true, WrongSignature: true}, byKey(key, noLog), verify.WrongKey},
		{"other digest", "about another image", verifytest.Claim{Signer: key, Statement: verifytest.Attestation(other.String(), slsa, nil), NoLog: true}, byKey(key, noLog), verify.WrongDigest},
		{"other payload type", "not a statement", verifytest.Claim{Signer: key, Payload: []byte(`{}`), PayloadType: "text/plain", NoLog: true}, byKey(key, noLog), verify.Malformed},
		{"keyless", "by an identity", verifytest.Claim{Signer: l.keyless(t, nil), Statement: provenance()}, keyless(nil), ""},
		{"keyless, other identity", "by another identity", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.URI += "x" }), Statement: provenance()}, keyless(nil), verify.WrongIdentity},
		{"keyless, timestamp", "over the envelope, as cosign 2 has it", verifytest.Claim{Signer: l.keyless(t, nil), Statement: provenance(), Stamps: []verifytest.Stamp{{}}}, keyless(nil), ""},
		{"keyless, timestamp of another", "a genuine timestamp of other bytes", verifytest.Claim{Signer: l.keyless(t, nil), Statement: provenance(), NoLog: true, Stamps: []verifytest.Stamp{{OtherSignature: true}}}, keyless(noLog), verify.BadTimestamp},
	})
}

func TestKeyless(t *testing.T) {
	l := newLab(t)
	signer := l.keyless(t, nil)
	past := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
	identity := func(change func(*verifytest.Identity)) verifytest.Claim {
		return verifytest.Claim{Signer: l.keyless(t, change), Image: signature(nil)}
	}
	expression := verifytest.Must(verify.Expression("git[.]example/org/app"))
	l.run(t, []row{
		{"identity", "identity, log, SCT and digest fit", identity(nil), keyless(nil), ""},
		{"other subject", "another workflow", identity(func(i *verifytest.Identity) { i.URI += "x" }), keyless(nil), verify.WrongIdentity},
		{"other issuer", "another issuer", identity(func(i *verifytest.Identity) { i.Issuer += "x" }), keyless(nil), verify.WrongIdentity},
		{"expression is anchored", "a part of the text fits only", identity(nil), keyless(func(a *verify.Authority) { a.Keyless.Identities[0].Subject = expression }), verify.WrongIdentity},
		{"new issuer extension only", "cosign reads the old one only", identity(func(i *verifytest.Identity) { i.OnlyNewIssuer = true }), keyless(nil), ""},
		{"no SAN", "a certificate without a name matches no identity", identity(func(i *verifytest.Identity) { i.URI, i.NoSAN = "", true }), keyless(nil), verify.WrongIdentity},
		{"user name", "Fulcio's OtherName", identity(func(i *verifytest.Identity) { i.URI, i.Username = "", "dev!example.org" }), keyless(func(a *verify.Authority) { a.Keyless.Identities[0].Subject = verify.Exactly("dev!example.org") }), ""},
		{"extension", "a new one, which cosign does not check", identity(nil), keyless(func(a *verify.Authority) {
			a.Keyless.Extensions = []verify.Extension{{OID: "1.3.6.1.4.1.57264.1.11", Value: verify.Exactly("github-hosted")}}
		}), ""},
		{"extension, other value", "another runner", identity(nil), keyless(func(a *verify.Authority) {
			a.Keyless.Extensions = []verify.Extension{{OID: "1.3.6.1.4.1.57264.1.11", Value: verify.Exactly("self-hosted")}}
		}), verify.WrongExtension},
		{"signed by a key", "there is no certificate", verifytest.Claim{Signer: verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})), Image: signature(nil)}, keyless(nil), verify.WrongIdentity},
		{"other digest", "a good signature of another image", verifytest.Claim{Signer: signer, Image: &verifytest.SimpleSigning{Digest: other.String()}}, keyless(nil), verify.WrongDigest},
		{"wrong signature", "over other bytes", verifytest.Claim{Signer: signer, Image: signature(nil), WrongSignature: true}, keyless(nil), verify.BadSignature},
		{"annotation of the same signature", "identity and annotation fit", verifytest.Claim{Signer: signer, Image: signature(map[string]any{"env": "prod"})}, keyless(func(a *verify.Authority) { a.Annotations = map[string]string{"env": "prod"} }), ""},
		{"annotation missing", "identity fits, and the annotation is not there", identity(nil), keyless(func(a *verify.Authority) { a.Annotations = map[string]string{"env": "prod"} }), verify.WrongAnnotation},

		{"no log entry", "the log is asked for", verifytest.Claim{Signer: signer, Image: signature(nil), NoLog: true}, keyless(nil), verify.NoLogEntry},
		{"foreign log", "an entry of a log that is not trusted", verifytest.Claim{Signer: signer, Image: signature(nil), Records: []verifytest.Record{{Log: l.foreign.Rekor}}}, keyless(nil), verify.BadLogEntry},
		{"entry of another signature", "GHSA-8gw7-4j42-w388: a genuine entry that is not of this signature", verifytest.Claim{Signer: signer, Image: signature(nil), Records: []verifytest.Record{{Fault: verifytest.OtherSignature}}}, keyless(nil), verify.BadLogEntry},
		{"log not asked for", "the timestamp gives the time", verifytest.Claim{Signer: signer, Image: signature(nil), NoLog: true, Stamps: []verifytest.Stamp{{}}}, keyless(noLog), ""},
		{"log not asked for, valid now", "the certificate is still valid", verifytest.Claim{Signer: signer, Image: signature(nil), NoLog: true}, keyless(noLog), ""},
		{"log not asked for, expired", "there is no trusted time", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = past }), Image: signature(nil), NoLog: true}, keyless(noLog), verify.ExpiredCertificate},
		{"expired now, valid then", "it was valid at the log's time", identity(func(i *verifytest.Identity) { i.NotBefore = past }), keyless(nil), ""},
		{"expired at signing", "the log took it in a day after the certificate", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = past }), Image: signature(nil), Time: time.Now()}, keyless(nil), verify.ExpiredCertificate},
		{"timestamp outside the certificate", "the timestamp is of a day later", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = past }), Image: signature(nil), Stamps: []verifytest.Stamp{{Time: time.Now()}}}, keyless(nil), verify.ExpiredCertificate},

		{"foreign certificate authority", "the chain leads elsewhere", identity(func(i *verifytest.Identity) { i.CA = l.foreign.CA }), keyless(nil), verify.UntrustedChain},
		{"given roots", "the foreign authority is the policy's", identity(func(i *verifytest.Identity) { i.CA = l.foreign.CA }), keyless(func(a *verify.Authority) { a.Keyless.Roots = l.foreign.CA.ChainPEM() }), ""},
		{"given root alone", "the intermediate travels along", identity(func(i *verifytest.Identity) { i.CA = l.foreign.CA }), keyless(func(a *verify.Authority) { a.Keyless.Roots = l.foreign.CA.RootPEM() }), ""},
		{"given roots, own certificate", "the trusted root's authority no longer counts", identity(nil), keyless(func(a *verify.Authority) { a.Keyless.Roots = l.foreign.CA.ChainPEM() }), verify.UntrustedChain},
		{"no SCT", "certificate transparency is asked for", identity(func(i *verifytest.Identity) { i.NoSCT = true }), keyless(nil), verify.NoSCT},
		{"SCT not asked for", "the policy does not require it", identity(func(i *verifytest.Identity) { i.NoSCT = true }), keyless(func(a *verify.Authority) { a.Keyless.CT.Ignore = true }), ""},
		{"wrong SCT", "the certificate timestamp does not hold", identity(func(i *verifytest.Identity) { i.WrongSCT = true }), keyless(nil), verify.BadSCT},
		{"foreign CT log", "a log that is not trusted", identity(func(i *verifytest.Identity) { i.CTLog = l.foreign.CTLog }), keyless(nil), verify.BadSCT},
		{"given CT key", "the foreign CT log is the policy's", identity(func(i *verifytest.Identity) { i.CTLog = l.foreign.CTLog }), keyless(func(a *verify.Authority) { a.Keyless.CT.Keys = l.foreign.CTLog.PublicPEM() }), ""},
		{"outside validity", "signed after notAfter", identity(nil), keyless(func(a *verify.Authority) { a.NotAfter = past }), verify.OutsideValidity},
	})
}

func TestCertificate(t *testing.T) {
	l := newLab(t)
	signer, other := l.keyless(t, nil), l.keyless(t, nil)
	ignoreAll := func(c verify.Certificate) verify.Authority {
		c.CT.Ignore = true
		return verify.Authority{Name: "certificate", Certificate: &c, Log: verify.Log{Ignore: true}}
	}
	noName := l.keyless(t, func(i *verifytest.Identity) { i.URI, i.NoSAN, i.NoSCT = "", true, true })
	claim := verifytest.Claim{Signer: signer, Image: signature(nil), NoLog: true}
	sct := ignoreAll(verify.Certificate{Leaf: signer.CertificatePEM(), Chain: signer.ChainPEM()})
	sct.Certificate.CT.Ignore = false
	noSCT := ignoreAll(verify.Certificate{Leaf: noName.CertificatePEM(), Chain: noName.ChainPEM()})
	noSCT.Certificate.CT.Ignore = false
	sha512 := l.keyless(t, func(i *verifytest.Identity) { i.Key.Hash = crypto.SHA512 })
	retiring := func(of *verifytest.Signer, end time.Time) verify.Authority {
		return verify.Authority{
			Name: "certificate", Certificate: &verify.Certificate{Chain: signer.ChainPEM(), CT: verify.CT{Ignore: true}},
			Retired: map[string]time.Time{verify.Fingerprint(of.Public(), nil): end},
		}
	}
	l.run(t, []row{
		{"leaf and chain", "both are given", claim, ignoreAll(verify.Certificate{Leaf: signer.CertificatePEM(), Chain: signer.ChainPEM()}), ""},
		{"other leaf", "another certificate signed", claim, ignoreAll(verify.Certificate{Leaf: other.CertificatePEM(), Chain: other.ChainPEM()}), verify.WrongIdentity},
		{"leaf alone", "it is trusted by itself", claim, ignoreAll(verify.Certificate{Leaf: signer.CertificatePEM()}), ""},
		{"other leaf alone", "another certificate signed", claim, ignoreAll(verify.Certificate{Leaf: other.CertificatePEM()}), verify.WrongIdentity},
		{"chain alone", "any certificate of it", claim, ignoreAll(verify.Certificate{Chain: signer.ChainPEM()}), ""},
		{"foreign chain alone", "a certificate of another authority", claim, ignoreAll(verify.Certificate{Chain: l.foreign.CA.ChainPEM()}), verify.UntrustedChain},
		{"leaf with a foreign chain", "the leaf must lead to the chain", claim, ignoreAll(verify.Certificate{Leaf: signer.CertificatePEM(), Chain: l.foreign.CA.ChainPEM()}), verify.UntrustedChain},
		{"no name", "a given certificate needs none", verifytest.Claim{Signer: noName, Image: signature(nil), NoLog: true}, ignoreAll(verify.Certificate{Leaf: noName.CertificatePEM(), Chain: noName.ChainPEM()}), ""},
		{"SCT asked for", "the certificate has one", claim, sct, ""},
		{"SCT asked for, none", "the certificate has none", verifytest.Claim{Signer: noName, Image: signature(nil), NoLog: true}, noSCT, verify.NoSCT},
		{"with log", "the entry holds the certificate", verifytest.Claim{Signer: signer, Image: signature(nil)}, verify.Authority{Name: "certificate", Certificate: &verify.Certificate{Chain: signer.ChainPEM(), CT: verify.CT{Ignore: true}}}, ""},
		{"with log, retired later", "its key was retired after it signed", verifytest.Claim{Signer: signer, Image: signature(nil)}, retiring(signer, time.Now().Add(time.Hour)), ""},
		{"with log, retired", "its key was retired before it signed", verifytest.Claim{Signer: signer, Image: signature(nil)}, retiring(signer, time.Now().Add(-time.Hour)), verify.OutsideValidity},
		{"with log, another retired", "another key was", verifytest.Claim{Signer: signer, Image: signature(nil)}, retiring(noName, time.Now().Add(-time.Hour)), ""},
		{"with log, no entry", "the log is asked for", claim, verify.Authority{Name: "certificate", Certificate: &verify.Certificate{Chain: signer.ChainPEM(), CT: verify.CT{Ignore: true}}}, verify.NoLogEntry},
		{"sha512", "the policy names the digest algorithm", verifytest.Claim{Signer: sha512, Image: signature(nil), NoLog: true}, ignoreAll(verify.Certificate{Chain: sha512.ChainPEM(), Hash: "sha512"}), ""},
		{"sha512 unnamed", "sha256 is the default", verifytest.Claim{Signer: sha512, Image: signature(nil), NoLog: true}, ignoreAll(verify.Certificate{Chain: sha512.ChainPEM()}), verify.BadSignature},
	})

	t.Run("the signature names no certificate", func(t *testing.T) {
		evidence := l.evidence(t, claim)
		delete(evidence.Annotations, certificateAnnotation)
		delete(evidence.Annotations, chainAnnotation)
		fact, err := l.verifier.Verify(t.Context(), l.subject, evidence, ignoreAll(verify.Certificate{Leaf: signer.CertificatePEM(), Chain: signer.ChainPEM()}))
		check(t, fact, err, "")
		fact, err = l.verifier.Verify(t.Context(), l.subject, evidence, ignoreAll(verify.Certificate{Leaf: other.CertificatePEM(), Chain: other.ChainPEM()}))
		check(t, fact, err, verify.BadSignature)
	})
}

// TestMixed takes what belongs to one good signature and puts it to another.
func TestMixed(t *testing.T) {
	l := newLab(t)
	signer := l.keyless(t, nil)
	first := l.evidence(t, verifytest.Claim{Signer: signer, Image: signature(nil)})
	second := l.evidence(t, verifytest.Claim{Signer: signer, Image: signature(map[string]any{"env": "prod"})})
	stranger := l.evidence(t, verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.URI += "x" }), Image: signature(nil)})
	tests := []struct {
		name, reason string
		annotation   string
		from         attest.Evidence
		want         verify.Code
	}{
		{"nothing", "the signature as it is", "", first, ""},
		{"signature", "GHSA-8gw7-4j42-w388: over another payload", signatureAnnotation, second, verify.BadSignature},
		{"entry", "GHSA-ccxc-vr6p-4858: of another signature", entryAnnotation, second, verify.BadLogEntry},
		{"certificate", "of another signer", certificateAnnotation, stranger, verify.BadSignature},
		{"entry of another signer", "of another signature and key", entryAnnotation, stranger, verify.BadLogEntry},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			mixed := first
			mixed.Annotations = maps.Clone(first.Annotations)
			if test.annotation != "" {
				mixed.Annotations[test.annotation] = test.from.Annotations[test.annotation]
			}
			fact, err := l.verifier.Verify(t.Context(), l.subject, mixed, keyless(nil))
			check(t, fact, err, test.want)
			if t.Failed() {
				t.Log("reason:", test.reason)
			}
		})
	}
}
