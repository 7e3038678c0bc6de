package bundle_test

import (
	"crypto"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const (
	issuer   = "https://token.example"
	workflow = "https://git.example/org/app/.github/workflows/release.yml@refs/heads/main"
	slsa     = "https://slsa.dev/provenance/v1"
)

var (
	manifest = []byte(`{"schemaVersion":2}`)
	digest   = image.DigestOf(manifest)
	other    = image.DigestOf([]byte("another image"))
)

// lab is one throw-away Sigstore that is trusted, and one that is not.
type lab struct {
	own, foreign *verifytest.Sigstore
	verifier     *bundle.Verifier
	subject      image.Pinned
}

func newLab(t testing.TB) *lab {
	t.Helper()
	l := &lab{
		own:     verifytest.Must(verifytest.New(verifytest.Options{Name: "own"})),
		foreign: verifytest.Must(verifytest.New(verifytest.Options{Name: "foreign"})),
	}
	l.verifier = verifierOf(t, trust.Options{TrustedRoot: l.own.TrustedRoot()})
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

func verifierOf(t testing.TB, o trust.Options) *bundle.Verifier {
	t.Helper()
	store, err := trust.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return bundle.New(store.Snapshot())
}

func (l *lab) verify(t testing.TB, claim verifytest.Claim, authority verify.Authority) (verify.Fact, error) {
	t.Helper()
	payload, err := l.own.Bundle(claim)
	if err != nil {
		t.Fatalf("write the bundle: %v", err)
	}
	evidence := attest.Evidence{Format: attest.Bundle, Payload: payload, Origin: attest.Origin{Via: "referrers"}}
	return l.verifier.Verify(t.Context(), l.subject, evidence, authority)
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

func signature() *verifytest.Statement { return verifytest.CosignSignature(digest.String(), nil) }

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

// retired has the key of a signer end at a time.
func retired(signer *verifytest.Signer, end time.Time) map[string]time.Time {
	return map[string]time.Time{verify.Fingerprint(signer.Public(), nil): end}
}

func noLog(a *verify.Authority) { a.Log.Ignore = true }

// check compares an outcome with the wanted code; none means a fact.
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
	case rejection.Origin.Via != "referrers" || rejection.Authority == "":
		t.Errorf("the rejection lacks its origin or authority: %+v", rejection)
	}
}

type row struct {
	name, reason string
	claim        verifytest.Claim
	authority    verify.Authority
	want         verify.Code
}

// play verifies the claim of each row.
func (l *lab) play(t *testing.T, tests []row) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fact, err := l.verify(t, test.claim, test.authority)
			check(t, fact, err, test.want)
			if t.Failed() {
				t.Log("reason:", test.reason)
			}
		})
	}
}

