package manifests

import (
	"context"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/signedmanifest"
	"github.com/quaymaster/quaymaster/verify"
)

// Signatures verifies the signatures of signed manifests. Of an answer, Facts are the signatures that
// verify, Rejections say why others do not, and Gaps why some could not be verified.
type Signatures interface {
	// Blob verifies signatures over a content for authorities, and returns the answers in their order.
	Blob(ctx context.Context, content []byte, signatures []signedmanifest.Signature, authorities []verify.Authority) []policy.Answer
	// Bundle verifies the signatures of an image with manifests for authorities, and returns its
	// contents and the answers in their order. The reference is resolved to a digest once. Contents are
	// read only if a signature verifies.
	Bundle(ctx context.Context, reference image.Ref, authorities []verify.Authority) (Bundle, error)
}

// Bundle is an image with manifests.
type Bundle struct {
	Contents [][]byte
	Answers  []policy.Answer
}

// DryRuns makes dry runs in a cluster, with the gateway's own permissions.
type DryRuns interface {
	// DryRunCreate returns what the API server would make of a new object, as decoded JSON with
	// float64; nothing is stored. Namespace is empty for a cluster-scoped object.
	DryRunCreate(ctx context.Context, resource policy.APIResource, namespace string, object map[string]any) (map[string]any, error)
}
