package image

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// maxReference bounds what Parse looks at. A repository has at most 255
// characters, a host 255, a tag 128 and a sha512 digest 135.
const maxReference = 1024

// Repository is a place that holds images: a registry and a path in it,
// normalised (docker.io, never index.docker.io; library/ written out).
type Repository struct{ registry, path string }

// ParseRepository reads "registry/path" or a Docker short form, without tag
// and digest.
func ParseRepository(s string) (Repository, error) {
	if s == "" || len(s) > maxReference {
		return Repository{}, fmt.Errorf("repository %q: want registry/path", shorten(s))
	}
	repo, err := name.NewRepository(s)
	if err != nil {
		return Repository{}, fmt.Errorf("repository %q: %w", shorten(s), err)
	}
	if err := checkPath(repo.RepositoryStr()); err != nil {
		return Repository{}, fmt.Errorf("repository %q: %w", shorten(s), err)
	}
	return newRepository(repo), nil
}

func newRepository(repo name.Repository) Repository {
	return Repository{registry: NormalRegistry(repo.RegistryStr()), path: repo.RepositoryStr()}
}

// checkPath refuses what go-containerregistry lets through although the
// distribution specification does not, and which would change the meaning of
// a URL: empty, "." and ".." components.
func checkPath(path string) error {
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("path component %q is not allowed", part)
		}
	}
	return nil
}

// NormalRegistry returns the one spelling of a registry's host: lower case,
// and docker.io for each of Docker Hub's names.
func NormalRegistry(host string) string {
	host = strings.ToLower(host)
	switch host {
	case "", "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com":
		return "docker.io"
	}
	return host
}

// Registry returns the host, with its port where one was written.
func (r Repository) Registry() string { return r.registry }

// Path returns the path inside the registry.
func (r Repository) Path() string { return r.path }

// String returns "registry/path", or "" for the zero Repository.
func (r Repository) String() string {
	if r.IsZero() {
		return ""
	}
	return r.registry + "/" + r.path
}

// IsZero reports whether r names no place.
func (r Repository) IsZero() bool { return r == Repository{} }

// Ref is an image reference: what was written, and what it means.
type Ref struct {
	repository Repository
	tag        string
	digest     Digest
	written    string
}

// Parse reads a reference as Docker and Kubernetes do: a missing registry is
// docker.io, a missing path prefix there is library/, a missing tag is latest
// unless a digest is present. In "repo:tag@digest" the tag is kept.
func Parse(s string) (Ref, error) {
	if s == "" {
		return Ref{}, errors.New("image reference is empty: want [registry/]repository[:tag][@digest]")
	}
	if len(s) > maxReference {
		return Ref{}, fmt.Errorf("image reference %q is longer than %d characters", shorten(s), maxReference)
	}
	rest, digestPart, hasDigest := strings.Cut(s, "@")
	ref := Ref{written: s}
	if hasDigest {
		digest, err := ParseDigest(digestPart)
		if err != nil {
			return Ref{}, fmt.Errorf("image reference %q: %w", shorten(s), err)
		}
		ref.digest = digest
	}
	tag, err := name.NewTag(rest)
	if err != nil {
		return Ref{}, fmt.Errorf("image reference %q: %w", shorten(s), err)
	}
	ref.repository = newRepository(tag.Repository)
	if err := checkPath(ref.repository.path); err != nil {
		return Ref{}, fmt.Errorf("image reference %q: %w", shorten(s), err)
	}
	if !hasDigest || writesTag(rest) {
		ref.tag = tag.TagStr()
	}
	if strings.HasSuffix(rest, ":") {
		return Ref{}, fmt.Errorf("image reference %q: the tag is empty", shorten(s))
	}
	return ref, nil
}

// writesTag reports whether s, which has no digest, ends in a tag and not in
// the port of a host.
func writesTag(s string) bool {
	return strings.LastIndexByte(s, ':') > strings.LastIndexByte(s, '/')
}

// MustParse is Parse for constants in tests and examples; it panics on a
// malformed reference.
func MustParse(s string) Ref {
	ref, err := Parse(s)
	if err != nil {
		panic(err)
	}
	return ref
}

// Repository returns the place the reference points into.
func (r Ref) Repository() Repository { return r.repository }

// Registry returns the host of the repository.
func (r Ref) Registry() string { return r.repository.registry }

// Tag returns the tag, "latest" where Docker would assume it, and "" for a
// reference by digest alone.
func (r Ref) Tag() string { return r.tag }

// Digest returns the digest that was written, or the zero Digest.
func (r Ref) Digest() Digest { return r.digest }

// Written returns the reference as it stood in its source.
func (r Ref) Written() string { return r.written }

// IsZero reports whether r is the zero Ref, which refers to nothing.
func (r Ref) IsZero() bool { return r.repository.IsZero() }

// String returns the normalised form, registry/path[:tag][@digest]. Parsing it
// again gives the same reference.
func (r Ref) String() string {
	if r.IsZero() {
		return ""
	}
	s := r.repository.String()
	if r.tag != "" {
		s += ":" + r.tag
	}
	if !r.digest.IsZero() {
		s += "@" + r.digest.s
	}
	return s
}

// Pin joins the reference with the digest that it was resolved to. A reference
// that already has a digest refuses any other one.
func (r Ref) Pin(d Descriptor) (Pinned, error) {
	switch {
	case r.IsZero():
		return Pinned{}, errors.New("pin: the reference is empty")
	case d.Digest.IsZero():
		return Pinned{}, fmt.Errorf("pin %s: the digest is empty", r)
	case !r.digest.IsZero() && r.digest != d.Digest:
		return Pinned{}, fmt.Errorf("pin %s: it was resolved to another digest, %s", r, d.Digest)
	}
	return Pinned{ref: r, descriptor: d}, nil
}
