package notation_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/notaryproject/notation-core-go/signature"
	notationgo "github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/signer"
	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/notation"
)

var (
	manifest = image.Descriptor{
		MediaType: image.MediaTypeManifest, Digest: image.DigestOf([]byte("manifest")), Size: 528,
	}
	repository = mustRepository("registry.example/app")
)

func mustRepository(s string) image.Repository {
	r, err := image.ParseRepository(s)
	if err != nil {
		panic(err)
	}
	return r
}

// pinned is the image that the tests are about.
func pinned(t testing.TB, d image.Descriptor) image.Pinned {
	t.Helper()
	ref, err := image.Parse("registry.example/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := ref.Pin(d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newVerifier(t testing.TB, o notation.Options) *notation.Verifier {
	t.Helper()
	v, err := notation.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// trusting is an authority that believes what ca vouches for.
func trusting(ca *party, change ...func(*verify.Authority)) verify.Authority {
	a := verify.Authority{Name: "release", Notation: &verify.Notation{CA: ca.pem()}}
	for _, c := range change {
		c(&a)
	}
	return a
}

func codeOf(t testing.TB, err error) verify.Code {
	t.Helper()
	if err == nil {
		return ""
	}
	r, ok := errors.AsType[*verify.Rejection](err)
	if !ok {
		t.Fatalf("indeterminate: %v; want a fact or a rejection", err)
	}
	return r.Code
}

// row is one attempt; its code is empty where a fact is expected.
type row struct {
	reason    string
	evidence  attest.Evidence
	authority verify.Authority
	subject   image.Descriptor // the usual manifest if zero
	code      verify.Code
	says      string // a part of the rejection's message
	notes     []string
}

func (r row) run(t *testing.T) {
	t.Helper()
	subject := r.subject
	if subject.Digest.IsZero() {
		subject = manifest
	}
	fact, err := newVerifier(t, notation.Options{}).Verify(t.Context(), pinned(t, subject), r.evidence, r.authority)
	if got := codeOf(t, err); got != r.code {
		t.Fatalf("code %q (%v), want %q", got, err, r.code)
	}
	if err != nil {
		if !strings.Contains(err.Error(), r.says) {
			t.Errorf("got %q, want %q in it", err, r.says)
		}
		if fact.Format != "" {
			t.Errorf("a rejection came with a fact: %+v", fact)
		}
		return
	}
	if len(fact.Notes) != len(r.notes) {
		t.Errorf("notes %q, want %d", fact.Notes, len(r.notes))
	}
	for _, note := range r.notes {
		if !slices.ContainsFunc(fact.Notes, func(n string) bool { return strings.HasPrefix(n, note) }) {
			t.Errorf("notes %q, want one that starts with %q", fact.Notes, note)
		}
	}
}

func runAll(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.reason, r.run)
	}
}

