package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/evidence"
	"github.com/quaymaster/quaymaster/gate/internal/tagdigest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/signedmanifest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/cosign"
)

// maxManifestLayers bounds the layers of an image with manifests. The signing tool writes one.
const maxManifestLayers = 16

var _ manifests.Signatures = (*RuleImages)(nil)

// prover returns the current trust.
func (r *RuleImages) prover(ctx context.Context) (gate.Prover, error) {
	config := r.config.Load()
	if config == nil || config.State == nil {
		return nil, errors.New("no signature of a manifest can be verified here")
	}
	snapshot, err := config.State.Snapshot(ctx)
	if err == nil && snapshot.Prover == nil {
		err = errors.New("there is no trust to verify signatures of manifests with")
	}
	return snapshot.Prover, err
}

// blobVerifier verifies signatures over contents that are no images.
type blobVerifier interface {
	VerifyBlob(ctx context.Context, blob *cosign.Blob, authority verify.Authority) (verify.Fact, error)
}

// Blob implements manifests.Signatures.
func (r *RuleImages) Blob(ctx context.Context, content []byte, signatures []signedmanifest.Signature, authorities []verify.Authority) []policy.Answer {
	answers := make([]policy.Answer, len(authorities))
	prover, err := r.prover(ctx)
	verifier, ok := prover.(blobVerifier)
	if err == nil && !ok {
		err = errors.New("this trust verifies signatures of images alone")
	}
	blobs := make([]*cosign.Blob, len(signatures))
	for i, s := range signatures {
		origin := attest.Origin{Via: "annotation " + s.Annotation}
		blobs[i] = cosign.NewBlob(content, cosign.Detached{Signature: s.Signature, Certificate: s.Certificate, Entry: s.Entry, Origin: origin, Err: s.Err})
	}
	for i, authority := range authorities {
		failed := err
		if err == nil {
			authority, failed = prover.Resolve(ctx, authority)
		}
		if failed != nil {
			answers[i].Gaps = []error{failed}
			continue
		}
		for _, blob := range blobs {
			fact, err := verifier.VerifyBlob(ctx, blob, authority)
			rejection, rejected := errors.AsType[*verify.Rejection](err)
			switch out := &answers[i]; {
			case err == nil:
				out.Facts = append(out.Facts, fact)
			case rejected:
				out.Rejections = append(out.Rejections, rejection)
			default:
				out.Gaps = append(out.Gaps, err)
			}
		}
	}
	return answers
}

// Bundle implements manifests.Signatures.
func (r *RuleImages) Bundle(ctx context.Context, reference image.Ref, authorities []verify.Authority) (manifests.Bundle, error) {
	prover, err := r.prover(ctx)
	if err != nil {
		return manifests.Bundle{}, err
	}
	session, err := r.config.Load().Registries.Open(ctx, gate.Access{}, reference.Repository())
	if err != nil {
		return manifests.Bundle{}, fmt.Errorf("credentials: %w", err)
	}
	pinned, err := tagdigest.Read(ctx, reference, session.Resolve)
	if err != nil {
		return manifests.Bundle{}, err
	}
	out := manifests.Bundle{Answers: make([]policy.Answer, len(authorities))}
	var queries []evidence.Query
	var of []int
	for i, authority := range authorities {
		resolved, err := prover.Resolve(ctx, authority)
		if err != nil {
			out.Answers[i].Gaps = []error{err}
			continue
		}
		queries = append(queries, evidence.Query{
			Question: policy.Question{Authority: &authorities[i], Role: attest.Signature}, Resolved: resolved,
			Key: claims.Key{Digest: pinned.Digest(), Authority: strconv.Itoa(i)}, // nothing is cached by it
		})
		of = append(of, i)
	}
	if len(queries) == 0 {
		return out, nil
	}
	found := evidence.Find(ctx, session, pinned, pinned.Repository(), queries)
	isSigned := false
	for n, answer := range evidence.Verify(ctx, prover, found, queries) {
		out.Answers[of[n]], isSigned = answer, isSigned || len(answer.Facts) > 0
	}
	if isSigned {
		out.Contents, err = contents(ctx, session, pinned)
	}
	return out, err
}

// contents reads the layers of an image that are no layers of a file system. Those of an image that
// runs are not read: a signer of images does not sign manifests by that.
func contents(ctx context.Context, session gate.Session, pinned image.Pinned) ([][]byte, error) {
	descriptor, text, err := session.Manifest(ctx, pinned.Repository(), pinned.Digest().String())
	if err != nil {
		return nil, err
	}
	var manifest struct {
		Layers []image.Descriptor `json:"layers"`
	}
	if descriptor.IsIndex() {
		return nil, &image.Error{Kind: image.Corrupt, Op: "read manifests in", On: pinned.String(), Err: errors.New("it is an index of images")}
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return nil, &image.Error{Kind: image.Corrupt, Op: "read manifests in", On: pinned.String(), Err: err}
	}
	if len(manifest.Layers) > maxManifestLayers {
		return nil, &image.Error{Kind: image.Bound, Op: "read manifests in", On: pinned.String(),
			Err: fmt.Errorf("it has %d layers, more than %d", len(manifest.Layers), maxManifestLayers)}
	}
	var out [][]byte
	room := int64(signedmanifest.MaxArchive)
	for _, layer := range manifest.Layers {
		if strings.HasPrefix(layer.MediaType, "application/vnd.oci.image.layer.") || strings.HasPrefix(layer.MediaType, "application/vnd.docker.image.rootfs.") {
			continue
		}
		content, err := session.Blob(ctx, pinned.Repository(), layer, room)
		if err != nil {
			return nil, err
		}
		room -= int64(len(content))
		out = append(out, content)
	}
	return out, nil
}
