package reference_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
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
		{"nginx:*", "nginx:1", true, false, "a short name selects images, and exempts none"},
		{"ghcr.io/org/app", "ghcr.io/org/app:v1", true, false, "the repository alone"},
		{"ghcr.io/org/app", "ghcr.io/org/app/below:v1", false, false, "none below it"},
		{"ghcr.io/org/app:*", "ghcr.io/org/app@" + digest, true, false, "every tag matches every digest for selection"},
		{"ghcr.io/org/app:v1", "ghcr.io/org/app:v1@" + digest, true, false, "a tag beside a digest exempts nothing"},
		{"ghcr.io/org/app@*", "ghcr.io/org/app:v1@" + digest, true, true, "the digest"},
		{"ghcr.io/org/other:*", "ghcr.io/org/app@" + digest, false, false, "every tag of another one"},
		{"ghcr.io/org/app?", "ghcr.io/org/app:v1", false, false, "one character after the name, and no more"},
		{"ghcr.io/org/app?", "ghcr.io/org/app@" + digest, true, false, "the same where no tag is written, which is any tag"},
		{"ghcr.io/org/ap?", "ghcr.io/org/app:v1", false, false, "a wildcard matches the written text, and no tag next to it"},
		{"ghcr.io/org/app:v1@*", "ghcr.io/org/app:v1@" + digest, true, false, "a tag with a digest"},
		{"ghcr.io/org/app:v2@*", "ghcr.io/org/app:v1@" + digest, false, false, "another tag with a digest"},
		{"ghcr.io/org/ap?:v1", "ghcr.io/org/app:v1", true, true, "one character"},
		{"ghcr.io/org/ap?:v1", "ghcr.io/org/apps:v1", false, false, "one character more"},
		{"1.dkr.ecr.eu-west-1.amazonaws.com/app:*", "1.dkr-ecr.eu-west-1.on.aws/app:v1", true, false, "another name of the registry by its form is concerned, and not exempt"},
		{"1.dkr.ecr.eu-west-1.amazonaws.com/app", "1.dkr.ecr-fips.eu-west-1.amazonaws.com/app@" + digest, true, false, "the same, by digest"},
		{"1.dkr.ecr.eu-west-1.amazonaws.com/app:*", "2.dkr-ecr.eu-west-1.on.aws/app:v1", false, false, "the other name of another registry"},
		{"*.docker.io/*", "registry-1.docker.io/org/app:v1", true, false, "another name of Docker Hub is concerned, and not exempt"},
		{"*.docker.io/*", "org/app:v1", true, false, "an author does not choose it by the name"},
		{"registry-?.docker.io/*", "docker.io/org/app:v1", true, false, "the same, by another wildcard"},
		{"registry*/org/*", "index.docker.io/org/app@" + digest, true, false, "the same, by digest"},
		{"registry*/nginx:*", "nginx:1", true, false, "an official image without library"},
		{"*.com/*", "registry.hub.docker.com/org/app:v1", true, false, "the name in another domain"},
		{"public.ecr.aws/*", "ecr-public.aws.com/docker/library/redis:7", true, false, "another name of Amazon ECR Public"},
		{"public.ecr.aws/*", "ecr-public.aws.example/docker/library/redis:7", false, false, "another registry"},
		{"docker.io/*", "registry.ipv6.docker.com/library/redis:7", true, true, "another name of Docker Hub, which is normalised"},
		{"gcr.io/project/*", "us-docker.pkg.dev/project/gcr.io/app:v1", true, false, "another name of Google's registry"},
		{"eu.gcr.io/project/*", "us-docker.pkg.dev/project/gcr.io/app:v1", false, false, "another location there"},
		{"registry-?.docker.io/*", "registry-1.docker.example/org/app:v1", false, false, "another registry"},
		{"registry-?.docker.io/other/*", "registry-1.docker.io/org/app:v1", false, false, "another repository there"},
		{"10.0.0.5:5000/*", "[::ffff:10.0.0.5]:5000/app:v1", true, false, "an IPv4 address written as IPv6"},
		{"10.0.0.5:5000/*", "[::ffff:10.0.0.6]:5000/app:v1", false, false, "another address"},
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

