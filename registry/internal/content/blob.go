package content

import (
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// BlobBound returns how many bytes may be read for a descriptor: its size
// where it has one, which must lie within most.
func BlobBound(blob image.Descriptor, most int64) (int64, error) {
	most = min(most, MaxBlob)
	switch {
	case blob.Digest.IsZero():
		return 0, &image.ContentError{Err: errors.New("the descriptor has no digest")}
	case blob.Size < 0:
		return 0, &image.ContentError{Err: fmt.Errorf("the descriptor has a size of %d", blob.Size)}
	case most < 0:
		return 0, errors.New("the bound is negative")
	case blob.Size > most:
		return 0, &image.ContentError{Err: &limit.ExceededError{What: fmt.Sprintf("the blob of %d bytes", blob.Size), Most: most}}
	case blob.Size > 0:
		return blob.Size, nil
	default:
		return most, nil
	}
}

// KindOfBound is image.Bound for an error about a bound, else image.Corrupt.
func KindOfBound(err error) image.Kind {
	if _, exceeded := errors.AsType[*limit.ExceededError](err); exceeded || errors.Is(err, ErrTooManyReferrers) {
		return image.Bound
	}
	return image.Corrupt
}

// CheckBlob compares the size and digest of body with its descriptor; a size of 0 is unknown. A body
// of the digest shows that the descriptor is wrong, which is an image.ContentError.
func CheckBlob(blob image.Descriptor, body []byte) error {
	hasSize := blob.Size <= 0 || int64(len(body)) == blob.Size
	switch matches := blob.Digest.Matches(body); {
	case matches && hasSize:
		return nil
	case matches:
		return &image.ContentError{Err: fmt.Errorf("the body has %d bytes, its descriptor has %d", len(body), blob.Size)}
	case !hasSize:
		return fmt.Errorf("the body has %d bytes, its descriptor has %d, and it does not match the digest", len(body), blob.Size)
	}
	return fmt.Errorf("the body does not match the digest; as sha256 it has %s", image.DigestOf(body))
}