func TestTrustAndTarget(t *testing.T) {
	ca, stranger := newCA(t, "root"), newCA(t, "another root")
	by := newSigner(t, ca, "release")
	identities := func(ids ...string) func(*verify.Authority) {
		return func(a *verify.Authority) { a.Notation.Identities = ids }
	}
	level := func(l verify.Level) func(*verify.Authority) {
		return func(a *verify.Authority) { a.Notation.Level = l }
	}
	other := image.Descriptor{MediaType: manifest.MediaType, Digest: image.DigestOf([]byte("other")), Size: manifest.Size}
	otherType := image.Descriptor{MediaType: image.MediaTypeIndex, Digest: manifest.Digest, Size: manifest.Size}
	otherSize := image.Descriptor{MediaType: manifest.MediaType, Digest: manifest.Digest, Size: manifest.Size + 1}
	for _, mediaType := range []string{mediaTypeJWS, mediaTypeCOSE} {
		t.Run(mediaType, func(t *testing.T) {
			good := sign(t, order{by: by, mediaType: mediaType})
			metadata := sign(t, order{by: by, mediaType: mediaType, annotations: map[string]string{"stage": "prod"}})
			runAll(t, []row{
				{reason: "a good signature", evidence: good, authority: trusting(ca)},
				{reason: "a root that did not issue the signer", evidence: good, authority: trusting(stranger), code: verify.UntrustedChain, says: "another root"},
				{reason: "one of two roots is enough", evidence: good, authority: trusting(ca, func(a *verify.Authority) {
					a.Notation.CA = append(stranger.pem(), ca.pem()...)
				})},
				{reason: "the root is in the store of another kind", evidence: good, authority: trusting(ca, func(a *verify.Authority) {
					a.Notation.CA, a.Notation.SigningAuthority = nil, ca.pem()
				}), code: verify.UntrustedChain, says: "the policy gives none"},
				{reason: "the signer's whole name", evidence: good, authority: trusting(ca, identities("x509.subject: C=US, ST=WA, O=example, CN=release"))},
				{reason: "a part of the signer's name", evidence: good, authority: trusting(ca, identities("x509.subject: C=US, ST=WA, O=example"))},
				{reason: "another name", evidence: good, authority: trusting(ca, identities("x509.subject: C=US, ST=WA, O=example, CN=nightly")), code: verify.WrongIdentity, says: "CN=release"},
				{reason: "one of two names", evidence: good, authority: trusting(ca, identities("x509.subject: C=US, ST=WA, O=example, CN=nightly", "x509.subject: C=US, ST=WA, O=example, CN=release"))},
				{reason: "the root's name is not the signer's", evidence: good, authority: trusting(ca, identities("x509.subject: C=US, ST=WA, O=example, CN=root")), code: verify.WrongIdentity},
				{reason: "a signature of another digest", evidence: good, authority: trusting(ca), subject: other, code: verify.WrongDigest, says: manifest.Digest.String()},
				{reason: "a signature of the same bytes as something else", evidence: good, authority: trusting(ca), subject: otherType, code: verify.WrongDigest, says: image.MediaTypeIndex},
				{reason: "a signature with another size", evidence: good, authority: trusting(ca), subject: otherSize, code: verify.WrongDigest, says: "529 bytes"},
				{reason: "audit admits another signer, noted", evidence: good, authority: trusting(stranger, level(verify.Audit())), notes: []string{"authenticity"}},
				{reason: "audit does not let another digest pass", evidence: good, authority: trusting(stranger, level(verify.Audit())), subject: other, code: verify.WrongDigest},
				{reason: "user metadata that is asked for", evidence: metadata, authority: trusting(ca, annotated("stage", "prod"))},
				{reason: "user metadata with another value", evidence: metadata, authority: trusting(ca, annotated("stage", "test")), code: verify.WrongAnnotation, says: "stage=prod"},
				{reason: "user metadata that is missing", evidence: good, authority: trusting(ca, annotated("stage", "prod")), code: verify.WrongAnnotation, says: "nothing"},
				{reason: "the format is one of those accepted", evidence: good, authority: trusting(ca, formats(attest.Bundle, attest.Notation))},
				{reason: "the format is none of those accepted", evidence: good, authority: trusting(ca, formats(attest.Bundle)), code: verify.WrongFormat},
				{reason: "an authority of keys", evidence: good, authority: verify.Authority{Name: "key", Key: &verify.Key{PEM: []byte("x")}}, code: verify.WrongFormat},
				{reason: "a payload of another type", evidence: sign(t, order{by: by, mediaType: mediaType, payloadType: "application/json"}), authority: trusting(ca), code: verify.Malformed, says: "application/json"},
			})
		})
	}
}

func annotated(key, value string) func(*verify.Authority) {
	return func(a *verify.Authority) { a.Annotations = map[string]string{key: value} }
}

func formats(f ...attest.Format) func(*verify.Authority) {
	return func(a *verify.Authority) { a.Formats = f }
}