// TestExemptsTag: a digest is exempt by its tag only where that is asked for.
func TestExemptsTag(t *testing.T) {
	for _, c := range []struct {
		pattern, ref string
		want         bool
		reason       string
	}{
		{"ghcr.io/org/app:*", "ghcr.io/org/app:v1@" + digest, true, "every tag"},
		{"ghcr.io/org/app:v1", "ghcr.io/org/app:v1@" + digest, true, "the tag"},
		{"docker.io/nginx:*", "nginx:1@" + digest, true, "another spelling"},
		{"ghcr.io/org/app:v2", "ghcr.io/org/app:v1@" + digest, false, "another tag"},
		{"ghcr.io/org/app:*", "ghcr.io/org/app@" + digest, false, "no tag"},
		{"ghcr.io/org/app:*", "ghcr.io/org/app:v1", false, "no digest"},
	} {
		if got := reference.ExemptsTag([]string{reference.Normal(c.pattern)}, image.MustParse(c.ref)); got != c.want {
			t.Errorf("%s: got %t", c.reason, got)
		}
	}
}

func TestNormal(t *testing.T) {
	for pattern, want := range map[string]string{
		"index.docker.io/library/*": "docker.io/library/*", "GHCR.io/org/*": "ghcr.io/org/*", "*.Example.com:443/x": "*.example.com:443/x",
		"example.com:443/x": "example.com/x", "localhost/x": "localhost/x", "LOCALHOST/x": "LOCALHOST/x", "org/App": "org/App", "nginx": "nginx", "*": "*",
	} {
		if got := reference.Normal(pattern); got != want {
			t.Errorf("%s: got %s, want %s", pattern, got, want)
		}
	}
}

