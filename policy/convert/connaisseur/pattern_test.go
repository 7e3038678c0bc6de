package connaisseur_test

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

// written is the name that Connaisseur compares with its patterns.
func written(ref string) string {
	rest, digest, _ := strings.Cut(ref, "@")
	name, tag := rest, ""
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		name, tag = rest[:i], rest[i:]
	}
	host, _, ok := strings.Cut(name, "/")
	switch {
	case !ok:
		name = "index.docker.io/library/" + name
	case host == "docker.io" || host == "index.docker.io":
		path := name[len(host)+1:]
		if !strings.Contains(path, "/") {
			path = "library/" + path
		}
		name = "index.docker.io/" + path
	case !strings.ContainsAny(host, ".:") && host != "localhost":
		name = "index.docker.io/" + name
	}
	if digest != "" {
		return name + tag + "@" + converttest.Digest
	}
	if tag == "" {
		tag = ":latest"
	}
	return name + tag
}

// choice is Connaisseur's documented algorithm: of the patterns that fit,
// the one with most parts; then, from left to right, the longest beginning in common
// with the image's part; then, from left to right, the longest part. It returns all
// that are best.
func choice(patterns []string, name string) []string {
	rank := func(pattern string) []int {
		parts, of := strings.Split(pattern, "/"), strings.Split(name, "/")
		out := []int{len(parts)}
		for i, part := range parts {
			n := 0
			for n < len(part) && n < len(of[i]) && part[n] == of[i][n] {
				n++
			}
			out = append(out, n)
		}
		for _, part := range parts {
			out = append(out, len(part))
		}
		return out
	}
	var best []string
	for _, pattern := range patterns {
		quoted := strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern))
		if !regexp.MustCompile(`^.*` + quoted + `.*$`).MatchString(name) {
			continue
		}
		switch {
		case len(best) == 0 || slices.Compare(rank(pattern), rank(best[0])) > 0:
			best = []string{pattern}
		case slices.Compare(rank(pattern), rank(best[0])) == 0:
			best = append(best, pattern)
		}
	}
	return best
}

// TestMostSpecific compares which policies match an image with which
// rule Connaisseur chooses, over sets of patterns that overlap in many ways.
func TestMostSpecific(t *testing.T) {
	pool := []string{
		"*:*", "*", "*/*", "docker*/*", "*/*/*", "*/*/image:v1", "*/sam*/*", "docker.i*/s*", "docker.io/*", "docker.io/library/*", "docker.io/library/nginx",
		"index.docker.io/library/*", "index.docker.io/lib*/nginx:1*", "library/nginx", "nginx:1.27", "nginx:?.27", "ghcr.io/*", "ghcr.io/acme/*", "ghcr.io/ac*/tools/*", "ghcr.io/acme/tools/a*",
		"ghcr.io/acme/*app", "ghcr.io/acme/a*p", "*@sha256:*", "*:v1", "registry.k8s.io/pause", "localhost:5000/*", "*.io/acme/app*", "acme/app:v?", "g*/acme/app", "gh*/ac/*",
	}
	images := []string{
		"nginx", "nginx:1.27", "library/nginx:1.27", "docker.io/nginx@" + converttest.Digest, "index.docker.io/library/nginx:1.2", "docker.io/library/nginx:1.27@" + converttest.Digest,
		"ghcr.io/acme/app", "ghcr.io/acme/app:v1", "ghcr.io/acme/tools/app:v1", "ghcr.io/acme/tools/b@" + converttest.Digest, "ghcr.io/ac/tools/x", "registry.k8s.io/pause:3.9",
		"localhost:5000/app", "localhost:5000/ghcr.io/acme/app:v1", "quay.io/docker.io/library/nginx:1", "samples/image:v1", "docker.io/sample/image:v1", "quay.io/acme/app:v2", "gcr.io/acme/app",
	}
	m := testkit.Must(converttest.NewMatcher())(t)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		var patterns []string
		for _, i := range random.Perm(len(pool))[:1+random.IntN(8)] {
			patterns = append(patterns, pool[i])
		}
		config := map[string]any{"validators": []any{map[string]any{"name": "default", "type": "static", "approve": false}}}
		var rules []any
		for _, p := range patterns {
			rules = append(rules, map[string]any{"pattern": p})
		}
		config["policy"] = rules
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		list := testkit.Must(converttest.Policies(string(text), convert.Options{}))(t)
		for _, image := range images {
			var got []string
			for _, p := range list {
				if !testkit.Must(m.Matches(p, image))(t) {
					continue
				}
				pattern, ok := strings.CutPrefix(p.Spec.Validations[0].Message, "the policy denies images of ")
				if !ok {
					pattern = "unmatched"
				}
				got = append(got, pattern)
			}
			want := choice(patterns, written(image))
			if len(want) == 0 {
				want = []string{"unmatched"}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("round %d, patterns %q, image %s (%s): policies for %q, want %q", round, patterns, image, written(image), got, want)
			}
		}
	}
}
