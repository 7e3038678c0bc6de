package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// Artifact is a document about a manifest, as Push stores it.
type Artifact struct {
	// Subject is the artifact's subject, with media type and size. The registry need not have
	// it.
	Subject image.Descriptor
	// Type is the artifact's type, by which it is found, and the media type of its
	// content.
	Type string
	// Content is at most 4 MiB.
	Content []byte
	// Annotations of the manifest; may be nil.
	Annotations map[string]string
}

// The operations on a document, as in Error.Op.
const (
	opPush  = "push"
	opStart = "begin an upload to"
	opList  = "add to the list of referrers of"
)

// Push stores an artifact as a referrer of its subject, and returns its manifest. Content
// that the registry has is not sent again, so Push is idempotent. Where the registry has
// no referrers API, Push updates the list at the referrers tag as the distribution
// specification asks of clients; entries of others stay.
//
// Everything goes to the registry's own host: an upload that is redirected to another host
// is refused.
func (c *Client) Push(ctx context.Context, repository image.Repository, artifact Artifact) (image.Descriptor, error) {
	q := request{op: opPush, repository: repository, reference: artifact.Subject.Digest.String()}
	switch {
	case repository.IsZero() || artifact.Subject.Digest.IsZero() || !artifact.Subject.IsComplete() || artifact.Type == "":
		return image.Descriptor{}, q.fail(image.Corrupt, errors.New("the repository, the type or a part of the subject is empty"))
	case len(artifact.Content) > maxPushed:
		return image.Descriptor{}, q.fail(image.Bound, &limit.ExceededError{What: "the document", Most: maxPushed})
	}
	body, manifest, err := artifact.manifest()
	if err != nil {
		return image.Descriptor{}, q.fail(image.Corrupt, err)
	}
	for _, body := range [][]byte{emptyConfig, artifact.Content} {
		if err := c.putBlob(ctx, repository, body); err != nil {
			return image.Descriptor{}, err
		}
	}
	header, err := c.putManifest(ctx, request{op: opPush, repository: repository, reference: manifest.Digest.String(), body: body, bodyType: manifest.MediaType})
	if err != nil {
		return image.Descriptor{}, err
	}
	if kept, err := image.ParseDigest(header.Get("OCI-Subject")); err == nil && kept == artifact.Subject.Digest {
		return manifest, nil
	}
	return manifest, c.enlist(ctx, repository, artifact.Subject.Digest, manifest)
}

// emptyConfig is the configuration of an artifact without one (OCI image specification
// 1.1, guidance for artifacts).
var emptyConfig = []byte("{}")

const mediaTypeEmpty = "application/vnd.oci.empty.v1+json"

// manifest is the artifact's manifest, and the descriptor by which lists name it.
func (a Artifact) manifest() ([]byte, image.Descriptor, error) {
	subject := image.Descriptor{MediaType: a.Subject.MediaType, Digest: a.Subject.Digest, Size: a.Subject.Size}
	body, err := json.Marshal(struct {
		SchemaVersion int                `json:"schemaVersion"`
		MediaType     string             `json:"mediaType"`
		ArtifactType  string             `json:"artifactType"`
		Config        image.Descriptor   `json:"config"`
		Layers        []image.Descriptor `json:"layers"`
		Subject       image.Descriptor   `json:"subject"`
		Annotations   map[string]string  `json:"annotations,omitempty"`
	}{
		2, image.MediaTypeManifest, a.Type, describeBytes(mediaTypeEmpty, emptyConfig),
		[]image.Descriptor{describeBytes(a.Type, a.Content)}, subject, a.Annotations,
	})
	if err != nil {
		return nil, image.Descriptor{}, err
	}
	d := describeBytes(image.MediaTypeManifest, body)
	d.ArtifactType, d.Annotations = a.Type, a.Annotations
	return body, d, nil
}

func describeBytes(mediaType string, body []byte) image.Descriptor {
	return image.Descriptor{MediaType: mediaType, Digest: image.DigestOf(body), Size: int64(len(body))}
}

// putBlob stores a blob that is not there yet, in one piece.
func (c *Client) putBlob(ctx context.Context, repository image.Repository, body []byte) error {
	digest := image.DigestOf(body)
	q := request{op: "look for blob", method: http.MethodHead, repository: repository, endpoint: "blobs", reference: digest.String()}
	if _, err := c.send(ctx, q); !kindIs(err, image.NotFound) {
		return err // nil where it is there
	}
	begin := request{op: opStart, method: http.MethodPost, repository: repository, endpoint: "blobs/uploads", most: maxErrorBody}
	begun, err := c.send(ctx, begin)
	if err != nil {
		return err
	}
	end := request{
		op: opPush, method: http.MethodPut, repository: repository, endpoint: "blobs", reference: digest.String(),
		body: body, bodyType: "application/octet-stream", most: maxErrorBody,
	}
	end.url, err = uploadAddress(begun.url, begun.header.Get("Location"), digest)
	if err != nil {
		failure := end.fail(image.Corrupt, err)
		failure.Hint = "the registry must take uploads at its own host"
		return failure
	}
	ended, err := c.send(ctx, end)
	if err != nil {
		return err
	}
	if said := ended.header.Get("Docker-Content-Digest"); said != "" && said != digest.String() {
		return end.fail(image.Corrupt, fmt.Errorf("it kept %s", content.Shorten(said)))
	}
	return nil
}

