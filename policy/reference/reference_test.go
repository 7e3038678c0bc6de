package reference_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/reference"
)

var digest = "sha256:" + strings.Repeat("a", 64)

func TestConcernsAndExempts(t *testing.T) {
	for _, c := range []struct {
		pattern, ref      string
		concerns, exempts bool
		reason            string
	}{
		{"docker.io/library/nginx:*", "nginx:1", true, true, "an official image in full"},
		{"docker.io/nginx:*", "docker.io/library/nginx:1", true, true, "without library"},
		{"nginx:*", "nginx:1", true, false, "a short name says which images are meant, and exempts none"},
		{"ghcr.io/org/app", "ghcr.io/org/app:v1", true, false, "the repository alone"},
		{"ghcr.io/org/app", "ghcr.io/org/app/below:v1", false, false, "none below it"},
		{"ghcr.io/org/app:*", "ghcr.io/org/app@" + digest, true, false, "every tag is every digest to who is concerned"},
		{"ghcr.io/org/app:v1", "ghcr.io/org/app:v1@" + digest, true, false, "a tag beside a digest exempts nothing"},
		{"ghcr.io/org/app@*", "ghcr.io/org/app:v1@" + digest, true, true, "the digest"},
		{"ghcr.io/org/ap?:v1", "ghcr.io/org/app:v1", true, true, "one character"},
		{"ghcr.io/org/ap?:v1", "ghcr.io/org/apps:v1", false, false, "one character more"},
	} {
		patterns, ref := []string{reference.Normal(c.pattern)}, image.MustParse(c.ref)
		if got := reference.Concerns(patterns, ref); got != c.concerns {
			t.Errorf("%s: concerns %t", c.reason, got)
		}
		if got := reference.Exempts(patterns, ref); got != c.exempts {
			t.Errorf("%s: exempts %t", c.reason, got)
		}
	}
}

func TestTextsHoldEverySpelling(t *testing.T) {
	for _, written := range []string{"nginx", "nginx:v1@" + digest, "ghcr.io/org/app@" + digest, "org/app:v1"} {
		ref := image.MustParse(written)
		for _, base := range []string{ref.Repository().String(), strings.TrimPrefix(ref.Repository().String(), "docker.io/library/")} {
			for _, pattern := range []string{base + ":" + ref.Tag(), base + "@" + ref.Digest().String(), base} {
				held := false
				for _, text := range reference.Texts(ref) {
					held = held || strings.Contains(text, pattern)
				}
				if reference.Concerns([]string{pattern}, ref) && !held {
					t.Errorf("%s: no text contains %s, which concerns it", written, pattern)
				}
			}
		}
	}
}

func FuzzConcerns(f *testing.F) {
	f.Add("ghcr.io/*", "ghcr.io/org/app:v1")
	f.Fuzz(func(t *testing.T, pattern, written string) {
		_ = reference.Unmatchable(pattern)
		ref, err := image.Parse(written)
		if err != nil {
			return
		}
		patterns := []string{reference.Normal(pattern)}
		if reference.Exempts(patterns, ref) && !reference.Concerns(patterns, ref) {
			t.Errorf("%q exempts %s and does not concern it", pattern, written)
		}
	})
}

func Example() {
	ref := image.MustParse("nginx")
	fmt.Println(reference.Concerns([]string{reference.Normal("index.docker.io/library/*")}, ref))
	// Output: true
}
