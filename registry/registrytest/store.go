package registrytest

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Descriptor is an OCI content descriptor.
type Descriptor struct {
	MediaType    string            `json:"mediaType"`
	Digest       string            `json:"digest"`
	Size         int64             `json:"size"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
}

// Media types that the registry writes by itself.
const (
	mediaTypeIndex    = "application/vnd.oci.image.index.v1+json"
	mediaTypeManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaTypeConfig   = "application/vnd.oci.image.config.v1+json"
	mediaTypeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
	mediaTypeEmpty    = "application/vnd.oci.empty.v1+json"
)

// manifest holds the fields of a manifest that list referrers.
type manifest struct {
	ArtifactType string            `json:"artifactType"`
	Annotations  map[string]string `json:"annotations"`
	Config       struct {
		MediaType string `json:"mediaType"`
	} `json:"config"`
	Subject *Descriptor `json:"subject"`
}

type stored struct {
	mediaType string
	body      []byte
}

// repository is the content of one name.
type repository struct {
	manifests map[string]stored
	blobs     map[string][]byte
	tags      map[string]string
	referrers map[string][]Descriptor // by subject, in the order of arrival
}

// store is the content of all names.
type store struct {
	mu           sync.Mutex
	repositories map[string]*repository
	uploads      map[string][]byte
	nextUpload   int
}

func newStore() *store {
	return &store{repositories: map[string]*repository{}, uploads: map[string][]byte{}}
}

// open returns the repository of a name; it is made when it is missing. The
// caller holds the lock.
func (s *store) open(name string) *repository {
	repo, ok := s.repositories[name]
	if !ok {
		repo = &repository{
			manifests: map[string]stored{},
			blobs:     map[string][]byte{},
			tags:      map[string]string{},
			referrers: map[string][]Descriptor{},
		}
		s.repositories[name] = repo
	}
	return repo
}

// digestAs hashes body with the algorithm of want.
func digestAs(want string, body []byte) (string, error) {
	algorithm, _, _ := strings.Cut(want, ":")
	switch algorithm {
	case "sha256":
		sum := sha256.Sum256(body)
		return "sha256:" + hex.EncodeToString(sum[:]), nil
	case "sha512":
		sum := sha512.Sum512(body)
		return "sha512:" + hex.EncodeToString(sum[:]), nil
	default:
		return "", fmt.Errorf("digest algorithm of %q is not known", want)
	}
}

// DigestOf returns the sha256 digest of body.
func DigestOf(body []byte) string {
	digest, _ := digestAs("sha256:", body)
	return digest
}

func isDigest(reference string) bool { return strings.Contains(reference, ":") }

// putManifest keeps a manifest under its digest, and under reference when that
// is a tag, and returns its digest and subject.
func (s *store) putManifest(name, reference, mediaType string, body []byte) (digest, subject string, err error) {
	digest = DigestOf(body)
	if isDigest(reference) {
		digest, err = digestAs(reference, body)
		if err != nil {
			return "", "", err
		}
		if digest != reference {
			return "", "", fmt.Errorf("body has digest %s", digest)
		}
	}
	var parsed manifest
	if err := json.Unmarshal(body, &parsed); err != nil {
		return "", "", fmt.Errorf("manifest is not JSON: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	repo := s.open(name)
	if !isDigest(reference) {
		repo.tags[reference] = digest
	}
	_, known := repo.manifests[digest]
	repo.manifests[digest] = stored{mediaType: mediaType, body: body}
	if parsed.Subject == nil {
		return digest, "", nil
	}
	subject = parsed.Subject.Digest
	if !known {
		repo.referrers[subject] = append(repo.referrers[subject], describeReferrer(parsed, mediaType, digest, len(body)))
	}
	return digest, subject, nil
}

func describeReferrer(parsed manifest, mediaType, digest string, size int) Descriptor {
	artifactType := parsed.ArtifactType
	if artifactType == "" {
		artifactType = parsed.Config.MediaType
	}
	return Descriptor{
		MediaType: mediaType, Digest: digest, Size: int64(size),
		ArtifactType: artifactType, Annotations: parsed.Annotations,
	}
}

func (s *store) manifest(name, reference string) (stored, string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repo, ok := s.repositories[name]
	if !ok {
		return stored{}, "", false
	}
	digest := reference
	if !isDigest(reference) {
		digest, ok = repo.tags[reference]
		if !ok {
			return stored{}, "", false
		}
	}
	found, ok := repo.manifests[digest]
	return found, digest, ok
}

// deleteManifest removes a tag, or a manifest with its tags and its entry
// among the referrers.
func (s *store) deleteManifest(name, reference string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	repo := s.open(name)
	if !isDigest(reference) {
		_, ok := repo.tags[reference]
		delete(repo.tags, reference)
		return ok
	}
	_, ok := repo.manifests[reference]
	delete(repo.manifests, reference)
	for tag, digest := range repo.tags {
		if digest == reference {
			delete(repo.tags, tag)
		}
	}
	for subject, list := range repo.referrers {
		repo.referrers[subject] = slices.DeleteFunc(list, func(d Descriptor) bool { return d.Digest == reference })
	}
	return ok
}

func (s *store) referrers(name, subject string) []Descriptor {
	s.mu.Lock()
	defer s.mu.Unlock()
	if repo, ok := s.repositories[name]; ok {
		return slices.Clone(repo.referrers[subject])
	}
	return nil
}

func (s *store) tags(name string) ([]string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repo, ok := s.repositories[name]
	if !ok {
		return nil, false
	}
	tags := make([]string, 0, len(repo.tags))
	for tag := range repo.tags {
		tags = append(tags, tag)
	}
	slices.Sort(tags)
	return tags, true
}

func (s *store) putBlob(name, digest string, body []byte) error {
	got, err := digestAs(digest, body)
	if err != nil {
		return err
	}
	if got != digest {
		return fmt.Errorf("body has digest %s", got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open(name).blobs[digest] = body
	return nil
}

func (s *store) blob(name, digest string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	repo, ok := s.repositories[name]
	if !ok {
		return nil, false
	}
	body, ok := repo.blobs[digest]
	return body, ok
}

func (s *store) deleteBlob(name, digest string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	repo := s.open(name)
	_, ok := repo.blobs[digest]
	delete(repo.blobs, digest)
	return ok
}

func (s *store) startUpload() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextUpload++
	id := fmt.Sprintf("upload-%d", s.nextUpload)
	s.uploads[id] = nil
	return id
}

var (
	errNoUpload = errors.New("there is no such upload")
	errOffset   = errors.New("the chunk does not continue the upload")
	errTooLarge = errors.New("the upload is too large")
)

// appendUpload adds a chunk, which starts at offset unless that is negative.
func (s *store) appendUpload(id string, offset int, chunk []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sofar, ok := s.uploads[id]
	switch {
	case !ok:
		return 0, errNoUpload
	case offset >= 0 && offset != len(sofar):
		return len(sofar), errOffset
	case len(sofar)+len(chunk) > maxBlob:
		return len(sofar), errTooLarge
	}
	s.uploads[id] = append(sofar, chunk...)
	return len(s.uploads[id]), nil
}

func (s *store) finishUpload(id string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, ok := s.uploads[id]
	if !ok {
		return nil, errNoUpload
	}
	delete(s.uploads, id)
	return body, nil
}
