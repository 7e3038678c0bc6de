package notation_test

import (
	"crypto/x509"
	"errors"
	"testing"
	"time"

	gocose "github.com/veraison/go-cose"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/notation"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// carrying is an envelope that carries other certificates.
func carrying(t *testing.T, e attest.Evidence, certificates ...*x509.Certificate) attest.Evidence {
	t.Helper()
	var list []any
	for _, c := range certificates {
		list = append(list, c.Raw)
	}
	if e.MediaType == mediaTypeJWS {
		return jws(t, e, func(f map[string]any) { f["header"].(map[string]any)["x5c"] = list })
	}
	var message gocose.Sign1Message
	if err := message.UnmarshalCBOR(e.Payload); err != nil {
		t.Fatal(err)
	}
	message.Headers.RawUnprotected = nil
	message.Headers.Unprotected[gocose.HeaderLabelX5Chain] = list
	return evidence(e.MediaType, verifytest.Must(message.MarshalCBOR()))
}

// TestEffort: expensive input is refused before it is computed with. The
// keys would take a third of a second, each time that one is used.
func TestEffort(t *testing.T) {
	ca := newCA(t, "root")
	by, stranger := newSigner(t, ca, "release"), newSigner(t, newCA(t, "root"), "release")
	self := newSigner(t, nil, "release")
	const long = 20 << 13 // 20 KiB
	certificate := func(bits int) *x509.Certificate {
		return verifytest.Must(verifytest.CertificateOf(verifytest.LongKey(bits)))
	}
	stamps := func(beside ...*x509.Certificate) *tsa {
		made := newTSA(t, time.Now().Add(-time.Minute))
		made.beside = beside
		return made
	}
	with := func(s *tsa) verify.Authority {
		return trusting(ca, func(a *verify.Authority) { a.Notation.TSA = s.ca.pem() })
	}
	plain, longest, longer := stamps(), stamps(certificate(8192)), stamps(certificate(long))
	several := make([]*x509.Certificate, 11)
	for i := range several {
		several[i] = certificate(1024)
	}
	many := stamps(several[:9]...)
	crowd := make([]*x509.Certificate, 5)
	for i := range crowd {
		crowd[i] = newCA(t, "crowd").certificate()
	}
	crowded, chain := stamps(crowd...), stamps(crowd[0])
	const refusal = "read envelope: the RSA key of 163840 bits is longer than the bound of 8192"
	for _, mediaType := range []string{mediaTypeJWS, mediaTypeCOSE} {
		signed := func(s *tsa) attest.Evidence { return sign(t, order{by: by, mediaType: mediaType, tsa: s}) }
		good := signed(nil)
		t.Run(mediaType, func(t *testing.T) {
			runAll(t, []row{
				{reason: "its own chain", evidence: carrying(t, good, by.chain...), authority: trusting(ca)},
				{reason: "a chain of the longest key, which signed nothing", evidence: carrying(t, good, by.chain[0], certificate(8192)), authority: trusting(ca), code: verify.UntrustedChain},
				{reason: "a chain of a longer one", evidence: carrying(t, good, by.chain[0], certificate(long)), authority: trusting(ca), code: verify.Malformed, says: refusal},
				{reason: "a signer's certificate of a longer one", evidence: carrying(t, good, certificate(long), by.chain[1]), authority: trusting(ca), code: verify.Malformed, says: refusal},
				{reason: "no chain", evidence: carrying(t, good), authority: trusting(ca), code: verify.Malformed, says: "read envelope: certificate"},
				{reason: "an invalid certificate", evidence: carrying(t, good, &x509.Certificate{Raw: []byte("junk")}), authority: trusting(ca), code: verify.Malformed, says: "read envelope: x509: malformed certificate"},
				{reason: "a signer that is trusted itself", evidence: sign(t, order{by: self, mediaType: mediaType}), authority: trusting(self)},
				{reason: "an untrusted chain, with a key that is not used", evidence: carrying(t, good, stranger.chain...), authority: trusting(ca), code: verify.UntrustedChain},
				{reason: "with the trusted root at its end", evidence: carrying(t, good, stranger.chain[0], ca.certificate()), authority: trusting(ca), code: verify.UntrustedChain},
				{reason: "where that is noted", evidence: carrying(t, good, stranger.chain...), authority: trusting(ca, func(a *verify.Authority) { a.Notation.Level = verify.Audit() }), code: verify.BadSignature},
				{reason: "a timestamp", evidence: signed(plain), authority: with(plain)},
				{reason: "a timestamp beside the longest key", evidence: signed(longest), authority: with(longest)},
				{reason: "a timestamp beside a longer one", evidence: signed(longer), authority: with(longer), code: verify.Malformed, says: "read envelope: the timestamp: the RSA key of 163840 bits"},
				{reason: "a timestamp beside another root", evidence: signed(chain), authority: with(chain)},
				{reason: "a timestamp in a crowd", evidence: signed(crowded), authority: with(crowded), code: verify.Malformed, says: "read envelope: the timestamp brings certificates that have issued one another"},
				{reason: "a timestamp beside more certificates than are looked at", evidence: signed(many), authority: with(many), code: verify.Malformed, says: "the timestamp brings 11 certificates"},
			})
			// Ten certificates are read, and eleven are not, even of a key that would be
			// refused.
			ten := carrying(t, good, several[:10]...)
			if _, err := newVerifier(t, notation.Options{}).Verify(t.Context(), pinned(t, manifest), ten, trusting(ca)); codeOf(t, err) == "" {
				t.Error("an untrusted chain was accepted")
			}
			eleven := carrying(t, good, append(several[:10:10], certificate(long))...)
			_, err := newVerifier(t, notation.Options{}).Verify(t.Context(), pinned(t, manifest), eleven, trusting(ca))
			if failure, is := errors.AsType[*image.Error](err); !is || failure.Kind != image.Bound {
				t.Errorf("eleven certificates: got %v, want an error of a bound", err)
			}
		})
	}
}
