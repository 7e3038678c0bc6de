package layout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/strictjson"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// Layout answers a Client's requests from an OCI image layout (version 1.0.0) in a
// directory or in a tar archive, without network access. It does not distinguish
// repositories: a layout is one. A tag is the annotation
// org.opencontainers.image.ref.name, alone or as a whole reference. Set that "cosign
// save" wrote have no names and hold one image; it is found under any tag, and its
// signatures under cosign's tags. An archive of "docker save" is supported where Docker
// wrote a layout into it. Methods are safe for use by many goroutines. Close it when done.
type Layout struct {
	onlyFull   bool             // see OnlyFullNames
	repository image.Repository // see Of; zero: not set
	path       string
	files      files
	entries    index
	unlisted   *unlisted
}

const layoutHint = "name a directory, or a tar archive of one, that holds oci-layout and index.json"

// Open opens the layout at path, a directory or a tar archive, and reads
// its index.
func Open(path string) (*Layout, error) {
	files, err := openFiles(path)
	if err != nil {
		return nil, &registry.Error{Op: "open OCI layout", Host: path, Kind: kindOfFile(err), Err: err,
			Hint: layoutHint}
	}
	layout := &Layout{path: path, files: files, unlisted: newUnlisted()}
	if err := layout.readIndex(); err != nil {
		_ = files.Close()
		return nil, err
	}
	return layout, nil
}

// Close releases the directory or archive.
func (l *Layout) Close() error { return l.files.Close() }

func (l *Layout) fail(op, reference string, kind image.Kind, err error) *registry.Error {
	return &registry.Error{Op: op, Host: l.path, Reference: reference, Kind: kind, Err: err}
}

// failToOpen reports that a file of the layout cannot be read.
func (l *Layout) failToOpen(err error) *registry.Error {
	failure := l.fail("open OCI layout", "", kindOfFile(err), err)
	if failure.Kind == image.NotFound {
		failure.Hint = layoutHint
	}
	return failure
}

func (l *Layout) readIndex() error {
	marker, err := l.readFile("oci-layout", maxMarker)
	if errors.Is(err, fs.ErrNotExist) && l.isDockerArchive() {
		return l.dockerArchive()
	}
	if err != nil {
		return l.failToOpen(err)
	}
	var version struct {
		Version string `json:"imageLayoutVersion"`
	}
	if err := json.Unmarshal(marker, &version); err != nil || version.Version != "1.0.0" {
		return l.fail("open OCI layout", "", image.Corrupt, fmt.Errorf("its oci-layout names version %q, not 1.0.0", content.Shorten(version.Version)))
	}
	body, err := l.readFile("index.json", maxIndex)
	if err != nil {
		return l.failToOpen(err)
	}
	var index struct {
		Manifests []indexEntry `json:"manifests"`
	}
	if err := json.Unmarshal(body, &index); err != nil {
		return l.fail("open OCI layout", "", image.Corrupt, fmt.Errorf("its index.json: %w", strictjson.Readable(err)))
	}
	if len(index.Manifests) > maxLayoutManifests {
		return l.fail("open OCI layout", "", image.Bound, fmt.Errorf("its index.json lists more than %d manifests", maxLayoutManifests))
	}
	for _, entry := range index.Manifests {
		l.entries = append(l.entries, entry.parsed())
	}
	return l.agreesWithDocker()
}

func (l *Layout) readFile(name string, most int64) ([]byte, error) {
	file, err := l.files.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return limit.ReadAll(file, most, name)
}

// kindOfFile is the kind of a failure to read a file.
func kindOfFile(err error) image.Kind {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return image.NotFound
	case errors.Is(err, fs.ErrPermission):
		return image.Refused
	case content.KindOfBound(err) == image.Bound:
		return image.Bound
	case errors.Is(err, errNotALayout):
		return image.Corrupt
	}
	return image.Unavailable
}

// Resolve pins ref to the digest that its tag has in the layout; a digest is kept.
func (l *Layout) Resolve(_ context.Context, ref image.Ref) (image.Pinned, error) {
	if ref.IsZero() {
		return image.Pinned{}, errors.New("resolve: the reference is empty")
	}
	if !ref.Digest().IsZero() {
		return ref.Pin(image.Descriptor{Digest: ref.Digest()})
	}
	descriptor, _, err := l.manifest("resolve", ref.Repository(), ref.Tag())
	if err != nil {
		return image.Pinned{}, err
	}
	return ref.Pin(descriptor)
}

