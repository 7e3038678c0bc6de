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

// diagnosis finds the reason why sigstore-go refused a bundle; it never accepts one.
type diagnosis struct {
	*proof
	// useNow: no trusted time of signing is required.
	useNow bool
}

// rejection checks the signature and the artifact first, then the signer, then the times. cause is
// sigstore-go's own error.
func (d diagnosis) rejection(cause error) *verify.Rejection {
	looks := []func() *verify.Rejection{
		d.badSignature, d.wrongArtifact, d.badCertificate, d.badEntry, d.badTime, d.badSCT,
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
func (d diagnosis) badSignature() *verify.Rejection {
	err := d.checkSignature()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sgverify.ErrDSSEInvalidSignatureCount):
		return &verify.Rejection{Code: verify.Malformed, Err: err}
	case d.byKey() && d.hint() != d.material.Key().Hint:
		return &verify.Rejection{Code: verify.WrongKey, Expected: d.keyName(), Found: keyOf(d.hint()), Err: err}
	default:
		return &verify.Rejection{Code: verify.BadSignature, Err: err}
	}
}

func (d diagnosis) checkSignature() error {
	message := d.content.MessageSignatureContent()
	switch {
	case message == nil:
		return sgverify.VerifySignature(d.content, d.signer, d.material)
	case d.artifact.Content != nil:
		return sgverify.VerifySignatureWithArtifacts(d.content, d.signer, d.material, []io.Reader{bytes.NewReader(d.artifact.Content)})
	default:
		return sgverify.VerifySignatureWithArtifactDigests(d.content, d.signer, d.material,
			[]sgverify.ArtifactDigest{{Algorithm: message.DigestAlgorithm(), Digest: message.Digest()}})
	}
}

func keyOf(hint string) string {
	if hint == "" {
		return "another key"
	}
	return fmt.Sprintf("another key, with the hint %q", hint)
}

func (d diagnosis) wrongArtifact() *verify.Rejection {
	if message := d.content.MessageSignatureContent(); message != nil {
		if found := hex.EncodeToString(message.Digest()); found != d.artifact.Digest.Hex() {
			return &verify.Rejection{Code: verify.WrongDigest, Expected: d.artifact.Digest.String(), Found: found}
		}
		return nil
	}
	statement, err := d.statement()
	if err != nil {
		return &verify.Rejection{Code: verify.Malformed, Err: err}
	}
	if !statement.Covers(d.artifact.Digest) {
		return d.otherDigest(statement)
	}
	return nil
}

// badCertificate distinguishes an untrusted chain from one that was not valid at the time of
// signing.
func (d diagnosis) badCertificate() *verify.Rejection {
	leaf := d.signer.Certificate()
	if leaf == nil {
		return nil
	}
	summary, err := trust.Summarize(leaf)
	if err != nil {
		return &verify.Rejection{Code: verify.Malformed, Err: err}
	}
	if len(summary.Subjects) == 0 {
		return &verify.Rejection{Code: verify.WrongIdentity, Expected: d.expected(), Found: summary.String()}
	}
	leaf = trust.Checkable(leaf)
	if _, err := sgverify.VerifyLeafCertificate(leaf.NotBefore, leaf, d.material); err != nil {
		return &verify.Rejection{Code: verify.UntrustedChain, Expected: "a chain to a trusted certificate authority",
			Found: "a certificate of " + summary.IssuerName, Err: err}
	}
	for _, at := range d.times() {
		if _, err := sgverify.VerifyLeafCertificate(at, leaf, d.material); err != nil {
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
func (d diagnosis) times() []time.Time {
	if d.useNow {
		return []time.Time{time.Now()}
	}
	var times []time.Time
	for _, entry := range d.entries {
		if d.wantsLog() && d.isKnown(entry) && entry.HasInclusionPromise() && tlog.VerifySET(entry, d.material.RekorLogs()) == nil {
			times = append(times, entry.IntegratedTime())
		}
	}
	stamps, _, err := sgverify.VerifySignedTimestamp(d.entity, d.material)
	if err != nil {
		return times
	}
	for _, s := range stamps {
		times = append(times, s.Time)
	}
	return times
}

func (d diagnosis) badEntry() *verify.Rejection {
	if !d.wantsLog() {
		return nil
	}
	if len(d.entries) == 0 {
		return &verify.Rejection{Code: verify.NoLogEntry, Expected: "an entry of a trusted transparency log in the bundle"}
	}
	if _, err := sgverify.VerifyTlogEntry(d.entity, d.material, 1, true); err != nil {
		return &verify.Rejection{Code: verify.BadLogEntry, Expected: "an entry of a trusted transparency log for this signature", Err: err}
	}
	return nil
}

func (d diagnosis) badTime() *verify.Rejection {
	if len(d.timestamps) == 0 {
		if d.authority.Timestamp.Required {
			return &verify.Rejection{Code: verify.NoTimestamp, Expected: "a timestamp of a trusted authority in the bundle"}
		}
		if !d.byKey() && !d.useNow && len(d.times()) == 0 {
			return &verify.Rejection{Code: verify.NoTimestamp, Expected: "a trusted time of signing, for the certificate is short-lived"}
		}
		return nil
	}
	if !d.wantsTimestamp() {
		return nil
	}
	if _, err := sgverify.VerifySignedTimestampWithThreshold(d.entity, d.material, 1); err != nil {
		return &verify.Rejection{Code: verify.BadTimestamp, Expected: "a timestamp of a trusted authority for this signature", Err: err}
	}
	return nil
}

func (d diagnosis) badSCT() *verify.Rejection {
	leaf := d.signer.Certificate()
	if leaf == nil || !d.wantsSCT() {
		return nil
	}
	leaf = trust.Checkable(leaf)
	chains, err := sgverify.VerifyLeafCertificate(leaf.NotBefore, leaf, d.material)
	if err == nil { // otherwise badCertificate has reported it
		err = sgverify.VerifySignedCertificateTimestamp(chains, 1, d.material)
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
