package reference

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Normal spells the registry of a pattern as image.Ref does.
func Normal(pattern string) string {
	host, rest, ok := cutHost(pattern)
	switch {
	case !ok:
		return pattern
	case wildcard.Contains(host):
		return strings.ToLower(host) + "/" + rest
	}
	return image.NormalRegistry(host) + "/" + rest
}

// HasRegistry reports whether a pattern names a registry. Others are about Docker Hub's images.
func HasRegistry(pattern string) bool {
	_, _, ok := cutHost(pattern)
	return ok
}

// cutHost splits a pattern that names a registry.
func cutHost(pattern string) (host, rest string, ok bool) {
	host, rest, ok = strings.Cut(pattern, "/")
	if !ok || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return "", pattern, false
	}
	return host, rest, true
}

// Untagged reports whether a pattern names repositories without a tag, a digest or a
// wildcard that could match one.
func Untagged(pattern string) bool {
	return !strings.ContainsAny(pattern[strings.LastIndexByte(pattern, '/')+1:], ":@*?")
}

// Unmatchable returns why no image reference, as it is compared, can match a pattern;
// empty means that one can.
func Unmatchable(pattern string) string {
	host, rest, hasHost := cutHost(pattern)
	path, version := rest, ""
	if i := strings.IndexAny(rest, ":@"); i >= 0 {
		path, version = rest[:i], rest[i+1:]
	}
	// The text after a wildcard that follows the last slash may be in a tag.
	last := strings.LastIndexByte(path, '/') + 1
	if i := strings.IndexAny(path[last:], "*?"); i >= 0 {
		path, version = path[:last+i], path[last+i:]+version
	}
	_, digest, _ := strings.Cut(rest, "@")
	switch {
	case strings.Contains(pattern, "://"):
		return "leave out the scheme and begin with the registry's host"
	case strings.ContainsAny(pattern, "{}"):
		return "braces are no alternatives here; write a pattern for each"
	case strings.ContainsAny(pattern, " \t\r\n,;"):
		return "spaces and commas are in no reference; write a list with a pattern for each"
	case strings.ContainsAny(pattern, `^$|()+\`):
		return "patterns are no regular expressions, and have * and ? alone"
	case hasHost && wildcard.Contains(host) && strings.HasSuffix(strings.ToLower(host), ":443"):
		return "the default port is left out of references; write the host without :443"
	case hasHost && wildcard.Contains(host) && namesDockerHub(host):
		return "Docker Hub is called docker.io in references; write docker.io/"
	case strings.HasPrefix(pattern, "/") || strings.HasSuffix(pattern, "/") || strings.Contains(pattern, "//"):
		return "a part between slashes is empty; write * for whatever is below a path"
	case strings.ToLower(path) != path:
		return "repositories are written in lower case"
	case strings.ToLower(digest) != digest:
		return "digests are written in lower case"
	case !hasHost && strings.ContainsAny(pattern, "[]"):
		return "" // the beginning of an IPv6 address
	case strings.ContainsFunc(path, notIn("abcdefghijklmnopqrstuvwxyz0123456789._-/*?")):
		return "it has a character that no repository has"
	case strings.ContainsFunc(strings.ToLower(version), notIn("abcdefghijklmnopqrstuvwxyz0123456789._-/*?:@")):
		return "it has a character that no tag or digest has"
	}
	return malformed(host, rest)
}

// malformed returns why a part of a pattern is in no reference. A part without wildcards is
// compared as it is written.
func malformed(host, rest string) string {
	parses := func(text string) bool {
		_, err := image.Parse(text)
		return wildcard.Contains(text) || err == nil
	}
	const registry = "registry.example/"
	if host != "" && !parses(host+"/name") {
		return "no registry has this host and port"
	}
	named, digest, hasDigest := strings.Cut(rest, "@")
	parts := strings.Split(named, "/")
	last, tag, _ := strings.Cut(parts[len(parts)-1], ":")
	beforeWildcard, _, _ := strings.Cut(strings.ReplaceAll(tag, "?", "*"), "*") // which may cover a port and slashes
	parts[len(parts)-1] = last
	for _, part := range parts {
		if part == "" || strings.Contains(part, ":") || !parses(registry+"name/"+part) {
			return fmt.Sprintf("no repository has the part %q in its path", part)
		}
	}
	switch {
	case tag != "" && (strings.Contains(beforeWildcard, ":") || !parses(registry+"name:"+tag)):
		return fmt.Sprintf("%q is no tag", tag)
	case hasDigest && !mayBeDigest(digest):
		return "a digest is sha256: and 64 hexadecimal digits, or sha512: and 128"
	}
	return ""
}

// mayBeDigest reports whether a digest may match a pattern.
func mayBeDigest(pattern string) bool {
	fixed := pattern
	if i := strings.IndexAny(pattern, "*?"); i >= 0 {
		fixed = pattern[:i]
	}
	for algorithm, digits := range map[string]int{"sha256:": 64, "sha512:": 128} {
		encoded, named := strings.CutPrefix(pattern, algorithm)
		length := len(encoded) - strings.Count(encoded, "*")
		switch {
		case !named && fixed != pattern && strings.HasPrefix(algorithm, fixed):
			return true // a wildcard is in its name
		case !named || strings.ContainsFunc(encoded, notIn("0123456789abcdef*?")):
		case length == digits || length < digits && strings.Contains(encoded, "*"):
			return true
		}
	}
	return false
}

// namesDockerHub finds the names of Docker Hub that references never have.
func namesDockerHub(host string) bool {
	host = strings.ToLower(host)
	for _, name := range image.HubNames()[1:] {
		if strings.Contains(host, name) {
			return true
		}
	}
	return false
}

func notIn(allowed string) func(rune) bool {
	return func(r rune) bool { return !strings.ContainsRune(allowed, r) }
}