// TestNotationSigner proves what notation-go's own signer writes.
func TestNotationSigner(t *testing.T) {
	ca := newCA(t, "root")
	by := newSigner(t, ca, "release")
	s, err := signer.NewGenericSigner(by.key, by.chain)
	if err != nil {
		t.Fatal(err)
	}
	for _, mediaType := range []string{mediaTypeJWS, mediaTypeCOSE} {
		envelope, _, err := s.Sign(t.Context(), ocispec.Descriptor{
			MediaType: manifest.MediaType, Digest: godigest.Digest(manifest.Digest.String()), Size: manifest.Size,
		}, notationgo.SignerSignOptions{SignatureMediaType: mediaType, ExpiryDuration: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		e := evidence(mediaType, envelope)
		fact, err := newVerifier(t, notation.Options{}).Verify(t.Context(), pinned(t, manifest), e, trusting(ca))
		if err != nil {
			t.Fatalf("%s: %v", mediaType, err)
		}
		if fact.Signer.Subject != "CN=release,O=example,ST=WA,C=US" || fact.Signer.Issuer != "CN=root,O=example,ST=WA,C=US" {
			t.Errorf("%s: signer %+v", mediaType, fact.Signer)
		}
		if fact.Subject != manifest.Digest || fact.Format != attest.Notation || fact.Role != attest.Signature || fact.Origin != e.Origin {
			t.Errorf("%s: fact %+v", mediaType, fact)
		}
		if left := time.Until(fact.Expires); left > time.Hour || left < 50*time.Minute {
			t.Errorf("%s: the fact expires in %s, want when the signature does", mediaType, left)
		}
	}
}

func TestExpiry(t *testing.T) {
	ca := newCA(t, "root")
	by := newSigner(t, ca, "release")
	now := time.Now()
	level := func(l verify.Level) func(*verify.Authority) {
		return func(a *verify.Authority) { a.Notation.Level = l }
	}
	ended := func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Hour) }
	starts := func(c *x509.Certificate) { c.NotBefore = now.Add(time.Hour) }
	for _, mediaType := range []string{mediaTypeJWS, mediaTypeCOSE} {
		t.Run(mediaType, func(t *testing.T) {
			expired := sign(t, order{by: by, mediaType: mediaType, at: now.Add(-2 * time.Hour), expiry: now.Add(-time.Hour)})
			old := sign(t, order{by: newSigner(t, ca, "release", ended), mediaType: mediaType, at: now.Add(-2 * time.Hour)})
			young := sign(t, order{by: newSigner(t, ca, "release", starts), mediaType: mediaType, at: now.Add(90 * time.Minute)})
			runAll(t, []row{
				{reason: "not expired yet", evidence: sign(t, order{by: by, mediaType: mediaType, expiry: now.Add(time.Hour)}), authority: trusting(ca)},
				{reason: "expired", evidence: expired, authority: trusting(ca), code: verify.Expired, says: "expired at"},
				{reason: "expired, to be noted", evidence: expired, authority: trusting(ca, level(verify.Level{Expiry: verify.Note})), notes: []string{"expiry"}},
				{reason: "the certificate has ended and no timestamp is trusted", evidence: old, authority: trusting(ca), code: verify.ExpiredCertificate},
				{reason: "the certificate has ended, to be noted", evidence: old, authority: trusting(ca, level(verify.Permissive())), notes: []string{"authenticTimestamp"}},
				{reason: "the certificate is not valid yet", evidence: young, authority: trusting(ca), code: verify.ExpiredCertificate},
			})
		})
	}
}

func TestFactExpiresWithItsMaterial(t *testing.T) {
	now := time.Now()
	ca := newCA(t, "root")
	short := newSigner(t, ca, "release", func(c *x509.Certificate) { c.NotAfter = now.Add(time.Hour) })
	stamps := newTSA(t, now.Add(-time.Minute))
	stamped := func(a *verify.Authority) { a.Notation.TSA = stamps.ca.pem() }
	noted := func(a *verify.Authority) { a.Notation.Level = verify.Permissive() }
	for _, row := range []struct {
		reason    string
		order     order
		authority verify.Authority
		want      time.Time
	}{
		{"the certificate that ends first", order{by: short}, trusting(ca), short.certificate().NotAfter},
		{"the signature's own end", order{by: short, expiry: now.Add(time.Minute)}, trusting(ca), now.Add(time.Minute)},
		{"nothing, for a timestamp proves when it was signed", order{by: short, tsa: stamps}, trusting(ca, stamped), time.Time{}},
		{"nothing that is only noted", order{by: short, expiry: now.Add(time.Minute)}, trusting(ca, noted), time.Time{}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			fact, err := newVerifier(t, notation.Options{}).Verify(t.Context(), pinned(t, manifest), sign(t, row.order), row.authority)
			if err != nil {
				t.Fatal(err)
			}
			if got := fact.Expires; !got.Equal(row.want.Truncate(time.Second)) && !got.Equal(row.want) {
				t.Errorf("the fact expires %s, want %s", got, row.want)
			}
		})
	}
}

