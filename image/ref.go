package image

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// maxReference bounds the input of Parse. A repository has at most 255 characters, a host 255, a
// tag 128 and a sha512 digest 135.
const maxReference = 1024

// maxPath bounds the path of a repository, library/ included.
const maxPath = 255

// Repository is a registry and a path in it, normalised (docker.io, never index.docker.io;
// library/ written out).
type Repository struct{ registry, path string }

// ParseRepository parses "registry/path" or a Docker short form, without tag and digest.
func ParseRepository(s string) (Repository, error) {
	if s == "" || len(s) > maxReference {
		return Repository{}, fmt.Errorf("repository %q: want registry/path", shorten(s))
	}
	repo, err := name.NewRepository(s)
	if err != nil {
		return Repository{}, fmt.Errorf("repository %q: %w", shorten(s), err)
	}
	r, err := newRepository(repo)
	if err != nil {
		return Repository{}, fmt.Errorf("repository %q: %w", shorten(s), err)
	}
	return r, nil
}

// newRepository checks and normalises. Docker Hub's official images are in library/, under each
// of its host names: go-containerregistry adds the prefix for only one of them.
func newRepository(repo name.Repository) (Repository, error) {
	r := Repository{registry: NormalRegistry(repo.RegistryStr()), path: repo.RepositoryStr()}
	if r.registry == dockerHub && !strings.Contains(r.path, "/") {
		r.path = "library/" + r.path
	}
	if err := errors.Join(checkHost(repo.RegistryStr()), checkPath(r.path)); err != nil {
		return Repository{}, err
	}
	return r, nil
}

// checkPath enforces the grammar of the distribution specification, of which go-containerregistry
// checks only the letters: components of letters and digits, with single separators (".", "_",
// "__", any number of "-") between them. So no component can be empty, "." or "..", and change
// the meaning of a URL.
func checkPath(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("its path has more than %d characters", maxPath)
	}
	for part := range strings.SplitSeq(path, "/") {
		if !isComponent(part) {
			return fmt.Errorf("path component %q is not allowed: want lower-case letters and digits, with single separators between them", shorten(part))
		}
	}
	return nil
}

func isComponent(s string) bool {
	const separators = "._-"
	if s == "" || strings.ContainsRune(separators, rune(s[0])) || strings.ContainsRune(separators, rune(s[len(s)-1])) {
		return false
	}
	isSeparator := func(c rune) bool { return strings.ContainsRune(separators, c) }
	isOther := func(c rune) bool { return !isSeparator(c) }
	for separator := range strings.FieldsFuncSeq(s, isOther) {
		if separator != "." && separator != "_" && separator != "__" && strings.Trim(separator, "-") != "" {
			return false
		}
	}
	return true
}

// checkTag refuses invalid first characters of a tag.
func checkTag(tag string) error {
	if strings.HasPrefix(tag, ".") || strings.HasPrefix(tag, "-") {
		return fmt.Errorf("tag %q begins with %q: want a letter, a digit or _", shorten(tag), tag[0])
	}
	return nil
}

// dockerHub is the normalised name of Docker Hub.
const dockerHub = "docker.io"

// NormalRegistry returns the normalised form of a registry's host, so that no other form evades a
// policy: lower case, docker.io for each of Docker Hub's names, the port without leading zeros
// and, being the default, without 443. (A host without a dot keeps it: "a:443/b" is at a host,
// "a/b" at Docker Hub.)
func NormalRegistry(host string) string {
	host = normalAddress(strings.ToLower(host))
	if name, digits, ok := cutPort(host); ok {
		if port, err := strconv.ParseUint(digits, 10, 16); err == nil {
			host = name + ":" + strconv.FormatUint(port, 10)
		}
		if strings.HasSuffix(host, ":443") && (strings.Contains(name, ".") || isDistantAddress(name)) {
			host = name
		}
	}
	if host == "" || slices.Contains(HubNames(), host) {
		return dockerHub
	}
	return host
}

// cutPort splits a host from its port; the colons of a bracketed IPv6 address do not separate a
// port.
func cutPort(host string) (name, port string, ok bool) {
	i := strings.LastIndexByte(host, ':')
	if i < 0 || strings.HasSuffix(host, "]") {
		return host, "", false
	}
	return host[:i], host[i+1:], true
}

// checkHost enforces the grammar of container runtimes for hosts: labels of letters, digits and
// inner hyphens, or an IPv6 address in brackets. A trailing dot is refused: it is the same host
// to the network and another one to a policy.
func checkHost(host string) error {
	name, port, hasPort := cutPort(host)
	if hasPort {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return fmt.Errorf("registry %q: %q is no port", shorten(host), shorten(port))
		}
	}
	if address, ok := strings.CutPrefix(name, "["); ok {
		address, ok = strings.CutSuffix(address, "]")
		if ip, err := netip.ParseAddr(address); !ok || err != nil || !ip.Is6() || ip.Zone() != "" {
			return fmt.Errorf("registry %q: want an IPv6 address in the brackets", shorten(host))
		}
		return nil
	}
	for label := range strings.SplitSeq(name, ".") {
		isOdd := func(c rune) bool {
			return c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
		}
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' || strings.ContainsFunc(label, isOdd) {
			return fmt.Errorf("registry %q: %q is no part of a host name", shorten(host), shorten(label))
		}
	}
	return checkNumeric(name)
}

