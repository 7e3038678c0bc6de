package cosign

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// Verifier verifies cosign's signatures and attestations with one snapshot of trust. It is
// immutable and safe for concurrent use; creating one is cheap.
type Verifier struct {
	snapshot *trust.Snapshot
}

var _ verify.Verifier = (*Verifier)(nil)

// New returns a Verifier. It panics on a nil snapshot.
func New(snapshot *trust.Snapshot) *Verifier {
	if snapshot == nil {
		panic("cosign.New: no snapshot of trust")
	}
	return &Verifier{snapshot: snapshot}
}

// Verify implements verify.Verifier.
func (v *Verifier) Verify(ctx context.Context, subject image.Pinned, evidence attest.Evidence, authority verify.Authority) (verify.Fact, error) {
	if subject.IsZero() {
		return verify.Fact{}, errors.New("verify cosign signature: the image is not pinned to a digest")
	}
	fact, err := v.prove(ctx, subject.Digest(), authority, func() (*layer, error) { return newLayer(evidence) })
	if err == nil {
		err = contradicts(evidence, fact)
	}
	if rejection, ok := errors.AsType[*verify.Rejection](err); ok {
		rejection.Authority, rejection.Origin = authority.Name, evidence.Origin
		return verify.Fact{}, rejection
	}
	if err != nil {
		return verify.Fact{}, err
	}
	fact.Origin = evidence.Origin
	return fact, nil
}

// contradicts refuses a statement of another type than the evidence was found under.
func contradicts(evidence attest.Evidence, fact verify.Fact) error {
	if evidence.PredicateType == "" || fact.Statement == nil || fact.Statement.PredicateType == evidence.PredicateType {
		return nil
	}
	return &verify.Rejection{
		Code: verify.WrongPredicate, Expected: evidence.PredicateType, Found: fact.Statement.PredicateType,
		Err: errors.New("the envelope was offered as another type of statement than the one that is signed"),
	}
}

func (v *Verifier) prove(ctx context.Context, digest image.Digest, authority verify.Authority, parse func() (*layer, error)) (fact verify.Fact, err error) {
	// cosign and rekor parse untrusted JSON with unchecked type assertions and pointers. A layer
	// that makes them panic is rejected.
	defer func() {
		if recovered := recover(); recovered != nil {
			err = &verify.Rejection{Code: verify.Malformed, Err: &panicError{recovered}}
		}
	}()
	if err := ctx.Err(); err != nil {
		return verify.Fact{}, fmt.Errorf("verify cosign signature: %w", context.Cause(ctx))
	}
	if rejection := accepts(authority); rejection != nil {
		return verify.Fact{}, rejection
	}
	material, err := v.snapshot.Material(authority)
	if err != nil {
		return verify.Fact{}, fmt.Errorf("verify cosign signature: %w", err)
	}
	parsed, err := parse()
	if err != nil {
		return verify.Fact{}, &verify.Rejection{Code: verify.Malformed, Err: err}
	}
	p := &proof{layer: parsed, material: material.WithIntermediates(parsed.chain), digest: digest, authority: authority}
	return p.prove(ctx)
}

// panicError is a panic of a library on untrusted bytes.
type panicError struct{ value any }

// Error implements error.
func (p *panicError) Error() string { return fmt.Sprintf("the layer cannot be read: %v", p.value) }

// accepts refuses authorities that cosign's format does not support.
func accepts(authority verify.Authority) *verify.Rejection {
	switch {
	case authority.Notation != nil:
		return &verify.Rejection{Code: verify.WrongFormat, Expected: string(attest.Notation), Found: string(attest.Cosign)}
	case len(authority.Formats) > 0 && !slices.Contains(authority.Formats, attest.Cosign):
		return &verify.Rejection{
			Code: verify.WrongFormat, Expected: fmt.Sprint(authority.Formats), Found: string(attest.Cosign),
			Err: errors.New("the authority does not accept cosign's layers"),
		}
	default:
		return nil
	}
}