func TestTimestamps(t *testing.T) {
	now := time.Now()
	then := now.Add(-2 * time.Hour).Truncate(time.Second)
	ca := newCA(t, "root")
	ended := newSigner(t, ca, "release", func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Hour) })
	by := newSigner(t, ca, "release")
	stamps, foreign := newTSA(t, then), newTSA(t, then)
	late := &tsa{party: stamps.party, ca: stamps.ca, at: now.Add(-time.Minute)}
	with := func(change ...func(*verify.Authority)) verify.Authority {
		return trusting(ca, append([]func(*verify.Authority){func(a *verify.Authority) { a.Notation.TSA = stamps.ca.pem() }}, change...)...)
	}
	bounds := func(from, to time.Time) func(*verify.Authority) {
		return func(a *verify.Authority) { a.NotBefore, a.NotAfter = from, to }
	}
	retiring := func(of *party, end time.Time) func(*verify.Authority) {
		return func(a *verify.Authority) {
			a.Retired = map[string]time.Time{verify.Fingerprint(of.certificate().PublicKey, nil): end}
		}
	}
	required := func(a *verify.Authority) { a.Timestamp.Required = true }
	for _, mediaType := range []string{mediaTypeJWS, mediaTypeCOSE} {
		t.Run(mediaType, func(t *testing.T) {
			stamped := sign(t, order{by: ended, mediaType: mediaType, at: then, tsa: stamps})
			plain := sign(t, order{by: by, mediaType: mediaType})
			authentic := sign(t, order{by: ended, mediaType: mediaType, at: then, scheme: signature.SigningSchemeX509SigningAuthority})
			authenticLate := sign(t, order{by: newSigner(t, ca, "release", func(c *x509.Certificate) { c.NotBefore = now.Add(-time.Hour) }),
				mediaType: mediaType, at: now.Add(-30 * time.Minute), scheme: signature.SigningSchemeX509SigningAuthority})
			vouching := trusting(ca, func(a *verify.Authority) { a.Notation.CA, a.Notation.SigningAuthority = nil, ca.pem() })
			vouchingBounded := func(from, to time.Time) verify.Authority {
				a := vouching
				a.NotBefore, a.NotAfter = from, to
				return a
			}
			vouchingRetired := func(of *party, end time.Time) verify.Authority {
				a := vouching
				retiring(of, end)(&a)
				return a
			}
			runAll(t, []row{
				{reason: "signed while the certificate was valid", evidence: stamped, authority: with()},
				{reason: "the same without trust in the timestamp authority", evidence: stamped, authority: trusting(ca), code: verify.ExpiredCertificate},
				{reason: "a timestamp chain of the authority's own term", evidence: stamped, authority: trusting(ca, func(a *verify.Authority) { a.Timestamp.Chain = stamps.ca.pem() })},
				{reason: "a timestamp by another authority", evidence: sign(t, order{by: ended, mediaType: mediaType, at: then, tsa: foreign}), authority: with(), code: verify.BadTimestamp},
				{reason: "a timestamp after the certificate had ended", evidence: sign(t, order{by: ended, mediaType: mediaType, at: then, tsa: late}), authority: with(), code: verify.ExpiredCertificate},
				{reason: "no timestamp where one can be proved", evidence: plain, authority: with(), code: verify.NoTimestamp},
				{reason: "no timestamp, to be noted", evidence: plain, authority: with(func(a *verify.Authority) { a.Notation.Level = verify.Permissive() }), notes: []string{"authenticTimestamp"}},
				{reason: "no timestamp, to be noted and yet required", evidence: plain, authority: with(required, func(a *verify.Authority) { a.Notation.Level = verify.Permissive() }), code: verify.NoTimestamp},
				{reason: "a late timestamp, to be noted, is no trusted time", evidence: sign(t, order{by: ended, mediaType: mediaType, at: then, tsa: late}),
					authority: with(bounds(then, time.Time{}), func(a *verify.Authority) { a.Notation.Level = verify.Permissive() }), code: verify.NoTimestamp},
				{reason: "the time of an untrusted signer, to be noted, is no trusted time", evidence: authentic, authority: trusting(newCA(t, "another root"), bounds(then, time.Time{}), func(a *verify.Authority) {
					a.Notation.SigningAuthority, a.Notation.Level = a.Notation.CA, verify.Audit()
				}), code: verify.NoTimestamp},
				{reason: "a timestamp that is required", evidence: stamped, authority: with(required)},
				{reason: "within the authority's time", evidence: stamped, authority: with(bounds(then.Add(-time.Hour), then.Add(time.Hour)))},
				{reason: "before the authority's time", evidence: stamped, authority: with(bounds(then.Add(time.Hour), time.Time{})), code: verify.OutsideValidity},
				{reason: "after the authority's time", evidence: stamped, authority: with(bounds(time.Time{}, then.Add(-time.Hour))), code: verify.OutsideValidity},
				{reason: "its key was retired later", evidence: stamped, authority: with(retiring(ended, then.Add(time.Hour)))},
				{reason: "its key was retired before", evidence: stamped, authority: with(retiring(ended, then.Add(-time.Hour))), code: verify.OutsideValidity},
				{reason: "another key was retired", evidence: stamped, authority: with(retiring(by, then.Add(-time.Hour)))},
				{reason: "an authority's time and no trusted time", evidence: plain, authority: trusting(ca, bounds(then, time.Time{})), code: verify.NoTimestamp},
				{reason: "a signing authority vouches for the time", evidence: authentic, authority: vouching},
				{reason: "a signing authority's certificate is in the store of the other kind", evidence: authentic, authority: trusting(ca), code: verify.UntrustedChain},
				{reason: "a signing authority's time is within the authority's", evidence: authentic, authority: vouchingBounded(then.Add(-time.Hour), then.Add(time.Hour))},
				{reason: "a signing authority's time is after the authority's", evidence: authenticLate, authority: vouchingBounded(time.Time{}, then), code: verify.OutsideValidity},
				{reason: "a signing authority's key was retired, and it wrote an earlier time itself", evidence: authentic, authority: vouchingRetired(ended, then.Add(time.Hour)), code: verify.NoTimestamp},
				{reason: "a signing authority's key was retired, and it wrote a later time", evidence: authentic, authority: vouchingRetired(ended, then.Add(-time.Hour)), code: verify.NoTimestamp},
				{reason: "another key than the signing authority's was retired", evidence: authentic, authority: vouchingRetired(by, then.Add(-time.Hour))},
			})
		})
	}
	fact, err := newVerifier(t, notation.Options{}).Verify(t.Context(), pinned(t, manifest), sign(t, order{by: ended, at: then, tsa: stamps}), with())
	if err != nil || !fact.SignedAt.Equal(then) || !fact.VerifiedTime().Equal(then) || len(fact.Signatures) != 1 {
		t.Errorf("signed at %s by %s (%v), want the timestamp's %s", fact.SignedAt, fact.TimeSource, err, then)
	}
}