// checkNumeric refuses hosts that end in a number and are not an IPv4 address in its usual form.
// Resolvers read 10.1, 012.0.0.1, 0xa000001 and 167772161 as the address 10.0.0.1, so that a
// policy about the registry at that address would not match. No host name ends in a number (RFC
// 3696, section 2).
func checkNumeric(name string) error {
	last := strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	digits, isHex := strings.CutPrefix(last, "0x")
	isOther := func(c rune) bool { return (c < '0' || c > '9') && (!isHex || c < 'a' || c > 'f') }
	if strings.ContainsFunc(digits, isOther) {
		return nil
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.Is4() {
		return nil
	}
	return fmt.Errorf("registry %q: want an IPv4 address as four decimal numbers, or a host name, which does not end in a number", shorten(name))
}

// Registry returns the host, with its port if the reference has one.
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

// IsZero reports whether r is the zero Repository.
func (r Repository) IsZero() bool { return r == Repository{} }

// Ref is an image reference: the text, and its parsed form.
type Ref struct {
	repository Repository
	tag        string
	digest     Digest
	written    string
}

// referenceError is a reference that cannot be read, with the next step.
type referenceError struct{ text, advice string }

// Error implements error.
func (e *referenceError) Error() string { return e.text + "; " + e.advice }

// Advice implements Advised.
func (e *referenceError) Advice() string { return e.advice }

// Parse parses a reference as Docker and Kubernetes do: a missing registry is docker.io, a
// missing path prefix there is library/, a missing tag is latest unless a digest is present. In
// "repo:tag@digest" the tag is kept.
func Parse(s string) (Ref, error) {
	if s == "" {
		return Ref{}, errors.New("image reference is empty: want [registry/]repository[:tag][@digest]")
	}
	if len(s) > maxReference {
		return Ref{}, fmt.Errorf("image reference %q is longer than %d characters", shorten(s), maxReference)
	}
	if scheme, bare, ok := strings.Cut(s, "://"); ok {
		return Ref{}, &referenceError{
			text:   fmt.Sprintf("image reference %q is a URL", shorten(s)),
			advice: fmt.Sprintf("write the reference without %s://, as %s", shorten(scheme), shorten(bare)),
		}
	}
	rest, digestPart, hasDigest := strings.Cut(s, "@")
	ref := Ref{written: s}
	if hasDigest {
		digest, err := ParseDigest(digestPart)
		if err != nil {
			return Ref{}, fmt.Errorf("image reference %q: %w", shorten(s), err)
		}
		ref.digest = digest
	} else if isImageID(rest) {
		return Ref{}, &referenceError{
			text:   fmt.Sprintf("image reference %q: container runtimes read it as the ID of an image on the node", shorten(s)),
			advice: "name its registry and repository",
		}
	}
	tag, err := name.NewTag(rest)
	if err != nil {
		if lower := strings.ToLower(rest); lower != rest {
			if _, err := name.NewTag(lower); err == nil {
				return Ref{}, fmt.Errorf("image reference %q: repositories are in lower case", shorten(s))
			}
		}
		return Ref{}, fmt.Errorf("image reference %q: %w", shorten(s), err)
	}
	repository, err := newRepository(tag.Repository)
	if err := errors.Join(err, checkTag(tag.TagStr())); err != nil {
		return Ref{}, fmt.Errorf("image reference %q: %w", shorten(s), err)
	}
	ref.repository = repository
	if !hasDigest || writesTag(rest) {
		ref.tag = tag.TagStr()
	}
	if strings.HasSuffix(rest, ":") {
		return Ref{}, fmt.Errorf("image reference %q: the tag is empty", shorten(s))
	}
	return ref, nil
}

// isImageID reports whether a runtime takes a text for the ID of an image that is on the node, whole
// or its beginning. Such a text would run any image there, under the name of none. A name of 64
// hexadecimal digits is no reference in the distribution's grammar.
func isImageID(s string) bool {
	switch name, _, _ := strings.Cut(s, ":"); name {
	case "sha256", "sha384", "sha512":
		return true
	}
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
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

// Repository returns the repository of the reference.
func (r Ref) Repository() Repository { return r.repository }

// Registry returns the host of the repository.
func (r Ref) Registry() string { return r.repository.registry }

// Tag returns the tag, "latest" by Docker's default, and "" for a reference by digest alone.
func (r Ref) Tag() string { return r.tag }

// Digest returns the digest in the reference, or the zero Digest.
func (r Ref) Digest() Digest { return r.digest }

// Written returns the reference as in its source.
func (r Ref) Written() string { return r.written }

// At returns r under another repository: the same tag and digest, in the normalised form.
func (r Ref) At(repository Repository) Ref {
	r.repository = repository
	r.written = r.String()
	return r
}

// IsZero reports whether r is the zero Ref.
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

// Pin joins the reference with the digest that it resolves to. A reference with a digest refuses
// any other one.
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

// normalAddress returns a bracketed IPv6 address in its canonical form (RFC 5952), since policies
// compare names as text.
func normalAddress(host string) string {
	inside, rest, ok := strings.Cut(strings.TrimPrefix(host, "["), "]")
	if !ok || !strings.HasPrefix(host, "[") {
		return host
	}
	address, err := netip.ParseAddr(inside)
	if err != nil {
		return host
	}
	return "[" + address.String() + "]" + rest
}

// isDistantAddress reports whether host is a bracketed address that is contacted over TLS, so
// that 443 is its default port.
func isDistantAddress(host string) bool {
	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && strings.HasPrefix(host, "[") && !address.IsLoopback()
}
