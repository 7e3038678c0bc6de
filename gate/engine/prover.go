// Package engine builds a gate from configured parts.
//
// It binds verifiers to trust, registries to credentials, the dialects of policies to compilers, and
// files to the look-ups of policies. It decides nothing.
package engine

import (
	"context"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/dial"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/bundle"
	"github.com/quaymaster/quaymaster/verify/cosign"
	"github.com/quaymaster/quaymaster/verify/notation"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// prover joins one snapshot of trust with the verifiers bound to it.
type prover struct {
	*trust.Snapshot
	verify.ByFormat
	blobs *cosign.Verifier
}

// VerifyBlob implements blobVerifier.
func (p prover) VerifyBlob(ctx context.Context, blob *cosign.Blob, authority verify.Authority) (verify.Fact, error) {
	return p.blobs.VerifyBlob(ctx, blob, authority)
}

// NewProver binds the verifiers of every format to a snapshot.
func NewProver(snapshot *trust.Snapshot) (gate.Prover, error) {
	notary, err := notation.New(notation.Options{Transport: GuardedTransport()})
	if err != nil {
		return nil, err
	}
	layers := cosign.New(snapshot)
	return prover{Snapshot: snapshot, blobs: layers, ByFormat: verify.ByFormat{
		attest.Cosign:   layers,
		attest.Bundle:   bundle.New(snapshot),
		attest.Notation: notary,
	}}, nil
}

// answerTimeout bounds the response of a service that is no registry.
const answerTimeout = 10 * time.Second

// GuardedTransport opens connections to services that are no registries.
func GuardedTransport() http.RoundTripper {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dial.New(dial.Config{}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   2,
		ResponseHeaderTimeout: answerTimeout,
	}
}