// jws changes one thing in a JWS envelope.
func jws(t testing.TB, e attest.Evidence, change func(map[string]any)) attest.Evidence {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(e.Payload, &fields); err != nil {
		t.Fatal(err)
	}
	change(fields)
	changed, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return evidence(e.MediaType, changed)
}

func TestForgedEnvelopes(t *testing.T) {
	now := time.Now()
	ca := newCA(t, "root")
	by := newSigner(t, ca, "release")
	stamps := newTSA(t, now.Add(-time.Minute))
	good := sign(t, order{by: by})
	cose := sign(t, order{by: by, mediaType: mediaTypeCOSE})
	other := sign(t, order{by: by, target: image.Descriptor{MediaType: manifest.MediaType, Digest: image.DigestOf([]byte("other")), Size: 9}})
	one, two := sign(t, order{by: by, tsa: stamps}), sign(t, order{by: by, tsa: stamps, annotations: map[string]string{"a": "b"}})
	field := func(e attest.Evidence, name string) any {
		var fields map[string]any
		if err := json.Unmarshal(e.Payload, &fields); err != nil {
			t.Fatal(err)
		}
		return fields[name]
	}
	header := func(alg string) string {
		raw, err := base64.RawURLEncoding.DecodeString(field(good, "protected").(string))
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(bytes.Replace(raw, []byte(`"ES256"`), []byte(`"`+alg+`"`), 1))
	}
	stranger := newSigner(t, newCA(t, "root"), "release") // the same names, other keys
	forged := &party{chain: []*x509.Certificate{stranger.certificate(), ca.certificate()}, key: stranger.key}
	forgedChain := jws(t, sign(t, order{by: stranger}), func(f map[string]any) {
		f["header"].(map[string]any)["x5c"] = []string{
			base64.StdEncoding.EncodeToString(forged.chain[0].Raw), base64.StdEncoding.EncodeToString(forged.chain[1].Raw),
		}
	})
	middle := len(cose.Payload) / 2
	withTSA := trusting(ca, func(a *verify.Authority) { a.Notation.TSA = stamps.ca.pem() })
	runAll(t, []row{
		{reason: "the envelope that the rest changes", evidence: good, authority: trusting(ca)},
		{reason: "the COSE envelope that the rest changes", evidence: cose, authority: trusting(ca)},
		{reason: "the payload of another signature", evidence: jws(t, good, func(f map[string]any) { f["payload"] = field(other, "payload") }), authority: trusting(ca), code: verify.BadSignature},
		{reason: "the signature of another envelope", evidence: jws(t, good, func(f map[string]any) { f["signature"] = field(other, "signature") }), authority: trusting(ca), code: verify.BadSignature},
		{reason: "a stripped signature", evidence: jws(t, good, func(f map[string]any) { f["signature"] = "" }), authority: trusting(ca), code: verify.Malformed},
		{reason: "no signature", evidence: jws(t, good, func(f map[string]any) { delete(f, "signature") }), authority: trusting(ca), code: verify.Malformed},
		{reason: "alg none", evidence: jws(t, good, func(f map[string]any) { f["protected"], f["signature"] = header("none"), "" }), authority: trusting(ca), code: verify.BadSignature, says: "none"},
		{reason: "alg none with the signature left in place", evidence: jws(t, good, func(f map[string]any) { f["protected"] = header("none") }), authority: trusting(ca), code: verify.BadSignature},
		{reason: "a symmetric algorithm, with a key that would be public", evidence: jws(t, good, func(f map[string]any) { f["protected"] = header("HS256") }), authority: trusting(ca), code: verify.BadSignature},
		{reason: "no certificates", evidence: jws(t, good, func(f map[string]any) { f["header"] = map[string]any{} }), authority: trusting(ca), code: verify.Malformed},
		{reason: "a foreign certificate under the trusted root", evidence: forgedChain, authority: trusting(ca), code: verify.UntrustedChain},
		{reason: "another signer with the same names", evidence: sign(t, order{by: stranger}), authority: trusting(ca), code: verify.UntrustedChain},
		{reason: "one bit of COSE", evidence: evidence(mediaTypeCOSE, flip(cose.Payload, middle)), authority: trusting(ca), code: verify.Malformed},
		{reason: "one bit of COSE's signature", evidence: evidence(mediaTypeCOSE, flip(cose.Payload, len(cose.Payload)-1)), authority: trusting(ca), code: verify.BadSignature},
		{reason: "half of COSE", evidence: evidence(mediaTypeCOSE, cose.Payload[:middle]), authority: trusting(ca), code: verify.Malformed},
		{reason: "half of JWS", evidence: evidence(mediaTypeJWS, good.Payload[:200]), authority: trusting(ca), code: verify.Malformed},
		{reason: "nothing", evidence: evidence(mediaTypeJWS, nil), authority: trusting(ca), code: verify.Malformed},
		{reason: "JWS declared as COSE", evidence: evidence(mediaTypeCOSE, good.Payload), authority: trusting(ca), code: verify.Malformed},
		{reason: "an unknown media type", evidence: evidence("application/json", good.Payload), authority: trusting(ca), code: verify.Malformed, says: "application/json"},
		{reason: "the timestamped envelope", evidence: one, authority: withTSA},
		{reason: "the timestamp of another signature", evidence: jws(t, one, func(f map[string]any) {
			f["header"].(map[string]any)["io.cncf.notary.timestampSignature"] = field(two, "header").(map[string]any)["io.cncf.notary.timestampSignature"]
		}), authority: withTSA, code: verify.BadTimestamp},
		{reason: "a timestamp that is none", evidence: jws(t, one, func(f map[string]any) {
			f["header"].(map[string]any)["io.cncf.notary.timestampSignature"] = "AAAA"
		}), authority: withTSA, code: verify.BadTimestamp},
	})
}

