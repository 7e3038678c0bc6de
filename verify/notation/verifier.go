package notation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	_ "github.com/notaryproject/notation-core-go/signature/cose" // registers the envelope's parser
	_ "github.com/notaryproject/notation-core-go/signature/jws"  // registers the envelope's parser
	"github.com/notaryproject/notation-go"
	"github.com/notaryproject/notation-go/verifier"
	godigest "github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
)

// Options are the dependencies of a Verifier.
type Options struct {
	// Transport sends requests to the revocation servers (OCSP, CRL) that certificates name, so
	// it must dial through the guarded dialer. nil disables revocation requests: the status of a
	// certificate that names a server is then not available.
	Transport http.RoundTripper
	// InsecureLoopback lets certificates name servers on this machine, which the guarded dialer
	// permits. Only for tests and demonstrations.
	InsecureLoopback bool
	// Timeout covers all revocation requests for one signature together; 0 means 5 s.
	Timeout time.Duration
}

// Verifier verifies notation signatures. It implements verify.Verifier.
type Verifier struct {
	revocation *revocationClient
}

var _ verify.Verifier = (*Verifier)(nil)

// New returns a Verifier.
func New(o Options) (*Verifier, error) {
	if o.Timeout < 0 {
		return nil, fmt.Errorf("new notation verifier: the timeout is negative: %s", o.Timeout)
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	client, err := newRevocationClient(o)
	if err != nil {
		return nil, fmt.Errorf("new notation verifier: %w", err)
	}
	return &Verifier{revocation: client}, nil
}

// Verify implements verify.Verifier. In addition to the authority's Notation it uses Formats,
// Annotations (user metadata of the signature), Timestamp, NotBefore and NotAfter. notation has
// no logs and trusted roots.
func (v *Verifier) Verify(ctx context.Context, subject image.Pinned, evidence attest.Evidence, authority verify.Authority) (fact verify.Fact, err error) {
	p := &proof{subject: subject, evidence: evidence, authority: authority}
	defer func() {
		if r := recover(); r != nil { // ASN.1, CBOR and JSON parsers read untrusted bytes
			fact, err = verify.Fact{}, p.reject(verify.Malformed, fmt.Errorf("reading it panicked: %v", r))
		}
	}()
	if ctx.Err() != nil {
		return verify.Fact{}, fmt.Errorf("verify notation signature %s: %w", evidence.Origin, context.Cause(ctx))
	}
	if authority.Notation == nil || !p.formatAllowed() {
		return verify.Fact{}, p.reject(verify.WrongFormat, errors.New("the authority is not proved by notation signatures"))
	}
	p.terms, err = newTerms(authority)
	if err != nil {
		return verify.Fact{}, err
	}
	if err := p.aim(); err != nil {
		return verify.Fact{}, err
	}
	if err := p.open(); err != nil {
		return verify.Fact{}, err
	}
	if err := v.check(ctx, p); err != nil {
		return verify.Fact{}, err
	}
	return p.conclude(ctx)
}

// check runs notation-go's checks and returns the one that failed.
func (v *Verifier) check(ctx context.Context, p *proof) error {
	p.revocationCheck = v.revocation.newRevocationCheck(p.terms.stores[p.signed.store()])
	checker, err := verifier.NewWithOptions(p.terms.document, p.terms.stores, nil, verifier.VerifierOptions{
		RevocationCodeSigningValidator:  p.revocationCheck.signer,
		RevocationTimestampingValidator: p.revocationCheck.timestamper,
	})
	if err != nil {
		return fmt.Errorf("authority %s: %w", p.authority.Name, err)
	}
	p.outcome, err = checker.Verify(ctx, ocispec.Descriptor{
		MediaType: p.target.MediaType,
		Digest:    godigest.Digest(p.target.Digest.String()),
		Size:      p.target.Size,
	}, p.evidence.Payload, notation.VerifierVerifyOptions{
		// Only the form of the reference matters, since the one statement's scope is "*".
		ArtifactReference:  "local/image@" + p.target.Digest.String(),
		SignatureMediaType: p.evidence.MediaType,
	})
	if ctx.Err() != nil {
		return fmt.Errorf("verify notation signature %s: %w", p.evidence.Origin, context.Cause(ctx))
	}
	return p.judge(ctx, err)
}

// proof is the verification of one piece of evidence for one authority.
type proof struct {
	subject   image.Pinned
	evidence  attest.Evidence
	authority verify.Authority

	terms           *terms
	target          image.Descriptor // the required target of the signature
	signed          *envelope
	revocationCheck *revocationCheck
	outcome         *notation.VerificationOutcome
	notes           []string
}

func (p *proof) reject(code verify.Code, err error) *verify.Rejection {
	return &verify.Rejection{Code: code, Authority: p.authority.Name, Origin: p.evidence.Origin, Err: err}
}

func (p *proof) miss(code verify.Code, expected, found string) *verify.Rejection {
	r := p.reject(code, nil)
	r.Expected, r.Found = expected, found
	return r
}

func (p *proof) formatAllowed() bool {
	return len(p.authority.Formats) == 0 || slices.Contains(p.authority.Formats, attest.Notation)
}

// aim sets the required target of the signature: the image's manifest, or the manifest of a
// document about it.
func (p *proof) aim() error {
	p.target = p.subject.Descriptor()
	what := "image"
	if !p.evidence.Target.Digest.IsZero() {
		p.target = p.evidence.Target
		what = "signed document of the image"
	} else if p.evidence.Role == attest.Attestation {
		return p.reject(verify.Malformed, errors.New("an attestation by notation is a signature over a document, and it names none"))
	}
	if p.target.Digest.IsZero() || !p.target.IsComplete() {
		return fmt.Errorf("verify notation signature %s: media type and size of the %s %s are not known; fetch its manifest first",
			p.evidence.Origin, what, p.target.Digest)
	}
	return nil
}

// isDocument reports whether the signature is over a document about the image.
func (p *proof) isDocument() bool { return !p.evidence.Target.Digest.IsZero() }