func TestKeyless(t *testing.T) {
	l := newLab(t)
	signer := l.keyless(t, nil)
	past := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
	tests := []row{
		{"cosign sign statement", "identity, log, SCT and digest fit", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(nil), ""},
		{"v0.1", "an older version with a promise", verifytest.Claim{Signer: signer, Statement: signature(), Version: "0.1"}, keyless(nil), ""},
		{"v0.2", "an older version with a proof", verifytest.Claim{Signer: signer, Statement: signature(), Version: "0.2"}, keyless(nil), ""},
		{"v0.2 without proof", "v0.2 wants an inclusion proof", verifytest.Claim{Signer: signer, Statement: signature(), Version: "0.2", Records: []verifytest.Record{{NoProof: true}}}, keyless(nil), verify.Malformed},
		{"message signature", "over the manifest itself", verifytest.Claim{Signer: signer, Artifact: manifest}, keyless(nil), ""},
		{"other message", "over other bytes", verifytest.Claim{Signer: signer, Artifact: []byte("other")}, keyless(nil), verify.WrongDigest},
		{"attestation", "a statement of another type", verifytest.Claim{Signer: signer, Statement: provenance()}, keyless(nil), ""},
		{"other digest", "a good signature of another image", verifytest.Claim{Signer: signer, Statement: verifytest.CosignSignature(other.String(), nil)}, keyless(nil), verify.WrongDigest},
		{"sha512 subject only", "the statement does not name the image's own digest", verifytest.Claim{Signer: signer, Statement: &verifytest.Statement{Subjects: []verifytest.Subject{{Digest: "sha512:" + digest.Hex() + digest.Hex()}}}}, keyless(nil), verify.WrongDigest},
		{"no subjects", "a statement about nothing", verifytest.Claim{Signer: signer, Statement: &verifytest.Statement{NoSubjects: true}}, keyless(nil), verify.Malformed},
		{"payload of another type", "an envelope that holds no statement", verifytest.Claim{Signer: signer, Payload: manifest, PayloadType: "text/plain"}, keyless(nil), verify.Malformed},
		{"no signatures", "an envelope without signatures", verifytest.Claim{Signer: signer, Statement: signature(), NoSignatures: true}, keyless(nil), verify.Malformed},
		{"wrong signature", "the signature is over other bytes", verifytest.Claim{Signer: signer, Statement: signature(), WrongSignature: true}, keyless(nil), verify.BadSignature},
		{"signed by a key", "there is no certificate", verifytest.Claim{Signer: verifytest.Must(verifytest.KeySigner(verifytest.KeyOptions{})), Statement: signature()}, keyless(nil), verify.WrongIdentity},

		{"Rekor v2 with timestamp", "the log gives no time, the timestamp does", verifytest.Claim{Signer: signer, Statement: signature(), Records: []verifytest.Record{{Log: l.own.Rekor2}}, Stamps: []verifytest.Stamp{{}}}, keyless(nil), ""},
		{"Rekor v2 without timestamp", "there is no trusted time", verifytest.Claim{Signer: signer, Statement: signature(), Records: []verifytest.Record{{Log: l.own.Rekor2}}}, keyless(nil), verify.NoTimestamp},
		{"no log entry", "the log is asked for", verifytest.Claim{Signer: signer, Statement: signature(), NoLog: true, Stamps: []verifytest.Stamp{{}}}, keyless(nil), verify.NoLogEntry},
		{"log not asked for", "the timestamp gives the time", verifytest.Claim{Signer: signer, Statement: signature(), NoLog: true, Stamps: []verifytest.Stamp{{}}}, keyless(noLog), ""},
		{"an unknown log beside a known one", "the unknown one's promise is not required", verifytest.Claim{Signer: signer, Statement: signature(), Records: []verifytest.Record{{Log: l.own.Rekor2}, {Log: l.foreign.Rekor}}, Stamps: []verifytest.Stamp{{}}}, keyless(nil), ""},
		{"foreign log", "an entry of a log that is not trusted", verifytest.Claim{Signer: signer, Statement: signature(), Records: []verifytest.Record{{Log: l.foreign.Rekor}}}, keyless(nil), verify.BadLogEntry},
		{"foreign log under our name", "the promise is not by the log that it names", verifytest.Claim{Signer: signer, Statement: signature(), Records: []verifytest.Record{{Log: l.foreign.Rekor, As: l.own.Rekor}}}, keyless(nil), verify.BadLogEntry},
		{"wrong promise", "the promise does not hold", verifytest.Claim{Signer: signer, Statement: signature(), Records: []verifytest.Record{{Fault: verifytest.WrongPromise}}}, keyless(nil), verify.BadLogEntry},
		{"wrong proof", "the inclusion proof does not hold", verifytest.Claim{Signer: signer, Statement: signature(), Records: []verifytest.Record{{Fault: verifytest.WrongProof}}}, keyless(nil), verify.BadLogEntry},
		{"wrong checkpoint", "the checkpoint is not the log's", verifytest.Claim{Signer: signer, Statement: signature(), Records: []verifytest.Record{{Fault: verifytest.WrongCheckpoint}}}, keyless(nil), verify.BadLogEntry},
		{"entry of another signature", "GHSA-whqx-f9j3-ch6m: a genuine entry that is not of this signature", verifytest.Claim{Signer: signer, Statement: signature(), Records: []verifytest.Record{{Fault: verifytest.OtherSignature}}}, keyless(nil), verify.BadLogEntry},
		{"intoto entry", "an older type of entry", verifytest.Claim{Signer: signer, Statement: provenance(), Records: []verifytest.Record{{Kind: "intoto"}}}, keyless(nil), ""},
		{"intoto entry with its payload", "some logs keep the payload in the entry", verifytest.Claim{Signer: signer, Statement: provenance(), Records: []verifytest.Record{{Kind: "intoto", Payload: true}}}, keyless(nil), ""},
		{"intoto entry with a long payload", "the entry's bound is without its payload", verifytest.Claim{Signer: signer, Statement: verifytest.Attestation(digest.String(), slsa, strings.Repeat("a", 128<<10)), Records: []verifytest.Record{{Kind: "intoto", Payload: true}}}, keyless(nil), ""},
		{"intoto entry with another payload", "the entry's signature is not over its payload", verifytest.Claim{Signer: signer, Statement: provenance(), Records: []verifytest.Record{{Kind: "intoto", Payload: true, Fault: verifytest.OtherPayload}}}, keyless(nil), verify.Malformed},
		{"intoto entry with the payload of another signature", "a genuine entry of another envelope", verifytest.Claim{Signer: signer, Statement: provenance(), Records: []verifytest.Record{{Kind: "intoto", Payload: true, Fault: verifytest.OtherSignature}}}, keyless(nil), verify.BadLogEntry},
		{"intoto entry with its payload, wrong promise", "the payload does not replace the log's signature", verifytest.Claim{Signer: signer, Statement: provenance(), Records: []verifytest.Record{{Kind: "intoto", Payload: true, Fault: verifytest.WrongPromise}}}, keyless(nil), verify.BadLogEntry},
		{"intoto entry with its payload, wrong proof", "the payload does not replace the inclusion proof", verifytest.Claim{Signer: signer, Statement: provenance(), Records: []verifytest.Record{{Kind: "intoto", Payload: true, Fault: verifytest.WrongProof}}}, keyless(nil), verify.BadLogEntry},
		{"repeated entry", "GHSA-9vcr-p3rj-q5q6: one entry must not count twice", verifytest.Claim{Signer: signer, Statement: signature(), Records: []verifytest.Record{{Fault: verifytest.Repeated}}}, keyless(nil), verify.BadLogEntry},
		{"timestamp of a foreign authority", "a timestamp that is there must hold", verifytest.Claim{Signer: signer, Statement: signature(), Stamps: []verifytest.Stamp{{TSA: l.foreign.TSA}}}, keyless(nil), verify.BadTimestamp},
		{"timestamp of another signature", "a timestamp that is there must be of this signature", verifytest.Claim{Signer: signer, Statement: signature(), Stamps: []verifytest.Stamp{{OtherSignature: true}}}, keyless(nil), verify.BadTimestamp},
		{"timestamp required", "there is one", verifytest.Claim{Signer: signer, Statement: signature(), Stamps: []verifytest.Stamp{{}}}, keyless(func(a *verify.Authority) { a.Timestamp.Required = true }), ""},
		{"timestamp required, none", "the log's time is no timestamp", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.Timestamp.Required = true }), verify.NoTimestamp},

		{"expired at signing", "the log took it in a day after the certificate", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = past }), Statement: signature(), Time: time.Now()}, keyless(nil), verify.ExpiredCertificate},
		{"expired now, valid then", "the certificate was valid when it signed", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = past }), Statement: signature()}, keyless(nil), ""},
		{"expired, time unknown", "without log and timestamp the present counts", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = past }), Statement: signature(), NoLog: true}, keyless(noLog), verify.ExpiredCertificate},
		{"timestamp within the certificate", "the timestamp is of the time of signing", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = past }), Statement: signature(), Records: []verifytest.Record{{Log: l.own.Rekor2}}, Stamps: []verifytest.Stamp{{}}}, keyless(nil), ""},
		{"timestamp outside the certificate", "the timestamp is of a day later", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = past }), Statement: signature(), Records: []verifytest.Record{{Log: l.own.Rekor2}}, Stamps: []verifytest.Stamp{{Time: time.Now()}}}, keyless(nil), verify.ExpiredCertificate},
		{"log within, timestamp outside", "every trusted time must be within", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.NotBefore = past }), Statement: signature(), Stamps: []verifytest.Stamp{{Time: time.Now()}}}, keyless(nil), verify.ExpiredCertificate},
		{"foreign certificate authority", "the chain leads elsewhere", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.CA = l.foreign.CA }), Statement: signature()}, keyless(nil), verify.UntrustedChain},
		{"no SCT", "certificate transparency is asked for", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.NoSCT = true }), Statement: signature()}, keyless(nil), verify.NoSCT},
		{"SCT not asked for", "the policy does not require it", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.NoSCT = true }), Statement: signature()}, keyless(func(a *verify.Authority) { a.Keyless.CT.Ignore = true }), ""},
		{"wrong SCT", "the certificate timestamp does not hold", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.WrongSCT = true }), Statement: signature()}, keyless(nil), verify.BadSCT},
		{"foreign CT log", "the certificate timestamp is of a log that is not trusted", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.CTLog = l.foreign.CTLog }), Statement: signature()}, keyless(nil), verify.BadSCT},
		{"no SAN", "a certificate without a name matches no identity", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.URI, i.NoSAN = "", true }), Statement: signature()}, keyless(nil), verify.WrongIdentity},

		{"log selected", "the URL names the log of the entry", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.Log.URL = "https://rekor.own.example/" }), ""},
		{"other log selected", "the entry is of another trusted log", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.Log.URL = "https://rekor2.own.example" }), verify.BadLogEntry},
		{"given log key", "the foreign log is the policy's", verifytest.Claim{Signer: signer, Statement: signature(), Records: []verifytest.Record{{Log: l.foreign.Rekor}}}, keyless(func(a *verify.Authority) { a.Log.Keys = l.foreign.Rekor.PublicPEM() }), ""},
		{"given log key, other entry", "the trusted root's log no longer counts", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.Log.Keys = l.foreign.Rekor.PublicPEM() }), verify.BadLogEntry},
		{"given v2 log key and URL", "a Rekor v2 log is known by name and key", verifytest.Claim{Signer: signer, Statement: signature(), Records: []verifytest.Record{{Log: l.foreign.Rekor2}}, Stamps: []verifytest.Stamp{{}}}, keyless(func(a *verify.Authority) {
			a.Log.Keys, a.Log.URL = l.foreign.Rekor2.PublicPEM(), "https://rekor2.foreign.example"
		}), ""},
		{"given CT key", "the foreign CT log is the policy's", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.CTLog = l.foreign.CTLog }), Statement: signature()}, keyless(func(a *verify.Authority) { a.Keyless.CT.Keys = l.foreign.CTLog.PublicPEM() }), ""},
		{"given roots", "the foreign authority is the policy's", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.CA = l.foreign.CA }), Statement: signature()}, keyless(func(a *verify.Authority) { a.Keyless.Roots = l.foreign.CA.ChainPEM() }), ""},
		{"given roots, own certificate", "the trusted root's authority no longer counts", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.Keyless.Roots = l.foreign.CA.ChainPEM() }), verify.UntrustedChain},
		{"given root alone, chain in the bundle", "v0.1 carries the intermediate", verifytest.Claim{Signer: signer, Statement: signature(), Version: "0.1"}, keyless(func(a *verify.Authority) { a.Keyless.Roots = l.own.CA.RootPEM() }), ""},
		{"given root alone, no chain", "v0.3 does not carry it", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.Keyless.Roots = l.own.CA.RootPEM() }), verify.UntrustedChain},
		{"given timestamp chain", "the foreign timestamp authority is the policy's", verifytest.Claim{Signer: signer, Statement: signature(), Stamps: []verifytest.Stamp{{TSA: l.foreign.TSA}}}, keyless(func(a *verify.Authority) {
			a.Timestamp = verify.Timestamp{Required: true, Chain: l.foreign.TSA.ChainPEM()}
		}), ""},
		{"trusted root of the authority", "it stands in for the gateway's", verifytest.Claim{Signer: l.keyless(t, func(i *verifytest.Identity) { i.CA, i.CTLog = l.foreign.CA, l.foreign.CTLog }), Statement: signature(), Records: []verifytest.Record{{Log: l.foreign.Rekor}}}, keyless(func(a *verify.Authority) { a.TrustedRoot = l.foreign.TrustedRoot() }), ""},
		{"trusted root of the authority, own parts", "the gateway's no longer counts", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.TrustedRoot = l.foreign.TrustedRoot() }), verify.UntrustedChain},

		{"within validity", "signed after notBefore", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.NotBefore = past }), ""},
		{"outside validity", "signed after notAfter", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.NotAfter = past }), verify.OutsideValidity},
		{"retired later", "its key was retired after it signed", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.Retired = retired(signer, past.AddDate(9, 0, 0)) }), ""},
		{"retired", "its key was retired before it signed", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.Retired = retired(signer, past) }), verify.OutsideValidity},
		{"another retired", "another key was", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.Retired = retired(l.keyless(t, nil), past) }), ""},
		{"annotation", "the subject carries it", verifytest.Claim{Signer: signer, Statement: verifytest.CosignSignature(digest.String(), map[string]any{"env": "prod"})}, keyless(func(a *verify.Authority) { a.Annotations = map[string]string{"env": "prod"} }), ""},
		{"annotation of another value", "the subject carries another", verifytest.Claim{Signer: signer, Statement: verifytest.CosignSignature(digest.String(), map[string]any{"env": "test"})}, keyless(func(a *verify.Authority) { a.Annotations = map[string]string{"env": "prod"} }), verify.WrongAnnotation},
		{"annotation of another subject", "another subject carries it", verifytest.Claim{Signer: signer, Statement: &verifytest.Statement{Subjects: []verifytest.Subject{{Digest: digest.String()}, {Digest: other.String(), Annotations: map[string]any{"env": "prod"}}}}}, keyless(func(a *verify.Authority) { a.Annotations = map[string]string{"env": "prod"} }), verify.WrongAnnotation},
		{"annotation, message signature", "it can carry none", verifytest.Claim{Signer: signer, Artifact: manifest}, keyless(func(a *verify.Authority) { a.Annotations = map[string]string{"env": "prod"} }), verify.WrongAnnotation},
		{"other format asked for", "the authority accepts cosign's only", verifytest.Claim{Signer: signer, Statement: signature()}, keyless(func(a *verify.Authority) { a.Formats = []attest.Format{attest.Cosign} }), verify.WrongFormat},
	}
	for _, algorithm := range []verifytest.Algorithm{verifytest.ECDSAP384, verifytest.ECDSAP521, verifytest.RSA2048, verifytest.Ed25519} {
		kind := l.keyless(t, func(i *verifytest.Identity) { i.Key.Algorithm = algorithm })
		for name, claim := range map[string]verifytest.Claim{
			"envelope": {Signer: kind, Statement: signature()}, "Rekor v2 envelope": {Signer: kind, Statement: signature(), Records: []verifytest.Record{{Log: l.own.Rekor2}}, Stamps: []verifytest.Stamp{{}}},
		} {
			if algorithm == verifytest.Ed25519 && name == "Rekor v2 envelope" {
				continue // that log prehashes, and an envelope's Ed25519 signature does not
			}
			bad := claim
			bad.WrongSignature = true
			tests = append(tests,
				row{string(algorithm) + " " + name, "another kind of key", claim, keyless(nil), ""},
				row{string(algorithm) + " " + name + ", wrong signature", "over other bytes", bad, keyless(nil), verify.BadSignature})
		}
	}
	l.play(t, tests)
}

