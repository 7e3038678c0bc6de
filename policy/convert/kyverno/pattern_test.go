package kyverno

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
)

// TestPatternsTakeNoLess: of patterns at random, each takes every image that the original takes, and
// exempts none that the original does not.
func TestPatternsTakeNoLess(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("ab", 32)
	var refs []image.Ref
	for _, host := range []string{"", "docker.io/", "index.docker.io/", "registry-1.docker.io/", "ghcr.io/", "localhost/", "localhost:5000/", "nginx:5000/", "r.example:5000/", "nginx.io/"} {
		for _, path := range []string{"nginx", "library/nginx", "a/b", "library/a/b", "library", "a/library/nginx", "x", "docker.io/x"} {
			for _, version := range []string{"", ":v1", digest, ":v1" + digest} {
				if ref, err := image.Parse(host + path + version); err == nil {
					refs = append(refs, ref)
				}
			}
		}
	}
	pieces := []string{"*", "*", "?", "nginx", "library", "/", "/", ":", "docker.io", "index.docker.io", ".", "a", "b", "v1", "5000", "localhost", "x", "ghcr.io", "latest", "lib", "r.example", "registry", "-1", "@", "sha256:"}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same patterns each time
	tried, taken := 0, 0
	for tried < 1500 {
		pattern := ""
		for range 1 + random.IntN(6) {
			pattern += pieces[random.IntN(len(pieces))]
		}
		if reference.Unmatchable(pattern) != "" {
			continue
		}
		tried++
		takes, exempts := regexp.MustCompile(string(wildcardPattern(pattern, false))), regexp.MustCompile(string(wildcardPattern(pattern, true)))
		normal := []string{reference.Normal(pattern)}
		for _, ref := range refs {
			names := namesOf(ref)
			if reference.Concerns(normal, ref) {
				taken++
				if !slices.ContainsFunc(names, takes.MatchString) {
					t.Errorf("%q takes %s, and its expression %s does not", pattern, ref, takes)
				}
			}
			isExempt := !slices.ContainsFunc(names, func(name string) bool { return !exempts.MatchString(name) })
			if isExempt && !reference.Exempts(normal, ref) {
				t.Errorf("%q does not exempt %s, and its expression %s does", pattern, ref, exempts)
			}
		}
	}
	if taken < 1000 {
		t.Errorf("%d matches: too few to show anything", taken)
	}
}

// namesOf are the texts that a converted policy compares: by tag, and by digest.
func namesOf(ref image.Ref) []string {
	var names []string
	if ref.Tag() != "" {
		names = append(names, ref.Repository().String()+":"+ref.Tag())
	}
	if !ref.Digest().IsZero() {
		names = append(names, ref.Repository().String()+"@"+ref.Digest().String())
	}
	return names
}
