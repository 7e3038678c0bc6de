package registry

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// The operations on an image itself, as in Error.Op.
const (
	opResolve  = "resolve"
	opDescribe = "describe"
)

// Resolve pins ref to the digest that its tag has now. A reference with a digest is pinned
// as it is, without a request. A tag is resolved by HEAD, which no registry counts as a
// pull; where that gives no digest, the manifest is fetched and hashed. Media type and
// size are recorded where the registry returns them.
func (c *Client) Resolve(ctx context.Context, ref image.Ref) (image.Pinned, error) {
	if ref.IsZero() {
		return image.Pinned{}, errors.New("resolve: the reference is empty")
	}
	if !ref.Digest().IsZero() {
		return ref.Pin(image.Descriptor{Digest: ref.Digest()})
	}
	descriptor, err := c.head(ctx, opResolve, ref.Repository(), ref.Tag())
	if err != nil {
		return image.Pinned{}, err
	}
	return ref.Pin(descriptor)
}

// Describe returns pinned with the media type and size of its manifest, requested by HEAD
// where they are missing. The registry's values are unverified: a signature that covers
// them shows whether they are true.
func (c *Client) Describe(ctx context.Context, pinned image.Pinned) (image.Pinned, error) {
	known := pinned.Descriptor()
	if pinned.IsZero() || known.IsComplete() {
		return pinned, nil
	}
	said, err := c.head(ctx, opDescribe, pinned.Repository(), known.Digest.String())
	if err != nil {
		return image.Pinned{}, err
	}
	if !said.IsComplete() {
		said, _, err = c.fetch(ctx, opDescribe, pinned.Repository(), known.Digest.String())
		if err != nil {
			return image.Pinned{}, err
		}
	}
	known.MediaType, known.Size = said.MediaType, said.Size
	return pinned.Ref().Pin(known)
}

// Manifest fetches the manifest at a tag or digest, at most 4 MiB. Its bytes
// are hashed and compared with the digest that was asked for and with the one
// the registry claims.
func (c *Client) Manifest(ctx context.Context, repository image.Repository, reference string) (image.Descriptor, []byte, error) {
	return c.fetch(ctx, "fetch manifest", repository, reference)
}

func manifestQuestion(op, method string, repository image.Repository, reference string) request {
	return request{
		op: op, method: method, repository: repository, endpoint: "manifests", reference: reference,
		accept: content.ManifestTypes(), most: content.MaxManifest,
	}
}

// head asks for a manifest's headers, and for the manifest itself where they
// do not hold its digest.
func (c *Client) head(ctx context.Context, op string, repository image.Repository, reference string) (image.Descriptor, error) {
	q := manifestQuestion(op, http.MethodHead, repository, reference)
	if err := checkReference(q); err != nil {
		return image.Descriptor{}, err
	}
	got, err := c.send(ctx, q)
	if err != nil {
		if status := statusOf(err); status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented {
			descriptor, _, err := c.fetch(ctx, op, repository, reference)
			return descriptor, err
		}
		return image.Descriptor{}, err
	}
	claimed, err := image.ParseDigest(got.header.Get("Docker-Content-Digest"))
	if err != nil {
		descriptor, _, err := c.fetch(ctx, op, repository, reference)
		return descriptor, err
	}
	if wanted, err := image.ParseDigest(reference); err == nil && wanted != claimed && wanted.Algorithm() == claimed.Algorithm() {
		return image.Descriptor{}, q.fail(image.Corrupt, fmt.Errorf("requested %s, its header has %s", wanted, claimed))
	}
	descriptor := image.Descriptor{Digest: claimed}
	if mediaType := mediaTypeOf(got.header); content.IsManifestType(mediaType) {
		descriptor.MediaType = mediaType
		descriptor.Size = max(got.length, 0)
	}
	return descriptor, nil
}

func (c *Client) fetch(ctx context.Context, op string, repository image.Repository, reference string) (image.Descriptor, []byte, error) {
	q := manifestQuestion(op, http.MethodGet, repository, reference)
	if err := checkReference(q); err != nil {
		return image.Descriptor{}, nil, err
	}
	got, err := c.send(ctx, q)
	if err != nil {
		return image.Descriptor{}, nil, err
	}
	digest, err := checkDigest(reference, got.header.Get("Docker-Content-Digest"), got.body)
	if err != nil {
		return image.Descriptor{}, nil, q.fail(image.Corrupt, err)
	}
	descriptor, err := content.Describe(got.body, mediaTypeOf(got.header))
	if err != nil {
		if !isTag(reference) {
			err = content.ByContent(err)
		}
		return image.Descriptor{}, nil, q.fail(image.Corrupt, err)
	}
	descriptor.Digest = digest
	return descriptor, got.body, nil
}

// checkReference keeps anything but tags and digests out of a URL.
func checkReference(q request) error {
	if q.repository.IsZero() {
		return q.fail(image.Corrupt, errors.New("the repository is empty"))
	}
	if _, err := image.ParseDigest(q.reference); err == nil || isTag(q.reference) {
		return nil
	}
	return q.fail(image.Corrupt, fmt.Errorf("%q is neither a tag nor a digest", content.Shorten(q.reference)))
}

// isTag follows the distribution specification:
// [a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}.
func isTag(s string) bool {
	if s == "" || len(s) > 128 || s[0] == '.' || s[0] == '-' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// checkDigest compares a body with the requested digest and with the header's, and returns
// the digest of the content.
func checkDigest(reference, header string, body []byte) (image.Digest, error) {
	digest := image.DigestOf(body)
	if wanted, err := image.ParseDigest(reference); err == nil {
		if !wanted.Matches(body) {
			return image.Digest{}, fmt.Errorf("the body has digest %s, not the one that was asked for", digest)
		}
		digest = wanted
	}
	if header == "" {
		return digest, nil
	}
	claimed, err := image.ParseDigest(header)
	if err != nil {
		return image.Digest{}, fmt.Errorf("its Docker-Content-Digest: %w", err)
	}
	if !claimed.Matches(body) {
		return image.Digest{}, fmt.Errorf("its Docker-Content-Digest is %s, the body has %s", claimed, image.DigestOf(body))
	}
	if !isTag(reference) {
		return digest, nil
	}
	return claimed, nil
}

func mediaTypeOf(header http.Header) string {
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return mediaType
}