func TestIdentity(t *testing.T) {
	l := newLab(t)
	expression := func(text string) verify.Matcher { return verifytest.Must(verify.Expression(text)) }
	only := func(issuer, subject verify.Matcher) verify.Authority {
		return keyless(func(a *verify.Authority) {
			a.Keyless.Identities = []verify.Identity{{Issuer: issuer, Subject: subject}}
		})
	}
	extension := func(oid string, value verify.Matcher) verify.Authority {
		return keyless(func(a *verify.Authority) {
			a.Keyless.Extensions = []verify.Extension{{OID: oid, Name: "named", Value: value}}
		})
	}
	tests := []struct {
		name, reason string
		change       func(*verifytest.Identity)
		authority    verify.Authority
		want         verify.Code
	}{
		{"exact", "both are equal", nil, only(verify.Exactly(issuer), verify.Exactly(workflow)), ""},
		{"other subject", "another workflow", nil, only(verify.Exactly(issuer), verify.Exactly(workflow+"x")), verify.WrongIdentity},
		{"other issuer", "another issuer", nil, only(verify.Exactly(issuer+".evil"), verify.Exactly(workflow)), verify.WrongIdentity},
		{"wildcard", "the whole text fits", nil, only(verify.Exactly(issuer), verify.Wildcard("https://git.example/org/*")), ""},
		{"wildcard of another place", "the text begins otherwise", nil, only(verify.Exactly(issuer), verify.Wildcard("https://git.example/or/*")), verify.WrongIdentity},
		{"expression", "the whole text fits", nil, only(verify.Exactly(issuer), expression("https://git[.]example/org/.*")), ""},
		{"expression is anchored", "a part of the text fits only", nil, only(verify.Exactly(issuer), expression("git[.]example/org/app")), verify.WrongIdentity},
		{"old issuer extension only", "the first extension counts where the new one is missing", func(i *verifytest.Identity) { i.OnlyOldIssuer = true }, keyless(nil), ""},
		{"new issuer extension only", "the second extension counts", func(i *verifytest.Identity) { i.OnlyNewIssuer = true }, keyless(nil), ""},
		{"email", "another kind of name", func(i *verifytest.Identity) { i.URI, i.Email = "", "dev@example.org" }, only(verify.Exactly(issuer), verify.Exactly("dev@example.org")), ""},
		{"other email", "another person", func(i *verifytest.Identity) { i.URI, i.Email = "", "dev@example.org.evil" }, only(verify.Exactly(issuer), verify.Exactly("dev@example.org")), verify.WrongIdentity},
		{"user name", "Fulcio's OtherName", func(i *verifytest.Identity) { i.URI, i.Username = "", "dev!example.org" }, only(verify.Exactly(issuer), verify.Exactly("dev!example.org")), ""},
		{"other user name", "another user", func(i *verifytest.Identity) { i.URI, i.Username = "", "eve!example.org" }, only(verify.Exactly(issuer), verify.Exactly("dev!example.org")), verify.WrongIdentity},
		{"old extension", "its value is plain text", nil, extension("1.3.6.1.4.1.57264.1.2", verify.Exactly("push")), ""},
		{"old extension, other value", "another trigger", nil, extension("1.3.6.1.4.1.57264.1.2", verify.Exactly("pull_request")), verify.WrongExtension},
		{"new extension", "its value is a DER string", nil, extension("1.3.6.1.4.1.57264.1.11", verify.Exactly("github-hosted")), ""},
		{"new extension, other value", "another runner", nil, extension("1.3.6.1.4.1.57264.1.11", verify.Exactly("self-hosted")), verify.WrongExtension},
		{"missing extension", "the certificate has none", nil, extension("1.3.6.1.4.1.57264.1.22", verify.Wildcard("*")), verify.WrongExtension},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fact, err := l.verify(t, verifytest.Claim{Signer: l.keyless(t, test.change), Statement: signature()}, test.authority)
			check(t, fact, err, test.want)
			if rejection, ok := errors.AsType[*verify.Rejection](err); ok && (rejection.Expected == "" || rejection.Found == "") {
				t.Errorf("the rejection shows no nearest miss: %v", rejection)
			}
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
	p384, p521 := key(verifytest.KeyOptions{Algorithm: verifytest.ECDSAP384}), key(verifytest.KeyOptions{Algorithm: verifytest.ECDSAP521})
	p384old := key(verifytest.KeyOptions{Algorithm: verifytest.ECDSAP384, Hash: crypto.SHA256})
	rsa, ed := key(verifytest.KeyOptions{Algorithm: verifytest.RSA2048}), key(verifytest.KeyOptions{Algorithm: verifytest.Ed25519})
	sha512 := key(verifytest.KeyOptions{Hash: crypto.SHA512})
	liar := key(verifytest.KeyOptions{Hint: p256.Hint()})
	named := key(verifytest.KeyOptions{Hint: "my key"})
	hash := func(name string) func(*verify.Authority) {
		return func(a *verify.Authority) { a.Log.Ignore, a.Key.Hash = true, name }
	}
	past := time.Now().Add(-time.Hour)
	tests := []row{
		{"without log", "the signature is all that is asked", verifytest.Claim{Signer: p256, Statement: signature(), NoLog: true}, byKey(p256, noLog), ""},
		{"with log", "the entry is there", verifytest.Claim{Signer: p256, Statement: signature()}, byKey(p256, nil), ""},
		{"no log entry", "the log is asked for", verifytest.Claim{Signer: p256, Statement: signature(), NoLog: true}, byKey(p256, nil), verify.NoLogEntry},
		{"Rekor v2", "a key needs no time", verifytest.Claim{Signer: p256, Statement: signature(), Records: []verifytest.Record{{Log: l.own.Rekor2}}}, byKey(p256, nil), ""},
		{"foreign Rekor v2", "a log that is not trusted", verifytest.Claim{Signer: p256, Statement: signature(), Records: []verifytest.Record{{Log: l.foreign.Rekor2}}}, byKey(p256, nil), verify.BadLogEntry},
		{"entry of another signature", "a genuine entry of the same key", verifytest.Claim{Signer: p256, Statement: signature(), Records: []verifytest.Record{{Fault: verifytest.OtherSignature}}}, byKey(p256, nil), verify.BadLogEntry},
		{"proof only", "v0.3 needs no promise", verifytest.Claim{Signer: p256, Statement: signature(), Records: []verifytest.Record{{NoPromise: true}}}, byKey(p256, nil), ""},
		{"message signature", "over the manifest itself", verifytest.Claim{Signer: p256, Artifact: manifest, NoLog: true}, byKey(p256, noLog), ""},
		{"other message", "over other bytes", verifytest.Claim{Signer: p256, Artifact: []byte("other"), NoLog: true}, byKey(p256, noLog), verify.WrongDigest},
		{"attestation", "a statement of another type", verifytest.Claim{Signer: p256, Statement: provenance(), NoLog: true}, byKey(p256, noLog), ""},
		{"other digest", "a good signature of another image", verifytest.Claim{Signer: p256, Statement: verifytest.CosignSignature(other.String(), nil), NoLog: true}, byKey(p256, noLog), verify.WrongDigest},
		{"stranger", "signed by another key", verifytest.Claim{Signer: stranger, Statement: signature()}, byKey(p256, nil), verify.WrongKey},
		{"stranger, message", "signed by another key", verifytest.Claim{Signer: stranger, Artifact: manifest, NoLog: true}, byKey(p256, noLog), verify.WrongKey},
		{"stranger with our hint", "it claims to be this key, and is not", verifytest.Claim{Signer: liar, Statement: signature(), NoLog: true}, byKey(p256, noLog), verify.BadSignature},
		{"wrong signature", "the signature is over other bytes", verifytest.Claim{Signer: p256, Statement: signature(), NoLog: true, WrongSignature: true}, byKey(p256, noLog), verify.BadSignature},
		{"a hint of its own", "a hint is only a hint", verifytest.Claim{Signer: named, Statement: signature(), NoLog: true}, byKey(named, noLog), ""},
		{"signed by a certificate", "a certificate is not this key", verifytest.Claim{Signer: l.keyless(t, nil), Statement: signature()}, byKey(p256, nil), verify.WrongKey},
		{"P-384", "with the digest of its curve", verifytest.Claim{Signer: p384, Statement: signature(), NoLog: true}, byKey(p384, noLog), ""},
		{"P-384 with sha256", "as cosign 2 signs", verifytest.Claim{Signer: p384old, Statement: signature(), NoLog: true}, byKey(p384old, noLog), ""},
		{"P-384 with sha256, sha384 asked", "the policy names the digest algorithm", verifytest.Claim{Signer: p384old, Statement: signature(), NoLog: true}, byKey(p384old, hash("sha384")), verify.BadSignature},
		{"P-521", "with the digest of its curve", verifytest.Claim{Signer: p521, Statement: signature(), NoLog: true}, byKey(p521, noLog), ""},
		{"sha512", "the policy names the digest algorithm", verifytest.Claim{Signer: sha512, Statement: signature(), NoLog: true}, byKey(sha512, hash("sha512")), ""},
		{"sha512 unnamed", "sha256 is the default", verifytest.Claim{Signer: sha512, Statement: signature(), NoLog: true}, byKey(sha512, noLog), verify.BadSignature},
		{"RSA", "PKCS #1 v1.5", verifytest.Claim{Signer: rsa, Statement: signature(), NoLog: true}, byKey(rsa, noLog), ""},
		{"RSA stranger", "another kind of key", verifytest.Claim{Signer: rsa, Statement: signature(), NoLog: true}, byKey(p256, noLog), verify.WrongKey},
		{"Ed25519", "over the envelope", verifytest.Claim{Signer: ed, Statement: signature(), NoLog: true}, byKey(ed, noLog), ""},
		{"Ed25519 message", "needs the bytes, and only the digest is there", verifytest.Claim{Signer: ed, Artifact: manifest, NoLog: true}, byKey(ed, noLog), verify.WrongFormat},
		{"within validity", "the log gives the time", verifytest.Claim{Signer: p256, Statement: signature()}, byKey(p256, func(a *verify.Authority) { a.NotBefore = past }), ""},
		{"before validity", "the log's time is earlier", verifytest.Claim{Signer: p256, Statement: signature(), Time: past.Add(-time.Hour)}, byKey(p256, func(a *verify.Authority) { a.NotBefore = past }), verify.OutsideValidity},
		{"validity by timestamp", "the timestamp gives the time", verifytest.Claim{Signer: p256, Statement: signature(), NoLog: true, Stamps: []verifytest.Stamp{{}}}, byKey(p256, func(a *verify.Authority) { a.Log.Ignore, a.NotBefore = true, past }), ""},
		{"validity without time", "there is no trusted time", verifytest.Claim{Signer: p256, Statement: signature(), NoLog: true}, byKey(p256, func(a *verify.Authority) { a.Log.Ignore, a.NotBefore = true, past }), verify.NoTimestamp},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fact, err := l.verify(t, test.claim, test.authority)
			check(t, fact, err, test.want)
			if err == nil && fact.Signer.KeyFingerprint == "" {
				t.Error("the fact does not name the key")
			}
			if t.Failed() {
				t.Log("reason:", test.reason)
			}
		})
	}
}