func flip(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 1
	return b
}

func TestPluginsAndCriticalAttributesAreRefused(t *testing.T) {
	ca := newCA(t, "root")
	by := newSigner(t, ca, "release")
	attribute := func(key string, critical bool) []signature.Attribute {
		return []signature.Attribute{{Key: key, Critical: critical, Value: "com.example.plugin"}}
	}
	for _, mediaType := range []string{mediaTypeJWS, mediaTypeCOSE} {
		t.Run(mediaType, func(t *testing.T) {
			runAll(t, []row{
				{reason: "an attribute that may be passed over", evidence: sign(t, order{by: by, mediaType: mediaType, attributes: attribute("com.example.note", false)}), authority: trusting(ca)},
				{reason: "an unknown critical attribute", evidence: sign(t, order{by: by, mediaType: mediaType, attributes: attribute("com.example.note", true)}), authority: trusting(ca), code: verify.WrongFormat, says: "com.example.note"},
				{reason: "a verification plugin", evidence: sign(t, order{by: by, mediaType: mediaType, attributes: attribute("io.cncf.notary.verificationPlugin", true)}), authority: trusting(ca), code: verify.WrongFormat, says: "plugins are not supported"},
				{reason: "a verification plugin that is not marked critical", evidence: sign(t, order{by: by, mediaType: mediaType, attributes: attribute("io.cncf.notary.verificationPlugin", false)}), authority: trusting(ca), code: verify.WrongFormat, says: "plugins are not supported"},
			})
		})
	}
}

