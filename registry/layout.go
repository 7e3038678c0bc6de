package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// Layout answers a Client's requests from an OCI image layout (version 1.0.0) in a
// directory or in a tar archive, without network access. It does not distinguish
// repositories: a layout is one. A tag is the annotation
// org.opencontainers.image.ref.name, alone or as a whole reference. Layouts that "cosign
// save" wrote have no names and hold one image; it is found under any tag, and its
// signatures under cosign's tags. An archive of "docker save" is supported where Docker
// wrote a layout into it. Methods are safe for use by many goroutines. Close it when done.
type Layout struct {
	onlyFull   bool             // see OnlyFullNames
	repository image.Repository // see Of; zero: not set
	path       string
	files      files
	entries    []layoutEntry
}

// layoutEntry is a descriptor in index.json.
type layoutEntry struct {
	MediaType    string            `json:"mediaType"`
	Digest       string            `json:"digest"`
	Size         int64             `json:"size"`
	ArtifactType string            `json:"artifactType"`
	Annotations  map[string]string `json:"annotations"`
	Platform     struct {
		Architecture string `json:"architecture"`
	} `json:"platform"`

	refs []image.Ref // see parsed
}

// Annotations by which a layout names its content.
const (
	annotationRefName   = "org.opencontainers.image.ref.name"
	annotationImageName = "io.containerd.image.name"
	annotationKind      = "kind"

	kindImage = "dev.cosignproject.cosign/image"
	kindIndex = "dev.cosignproject.cosign/imageIndex"
	kindSigs  = "dev.cosignproject.cosign/sigs"
	kindAtts  = "dev.cosignproject.cosign/atts"
)

// OpenLayout opens the layout at path, a directory or a tar archive, and reads
// its index.
func OpenLayout(path string) (*Layout, error) {
	files, err := openFiles(path)
	if err != nil {
		return nil, &Error{Op: "open OCI layout", Host: path, Kind: kindOfFile(err), Err: err,
			Hint: "name a directory, or a tar archive of one, that holds oci-layout and index.json"}
	}
	layout := &Layout{path: path, files: files}
	if err := layout.readIndex(); err != nil {
		_ = files.Close()
		return nil, err
	}
	return layout, nil
}

// Close releases the directory or archive.
func (l *Layout) Close() error { return l.files.Close() }

func (l *Layout) fail(op, reference string, kind image.Kind, err error) *Error {
	return &Error{Op: op, Host: l.path, Reference: reference, Kind: kind, Err: err}
}

