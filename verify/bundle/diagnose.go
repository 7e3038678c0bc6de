package bundle

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/sigstore/sigstore-go/pkg/tlog"
	sgverify "github.com/sigstore/sigstore-go/pkg/verify"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// diagnose finds the reason why sigstore-go refused a bundle; it never accepts one. It checks the
// signature and the artifact first, then the signer, then the times. cause is sigstore-go's own
// error.
func (p *proof) diagnose(cause error, useNow bool) *verify.Rejection {
	looks := []func() *verify.Rejection{
		p.badSignature, p.wrongArtifact,
		func() *verify.Rejection { return p.badCertificate(useNow) },
		p.badEntry,
		func() *verify.Rejection { return p.badTime(useNow) },
		p.badSCT,
	}
	for _, look := range looks {
		if rejection := look(); rejection != nil {
			if rejection.Err == nil {
				rejection.Err = cause
			}
			return rejection
		}
	}
	return &verify.Rejection{Code: verify.Malformed, Err: cause}
}

// badSignature checks the signature over the bundle's own content.
func (p *proof) badSignature() *verify.Rejection {
	err := p.checkSignature()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sgverify.ErrDSSEInvalidSignatureCount):
		return &verify.Rejection{Code: verify.Malformed, Err: err}
	case p.byKey() && p.hint() != p.material.Key().Hint:
		return &verify.Rejection{Code: verify.WrongKey, Expected: p.keyName(), Found: keyOf(p.hint()), Err: err}
	default:
		return &verify.Rejection{Code: verify.BadSignature, Err: err}
	}
}

func (p *proof) checkSignature() error {
	message := p.content.MessageSignatureContent()
	switch {
	case message == nil:
		return sgverify.VerifySignature(p.content, p.signer, p.material)
	case p.artifact.Content != nil:
		return sgverify.VerifySignatureWithArtifacts(p.content, p.signer, p.material, []io.Reader{bytes.NewReader(p.artifact.Content)})
	default:
		return sgverify.VerifySignatureWithArtifactDigests(p.content, p.signer, p.material,
			[]sgverify.ArtifactDigest{{Algorithm: message.DigestAlgorithm(), Digest: message.Digest()}})
	}
}

func keyOf(hint string) string {
	if hint == "" {
		return "another key"
	}
	return fmt.Sprintf("another key, with the hint %q", hint)
}

func (p *proof) wrongArtifact() *verify.Rejection {
	if message := p.content.MessageSignatureContent(); message != nil {
		if found := hex.EncodeToString(message.Digest()); found != p.artifact.Digest.Hex() {
			return &verify.Rejection{Code: verify.WrongDigest, Expected: p.artifact.Digest.String(), Found: found}
		}
		return nil
	}
	statement, err := p.statement()
	if err != nil {
		return &verify.Rejection{Code: verify.Malformed, Err: err}
	}
	if !statement.Covers(p.artifact.Digest) {
		return p.otherDigest(statement)
	}
	return nil
}

// badCertificate distinguishes an untrusted chain from one that was not valid at the time of
// signing.
func (p *proof) badCertificate(useNow bool) *verify.Rejection {
	leaf := p.signer.Certificate()
	if leaf == nil {
		return nil
	}
	summary, err := trust.Summarize(leaf)
	if err != nil {
		return &verify.Rejection{Code: verify.Malformed, Err: err}
	}
	if len(summary.Subjects) == 0 {
		return &verify.Rejection{Code: verify.WrongIdentity, Expected: p.expected(), Found: summary.String()}
	}
	leaf = trust.Checkable(leaf)
	if _, err := sgverify.VerifyLeafCertificate(leaf.NotBefore, leaf, p.material); err != nil {
		return &verify.Rejection{Code: verify.UntrustedChain, Expected: "a chain to a trusted certificate authority",
			Found: "a certificate of " + summary.IssuerName, Err: err}
	}
	for _, at := range p.times(useNow) {
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

// times are the trusted times of signing, or now.
func (p *proof) times(useNow bool) []time.Time {
	if useNow {
		return []time.Time{time.Now()}
	}
	var times []time.Time
	for _, entry := range p.entries {
		if p.wantsLog() && p.isKnown(entry) && entry.HasInclusionPromise() && tlog.VerifySET(entry, p.material.RekorLogs()) == nil {
			times = append(times, entry.IntegratedTime())
		}
	}
	stamps, _, err := sgverify.VerifySignedTimestamp(p.entity, p.material)
	if err != nil {
		return times
	}
	for _, s := range stamps {
		times = append(times, s.Time)
	}
	return times
}

func (p *proof) badEntry() *verify.Rejection {
	if !p.wantsLog() {
		return nil
	}
	if len(p.entries) == 0 {
		return &verify.Rejection{Code: verify.NoLogEntry, Expected: "an entry of a trusted transparency log in the bundle"}
	}
	if _, err := sgverify.VerifyTlogEntry(p.entity, p.material, 1, true); err != nil {
		return &verify.Rejection{Code: verify.BadLogEntry, Expected: "an entry of a trusted transparency log for this signature", Err: err}
	}
	return nil
}

func (p *proof) badTime(useNow bool) *verify.Rejection {
	if len(p.timestamps) == 0 {
		if p.authority.Timestamp.Required {
			return &verify.Rejection{Code: verify.NoTimestamp, Expected: "a timestamp of a trusted authority in the bundle"}
		}
		if !p.byKey() && !useNow && len(p.times(useNow)) == 0 {
			return &verify.Rejection{Code: verify.NoTimestamp, Expected: "a trusted time of signing, for the certificate is short-lived"}
		}
		return nil
	}
	if !p.wantsTimestamp() {
		return nil
	}
	if _, err := sgverify.VerifySignedTimestampWithThreshold(p.entity, p.material, 1); err != nil {
		return &verify.Rejection{Code: verify.BadTimestamp, Expected: "a timestamp of a trusted authority for this signature", Err: err}
	}
	return nil
}

func (p *proof) badSCT() *verify.Rejection {
	leaf := p.signer.Certificate()
	if leaf == nil || !p.wantsSCT() {
		return nil
	}
	leaf = trust.Checkable(leaf)
	chains, err := sgverify.VerifyLeafCertificate(leaf.NotBefore, leaf, p.material)
	if err == nil { // otherwise badCertificate has reported it
		err = sgverify.VerifySignedCertificateTimestamp(chains, 1, p.material)
	}
	if err == nil {
		return nil
	}
	if !trust.HasSCT(leaf) {
		return &verify.Rejection{Code: verify.NoSCT, Expected: "a certificate timestamp in the certificate", Err: err}
	}
	return &verify.Rejection{Code: verify.BadSCT, Expected: "a certificate timestamp of a trusted log", Err: err}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