// uploadAddress is the URL at which an upload that was begun at from continues: the same
// host and port, the same scheme (a registry behind a TLS-terminating proxy may report the
// wrong one), and the registry's own query unchanged.
func uploadAddress(from *url.URL, location string, digest image.Digest) (*url.URL, error) {
	if location == "" {
		return nil, errors.New("it does not say where the upload goes on")
	}
	next, err := from.Parse(location)
	if err != nil {
		return nil, errors.New("its upload location is no address")
	}
	if next.User != nil || next.Host != from.Host && address(next) != address(from) {
		return nil, fmt.Errorf("it leads the upload to another host, %s", content.Shorten(next.Host))
	}
	if next.Scheme != "https" && next.Scheme != "http" {
		return nil, fmt.Errorf("it leads the upload to the scheme %q", content.Shorten(next.Scheme))
	}
	next.Scheme, next.Host, next.Fragment, next.RawFragment = from.Scheme, from.Host, "", ""
	if next.RawQuery != "" {
		next.RawQuery += "&"
	}
	next.RawQuery += "digest=" + url.QueryEscape(digest.String())
	return next, nil
}

// putManifest stores the body of q under its reference, and returns the header of the response.
func (c *Client) putManifest(ctx context.Context, q request) (http.Header, error) {
	q.method, q.endpoint, q.most = http.MethodPut, "manifests", maxErrorBody
	got, err := c.send(ctx, q)
	if err != nil {
		return nil, err
	}
	if said := got.header.Get("Docker-Content-Digest"); said != "" && said != image.DigestOf(q.body).String() {
		return nil, q.fail(image.Corrupt, fmt.Errorf("it kept %s in place of %s", content.Shorten(said), image.DigestOf(q.body)))
	}
	return got.header, nil
}

// enlist adds a manifest to the list at the subject's referrers tag. The tag cannot be
// locked: the list is read again, and if another client's write removed the manifest, it
// is added again.
func (c *Client) enlist(ctx context.Context, repository image.Repository, subject image.Digest, manifest image.Descriptor) error {
	tag := content.ReferrersTag(subject)
	q := request{op: opList, repository: repository, reference: subject.String()}
	for attempt := 0; ; attempt++ {
		known, body, err := c.fetch(ctx, opList, repository, tag)
		switch {
		case kindIs(err, image.NotFound):
		case err != nil:
			return err
		case known.MediaType != image.MediaTypeIndex:
			return q.fail(image.Corrupt, fmt.Errorf("the referrers tag holds %s, no index; remove or move it", known.MediaType))
		}
		list, there, err := enlisted(body, manifest)
		switch {
		case err != nil:
			return q.fail(image.Corrupt, err)
		case there:
			return nil
		case attempt == maxEnlistings:
			failure := q.fail(image.Unavailable, errors.New("others write to it at the same time"))
			failure.Hint = "push again"
			return failure
		case len(list) > content.MaxManifest:
			return q.fail(image.Bound, &limit.ExceededError{What: "the list", Most: content.MaxManifest})
		}
		if _, err := c.putManifest(ctx, request{op: opList, repository: repository, reference: tag, body: list, bodyType: image.MediaTypeIndex}); err != nil {
			return err
		}
	}
}

// enlisted returns the index with the manifest in it, and whether it was there before.
// Everything else in it stays as it is. No index is an empty one.
func enlisted(index []byte, manifest image.Descriptor) (list []byte, there bool, err error) {
	members := map[string]json.RawMessage{
		"schemaVersion": json.RawMessage("2"), "mediaType": json.RawMessage(`"` + image.MediaTypeIndex + `"`),
	}
	var entries []json.RawMessage
	if len(index) > 0 {
		if err := json.Unmarshal(index, &members); err != nil {
			return nil, false, fmt.Errorf("the referrers tag holds no index: %w", err)
		}
		if members == nil {
			return nil, false, errors.New("the referrers tag holds null, no index")
		}
		if raw := members["manifests"]; raw != nil {
			if err := json.Unmarshal(raw, &entries); err != nil {
				return nil, false, fmt.Errorf("the list of referrers: %w", err)
			}
		}
	}
	for _, entry := range entries {
		var known struct{ Digest string }
		if json.Unmarshal(entry, &known) == nil && known.Digest == manifest.Digest.String() {
			return index, true, nil
		}
	}
	added, err := json.Marshal(manifest)
	if err != nil {
		return nil, false, err
	}
	members["manifests"], err = json.Marshal(append(entries, added))
	if err != nil {
		return nil, false, err
	}
	list, err = json.Marshal(members)
	return list, false, err
}