// TestUnmatchable: a pattern that cannot match anything is reported, with the cause; and a pattern
// that could match is not.
func TestUnmatchable(t *testing.T) {
	for _, test := range []struct{ good, bad, says string }{
		{"ghcr.io/org/*", "https://ghcr.io/org/*", "scheme"},
		{"ghcr.io/org/*", "ghcr.io/{a,b}/*", "braces"},
		{"ghcr.io/org/*", "ghcr.io/org/*}", "braces"},
		{"ghcr.io/a/*", "ghcr.io/a/*,ghcr.io/b/*", "commas"},
		{"ghcr.io/a/*", "ghcr.io/a/* ", "spaces"},
		{"ghcr.io/a/*", "^ghcr.io/a/*", "regular expressions"},
		{"ghcr.io/a/*", `ghcr\.io/a/*`, "regular expressions"},
		{"*.example.com/x", "*.example.com:443/x", "without :443"},
		{"*.example.com:8443/x", "*.EXAMPLE.com:443/x", "without :443"},
		{"example.com:443/x", "*.example.com:443/x", "without :443"},
		{"x*:443", "*.example.com:443/x*:443", "without :443"},
		{"*docker.io/x", "*.index.docker.io/x", "docker.io/"},
		{"index.docker.io/x", "*registry-1.docker.io/x", "docker.io/"},
		{"*index.docker.io", "*registry.hub.docker.com/x", "docker.io/"},
		{"*.example.com/x", "*INDEX.docker.io/x", "docker.io/"},
		{"org/app", "/org/app", "empty"},
		{"org/app/*", "org/app/", "empty"},
		{"ghcr.io/org/app", "ghcr.io//org/app", "empty"},
		{"ghcr.io/org/app:V1", "ghcr.io/Org/app:v1", "repositories are written in lower case"},
		{"ghcr.io/org/app*V1", "ghcr.io/org/App*V1", "repositories are written in lower case"},
		{"GHCR.io/org/app", "GHCR.io/ORG/app", "repositories are written in lower case"},
		{"app@sha256:ab*", "app@sha256:AB*", "digests are written in lower case"},
		{"app:V1@sha256:ab*", "app:v1@SHA256:ab*", "digests are written in lower case"},
		{"[2001*", "ghcr.io/[a]/x", "no repository has"},
		{"[::1]:5000/x", "ghcr.io/x[a]", "no repository has"},
		{"localhost/x", "localhost/x[", "no repository has"},
		{"ghcr.io/a_b.c-d/0/x", "ghcr.io/a&b/x", "no repository has"},
		{"ghcr.io/x:a_B.9-c", "ghcr.io/x:a&b", "no tag or digest has"},
		{"ghcr.io/x*a", "ghcr.io/x*a&", "no tag or digest has"},
		{"ghcr.io/x?a", "ghcr.io/x?a&", "no tag or digest has"},
		{"*", ":&", "no tag or digest has"},
		{"ghcr.io:65535/org/x", "ghcr.io:65536/org/x", "host and port"},
		{"[::1]:5000/*", "[::1]:0/*", "host and port"},
		{"localhost:*b_c:V1", "localhost:5:*", "no tag"},
		{"localhost:?*c:V1", "app:v1:v*", "no tag"},
		{"localhost:*/x", "localhost:/x", "host and port"},
		{"*.io/org/x", "ghcr..io/org/x", "host and port"},
		{"*.io/*x", "ghcr.io./x", "host and port"},
		{"xn--mnchen-3ya.example/x", "m\u00fcnchen.example/x", "host and port"},
		{"10.0.0.1/x", "10.1/x", "host and port"},
		{"ghcr.io/a-b/x:*", "ghcr.io/-ab/x:*", `"-ab"`},
		{"ghcr.io/*-b/x:*", "ghcr.io/b-/*", `"b-"`},
		{"org/a__b/x", "org/a..b/*", `"a..b"`},
		{"org/x*:v1", "org/:v1", `""`},
		{"ghcr.io/a/x:*", "ghcr.io/a:5000/x*", `"a:5000"`},
		{"ghcr.io/org/app:v1", "ghcr.io/org/app:v1/x", `"app:v1"`},
		{"app:v1*", "app:-v1", "no tag"},
		{"app*:v1", "app*:v1:*", "no tag"},
		{"app:_v.1-x", "app:.v1", "no tag"},
		{"app:" + strings.Repeat("a", 128), "app:" + strings.Repeat("a", 129), "no tag"},
		{"app@" + digest, "app@" + digest + "a", "64 hexadecimal"},
		{"app@sha256:abc*", "app@sha256:abc", "64 hexadecimal"},
		{"app:v1@sha512:*", "app:v1@sha1:*", "64 hexadecimal"},
		{"app@sha256:*a" + strings.Repeat("?", 63), "app@sha256:*a" + strings.Repeat("?", 64), "64 hexadecimal"},
		{"app@*xyz", "app@sha256:*xyz", "64 hexadecimal"},
		{"app@sha*:ab", "app@shb*:ab", "64 hexadecimal"},
		{"app@*", "app@", "64 hexadecimal"},
		{"*/x", "*&", "no tag or digest has"},
	} {
		if got := reference.Unmatchable(test.good); got != "" {
			t.Errorf("%q: %s", test.good, got)
		}
		if got := reference.Unmatchable(test.bad); !strings.Contains(got, test.says) {
			t.Errorf("%q: got %q, want %q in it", test.bad, got, test.says)
		}
	}
}

func TestTextsHoldEverySpelling(t *testing.T) {
	for _, written := range []string{"nginx", "nginx:v1@" + digest, "ghcr.io/org/app@" + digest, "org/app:v1", "1.dkr-ecr.eu-west-1.on.aws/app:v1", "[::ffff:10.0.0.5]:5000/app@" + digest} {
		ref := image.MustParse(written)
		bases := []string{ref.Repository().String(), strings.TrimPrefix(ref.Repository().String(), "docker.io/library/")}
		bases = append(bases, ref.Repository().OtherSpellings()...)
		for _, base := range bases {
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
