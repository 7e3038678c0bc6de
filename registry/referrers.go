package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// Referrers lists the manifests that name digest as their subject, of the given artifact
// types (none: all), by the referrers API and, where a registry lacks it, from the
// referrers tag. No referrers is an empty list. An incomplete list is returned with the
// error; its entries are valid. Callers must check in its manifest that a referrer really
// names the digest.
func (c *Client) Referrers(ctx context.Context, repository image.Repository, digest image.Digest, artifactTypes []string) ([]image.Descriptor, error) {
	q := question{
		op: "list referrers", method: http.MethodGet, repository: repository, endpoint: endpointReferrers, reference: digest.String(),
		accept: []string{image.MediaTypeIndex}, most: maxReferrersList,
	}
	if repository.IsZero() || digest.IsZero() {
		return nil, q.fail(image.Corrupt, errors.New("the repository or the digest is empty"))
	}
	var tag *pendingTag
	switch c.knownAPI(q) {
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
	case len(artifactTypes) > 1 && kindIs(err, image.Bound) && !errors.Is(err, errTooManyReferrers):
		return c.referrersByType(ctx, q, artifactTypes, found.list)
	}
	return found.list, err
}

// referrerPages follows the pages of one list, and reads each as a stream: any user with
// push access controls the size of the entries.
func (c *Client) referrerPages(ctx context.Context, q question, artifactTypes []string) (*collection, error) {
	found := newCollection(artifactTypes)
	seen := map[string]bool{}
	for {
		isIndex := true
		q.take = func(header http.Header, body io.Reader) error {
			isIndex = mediaTypeOf(header) == image.MediaTypeIndex
			if !isIndex {
				return nil
			}
			found.isFiltered = filters(header)
			found.entry = min(maxReferrerEntry, q.most/4)
			return found.add(body)
		}
		got, err := c.ask(ctx, q)
		if err != nil {
			if len(seen) == 0 && c.lacksReferrers(q, err) {
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
			c.learnAPI(q, true)
		}
		q.most -= got.read
		next, err := nextPage(got.url, got.header.Values("Link"))
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
func (c *Client) referrersByType(ctx context.Context, q question, artifactTypes []string, all []image.Descriptor) ([]image.Descriptor, error) {
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
		for _, d := range found.list {
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

// collection gathers referrers of the wanted types, each once, and of each type
// up to a bound of its own, so that no type crowds out another.
type collection struct {
	types []string
	seen  map[image.Digest]bool
	count map[string]int // by wanted type; "" where all are wanted
	full  string         // a type of which there are more, for the message
	isCut bool
	entry int64 // the most bytes of one
	list  []image.Descriptor

	isFiltered bool // of the page read last
}

func newCollection(types []string) *collection {
	return &collection{types: types, entry: maxReferrerEntry, seen: map[image.Digest]bool{}, count: map[string]int{}}
}

// end is the failure of a list that was read to its end, and was too long.
func (c *collection) end(q question) error {
	if !c.isCut {
		return nil
	}
	return q.fail(image.Bound, c.tooMany())
}

func (c *collection) tooMany() error {
	return fmt.Errorf("%w: more than %d of type %q", errTooManyReferrers, maxReferrers, shorten(c.full))
}

// referrer is a descriptor with an unchecked digest.
type referrer struct {
	MediaType    string            `json:"mediaType"`
	Digest       string            `json:"digest"`
	Size         int64             `json:"size"`
	ArtifactType string            `json:"artifactType"`
	Annotations  map[string]string `json:"annotations"`
}

// add reads one index, of which it holds one entry at a time. An entry without a usable
// digest names nothing and is left out: it must not hide the valid ones. Entries read
// before a failure stay.
func (c *collection) add(body io.Reader) error {
	from := &paced{from: body, most: c.entry}
	decoder := json.NewDecoder(from)
	from.taken = decoder.InputOffset
	if err := expect(decoder, '{'); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return noIndex(err)
		}
		if name != "manifests" {
			var skipped json.RawMessage
			if err := decoder.Decode(&skipped); err != nil {
				return noIndex(err)
			}
			continue
		}
		if err := c.entries(decoder); err != nil {
			return err
		}
	}
	if err := expect(decoder, '}'); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return noIndex(cmp.Or(err, errors.New("more bytes follow")))
	}
	return nil
}

// paced reads a list for json.Decoder, which buffers incomplete values. It bounds the
// buffer, with a lower bound for white space alone. After each read it yields to other
// goroutines: a megabyte is milliseconds of work.
type paced struct {
	from  io.Reader
	most  int64
	read  int64
	blank int64        // of white space at the end of the input so far
	taken func() int64 // up to where the decoder has come
}

// Read implements io.Reader.
func (r *paced) Read(p []byte) (int, error) {
	kept := r.read - r.taken()
	switch {
	case kept > r.most:
		return 0, &limit.ExceededError{What: "an entry of the list", Most: r.most}
	case kept > maxBlank && r.blank >= kept: // not within a string
		return 0, &limit.ExceededError{What: "the white space in the list", Most: maxBlank}
	}
	runtime.Gosched()
	n, err := r.from.Read(p[:min(len(p), maxBlank)])
	r.read += int64(n)
	r.blank += int64(n)
	if text := bytes.TrimRight(p[:n], " \t\r\n"); len(text) > 0 {
		r.blank = int64(n - len(text))
	}
	return n, err
}

// entries reads the list of an index, which may be null.
func (c *collection) entries(decoder *json.Decoder) error {
	open, err := decoder.Token()
	switch {
	case err != nil:
		return noIndex(err)
	case open == nil:
		return nil
	case open != json.Delim('['):
		return noIndex(errors.New("its manifests are no list"))
	}
	for decoder.More() {
		var entry referrer
		err := decoder.Decode(&entry)
		if _, odd := errors.AsType[*json.UnmarshalTypeError](err); odd {
			continue // it was read to its end all the same
		}
		if err != nil {
			return noIndex(err)
		}
		c.take(entry)
	}
	return expect(decoder, ']')
}

func expect(decoder *json.Decoder, want json.Delim) error {
	got, err := decoder.Token()
	if err == nil && got != want {
		err = fmt.Errorf("it has %v in place of %v", got, want)
	}
	if err != nil {
		return noIndex(err)
	}
	return nil
}

func noIndex(err error) error { return fmt.Errorf("the list of referrers is no index: %w", err) }

// take keeps one entry if it is wanted, new and usable.
func (c *collection) take(entry referrer) {
	digest, err := image.ParseDigest(entry.Digest)
	if err != nil || entry.Size < 0 || c.seen[digest] || len(c.types) > 0 && !slices.Contains(c.types, entry.ArtifactType) {
		return // an entry without digest names nothing; see add
	}
	kind := ""
	if len(c.types) > 0 {
		kind = entry.ArtifactType
	}
	if c.count[kind] == maxReferrers {
		c.isCut, c.full = true, kind
		return
	}
	c.count[kind]++
	c.seen[digest] = true
	c.list = append(c.list, image.Descriptor{
		MediaType: strings.Clone(cut(entry.MediaType)), Digest: digest, Size: entry.Size,
		ArtifactType: strings.Clone(cut(entry.ArtifactType)), Annotations: keep(entry.Annotations),
	})
}

// cut shortens a type that is none: types have at most 255 characters.
func cut(mediaType string) string { return mediaType[:min(len(mediaType), 256)] }

// keep returns the annotations that identify a referrer before it is opened; others may be
// large, and are in its manifest.
func keep(annotations map[string]string) map[string]string {
	var kept map[string]string
	for _, key := range []string{"dev.sigstore.bundle.content", "dev.sigstore.bundle.predicateType"} {
		if value, ok := annotations[key]; ok && len(value) <= maxAnnotation {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// errTooManyReferrers is an image.Bound.
var errTooManyReferrers = errors.New("too many referrers")
