package mapping

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/image"
)

// Reserved names for trials of a mapping when it is parsed.
const (
	sampleWildcard = "qm0wildcard"
	samplePath     = "qm0path"
)

const dockerHub = "docker.io"

// Source is the set of mapped names: all below a prefix at one host, or at each host with an
// ending.
type Source struct {
	host   string // "" for a wildcard
	suffix string // of a wildcard: the part after *, with its dot
	prefix string // components of the path; "" for all
}

// ParseSource parses "registry", "registry/prefix" or "*.suffix[/prefix]".
func ParseSource(s string) (Source, error) {
	if strings.Contains(s, "://") {
		return Source{}, errors.New("want a registry without a scheme")
	}
	host, prefix, hasPrefix := strings.Cut(s, "/")
	if hasPrefix && prefix == "" {
		return Source{}, errors.New("it ends in /")
	}
	spelled, wild := host, strings.HasPrefix(host, "*.")
	if wild {
		spelled = sampleWildcard + host[1:]
	}
	normal, err := normalHost(spelled)
	if err != nil {
		return Source{}, err
	}
	if prefix != "" {
		// With an additional component, a prefix of one component at Docker Hub is an
		// organisation, not an official image.
		repository, err := image.ParseRepository(normal + "/" + prefix + "/" + samplePath)
		if err != nil {
			return Source{}, err
		}
		prefix = strings.TrimSuffix(repository.Path(), "/"+samplePath)
	}
	if wild {
		return Source{suffix: strings.TrimPrefix(normal, sampleWildcard), prefix: prefix}, nil
	}
	return Source{host: normal, prefix: prefix}, nil
}

// IsRegistry reports whether the first part of a reference parses as a registry.
func IsRegistry(host string) bool {
	return strings.ContainsAny(host, ".:") || host == "localhost"
}

// normalHost returns the normalised form of a registry.
func normalHost(host string) (string, error) {
	if !IsRegistry(host) {
		return "", fmt.Errorf("no reference has the registry %q: want a host with a dot or a port; Docker Hub's images are docker.io/library/NAME and docker.io/ORGANISATION/NAME", host)
	}
	repository, err := image.ParseRepository(host + "/" + samplePath + "/" + samplePath)
	if err != nil {
		return "", err
	}
	return repository.Registry(), nil
}

func (s Source) String() string {
	text := s.host
	if s.host == "" {
		text = "*" + s.suffix
	}
	if s.prefix != "" {
		text += "/" + s.prefix
	}
	return text
}

// Sample returns a name that matches the source.
func (s Source) Sample() image.Repository {
	host, path := s.host, samplePath
	if host == "" {
		host = sampleWildcard + s.suffix
	}
	if s.prefix != "" {
		path = s.prefix + "/" + path
	}
	repository, err := image.ParseRepository(host + "/" + path)
	if err != nil {
		return image.Repository{} // its forward mapping then refuses it
	}
	return repository
}

// IsWildcard reports whether the source is *.suffix.
func (s Source) IsWildcard() bool { return s.host == "" }

// part returns the value of {path} or {rest}.
func (s Source) part(path string, which middle) string {
	switch {
	case which == nothing:
		return ""
	case which == whole || s.prefix == "":
		return path
	}
	return strings.TrimPrefix(strings.TrimPrefix(path, s.prefix), "/")
}

// name returns the source name with the value of {path} or {rest}.
func (s Source) name(wildcard, part string, which middle) (image.Repository, bool) {
	host, path := s.host, part
	if host == "" {
		host = wildcard + s.suffix
		if image.NormalRegistry(host) == dockerHub {
			host = dockerHub // the wildcard may match another name of it
		}
	}
	if which == rest && s.prefix != "" {
		path = s.prefix
		if part != "" {
			path += "/" + part
		}
	}
	// Docker Hub's proxies add library/ as Docker does: hub/nginx is a copy too.
	if host == dockerHub && path != "" && !strings.Contains(path, "/") {
		path = "library/" + path
	}
	if path == "" || !isBelow(path, s.prefix) {
		return image.Repository{}, false
	}
	text := host + "/" + path
	repository, err := image.ParseRepository(text)
	return repository, err == nil && repository.String() == text
}

// isBelow compares whole components.
func isBelow(path, prefix string) bool {
	return prefix == "" || strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/')
}
