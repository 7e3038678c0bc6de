package images

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/image"
)

// IsRepository reports whether a text is registry/repository, as references are
// compared.
func IsRepository(text string) bool {
	return regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$`).MatchString(text)
}

// IsHost reports whether a text is a registry's host.
func IsHost(text string) bool {
	return regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?$`).MatchString(text)
}

// RepositoryScope is a repository and nothing below it. Docker Hub's own names are
// one.
func RepositoryScope(repository string) Pattern {
	return Pattern("^" + regexp.QuoteMeta(Hub(repository)) + "[:@]")
}

// Hub writes Docker Hub as references are spelled.
func Hub(name string) string {
	if rest, ok := strings.CutPrefix(name, "index.docker.io"); ok && (rest == "" || rest[0] == '/') {
		return "docker.io" + rest
	}
	return name
}

// Unmatched returns why a scope, a name whose registry is written out or *.domain, would match nothing
// here although it does in its source; empty if it may match. Sources compare registries as references
// write them, and here a registry has one name, so that another one would be a selector of no images.
func Unmatched(scope string) string {
	domain, wild := strings.CutPrefix(scope, "*.")
	host, _, _ := strings.Cut(scope, "/")
	if wild {
		ends := slices.ContainsFunc(image.HubNames()[1:], func(name string) bool { return strings.HasSuffix(name, "."+domain) })
		if ends && strings.Contains(domain, "docker") {
			return "Docker Hub is docker.io, by each of its names: write docker.io"
		}
		return ""
	}
	if normal := image.NormalRegistry(host); normal != Hub(host) {
		return fmt.Sprintf("the registry %s is %s, by each of its names: write %s", host, normal, normal)
	}
	if _, err := image.ParseRepository(host + "/name"); err != nil {
		return err.Error()
	}
	return ""
}

// Scope is a scope of containers-policy.json(5): an image by tag or digest, a repository,
// a namespace or a registry with all below it, or *.domain; empty matches every image.
type Scope string

// Valid reports whether the scope is valid.
func (s Scope) Valid() bool {
	text := string(s)
	if domain, ok := strings.CutPrefix(text, "*."); ok {
		return IsHost(domain) && !strings.Contains(domain, ":")
	}
	if name, digest, ok := strings.Cut(text, "@"); ok {
		return IsRepository(name) && regexp.MustCompile(`^[a-z0-9]+:[0-9a-f]{32,}$`).MatchString(digest)
	}
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 {
		return IsHost(text)
	}
	if colon := strings.IndexByte(text[slash:], ':'); colon >= 0 {
		return IsRepository(text[:slash+colon]) && regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`).MatchString(text[slash+colon+1:])
	}
	return IsRepository(text)
}

// Exact reports whether the scope names one tag or digest.
func (s Scope) Exact() bool {
	last := string(s[strings.LastIndexByte(string(s), '/')+1:])
	return strings.Contains(string(s), "/") && strings.ContainsAny(last, ":@")
}

// Test is the scope as a question about a name by its identity.
func (s Scope) Test() Test {
	text := regexp.QuoteMeta(Hub(string(s)))
	domain, wild := strings.CutPrefix(string(s), "*.")
	switch {
	case s == "":
		return All{}
	case wild:
		return Pattern(`^[^/:]+\.` + regexp.QuoteMeta(domain) + `(:[0-9]+)?/`)
	case s.Exact():
		return Pattern("^" + text + "$")
	case strings.Contains(string(s), "/"):
		return Pattern("^" + text + "[/:@]")
	}
	return Pattern("^" + text + "/")
}

// Within reports whether every image of s is one of the other's, and s is the more
// specific of the two.
func (s Scope) Within(other Scope) bool {
	a, b := Hub(string(s)), Hub(string(other))
	domain, wild := strings.CutPrefix(b, "*.")
	switch {
	case a == b:
		return false
	case b == "":
		return true
	case wild:
		host, _, _ := strings.Cut(strings.TrimPrefix(a, "*."), "/")
		host, _, _ = strings.Cut(host, ":")
		return strings.HasSuffix(host, "."+domain)
	case strings.Contains(b, "/"):
		rest, below := strings.CutPrefix(a, b)
		return below && !Scope(b).Exact() && strings.ContainsRune("/:@", rune(rest[0]))
	}
	return strings.HasPrefix(a, b+"/")
}

// ScopesWithin returns the tests of the scopes that are more specific.
func ScopesWithin(list []Scope, than Scope) []Test {
	var tests []Test
	for _, s := range list {
		if s.Within(than) {
			tests = append(tests, s.Test())
		}
	}
	return tests
}
