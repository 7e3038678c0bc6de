package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/quaymaster/quaymaster/image"
)

// Referrers lists the manifests that name digest as their subject, of the
// given artifact types (none: all), by the referrers API and, where a registry
// lacks it, from the referrers tag. No referrers is an empty list. A list that
// could not be read to its end is returned with the error that says why; what
// it holds is good. Whether a referrer really names the digest is to be seen
// in its manifest.
func (c *Client) Referrers(ctx context.Context, repository image.Repository, digest image.Digest, artifactTypes []string) ([]image.Descriptor, error) {
	q := question{
		op: "list referrers", method: http.MethodGet, repository: repository, endpoint: "referrers", reference: digest.String(),
		accept: []string{image.MediaTypeIndex}, most: maxManifest,
	}
	if repository.IsZero() || digest.IsZero() {
		return nil, q.fail(image.Corrupt, errors.New("the repository or the digest is empty"))
	}
	if missing, ok := c.missing.Get(repository.String()); ok && missing {
		return c.referrersTag(ctx, q, digest, artifactTypes)
	}
	if len(artifactTypes) == 1 {
		q.query = url.Values{"artifactType": artifactTypes}
	}
	list, err := c.referrerPages(ctx, q, artifactTypes)
	switch {
	case errors.Is(err, errNoReferrersAPI):
		return c.referrersTag(ctx, q, digest, artifactTypes)
	case len(artifactTypes) > 1 && kindIs(err, image.Bound):
		return c.referrersByType(ctx, q, artifactTypes)
	}
	return list, err
}

// errNoReferrersAPI says that the registry does not know the endpoint.
var errNoReferrersAPI = errors.New("the registry has no referrers API")

// referrerPages walks the pages of one list.
func (c *Client) referrerPages(ctx context.Context, q question, artifactTypes []string) ([]image.Descriptor, error) {
	found := newCollection(artifactTypes)
	seen := map[string]bool{}
	for {
		got, err := c.ask(ctx, q)
		if err != nil {
			if len(seen) == 0 && c.lacksReferrers(q, err) {
				return nil, errNoReferrersAPI
			}
			return found.list, err
		}
		if len(seen) == 0 && mediaTypeOf(got.header) != image.MediaTypeIndex {
			return nil, errNoReferrersAPI // a page of some kind: the path means nothing to it
		}
		if err := found.add(got.body); err != nil {
			return found.list, q.fail(kindOfBound(err), err)
		}
		next, err := nextPage(got.url, got.header.Values("Link"))
		if err != nil {
			return found.list, q.fail(image.Corrupt, err)
		}
		if next == nil {
			return found.list, nil
		}
		seen[got.url.String()] = true
		switch {
		case seen[next.String()]:
			return found.list, q.fail(image.Corrupt, errors.New("the pages lead in a circle"))
		case len(seen) >= maxReferrerPages:
			return found.list, q.fail(image.Bound, fmt.Errorf("the list has more than %d pages", maxReferrerPages))
		}
		q.url, q.query = next, nil
	}
}

// lacksReferrers reports whether a failure means that the API is not there,
// and remembers it for the repository. An unknown repository means nothing:
// registries with the API answer 404 for it, too.
func (c *Client) lacksReferrers(q question, err error) bool {
	code := ""
	if first, ok := errors.AsType[errcode.Errors](err); ok && len(first) > 0 {
		code = first[0].Code
	}
	switch statusOf(err) {
	case http.StatusNotFound:
		if code != errcode.ErrorCodeNameUnknown {
			c.missing.Set(q.repository.String(), true)
		}
		return true
	case http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented:
		c.missing.Set(q.repository.String(), true)
		return true
	case http.StatusBadRequest:
		return code == errcode.ErrorCodeUnsupported || code == ""
	}
	return false
}

// referrersByType asks for each type by itself, where a registry filters, so
// that a crowd of other types does not hide the wanted ones.
func (c *Client) referrersByType(ctx context.Context, q question, artifactTypes []string) ([]image.Descriptor, error) {
	var all []image.Descriptor
	var failures []error
	for _, artifactType := range artifactTypes {
		q.query = url.Values{"artifactType": {artifactType}}
		list, err := c.referrerPages(ctx, q, []string{artifactType})
		all = append(all, list...)
		failures = append(failures, err)
	}
	return all, errors.Join(failures...)
}

// referrersTag reads the index that clients keep where the API is missing.
func (c *Client) referrersTag(ctx context.Context, q question, digest image.Digest, artifactTypes []string) ([]image.Descriptor, error) {
	descriptor, body, err := c.fetch(ctx, q.op, q.repository, referrersTag(digest))
	switch {
	case kindIs(err, image.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !descriptor.IsIndex():
		return nil, q.fail(image.Corrupt, fmt.Errorf("the referrers tag holds %s, not an index", descriptor.MediaType))
	}
	found := newCollection(artifactTypes)
	if err := found.add(body); err != nil {
		return found.list, q.fail(kindOfBound(err), err)
	}
	return found.list, nil
}

// referrersTag is <algorithm>-<hex>, cut as the distribution specification has
// it: 32 and 64 characters.
func referrersTag(digest image.Digest) string {
	encoded := digest.Hex()
	return digest.Algorithm() + "-" + encoded[:min(len(encoded), 64)]
}

// collection gathers referrers of the wanted types, each once and up to a
// bound.
type collection struct {
	types []string
	seen  map[image.Digest]bool
	list  []image.Descriptor
}

func newCollection(types []string) *collection {
	return &collection{types: types, seen: map[image.Digest]bool{}}
}

// referrer is a descriptor whose digest is not believed to be one.
type referrer struct {
	MediaType    string            `json:"mediaType"`
	Digest       string            `json:"digest"`
	Size         int64             `json:"size"`
	ArtifactType string            `json:"artifactType"`
	Annotations  map[string]string `json:"annotations"`
}

// add reads one index. An entry without a usable digest names nothing and is
// left out: it must not hide the good ones beside it.
func (c *collection) add(body []byte) error {
	var parsed struct {
		Manifests []json.RawMessage `json:"manifests"`
	}
	if err := json.Unmarshal(body, &parsed); err != nil {
		return fmt.Errorf("the list of referrers is no index: %w", err)
	}
	for _, raw := range parsed.Manifests {
		var entry referrer
		if json.Unmarshal(raw, &entry) != nil {
			continue
		}
		if err := c.take(entry); err != nil {
			return err
		}
	}
	return nil
}

// take keeps one entry if it is wanted, new and usable.
func (c *collection) take(entry referrer) error {
	digest, err := image.ParseDigest(entry.Digest)
	if err != nil || entry.Size < 0 || c.seen[digest] || len(c.types) > 0 && !slices.Contains(c.types, entry.ArtifactType) {
		return nil //nolint:nilerr // what has no digest names nothing; see add
	}
	if len(c.list) == maxReferrers {
		return fmt.Errorf("%w: more than %d of the wanted types", errTooManyReferrers, maxReferrers)
	}
	c.seen[digest] = true
	c.list = append(c.list, image.Descriptor{
		MediaType: entry.MediaType, Digest: digest, Size: entry.Size,
		ArtifactType: entry.ArtifactType, Annotations: entry.Annotations,
	})
	return nil
}

// errTooManyReferrers is an image.Bound.
var errTooManyReferrers = errors.New("too many referrers")
