package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// Blob fetches the bytes of a descriptor, at most most of them (128 MiB if
// that is less), and compares size and digest (sha256 or sha512). A descriptor
// that promises more is refused without a request.
func (c *Client) Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, most int64) ([]byte, error) {
	q := question{
		op: "fetch blob", method: http.MethodGet, repository: repository, endpoint: "blobs", reference: blob.Digest.String(),
	}
	bound, err := blobBound(blob, most)
	if err != nil {
		return nil, q.fail(kindOfBound(err), err)
	}
	q.most = bound
	if repository.IsZero() {
		return nil, q.fail(image.Corrupt, errors.New("the repository is empty"))
	}
	got, err := c.ask(ctx, q)
	if err != nil {
		if blob.Size > 0 && kindIs(err, image.Bound) {
			return nil, q.fail(image.Corrupt, fmt.Errorf("the body is longer than the %d bytes of its descriptor", blob.Size))
		}
		return nil, err
	}
	if err := checkBlob(blob, got.body); err != nil {
		return nil, q.fail(image.Corrupt, err)
	}
	return got.body, nil
}

// blobBound returns how many bytes may be read for a descriptor: its size
// where it has one, which must lie within most.
func blobBound(blob image.Descriptor, most int64) (int64, error) {
	most = min(most, maxBlob)
	switch {
	case blob.Digest.IsZero():
		return 0, errors.New("the descriptor has no digest")
	case blob.Size < 0:
		return 0, fmt.Errorf("the descriptor has a size of %d", blob.Size)
	case most < 0:
		return 0, errors.New("the bound is negative")
	case blob.Size > most:
		return 0, &limit.ExceededError{What: fmt.Sprintf("the blob of %d bytes", blob.Size), Most: most}
	case blob.Size > 0:
		return blob.Size, nil
	default:
		return most, nil
	}
}

func kindOfBound(err error) image.Kind {
	if _, exceeded := errors.AsType[*limit.ExceededError](err); exceeded || errors.Is(err, errTooManyReferrers) {
		return image.Bound
	}
	return image.Corrupt
}

func checkBlob(blob image.Descriptor, body []byte) error {
	if blob.Size > 0 && int64(len(body)) != blob.Size {
		return fmt.Errorf("the body has %d bytes, its descriptor says %d", len(body), blob.Size)
	}
	if !blob.Digest.Matches(body) {
		return fmt.Errorf("the body does not match the digest; as sha256 it has %s", image.DigestOf(body))
	}
	return nil
}
