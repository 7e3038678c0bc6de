package notation_test

import (
	"errors"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/notation"
)

// FuzzVerify: no envelope makes the verifier panic, and an envelope other than the
// signed ones verifies no other image.
func FuzzVerify(f *testing.F) {
	ca := newCA(f, "root")
	by := newSigner(f, ca, "release")
	stamps := newTSA(f, time.Now().Add(-time.Minute))
	for _, mediaType := range []string{mediaTypeJWS, mediaTypeCOSE} {
		f.Add(mediaType == mediaTypeCOSE, sign(f, order{by: by, mediaType: mediaType}).Payload)
		f.Add(mediaType == mediaTypeCOSE, sign(f, order{by: by, mediaType: mediaType, tsa: stamps}).Payload)
	}
	f.Add(false, []byte(`{"payload":"","protected":"","signature":"","header":{"x5c":[""]}}`))
	f.Add(true, []byte{0xd2, 0x84, 0x40, 0xa0, 0x40, 0x40})
	verifier := newVerifier(f, notation.Options{})
	authority := trusting(ca, func(a *verify.Authority) {
		a.Notation.TSA = stamps.ca.pem()
		a.Notation.Level = verify.Audit()
	})
	other := pinned(f, image.Descriptor{MediaType: manifest.MediaType, Digest: image.DigestOf([]byte("never signed")), Size: 7})
	f.Fuzz(func(t *testing.T, cose bool, envelope []byte) {
		mediaType := mediaTypeJWS
		if cose {
			mediaType = mediaTypeCOSE
		}
		// The audit level accepts any signer, so only an envelope over the digest
		// itself could pass, and there is none.
		fact, err := verifier.Verify(t.Context(), other, evidence(mediaType, envelope), authority)
		if err == nil {
			t.Fatalf("proved: %+v", fact)
		}
		if r, ok := errors.AsType[*verify.Rejection](err); ok && r.Code == "" {
			t.Fatalf("a rejection without a code: %v", r)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	ca := newCA(b, "root")
	by := newSigner(b, ca, "release")
	verifier := newVerifier(b, notation.Options{})
	for _, mediaType := range []string{mediaTypeJWS, mediaTypeCOSE} {
		b.Run(mediaType[len("application/"):], func(b *testing.B) {
			good, subject, authority := sign(b, order{by: by, mediaType: mediaType}), pinned(b, manifest), trusting(ca)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := verifier.Verify(b.Context(), subject, good, authority); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