func TestSignedDocuments(t *testing.T) {
	ca := newCA(t, "root")
	by := newSigner(t, ca, "release")
	target := image.Descriptor{MediaType: image.MediaTypeManifest, Digest: image.DigestOf([]byte("referrer")), Size: 600}
	document := func(over image.Descriptor, content string) attest.Evidence {
		e := sign(t, order{by: by, target: over})
		e.Role, e.Target, e.Content = attest.Attestation, target, []byte(content)
		e.PredicateType = "sbom/cyclone-dx"
		return e
	}
	verifier := newVerifier(t, notation.Options{})
	fact, err := verifier.Verify(t.Context(), pinned(t, manifest), document(target, `{"bomFormat":"CycloneDX"}`), trusting(ca))
	if err != nil {
		t.Fatal(err)
	}
	if fact.Role != attest.Attestation || fact.Subject != manifest.Digest || fact.Statement == nil {
		t.Fatalf("fact %+v, want an attestation about the image", fact)
	}
	if s := fact.Statement; s.PredicateType != "sbom/cyclone-dx" || string(s.Predicate) != `{"bomFormat":"CycloneDX"}` || s.Subjects[0].Digest["sha256"] != manifest.Digest.Hex() {
		t.Errorf("statement %+v", s)
	}

	plain, err := verifier.Verify(t.Context(), pinned(t, manifest), document(target, "not JSON"), trusting(ca))
	if err != nil || plain.Statement.Predicate != nil || len(plain.Notes) != 1 {
		t.Errorf("a document that is not JSON: %+v, %v; want no predicate and a note", plain, err)
	}

	asSignature := document(target, `{}`)
	asSignature.Role = attest.Signature
	fact, err = verifier.Verify(t.Context(), pinned(t, manifest), asSignature, trusting(ca))
	if err != nil || fact.Role != attest.Attestation {
		t.Errorf("a signature over a document became a fact of role %q (%v); it is no signature of the image", fact.Role, err)
	}

	withoutTarget := sign(t, order{by: by})
	withoutTarget.Role = attest.Attestation
	runAll(t, []row{
		{reason: "a signature of the image beside a document", evidence: document(manifest, `{}`), authority: trusting(ca), code: verify.WrongDigest},
		{reason: "an attestation of nothing", evidence: withoutTarget, authority: trusting(ca), code: verify.Malformed},
	})
}

