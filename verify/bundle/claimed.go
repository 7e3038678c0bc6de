package bundle

import (
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// Claimed returns the signer that a bundle names: that of its certificate, or the hint of a key. Nothing
// is verified: any user with push access may write it.
func Claimed(payload []byte) (signer verify.Signer, hint string, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			signer, hint, err = verify.Signer{}, "", &panicError{recovered}
		}
	}()
	entity, err := parse(payload)
	if err != nil {
		return verify.Signer{}, "", err
	}
	content, err := entity.VerificationContent()
	if err != nil {
		return verify.Signer{}, "", err
	}
	certificate := content.Certificate()
	if certificate == nil {
		if key := content.PublicKey(); key != nil {
			hint = key.Hint()
		}
		return verify.Signer{}, hint, nil
	}
	summary, err := trust.Summarize(certificate)
	if err != nil {
		return verify.Signer{}, "", err
	}
	return summary.Signer(""), "", nil
}
