package cosign

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"errors"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	sgverify "github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// diagnose finds the reason why a signature was refused; it never accepts one. It checks the
// signature and the claim first, then the signer, then the times. refused is the rejection that
// ended the verification.
func (p *proof) diagnose(refused *verify.Rejection) *verify.Rejection {
	looks := []func() *verify.Rejection{
		p.badSignature,
		func() *verify.Rejection { return p.layer.check(p.digest) },
		p.noName, p.untrusted, p.badEntry, p.expired,
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
	if refused.Code == verify.Malformed && p.leaf != nil {
		if rejection := p.badSCT(); rejection != nil {
			return rejection
		}
	}
	return refused
}

func (p *proof) badSignature() *verify.Rejection {
	err := p.checkSignature()
	if err == nil {
		return nil
	}
	if p.byKey() && !p.saysOurKey() {
		found := "another key"
		if p.layer.certificate != nil {
			found = "a certificate: " + trust.Describe(p.layer.certificate)
		}
		return &verify.Rejection{Code: verify.WrongKey, Expected: "key " + p.material.Key().Fingerprint[:16], Found: found, Err: err}
	}
	return &verify.Rejection{Code: verify.BadSignature, Err: err}
}

// saysOurKey reports whether the layer names the authority's key as the signer. Then the
// signature is broken; otherwise it is most likely by another key.
func (p *proof) saysOurKey() bool {
	ours, err := p.material.Key().PublicKey()
	if err != nil {
		return false
	}
	equal, ok := ours.(interface{ Equal(crypto.PublicKey) bool })
	if !ok {
		return false
	}
	if c := p.layer.certificate; c != nil && equal.Equal(c.PublicKey) {
		return true
	}
	if p.layer.entry == nil {
		return false
	}
	entry, err := p.logEntry()
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

func (p *proof) noName() *verify.Rejection {
	if p.authority.Keyless == nil || len(p.summary.Subjects) > 0 {
		return nil
	}
	return &verify.Rejection{Code: verify.WrongIdentity, Expected: p.expected(), Found: p.summary.String()}
}

// untrusted reports a chain without a trusted root, independently of the time.
func (p *proof) untrusted() *verify.Rejection {
	if p.leaf == nil {
		return nil
	}
	leaf := trust.Checkable(p.leaf)
	if _, err := sgverify.VerifyLeafCertificate(leaf.NotBefore, leaf, p.material); err != nil {
		return &verify.Rejection{
			Code: verify.UntrustedChain, Expected: "a chain to a trusted certificate authority",
			Found: "a certificate of " + p.summary.IssuerName, Err: err,
		}
	}
	return nil
}

func (p *proof) badEntry() *verify.Rejection {
	if !p.wantsLog() {
		return nil
	}
	if p.layer.entry == nil {
		return &verify.Rejection{Code: verify.NoLogEntry, Expected: "an entry of a trusted transparency log with the signature"}
	}
	const expected = "an entry of a trusted transparency log for this signature"
	entry, err := p.logEntry()
	if err == nil {
		err = tlog.VerifySET(entry, p.material.RekorLogs())
	}
	if err != nil {
		return &verify.Rejection{Code: verify.BadLogEntry, Expected: expected, Err: err}
	}
	if !p.isOfThis(entry) {
		return &verify.Rejection{Code: verify.BadLogEntry, Expected: expected, Found: "a genuine entry of another signature"}
	}
	p.logged = time.Unix(p.layer.entry.Payload.IntegratedTime, 0).UTC()
	return nil
}

// isOfThis reports whether the entry records this signature.
func (p *proof) isOfThis(entry *tlog.Entry) bool {
	if p.layer.envelope == nil {
		return bytes.Equal(entry.Signature(), p.layer.signature)
	}
	for _, s := range p.layer.envelope.Signatures {
		if bytes.Equal(entry.Signature(), s.Sig) {
			return true
		}
	}
	return false
}

func (p *proof) expired() *verify.Rejection {
	if p.leaf == nil {
		return p.expiredBeside()
	}
	return p.badChain()
}

// expiredBeside covers a certificate that accompanies a signature by a key: cosign requires it to
// be valid, too.
func (p *proof) expiredBeside() *verify.Rejection {
	if p.layer.certificate == nil {
		return nil
	}
	for _, at := range p.times() {
		if c := p.layer.certificate; at.Before(c.NotBefore) || at.After(c.NotAfter) {
			return &verify.Rejection{Code: verify.ExpiredCertificate, Expected: "a certificate valid at " + stamp(at), Found: "one " + trust.Validity(c)}
		}
	}
	return nil
}

// badChain checks the chain at every trusted time, or now.
func (p *proof) badChain() *verify.Rejection {
	leaf := trust.Checkable(p.leaf)
	for _, at := range p.times() {
		if _, err := sgverify.VerifyLeafCertificate(at, leaf, p.material); err != nil {
			return &verify.Rejection{
				Code:     verify.ExpiredCertificate,
				Expected: "a chain that is valid at the time of signing, " + stamp(at),
				Found:    "a certificate " + trust.Validity(leaf), Err: err,
			}
		}
	}
	return nil
}

// times are the trusted times of signing, or now where there is none.
func (p *proof) times() []time.Time {
	var times []time.Time
	for _, at := range []time.Time{p.logged, p.stamped} {
		if !at.IsZero() {
			times = append(times, at)
		}
	}
	if len(times) == 0 {
		return []time.Time{time.Now()}
	}
	return times
}

func (p *proof) badSCT() *verify.Rejection {
	if !p.wantsSCT() {
		return nil
	}
	leaf := trust.Checkable(p.leaf)
	chains, err := sgverify.VerifyLeafCertificate(leaf.NotBefore, leaf, p.material)
	if err != nil {
		return &verify.Rejection{Code: verify.UntrustedChain, Err: err}
	}
	if err = sgverify.VerifySignedCertificateTimestamp(chains, 1, p.material); err == nil {
		return nil
	}
	if !trust.HasSCT(leaf) {
		return &verify.Rejection{Code: verify.NoSCT, Expected: "a certificate timestamp in the certificate", Err: err}
	}
	return &verify.Rejection{Code: verify.BadSCT, Expected: "a certificate timestamp of a trusted log", Err: err}
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

// expected describes the signer that the authority requires.
func (p *proof) expected() string {
	switch {
	case p.authority.Keyless != nil:
		return p.authority.Keyless.String()
	case p.material.Leaf() != nil:
		return trust.Describe(p.material.Leaf())
	default:
		return "a certificate of the given chain"
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