func TestUnavailable(t *testing.T) {
	ca := newCA(t, "root")
	by := newSigner(t, ca, "release")
	good := sign(t, order{by: by})
	large := evidence(mediaTypeJWS, bytes.Repeat([]byte(" "), 256<<10+1))
	incompleteTarget := good
	incompleteTarget.Target = image.Descriptor{Digest: manifest.Digest}
	long := by
	for issuer, i := newCA(t, "root"), 0; i < 10; i++ {
		if i == 9 {
			long = newSigner(t, issuer, "release")
			break
		}
		issuer = issue(t, issuer, &x509.Certificate{Subject: name("intermediate"), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, row := range []struct {
		reason    string
		ctx       context.Context
		subject   image.Descriptor
		evidence  attest.Evidence
		authority verify.Authority
		says      string
		kind      image.Kind
	}{
		{reason: "the manifest's size and media type are unknown", subject: image.Descriptor{Digest: manifest.Digest}, evidence: good, authority: trusting(ca), says: "fetch its manifest first"},
		{reason: "the document's size and media type are unknown", subject: manifest, evidence: incompleteTarget, authority: trusting(ca), says: "fetch its manifest first"},
		{reason: "a large envelope", subject: manifest, evidence: large, authority: trusting(ca), says: "262144", kind: image.Bound},
		{reason: "a long chain", subject: manifest, evidence: sign(t, order{by: long}), authority: trusting(ca), says: "11 certificates", kind: image.Bound},
		{reason: "the caller has left", ctx: cancelled, subject: manifest, evidence: good, authority: trusting(ca), says: "canceled"},
		{reason: "nothing is read then", ctx: cancelled, subject: manifest, evidence: evidence(mediaTypeJWS, []byte("junk")), authority: trusting(ca), says: "canceled"},
		{reason: "an authority with broken certificates", subject: manifest, evidence: good, authority: trusting(ca, func(a *verify.Authority) { a.Notation.CA = []byte("x") }), says: "PEM"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			ctx := row.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			_, err := newVerifier(t, notation.Options{}).Verify(ctx, pinned(t, row.subject), row.evidence, row.authority)
			if _, rejected := errors.AsType[*verify.Rejection](err); err == nil || rejected || !strings.Contains(err.Error(), row.says) {
				t.Fatalf("got %v, want an error that is no rejection and contains %q", err, row.says)
			}
			if row.kind != "" && image.KindOf(err) != row.kind {
				t.Errorf("kind %q, want %q", image.KindOf(err), row.kind)
			}
		})
	}
}

func TestCheckAuthority(t *testing.T) {
	ca := newCA(t, "root")
	by := newSigner(t, ca, "release")
	set := func(change func(n *verify.Notation)) verify.Authority {
		return trusting(ca, func(a *verify.Authority) { change(a.Notation) })
	}
	for _, row := range []struct {
		reason    string
		authority verify.Authority
		says      string // empty: accepted
	}{
		{"a root", trusting(ca), ""},
		{"revocation may be skipped", set(func(n *verify.Notation) { n.Level.Revocation = verify.Skip }), ""},
		{"nothing else may", set(func(n *verify.Notation) { n.Level.Authenticity = verify.Skip }), "cannot be skipped"},
		{"an unknown action", set(func(n *verify.Notation) { n.Level.Expiry = "warn" }), "unknown action"},
		{"no certificates", set(func(n *verify.Notation) { n.CA = nil }), "want certificates"},
		{"a key in place of a certificate", set(func(n *verify.Notation) {
			n.CA = []byte("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
		}), "PUBLIC KEY"},
		{"a certificate with something behind it", set(func(n *verify.Notation) { n.CA = append(n.CA, "rest"...) }), "something else"},
		{"a signer's certificate, which issues none", set(func(n *verify.Notation) { n.CA = by.pem() }), "the certificate that issued it"},
		{"a timestamp authority that is no root", set(func(n *verify.Notation) { n.TSA = by.pem() }), "no root certificate"},
		{"an identity of a plugin's kind, which notation would pass over", set(func(n *verify.Notation) { n.Identities = []string{"com.example: x"} }), "com.example"},
		{"an identity without the mandatory parts", set(func(n *verify.Notation) { n.Identities = []string{"x509.subject: CN=x"} }), "mandatory"},
		{"all identities and one", set(func(n *verify.Notation) {
			n.Identities = []string{"*", "x509.subject: C=US, ST=WA, O=example"}
		}), "wildcard"},
		{"a timestamp that could not be verified", trusting(ca, func(a *verify.Authority) { a.Timestamp.Required = true }), "no timestamp authority"},
		{"another kind of authority", verify.Authority{Name: "key", Key: &verify.Key{}}, "no notation part"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			err := notation.CheckAuthority(row.authority)
			if (err == nil) != (row.says == "") || (err != nil && !strings.Contains(err.Error(), row.says)) {
				t.Errorf("got %v, want %q", err, row.says)
			}
		})
	}
}
