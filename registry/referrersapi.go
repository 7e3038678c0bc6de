package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/internal/content"
	"github.com/quaymaster/quaymaster/registry/internal/memory"
)

// api is whether a registry has the referrers API, as far as earlier answers show.
type api int

const (
	apiUnknown api = iota
	apiPresent     // the referrers tag is requested only if the API turns out to be missing
	apiMissing     // only the referrers tag is requested
)

// endpointReferrers is the API.
const endpointReferrers = "referrers"

// errNoReferrersAPI is the result of a registry that lacks the endpoint.
var errNoReferrersAPI = errors.New("the registry has no referrers API")

// apis caches whether hosts and repositories have the referrers API, by apiOf and hostOf.
type apis struct{ known *memory.Map[bool] }

func newAPIs() apis { return apis{memory.New[bool](maxMissing, missingAge)} }

// of returns the cached result. Only answers about this repository show that the API
// is missing: a host may serve repositories of several kinds. Its presence saves a request
// and decides nothing, so an answer about any repository of the host suffices.
func (a apis) of(q request) api {
	present, known := a.known.Get(apiOf(q))
	switch {
	case known && !present:
		return apiMissing
	case known:
		return apiPresent
	}
	if present, _ := a.known.Get(hostOf(q)); present {
		return apiPresent
	}
	return apiUnknown
}

// learn caches the result of an answer. On a host where one repository lacks the API,
// its presence is cached for single repositories, so that the others still take one round
// trip.
func (a apis) learn(q request, present bool) {
	if !present {
		a.known.Set(apiOf(q), false)
		a.known.Set(hostOf(q), false)
		return
	}
	key := hostOf(q)
	if onHost, known := a.known.Get(key); known && !onHost {
		key = apiOf(q)
	}
	a.known.Set(key, true)
}

// apiOf is the cache key of a repository. The algorithm is part of it, since a registry may
// have the API for one algorithm only.
func apiOf(q request) string { return q.repository.String() + "@" + algorithmOf(q) }

// hostOf is the cache key of a host. It differs from every apiOf, which has a slash.
func hostOf(q request) string { return q.repository.Registry() + "@" + algorithmOf(q) }

func algorithmOf(q request) string {
	algorithm, _, _ := strings.Cut(q.reference, ":")
	return algorithm
}

// isMissing reports whether a failure means that the API is not there, as the
// distribution specification defines it, and caches that where the registry does not serve
// the path. An answer with a code about the repository or the digest is one of the API's:
// registries with it answer 404 for what was never pushed, and a request for such a digest
// must not hide the referrers of the next one.
func (a apis) isMissing(q request, err error) bool {
	code := ""
	if first, _ := errors.AsType[errcode.Errors](err); len(first) > 0 {
		code = first[0].Code
	}
	lacks := false
	switch statusOf(err) {
	case http.StatusNotFound, http.StatusGone, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented:
		lacks = true
		if code == "" || code == errcode.ErrorCodeUnsupported {
			a.learn(q, false)
		}
	case http.StatusBadRequest:
		lacks = code == errcode.ErrorCodeUnsupported || code == ""
	}
	return lacks
}

// pendingTag is a request for the manifest at a referrers tag, in parallel with one for the
// API. Its result counts only if the API is missing: a user with push access writes the tag,
// and where the API exists the tag neither adds nor replaces anything.
type pendingTag struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when the fields below are set

	descriptor image.Descriptor
	body       []byte
	err        error
}

// errNoSeat: a request that may prove needless did not wait for a seat.
var errNoSeat = errors.New("all seats of the host are taken, and the request may not be needed")

// needlessKey marks the context of a request that may prove needless. It takes a seat that is free
// at once or none: the seats belong to requests that are needed.
type needlessKey struct{}

// requestTag starts the request, so that a registry without the API costs no further round.
func (c *Client) requestTag(ctx context.Context, q request, digest image.Digest) *pendingTag {
	ctx, cancel := context.WithCancel(ctx)
	tag := &pendingTag{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(tag.done)
		tag.descriptor, tag.body, tag.err = c.fetch(ctx, q.op, q.repository, content.ReferrersTag(digest))
	}()
	return tag
}

// end stops the request. It waits a moment first: the answer is usually there, and cancelling
// a request over HTTP/1.1 closes a connection that the next request would reuse.
func (t *pendingTag) end() {
	timer := time.NewTimer(tagGrace)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
	}
	t.cancel()
	<-t.done // the request honours its context
}

// referrersTag reads the index that clients keep where the API is missing, from the pending
// request for it if there is one.
func (c *Client) referrersTag(ctx context.Context, q request, digest image.Digest, tag *pendingTag, artifactTypes []string) ([]image.Descriptor, error) {
	if tag != nil {
		<-tag.done
	}
	if tag == nil || errors.Is(tag.err, errNoSeat) {
		tag = c.requestTag(ctx, q, digest)
		defer tag.end()
	}
	<-tag.done
	switch {
	case kindIs(tag.err, image.NotFound):
		return nil, nil
	case tag.err != nil:
		return nil, tag.err
	case !tag.descriptor.IsIndex():
		return nil, q.fail(image.Corrupt, fmt.Errorf("the referrers tag holds %s, not an index", tag.descriptor.MediaType))
	}
	found := referrerPages{Referrers: content.NewReferrers(artifactTypes)}
	if err := found.Add(bytes.NewReader(tag.body)); err != nil {
		return found.List(), q.fail(image.Corrupt, err)
	}
	return found.List(), found.end(q)
}
