package cosign

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// diagnosis finds the reason why a signature was refused; it never accepts one.
type diagnosis struct{ *proof }

// rejection checks the signature and the claim first, then the signer, then the times. refused is
// the rejection that ended the verification.
func (d diagnosis) rejection(refused *verify.Rejection) *verify.Rejection {
	looks := []func() *verify.Rejection{
		d.badSignature,
		func() *verify.Rejection { return d.layer.check(d.digest) },
		d.noName, d.untrusted, d.badEntry, d.expired,
	}
	for _, look := range looks {
		rejection := look()
		if rejection == nil {
			continue
		}
		if rejection.Err == nil && refused.Err != nil {
			rejection.Err = refused.Err
		}
		return rejection
	}
	if refused.Code == verify.Malformed && d.leaf != nil {
		if rejection := d.badSCT(); rejection != nil {
			return rejection
		}
	}
	return refused
}

func (d diagnosis) badSignature() *verify.Rejection {
	err := d.checkSignature()
	if err == nil {
		return nil
	}
	if d.byKey() && !d.saysOurKey() {
		found := "another key"
		if d.layer.certificate != nil {
			found = "a certificate: " + trust.Describe(d.layer.certificate)
		}
		return &verify.Rejection{Code: verify.WrongKey, Expected: "key " + d.material.Key().Fingerprint[:16], Found: found, Err: err}
	}
	return &verify.Rejection{Code: verify.BadSignature, Err: err}
}

// saysOurKey reports whether the layer names the authority's key as the signer. Then the
// signature is broken; otherwise it is most likely by another key.
func (d diagnosis) saysOurKey() bool {
	ours, err := d.material.Key().PublicKey()
	if err != nil {
		return false
	}
	equal, ok := ours.(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return false
	}
	if c := d.layer.certificate; c != nil && equal.Equal(c.PublicKey) {
		return true
	}
	if d.layer.entry == nil {
		return false
	}
	entry, err := d.logEntry()
	if err != nil {
		return false
	}
	switch logged := entry.PublicKey().(type) {
	case *x509.Certificate:
		return equal.Equal(logged.PublicKey)
	default:
		return equal.Equal(logged)
	}
}

func (d diagnosis) noName() *verify.Rejection {
	if d.authority.Keyless == nil || len(d.summary.Subjects) > 0 {
		return nil
	}
	return &verify.Rejection{Code: verify.WrongIdentity, Expected: d.expected(), Found: d.summary.String()}
}

func (d diagnosis) badEntry() *verify.Rejection {
	if !d.wantsLog() {
		return nil
	}
	if d.layer.entry == nil {
		return &verify.Rejection{Code: verify.NoLogEntry, Expected: "an entry of a trusted transparency log with the signature"}
	}
	const expected = "an entry of a trusted transparency log for this signature"
	entry, err := d.logEntry()
	if err == nil {
		err = tlog.VerifySET(entry, d.material.RekorLogs())
	}
	if err != nil {
		return &verify.Rejection{Code: verify.BadLogEntry, Expected: expected, Err: err}
	}
	if !d.isOfThis(entry) {
		return &verify.Rejection{Code: verify.BadLogEntry, Expected: expected, Found: "a genuine entry of another signature"}
	}
	d.logged = time.Unix(d.layer.entry.Payload.IntegratedTime, 0).UTC()
	return nil
}

// isOfThis reports whether the entry records this signature.
func (d diagnosis) isOfThis(entry *tlog.Entry) bool {
	if d.layer.envelope == nil {
		return bytes.Equal(entry.Signature(), d.layer.signature)
	}
	for _, s := range d.layer.envelope.Signatures {
		if bytes.Equal(entry.Signature(), s.Sig) {
			return true
		}
	}
	return false
}

func (d diagnosis) expired() *verify.Rejection {
	if d.leaf == nil {
		return d.expiredBeside()
	}
	return d.badChain()
}

// expiredBeside covers a certificate that accompanies a signature by a key: cosign requires it to
// be valid, too.
func (d diagnosis) expiredBeside() *verify.Rejection {
	if d.layer.certificate == nil {
		return nil
	}
	for _, at := range d.times() {
		if c := d.layer.certificate; at.Before(c.NotBefore) || at.After(c.NotAfter) {
			return &verify.Rejection{Code: verify.ExpiredCertificate, Expected: "a certificate valid at " + stamp(at), Found: "one " + trust.Validity(c)}
		}
	}
	return nil
}

// checkEnvelope accepts one good signature of an envelope, as cosign does.
func checkEnvelope(verifier signature.Verifier, envelope *attest.Envelope) error {
	message := dsse.PAE(envelope.PayloadType, envelope.Payload)
	var errs []error
	for _, s := range envelope.Signatures {
		err := verifier.VerifySignature(bytes.NewReader(s.Sig), bytes.NewReader(message))
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