// Describe returns pinned with media type and size of its manifest.
func (l *Layout) Describe(_ context.Context, pinned image.Pinned) (image.Pinned, error) {
	known := pinned.Descriptor()
	if pinned.IsZero() || known.IsComplete() {
		return pinned, nil
	}
	found, _, err := l.manifest("describe", pinned.Repository(), known.Digest.String())
	if err != nil {
		return image.Pinned{}, err
	}
	known.MediaType, known.Size = found.MediaType, found.Size
	return pinned.Ref().Pin(known)
}

// Manifest reads the manifest at a tag or digest, at most 4 MiB, and compares
// its digest.
func (l *Layout) Manifest(_ context.Context, repository image.Repository, reference string) (image.Descriptor, []byte, error) {
	return l.manifest("read manifest", repository, reference)
}

func (l *Layout) manifest(op string, repository image.Repository, reference string) (image.Descriptor, []byte, error) {
	read := l.read
	digest, err := image.ParseDigest(reference)
	isTag := err != nil
	if isTag {
		digest, err = l.find(op, repository, reference)
		if err != nil {
			return image.Descriptor{}, nil, err
		}
		read = l.readListed
	}
	body, err := read(op, reference, digest)
	if err != nil {
		return image.Descriptor{}, nil, err
	}
	descriptor, err := content.Describe(body, l.entries.mediaType(digest, body))
	if err != nil {
		if !isTag {
			err = content.ByContent(err)
		}
		return image.Descriptor{}, nil, l.fail(op, reference, image.Corrupt, err)
	}
	descriptor.Digest = digest
	return descriptor, body, nil
}

// unread is the failure to read the file of a blob, which a manifest names: where it is not there,
// something is missing, and that is no answer that there is none.
func (l *Layout) unread(op, reference string, err error) *registry.Error {
	failure := l.fail(op, reference, kindOfFile(err), withoutPath(err))
	if failure.Kind == image.NotFound {
		failure.Kind, failure.Err, failure.Hint = image.Corrupt, errors.New("its file is not there"), "the layout is incomplete: save it again"
	}
	return failure
}

// read reads the bytes of a manifest.
func (l *Layout) read(op, reference string, digest image.Digest) ([]byte, error) {
	body, err := l.readFile(blobPath(digest), content.MaxManifest)
	if err != nil {
		return nil, l.fail(op, reference, kindOfFile(err), withoutPath(err))
	}
	if !digest.Matches(body) {
		return nil, l.fail(op, reference, image.Corrupt, fmt.Errorf("the file of %s has other content", digest))
	}
	return body, nil
}

// readListed reads the bytes of a manifest that index.json lists. Where they are not
// there, something is missing: that is no answer that there is none.
func (l *Layout) readListed(op, reference string, digest image.Digest) ([]byte, error) {
	body, err := l.read(op, reference, digest)
	if image.KindOf(err) == image.NotFound {
		failure := l.fail(op, reference, image.Corrupt, fmt.Errorf("its index.json lists %s, which is not there", digest))
		failure.Hint = "the layout is incomplete: save it again"
		return nil, failure
	}
	return body, err
}

// find returns the digest that a tag has. Two different ones are a
// contradiction.
func (l *Layout) find(op string, repository image.Repository, tag string) (image.Digest, error) {
	if !l.repository.IsZero() && repository != l.repository {
		failure := l.fail(op, tag, image.NotFound, nil)
		failure.Hint = "the layout was given for " + l.repository.String()
		return image.Digest{}, failure
	}
	var found string
	for _, entry := range l.entries {
		if !entry.hasTag(repository, tag, l.onlyFull) {
			continue
		}
		if found != "" && found != entry.Digest {
			return image.Digest{}, l.fail(op, tag, image.Corrupt, errors.New("two manifests have this tag"))
		}
		found = entry.Digest
	}
	if found == "" && !l.onlyFull {
		found = l.entries.findSaved(tag)
	}
	if found == "" {
		failure := l.fail(op, tag, image.NotFound, nil)
		failure.Hint = "the layout has " + l.entries.names()
		if l.onlyFull {
			failure.Hint += "; several repositories are asked for, so only names with their repository count"
		}
		return image.Digest{}, failure
	}
	digest, err := image.ParseDigest(found)
	if err != nil {
		return image.Digest{}, l.fail(op, tag, image.Corrupt, err)
	}
	return digest, nil
}

