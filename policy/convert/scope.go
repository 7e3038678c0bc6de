package convert

import (
	"iter"
	"maps"
	"regexp"
	"strings"
)

// isRepository reports whether a text is registry/repository, as references are
// compared.
func isRepository(text string) bool {
	return regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)+$`).MatchString(text)
}

// isHost reports whether a text is a registry's host.
func isHost(text string) bool {
	return regexp.MustCompile(`^[a-z0-9.-]+(:[0-9]+)?$`).MatchString(text)
}

// repositoryScope is a repository and nothing below it. Docker Hub's own names are
// one.
func repositoryScope(repository string) pattern {
	return pattern("^" + regexp.QuoteMeta(hub(repository)) + "[:@]")
}

// hub writes Docker Hub as references are spelled.
func hub(name string) string {
	if rest, ok := strings.CutPrefix(name, "index.docker.io"); ok && (rest == "" || rest[0] == '/') {
		return "docker.io" + rest
	}
	return name
}

// scope is a scope of containers-policy.json(5): an image by tag or digest, a
// repository, a namespace or a registry with all below it, or *.domain; empty
// stands for every image.
type scope string

// valid says whether the scope is one.
func (s scope) valid() bool {
	text := string(s)
	if domain, ok := strings.CutPrefix(text, "*."); ok {
		return isHost(domain) && !strings.Contains(domain, ":")
	}
	if name, digest, ok := strings.Cut(text, "@"); ok {
		return isRepository(name) && regexp.MustCompile(`^[a-z0-9]+:[0-9a-f]{32,}$`).MatchString(digest)
	}
	slash := strings.LastIndexByte(text, '/')
	if slash < 0 {
		return isHost(text)
	}
	if colon := strings.IndexByte(text[slash:], ':'); colon >= 0 {
		return isRepository(text[:slash+colon]) && regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`).MatchString(text[slash+colon+1:])
	}
	return isRepository(text)
}

// exact reports whether the scope names one tag or digest.
func (s scope) exact() bool {
	last := string(s[strings.LastIndexByte(string(s), '/')+1:])
	return strings.Contains(string(s), "/") && strings.ContainsAny(last, ":@")
}

// test is the scope as a question about a name by its identity.
func (s scope) test() test {
	text := regexp.QuoteMeta(hub(string(s)))
	domain, wild := strings.CutPrefix(string(s), "*.")
	switch {
	case s == "":
		return all{}
	case wild:
		return pattern(`^[^/:]+\.` + regexp.QuoteMeta(domain) + `(:[0-9]+)?/`)
	case s.exact():
		return pattern("^" + text + "$")
	case strings.Contains(string(s), "/"):
		return pattern("^" + text + "[/:@]")
	}
	return pattern("^" + text + "/")
}

// within reports whether every image of s is one of the other's, and s is the more
// specific of the two.
func (s scope) within(other scope) bool {
	a, b := hub(string(s)), hub(string(other))
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
		return below && !scope(b).exact() && strings.ContainsRune("/:@", rune(rest[0]))
	}
	return strings.HasPrefix(a, b+"/")
}

// scopesWithin returns the tests of the scopes that are more specific.
func scopesWithin(list []scope, than scope) []test {
	var tests []test
	for _, s := range list {
		if s.within(than) {
			tests = append(tests, s.test())
		}
	}
	return tests
}

func mapKeys[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }
