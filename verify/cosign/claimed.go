package cosign

import (
	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// Claimed returns the signer that a layer names in its certificate. Nothing is verified: any user with
// push access may write it. It is zero for a signature by a key, which a layer does not name.
func Claimed(evidence attest.Evidence) (signer verify.Signer, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			signer, err = verify.Signer{}, &panicError{recovered}
		}
	}()
	read, err := newLayer(evidence)
	if err != nil || read.certificate == nil {
		return verify.Signer{}, err
	}
	summary, err := trust.Summarize(read.certificate)
	if err != nil {
		return verify.Signer{}, err
	}
	return summary.Signer(""), nil
}