// OnlyFullNames returns the layout without the tags that lack a repository, for images of
// several repositories: v1 of one of them is not v1 of another. A layout with a repository
// set by Of is returned unchanged.
func (l *Layout) OnlyFullNames() *Layout {
	full := *l
	full.onlyFull = l.repository.IsZero()
	return &full
}

// Of assigns the layout to a repository: tags without a repository, and entries without a
// name, belong to that repository alone.
func (l *Layout) Of(repository image.Repository) *Layout {
	own := *l
	own.repository, own.onlyFull = repository, false
	return &own
}

// Blob reads the bytes of a descriptor, with the same checks as Client.Blob.
func (l *Layout) Blob(_ context.Context, _ image.Repository, blob image.Descriptor, most int64) ([]byte, error) {
	const op = "read blob"
	bound, err := content.BlobBound(blob, most)
	if err != nil {
		return nil, l.fail(op, blob.Digest.String(), content.KindOfBound(err), err)
	}
	body, err := l.readFile(blobPath(blob.Digest), bound)
	if err != nil {
		return nil, l.unread(op, blob.Digest.String(), err)
	}
	if err := content.CheckBlob(blob, body); err != nil {
		return nil, l.fail(op, blob.Digest.String(), image.Corrupt, err)
	}
	return body, nil
}

// Referrers lists the manifests of index.json and among the blobs that name digest as
// their subject, and those of the referrers tag. Where one that could be a referrer is
// missing or damaged, the others come with an error.
func (l *Layout) Referrers(ctx context.Context, repository image.Repository, digest image.Digest, artifactTypes []string) ([]image.Descriptor, error) {
	const op = "list referrers"
	found := content.NewReferrers(artifactTypes)
	seen := map[string]bool{digest.String(): true} // nothing refers to itself
	rest, unread := l.unlisted.about(ctx, digest, l)
	for _, entry := range slices.Concat(l.entries, rest) {
		if err := ctx.Err(); err != nil {
			return found.List(), l.fail(op, digest.String(), image.Unavailable, err)
		}
		if seen[entry.Digest] {
			continue
		}
		seen[entry.Digest] = true
		candidate, err := l.referrer(op, entry, digest)
		if err != nil && unread == nil {
			unread = err
		}
		found.Take(candidate)
	}
	_, body, err := l.manifest(op, repository, content.ReferrersTag(digest))
	switch {
	case image.KindOf(err) == image.NotFound:
	case err != nil:
		return found.List(), err
	default:
		if err := found.Add(bytes.NewReader(body)); err != nil {
			return found.List(), l.fail(op, digest.String(), image.Corrupt, err)
		}
	}
	if err := found.Err(); err != nil {
		return found.List(), l.fail(op, digest.String(), image.Bound, err)
	}
	return found.List(), unread
}

// referrer reads a manifest of the index, and returns it if it names subject. One that
// can be read and is no manifest refers to nothing.
func (l *Layout) referrer(op string, entry indexEntry, subject image.Digest) (content.Referrer, error) {
	digest, err := image.ParseDigest(entry.Digest)
	if err != nil {
		return content.Referrer{}, nil //nolint:nilerr // an entry without digest names nothing
	}
	body, err := l.readListed(op, subject.String(), digest)
	if err != nil {
		if !l.entries.mayRefer(digest) {
			err = nil
		}
		return content.Referrer{}, err
	}
	descriptor, err := content.Describe(body, l.entries.mediaType(digest, body))
	if err != nil {
		return content.Referrer{}, nil //nolint:nilerr // see above
	}
	var parsed struct {
		Subject struct {
			Digest string `json:"digest"`
		} `json:"subject"`
		Config struct {
			MediaType string `json:"mediaType"`
		} `json:"config"`
		Annotations map[string]string `json:"annotations"`
	}
	if json.Unmarshal(body, &parsed) != nil || parsed.Subject.Digest != subject.String() {
		return content.Referrer{}, nil //nolint:nilerr // see above
	}
	artifactType := descriptor.ArtifactType
	if artifactType == "" {
		artifactType = parsed.Config.MediaType
	}
	return content.Referrer{
		MediaType: descriptor.MediaType, Digest: entry.Digest, Size: descriptor.Size,
		ArtifactType: artifactType, Annotations: parsed.Annotations,
	}, nil
}

// blobPath is safe: a Digest holds an algorithm's name and hexadecimal digits.
func blobPath(digest image.Digest) string { return "blobs/" + digest.Algorithm() + "/" + digest.Hex() }