func (l *Layout) readIndex() error {
	marker, err := l.readFile("oci-layout", maxErrorBody)
	if errors.Is(err, fs.ErrNotExist) && l.isDockerArchive() {
		return l.dockerArchive()
	}
	if err != nil {
		return l.fail("open OCI layout", "", kindOfFile(err), err)
	}
	var version struct {
		Version string `json:"imageLayoutVersion"`
	}
	if err := json.Unmarshal(marker, &version); err != nil || version.Version != "1.0.0" {
		return l.fail("open OCI layout", "", image.Corrupt, fmt.Errorf("its oci-layout names version %q, not 1.0.0", shorten(version.Version)))
	}
	body, err := l.readFile("index.json", maxIndex)
	if err != nil {
		return l.fail("open OCI layout", "", kindOfFile(err), err)
	}
	var index struct {
		Manifests []layoutEntry `json:"manifests"`
	}
	if err := json.Unmarshal(body, &index); err != nil {
		return l.fail("open OCI layout", "", image.Corrupt, fmt.Errorf("its index.json: %w", err))
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
	case kindOfBound(err) == image.Bound:
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
	descriptor, _, err := l.manifest(opResolve, ref.Repository(), ref.Tag())
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
	found, _, err := l.manifest(opDescribe, pinned.Repository(), known.Digest.String())
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
	if err != nil {
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
	descriptor, err := describe(body, l.mediaType(digest, body))
	if err != nil {
		return image.Descriptor{}, nil, l.fail(op, reference, image.Corrupt, err)
	}
	descriptor.Digest = digest
	return descriptor, body, nil
}

// read reads the bytes of a manifest.
func (l *Layout) read(op, reference string, digest image.Digest) ([]byte, error) {
	body, err := l.readFile(blobPath(digest), maxManifest)
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
	if kindIs(err, image.NotFound) {
		failure := l.fail(op, reference, image.Corrupt, fmt.Errorf("its index.json lists %s, which is not there", digest))
		failure.Hint = "the layout is incomplete: save it again"
		return nil, failure
	}
	return body, err
}

// mediaType is the type from a manifest's entry in the index, else the type detected from
// its content: a layout has no headers, and the field inside is optional in OCI.
func (l *Layout) mediaType(digest image.Digest, body []byte) string {
	for _, entry := range l.entries {
		if entry.Digest == digest.String() && slices.Contains(manifestTypes, entry.MediaType) {
			return entry.MediaType
		}
	}
	var parsed outline
	switch err := json.Unmarshal(body, &parsed); {
	case err != nil || parsed.MediaType != "":
		return ""
	case parsed.Manifests != nil:
		return image.MediaTypeIndex
	case parsed.Config != nil:
		return image.MediaTypeManifest
	}
	return ""
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
		found = l.findSaved(tag)
	}
	if found == "" {
		failure := l.fail(op, tag, image.NotFound, nil)
		failure.Hint = "the layout has " + l.names()
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

// names are the names of an entry: a tag, or a whole reference.
func (e layoutEntry) names() []string {
	var names []string
	for _, key := range []string{annotationRefName, annotationImageName} {
		if name := e.Annotations[key]; name != "" {
			names = append(names, name)
		}
	}
	return names
}

// parsed returns the entry with those of its names that are whole references, parsed
// once and not for each tag that is looked for.
func (e layoutEntry) parsed() layoutEntry {
	for _, name := range e.names() {
		if ref, err := image.Parse(name); err == nil && strings.ContainsAny(name, "/:") {
			e.refs = append(e.refs, ref)
		}
	}
	return e
}

// hasTag reports whether an entry is named by tag, or by the whole reference.
func (e layoutEntry) hasTag(repository image.Repository, tag string, onlyFull bool) bool {
	isTag := tag != "" && (e.Annotations[annotationRefName] == tag || e.Annotations[annotationImageName] == tag)
	if isTag && (!onlyFull || strings.HasPrefix(tag, "sha256-")) { // cosign's tags name a digest
		return true
	}
	return slices.ContainsFunc(e.refs, func(ref image.Ref) bool { return ref.Repository() == repository && ref.Tag() == tag })
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

// findSaved finds the content of "cosign save": the one image under any tag that is not
// one of cosign's, and its signatures and attestations under those.
func (l *Layout) findSaved(tag string) string {
	saved := ""
	for _, entry := range l.entries {
		if kind := entry.Annotations[annotationKind]; kind == kindImage || kind == kindIndex {
			if saved != "" || len(entry.names()) > 0 {
				return ""
			}
			saved = entry.Digest
		}
	}
	stem, isCosign := strings.CutPrefix(tag, "sha256-")
	if !isCosign {
		return saved
	}
	for suffix, kind := range map[string]string{".sig": kindSigs, ".att": kindAtts} {
		if "sha256:"+strings.TrimSuffix(stem, suffix) == saved && strings.HasSuffix(stem, suffix) {
			return l.ofKind(kind)
		}
	}
	return ""
}

// mayRefer reports whether a manifest that cannot be read could name a subject.
func (l *Layout) mayRefer(digest image.Digest) bool {
	return !slices.ContainsFunc(l.entries, func(entry layoutEntry) bool { return entry.Digest == digest.String() && !entry.mayRefer() })
}

// mayRefer reports whether an entry may be a referrer: it is a manifest by its type, or
// has no type, and nothing marks it as an image, of which a layout need not have all
// platforms. Named entries are found by their names.
func (e layoutEntry) mayRefer() bool {
	kind, architecture := e.Annotations[annotationKind], e.Platform.Architecture
	isImage := kind == kindImage || kind == kindIndex || len(e.names()) > 0 || architecture != "" && architecture != "unknown"
	return !isImage && (e.MediaType == "" || slices.Contains(manifestTypes, e.MediaType))
}

func (l *Layout) ofKind(kind string) string {
	for _, entry := range l.entries {
		if entry.Annotations[annotationKind] == kind {
			return entry.Digest
		}
	}
	return ""
}

// names lists some tags, for a message.
func (l *Layout) names() string {
	const most = 5
	var names []string
	for _, entry := range l.entries {
		if name := entry.Annotations[annotationRefName]; name != "" && len(names) < most {
			names = append(names, shorten(name))
		}
	}
	if len(names) == 0 {
		return "no tags: name the image by its digest"
	}
	return "the tags " + strings.Join(names, ", ")
}

// Blob reads the bytes of a descriptor, with the same checks as Client.Blob.
func (l *Layout) Blob(_ context.Context, _ image.Repository, blob image.Descriptor, most int64) ([]byte, error) {
	const op = "read blob"
	bound, err := blobBound(blob, most)
	if err != nil {
		return nil, l.fail(op, blob.Digest.String(), kindOfBound(err), err)
	}
	body, err := l.readFile(blobPath(blob.Digest), bound)
	if err != nil {
		return nil, l.fail(op, blob.Digest.String(), kindOfFile(err), withoutPath(err))
	}
	if err := checkBlob(blob, body); err != nil {
		return nil, l.fail(op, blob.Digest.String(), image.Corrupt, err)
	}
	return body, nil
}

// Referrers lists the manifests of index.json that name digest as their
// subject, and those of the referrers tag. Where one that could be a referrer is
// missing or damaged, the others come with an error.
func (l *Layout) Referrers(ctx context.Context, repository image.Repository, digest image.Digest, artifactTypes []string) ([]image.Descriptor, error) {
	const op = "list referrers"
	found := newCollection(artifactTypes)
	seen := map[string]bool{digest.String(): true} // nothing refers to itself
	var unread error
	for _, entry := range l.entries {
		if err := ctx.Err(); err != nil {
			return found.list, l.fail(op, digest.String(), image.Unavailable, err)
		}
		if seen[entry.Digest] {
			continue
		}
		seen[entry.Digest] = true
		candidate, err := l.referrer(op, entry, digest)
		if err != nil && unread == nil {
			unread = err
		}
		found.take(candidate)
	}
	_, body, err := l.manifest(op, repository, referrersTag(digest))
	switch {
	case kindIs(err, image.NotFound):
	case err != nil:
		return found.list, err
	default:
		if err := found.add(bytes.NewReader(body)); err != nil {
			return found.list, l.fail(op, digest.String(), image.Corrupt, err)
		}
	}
	if found.isCut {
		return found.list, l.fail(op, digest.String(), image.Bound, found.tooMany())
	}
	return found.list, unread
}

// referrer reads a manifest of the index, and returns it if it names subject. One that
// can be read and is no manifest refers to nothing.
func (l *Layout) referrer(op string, entry layoutEntry, subject image.Digest) (referrer, error) {
	digest, err := image.ParseDigest(entry.Digest)
	if err != nil {
		return referrer{}, nil //nolint:nilerr // an entry without digest names nothing
	}
	body, err := l.readListed(op, subject.String(), digest)
	if err != nil {
		if !l.mayRefer(digest) {
			err = nil
		}
		return referrer{}, err
	}
	descriptor, err := describe(body, l.mediaType(digest, body))
	if err != nil {
		return referrer{}, nil //nolint:nilerr // see above
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
		return referrer{}, nil //nolint:nilerr // see above
	}
	artifactType := descriptor.ArtifactType
	if artifactType == "" {
		artifactType = parsed.Config.MediaType
	}
	return referrer{
		MediaType: descriptor.MediaType, Digest: entry.Digest, Size: descriptor.Size,
		ArtifactType: artifactType, Annotations: parsed.Annotations,
	}, nil
}

// blobPath is safe: a Digest holds an algorithm's name and hexadecimal digits.
func blobPath(digest image.Digest) string { return "blobs/" + digest.Algorithm() + "/" + digest.Hex() }
