package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/internal/content"
	"github.com/quaymaster/quaymaster/registry/internal/guard"
)

// Referrers lists the manifests that name digest as their subject, of the given artifact
// types (none: all), by the referrers API and, where a registry lacks it, from the
// referrers tag. No referrers is an empty list. An incomplete list is returned with the
// error; its entries are valid. Callers must check in its manifest that a referrer really
// names the digest.
func (c *Client) Referrers(ctx context.Context, repository image.Repository, digest image.Digest, artifactTypes []string) ([]image.Descriptor, error) {
	q := request{
		op: "list referrers", method: http.MethodGet, repository: repository, endpoint: endpointReferrers, reference: digest.String(),
		accept: []string{image.MediaTypeIndex}, most: maxReferrersList,
	}
	if repository.IsZero() || digest.IsZero() {
		return nil, q.fail(image.Corrupt, errors.New("the repository or the digest is empty"))
	}
	var tag *pendingTag
	switch c.apis.of(q) {
	case apiMissing:
		return c.referrersTag(ctx, q, digest, nil, artifactTypes)
	case apiUnknown:
		tag = c.requestTag(context.WithValue(ctx, needlessKey{}, true), q, digest)
		defer tag.end()
	}
	if len(artifactTypes) == 1 {
		q.query = url.Values{"artifactType": artifactTypes}
	}
	found, err := c.referrerPages(ctx, q, artifactTypes)
	switch {
	case errors.Is(err, errNoReferrersAPI):
		return c.referrersTag(ctx, q, digest, tag, artifactTypes)
	case len(artifactTypes) > 1 && kindIs(err, image.Bound) && !errors.Is(err, content.ErrTooManyReferrers):
		return c.referrersByType(ctx, q, artifactTypes, found.List())
	}
	return found.List(), err
}

// referrerPages are the referrers of the pages of one list.
type referrerPages struct {
	*content.Referrers
	isFiltered bool // of the page read last
}

// end is the failure of a list that was read to its end, and was too long.
func (p referrerPages) end(q request) error {
	if err := p.Err(); err != nil {
		return q.fail(image.Bound, err)
	}
	return nil
}

// referrerPages follows the pages of one list, and reads each as a stream: any user with
// push access controls the size of the entries.
func (c *Client) referrerPages(ctx context.Context, q request, artifactTypes []string) (referrerPages, error) {
	found := referrerPages{Referrers: content.NewReferrers(artifactTypes)}
	seen := map[string]bool{}
	for {
		isIndex := true
		q.take = func(header http.Header, body io.Reader) error {
			isIndex = mediaTypeOf(header) == image.MediaTypeIndex
			if !isIndex {
				return nil
			}
			found.isFiltered = filters(header)
			found.BoundEntry(q.most / 4)
			return found.Add(body)
		}
		got, err := c.send(ctx, q)
		if err != nil {
			if len(seen) == 0 && c.apis.isMissing(q, err) {
				return found, errNoReferrersAPI
			}
			if failure, ok := errors.AsType[*Error](err); ok && failure.Kind == image.NotFound {
				failure.Kind = image.Unavailable // the list is there, and a page of it is not: it is not read to its end
			}
			return found, err
		}
		if len(seen) == 0 && !isIndex {
			return found, errNoReferrersAPI // a page of some kind: the path means nothing to it
		}
		if !isIndex {
			return found, q.fail(image.Corrupt, errors.New("a later page is no index"))
		}
		if len(seen) == 0 {
			c.apis.learn(q, true)
		}
		q.most -= got.read
		next, err := guard.NextPage(got.url, got.header.Values("Link"))
		if err != nil {
			return found, q.fail(image.Corrupt, err)
		}
		if next == nil {
			return found, found.end(q)
		}
		seen[got.url.String()] = true
		switch {
		case seen[next.String()]:
			return found, q.fail(image.Corrupt, errors.New("the pages lead in a circle"))
		case len(seen) >= maxReferrerPages:
			return found, q.fail(image.Bound, fmt.Errorf("the list has more than %d pages", maxReferrerPages))
		}
		q.url, q.query = next, nil
	}
}

// filters reports whether a list holds only the requested type, which a registry declares
// in a header (distribution specification 1.1, "Listing Referrers").
func filters(header http.Header) bool {
	return slices.ContainsFunc(header.Values("OCI-Filters-Applied"), func(applied string) bool {
		return slices.ContainsFunc(strings.Split(applied, ","), func(filter string) bool { return strings.TrimSpace(filter) == "artifactType" })
	})
}

// referrersByType requests each type by itself, so that many referrers of other types do
// not hide the wanted ones. It does so only at a registry that filters: elsewhere each
// list is the same again, with no end. Entries found before stay.
func (c *Client) referrersByType(ctx context.Context, q request, artifactTypes []string, all []image.Descriptor) ([]image.Descriptor, error) {
	known := map[image.Digest]bool{}
	for _, d := range all {
		known[d.Digest] = true
	}
	var failures []error
	for _, artifactType := range artifactTypes {
		if artifactType == "" {
			continue // nothing to filter by; the API lists no image manifest without a type
		}
		q.query, q.most = url.Values{"artifactType": {artifactType}}, maxReferrersOfType
		found, err := c.referrerPages(ctx, q, []string{artifactType})
		for _, d := range found.List() {
			if !known[d.Digest] {
				known[d.Digest] = true
				all = append(all, d)
			}
		}
		failures = append(failures, err)
		if kindIs(err, image.Bound) && !found.isFiltered {
			break
		}
	}
	return all, errors.Join(failures...)
}
