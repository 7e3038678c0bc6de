package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// Blob fetches the bytes of a descriptor, at most most of them (128 MiB if
// that is less), and compares size and digest (sha256 or sha512). A descriptor
// that promises more is refused without a request.
func (c *Client) Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, most int64) ([]byte, error) {
	q := request{
		op: "fetch blob", method: http.MethodGet, repository: repository, endpoint: "blobs", reference: blob.Digest.String(),
	}
	bound, err := content.BlobBound(blob, most)
	if err != nil {
		return nil, q.fail(content.KindOfBound(err), err)
	}
	q.most = bound
	if repository.IsZero() {
		return nil, q.fail(image.Corrupt, errors.New("the repository is empty"))
	}
	got, err := c.send(ctx, q)
	if err != nil {
		if blob.Size > 0 && kindIs(err, image.Bound) && image.IsByContent(err) {
			return nil, q.fail(image.Corrupt, &image.ContentError{Err: fmt.Errorf("the body is longer than the %d bytes of its descriptor", blob.Size)})
		}
		return nil, err
	}
	if err := content.CheckBlob(blob, got.body); err != nil {
		return nil, q.fail(image.Corrupt, err)
	}
	return got.body, nil
}
