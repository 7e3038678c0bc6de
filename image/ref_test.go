package image_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/quaymaster/quaymaster/image"
)

func TestParse(t *testing.T) {
	at := "@sha256:" + hex64
	at512 := "@sha512:" + hex128
	for input, want := range map[string]string{
		"nginx":                               "docker.io/library/nginx:latest",
		"nginx:1.27":                          "docker.io/library/nginx:1.27",
		"nginx" + at:                          "docker.io/library/nginx" + at,
		"nginx:1.27" + at:                     "docker.io/library/nginx:1.27" + at,
		"nginx" + at512:                       "docker.io/library/nginx" + at512,
		"bitnami/nginx":                       "docker.io/bitnami/nginx:latest",
		"docker.io/nginx":                     "docker.io/library/nginx:latest",
		"index.docker.io/nginx":               "docker.io/library/nginx:latest",
		"index.docker.io/library/nginx":       "docker.io/library/nginx:latest",
		"registry-1.docker.io/nginx":          "docker.io/library/nginx:latest",
		"registry-1.docker.io/library/nginx":  "docker.io/library/nginx:latest",
		"registry.hub.docker.com/nginx":       "docker.io/library/nginx:latest",
		"Docker.io/nginx":                     "docker.io/library/nginx:latest",
		"ghcr.io/a/b/c:v1":                    "ghcr.io/a/b/c:v1",
		"GHCR.io/a/b":                         "ghcr.io/a/b:latest",
		"localhost/a":                         "localhost/a:latest",
		"localhost:5000/a":                    "localhost:5000/a:latest",
		"localhost:5000/a:1" + at:             "localhost:5000/a:1" + at,
		"registry.example:443/a":              "registry.example/a:latest",
		"registry.example:0443/a":             "registry.example/a:latest",
		"registry.example:05000/a":            "registry.example:5000/a:latest",
		"registry-1.docker.io:443/nginx":      "docker.io/library/nginx:latest",
		"host:443/a":                          "host:443/a:latest",
		"host:4430/a":                         "host:4430/a:latest",
		"[::1]:443/a":                         "[::1]:443/a:latest",
		"127.0.0.1:5000/a:1":                  "127.0.0.1:5000/a:1",
		"10.0.0.5/a":                          "10.0.0.5/a:latest",
		"10.example:5000/a":                   "10.example:5000/a:latest",
		"0xa.example/a":                       "0xa.example/a:latest",
		"0xample:5000/a":                      "0xample:5000/a:latest",
		"registry.5a/a":                       "registry.5a/a:latest",
		"0x5000/a":                            "docker.io/0x5000/a:latest",
		"[::1]:5000/a":                        "[::1]:5000/a:latest",
		"a.b/c_d/e__f/g-h/i.j:T_a.g-1":        "a.b/c_d/e__f/g-h/i.j:T_a.g-1",
		"registry.example/a:" + tagOf(128):    "registry.example/a:" + tagOf(128),
		"registry.example:5000/a/b/c" + at512: "registry.example:5000/a/b/c" + at512,
	} {
		t.Run(input, func(t *testing.T) {
			ref, err := image.Parse(input)
			if err != nil {
				t.Fatal(err)
			}
			if ref.String() != want || ref.Written() != input {
				t.Errorf("got %s, written %s; want %s", ref, ref.Written(), want)
			}
			again, err := image.Parse(ref.String())
			if err != nil || again.String() != ref.String() || again.Repository() != ref.Repository() || again.Tag() != ref.Tag() || again.Digest() != ref.Digest() {
				t.Errorf("%s read again is %s, %v", ref, again, err)
			}
		})
	}
}

func tagOf(n int) string { return strings.Repeat("t", n) }

func TestParseSuggests(t *testing.T) {
	for input, want := range map[string]string{
		"docker://nginx:1":         "is a URL; write the reference without docker://, as nginx:1",
		"https://ghcr.io/acme/app": "write the reference without https://, as ghcr.io/acme/app",
		"oci://ghcr.io/acme/app":   "write the reference without oci://",
		"Nginx:1":                  "repositories are in lower case",
		"ghcr.io/Acme/app":         "repositories are in lower case",
		"ghcr.io/Acme/a&b":         "can only contain",
	} {
		if _, err := image.Parse(input); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for input, reason := range map[string]string{
		"":                                    "nothing",
		" ":                                   "nothing",
		"Nginx":                               "a path is lower case",
		"nginx:":                              "an empty tag",
		"nginx:@sha256:" + hex64:              "an empty tag",
		"nginx@":                              "an empty digest",
		"nginx@sha256:":                       "an empty digest",
		"nginx@sha256:" + hex64[1:]:           "a short digest",
		"nginx@sha256:../../x":                "a digest that is a path",
		"nginx@md5:" + hex64[:32]:             "an algorithm that is not registered",
		"nginx@sha256:" + hex64 + "@":         "a second digest",
		"nginx@sha256:" + hex64 + "@sha256:x": "a second digest",
		"@sha256:" + hex64:                    "no repository",
		":v1":                                 "no repository",
		"sha256:" + hex64:                     "the ID of an image on the node",
		"sha256:" + hex64[:12]:                "the beginning of an ID",
		"sha256":                              "an ID without digits",
		"sha512:" + hex64 + hex64:             "an ID of another algorithm",
		"sha384:" + hex64[:12]:                "an ID of another algorithm",
		hex64:                                 "an ID without its algorithm",
		"registry.example/":                   "no path",
		"registry.example//a":                 "an empty component",
		"registry.example/a/":                 "an empty component",
		"registry.example/../a":               "a component that climbs",
		"registry.example/a/../b":             "a component that climbs",
		"registry.example/./a":                "a component that stays",
		"registry.example/.a":                 "a component begins with a letter or digit",
		"registry.example/a-":                 "a component ends with a letter or digit",
		"registry.example/a..b":               "two dots in a row are no separator",
		"registry.example/a___b":              "three underscores are no separator",
		"registry.example/a:-tag":             "a tag does not begin so",
		"registry.example/a:.tag":             "a tag does not begin so",
		"registry.example/a:" + tagOf(129):    "a tag of 129 characters",
		"registry.example/a:b:c":              "two tags",
		"10.0.5:5000/a":                       "an address of three numbers",
		"10.5:5000/a":                         "an address of two numbers",
		"167772165:5000/a":                    "an address of one number",
		"0xa000005:5000/a":                    "a hexadecimal address",
		"0XA.0.0.0x5:5000/a":                  "hexadecimal parts of an address",
		"10.0.0.0x:5000/a":                    "an empty hexadecimal number",
		"012.0.0.5:5000/a":                    "an octal part of an address",
		"10.0.0.05:5000/a":                    "a leading zero",
		"10.0.0.256:5000/a":                   "a number that is too great",
		"10.0.0.0.5/a":                        "five numbers",
		"registry.5/a":                        "a name that ends in a number",
		"registry.example/a b":                "a blank",
		" registry.example/a":                 "a blank",
		"registry.example/a\n":                "a line end",
		"registry.example/a%2fb":              "an escape",
		"registry.example/a?b":                "a query",
		"registry.example/a#b":                "a fragment",
		"user@registry.example/a":             "a user",
		"https://registry.example/a":          "a URL",
		"docker://registry.example/a":         "a transport",
		"registry.example:port/a":             "a port is a number",
		"registry.example:0/a":                "a port is a number from 1",
		"registry.example:65536/a":            "a port is a number to 65535",
		"registry.example./a":                 "the same host by another name",
		"registry..example/a":                 "an empty label",
		"-registry.example/a":                 "a label does not begin so",
		"my_registry.example/a":               "a host has no underscore",
		"[1.2.3.4]:5000/a":                    "not an IPv6 address",
		"[fe80::1%25eth0]:5000/a":             "an address of one machine's own",
		"[fe80::1%eth0]:5000/a":               "an address of one machine's own",
		"registry.example/ä":                  "not ASCII",
		strings.Repeat("a", 248):              "with library/ before it, a path of more than 255 characters",
		"registry.example/" + strings.Repeat("a", 256):        "a path of more than 255 characters",
		"registry.example/a:" + strings.Repeat("x", 1<<16):    "endless",
		strings.Repeat("a/", 600) + "b":                       "endless",
		"registry.example\\a/b":                               "a backslash",
		"registry.example/\x00":                               "a control character",
		"registry.example/a:tag\x00":                          "a control character",
		"regis\x00try.example/a":                              "a control character",
		"registry.example/a@sha256:" + strings.ToUpper(hex64): "there is one canonical form",
		"registry.example/a@SHA256:" + hex64:                  "there is one canonical form",
		"registry.example/A/b":                                "a path is lower case",
		"..":                                                  "no name",
	} {
		t.Run(reason, func(t *testing.T) {
			ref, err := image.Parse(input)
			if err == nil {
				t.Fatalf("%q was read as %s", input, ref)
			}
			if !ref.IsZero() || len(err.Error()) > 700 {
				t.Errorf("ref %s, message of %d characters", ref, len(err.Error()))
			}
		})
	}
}

func TestParseRepository(t *testing.T) {
	for input, want := range map[string]string{
		"nginx":                     "docker.io/library/nginx",
		"index.docker.io/nginx":     "docker.io/library/nginx",
		"registry-1.docker.io/a/b":  "docker.io/a/b",
		"Registry.Example/a/b":      "registry.example/a/b",
		"registry.example:5000/a/b": "registry.example:5000/a/b",
	} {
		r, err := image.ParseRepository(input)
		if err != nil || r.String() != want {
			t.Errorf("%s: got %s, %v; want %s", input, r, err, want)
		}
		if again, err := image.ParseRepository(r.String()); err != nil || again != r {
			t.Errorf("%s read again is %s, %v", r, again, err)
		}
	}
	for _, bad := range []string{"", "registry.example/a:v1", "registry.example/a@sha256:" + hex64, "registry.example/../a", "registry.example/", "A", strings.Repeat("a", 2000)} {
		if r, err := image.ParseRepository(bad); err == nil || !r.IsZero() {
			t.Errorf("%.100q was read as %s", bad, r)
		}
	}
	if got := (image.Repository{}).String(); got != "" {
		t.Errorf("the zero repository is %q", got)
	}
}

func TestPin(t *testing.T) {
	digest := image.MustParseDigest("sha256:" + hex64)
	other := image.DigestOf([]byte("other"))
	for name, row := range map[string]struct {
		ref, digest      string
		exact, asWritten string
		err              string
	}{
		"by tag":           {"nginx:1.27", digest.String(), "docker.io/library/nginx:1.27@" + digest.String(), "nginx:1.27@" + digest.String(), ""},
		"without tag":      {"nginx", digest.String(), "docker.io/library/nginx:latest@" + digest.String(), "nginx@" + digest.String(), ""},
		"by digest":        {"nginx@" + digest.String(), digest.String(), "docker.io/library/nginx@" + digest.String(), "nginx@" + digest.String(), ""},
		"by both":          {"nginx:1@" + digest.String(), digest.String(), "docker.io/library/nginx:1@" + digest.String(), "nginx:1@" + digest.String(), ""},
		"to another":       {"nginx@" + digest.String(), other.String(), "", "", "another digest"},
		"to nothing":       {"nginx", "", "", "", "the digest is empty"},
		"empty reference":  {"", digest.String(), "", "", "the reference is empty"},
		"both, to another": {"nginx:1@" + digest.String(), other.String(), "", "", "another digest"},
	} {
		t.Run(name, func(t *testing.T) {
			var ref image.Ref
			if row.ref != "" {
				ref = image.MustParse(row.ref)
			}
			var d image.Digest
			if row.digest != "" {
				d = image.MustParseDigest(row.digest)
			}
			p, err := ref.Pin(image.Descriptor{Digest: d})
			if row.err != "" {
				if err == nil || !p.IsZero() || !strings.Contains(err.Error(), row.err) {
					t.Fatalf("got %s, error %v; want one with %q", p, err, row.err)
				}
				return
			}
			if err != nil || p.String() != row.exact || p.Written() != row.asWritten || p.Digest() != d || p.Ref() != ref || p.Repository() != ref.Repository() {
				t.Errorf("got %s, written %s, %v", p, p.Written(), err)
			}
			for _, s := range []string{p.String(), p.Written()} { // pinning again changes nothing
				again, err := image.MustParse(s).Pin(image.Descriptor{Digest: d})
				if err != nil || again.Written() != s || again.Repository() != p.Repository() {
					t.Errorf("%s pinned again is %s, %v", s, again.Written(), err)
				}
			}
		})
	}
}

func TestChildDropsTheTag(t *testing.T) {
	index, err := image.MustParse("nginx:1.27").Pin(image.Descriptor{Digest: image.DigestOf([]byte("index")), MediaType: image.MediaTypeIndex})
	if err != nil {
		t.Fatal(err)
	}
	child := index.Child(image.Descriptor{Digest: image.DigestOf([]byte("child")), Platform: &image.Platform{OS: "linux", Architecture: "arm", Variant: "v7"}})
	if want := "docker.io/library/nginx@" + image.DigestOf([]byte("child")).String(); child.String() != want {
		t.Errorf("got %s, want %s", child, want)
	}
	if got := child.Descriptor().Platform.String(); got != "linux/arm/v7" {
		t.Errorf("platform %s", got)
	}
	if !index.Descriptor().IsIndex() || child.Descriptor().IsIndex() || index.Descriptor().IsComplete() {
		t.Error("IsIndex or IsComplete of a descriptor is wrong")
	}
	if got := (image.Pinned{}).String(); got != "" {
		t.Errorf("the zero value is %q", got)
	}
}

func TestKindOf(t *testing.T) {
	gone := &image.Error{Kind: image.NotFound, Op: "fetch manifest", On: "a", Err: errors.New("404")}
	for name, row := range map[string]struct {
		err  error
		want image.Kind
	}{
		"none":        {nil, ""},
		"direct":      {gone, image.NotFound},
		"wrapped":     {fmt.Errorf("look: %w", gone), image.NotFound},
		"joined":      {errors.Join(errors.New("x"), gone), image.NotFound},
		"the outer":   {&image.Error{Kind: image.Refused, Op: "x", On: "y", Err: gone}, image.Refused},
		"not a kind":  {errors.New("boom"), image.Unavailable},
		"only a text": {errors.New(gone.Error()), image.Unavailable},
	} {
		if got := image.KindOf(row.err); got != row.want {
			t.Errorf("%s: got %q, want %q", name, got, row.want)
		}
	}
	if got := gone.Error(); got != "fetch manifest a: not-found: 404" {
		t.Errorf("message %q", got)
	}
}

// compare checks a reference against go-containerregistry's reading of it, where both accept:
// another repository, tag or digest would mean that the verified image differs from the pulled
// one.
func compare(t *testing.T, s string, ref image.Ref) {
	t.Helper()
	theirs, err := name.ParseReference(s)
	if err != nil {
		return
	}
	registry, path := image.NormalRegistry(theirs.Context().RegistryStr()), theirs.Context().RepositoryStr()
	if image.NormalRegistry(registry) != registry {
		t.Errorf("%s is normalised twice to another name", registry)
	}
	if registry == "docker.io" && !strings.Contains(path, "/") {
		path = "library/" + path // which it adds under the name index.docker.io only
	}
	if ref.Registry() != registry || ref.Repository().Path() != path {
		t.Errorf("%q: %s, others read %s/%s", s, ref.Repository(), registry, path)
	}
	switch r := theirs.(type) {
	case name.Tag:
		if ref.Tag() != r.TagStr() || !ref.Digest().IsZero() {
			t.Errorf("%q: tag %q and digest %q, others read tag %q", s, ref.Tag(), ref.Digest(), r.TagStr())
		}
	case name.Digest:
		if ref.Digest().String() != r.DigestStr() {
			t.Errorf("%q: digest %q, others read %q", s, ref.Digest(), r.DigestStr())
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"nginx", "nginx:1.27", "a/b@sha256:" + hex64, "localhost:5000/a:1@sha256:" + hex64, "[::1]:5000/a", "index.docker.io/a",
		"a.b/c_d/e__f:T", "registry.hub.docker.com/a", "A.B/c", "a:1/b", "docker.io/library/library", "registry-1.docker.io/a@sha512:" + hex128,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, err := image.Parse(s)
		if err != nil {
			if !ref.IsZero() {
				t.Errorf("%q: an error and a reference", s)
			}
			return
		}
		again, err := image.Parse(ref.String())
		if err != nil || again.String() != ref.String() || again.Repository() != ref.Repository() || again.Tag() != ref.Tag() || again.Digest() != ref.Digest() {
			t.Fatalf("%q is %s; that is %s, %v", s, ref, again, err)
		}
		if repository, err := image.ParseRepository(ref.Repository().String()); err != nil || repository != ref.Repository() {
			t.Errorf("%s as a repository is %s, %v", ref.Repository(), repository, err)
		}
		if ref.Tag() == "" && ref.Digest().IsZero() {
			t.Errorf("%q names nothing in %s", s, ref.Repository())
		}
		for part := range strings.SplitSeq(ref.Repository().Path(), "/") {
			if strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" || part == "" || part == "." || part == ".." {
				t.Errorf("%q has the component %q", s, part)
			}
		}
		if strings.ContainsAny(ref.Registry(), "/@?#%\\ \t\r\n") || ref.Registry() != strings.ToLower(ref.Registry()) {
			t.Errorf("%q has the registry %q", s, ref.Registry())
		}
		compare(t, s, ref)
		if _, err := json.Marshal(ref.Written()); err != nil {
			t.Error(err)
		}
	})
}

// TestAddressesHaveOneSpelling: policies compare names as text, so that another
// spelling of an address must not be another name.
func TestAddressesHaveOneSpelling(t *testing.T) {
	for _, c := range []struct{ reason, written, want string }{
		{"zeros written out", "[2001:db8:0::1]:5000/app:v1", "[2001:db8::1]:5000/app:v1"},
		{"upper case", "[2001:DB8::1]:5000/app:v1", "[2001:db8::1]:5000/app:v1"},
		{"the port of TLS", "[2001:db8::1]:443/app:v1", "[2001:db8::1]/app:v1"},
		{"another port stays", "[2001:db8::1]:8443/app:v1", "[2001:db8::1]:8443/app:v1"},
		{"loopback is asked without TLS, so its port stays", "[::1]:443/app:v1", "[::1]:443/app:v1"},
	} {
		ref, err := image.Parse(c.written)
		if err != nil || ref.String() != c.want {
			t.Errorf("%s: %s, %v; want %s", c.reason, ref, err, c.want)
		}
	}
}

// TestOtherNames: they lead back to their source, and no other image has them.
func TestOtherNames(t *testing.T) {
	for name, want := range map[string]string{
		"1.dkr.ecr.eu-west-1.amazonaws.com/a/b":              "[1.dkr.ecr-fips.eu-west-1.amazonaws.com/a/b 1.dkr-ecr.eu-west-1.on.aws/a/b 1.dkr-ecr-fips.eu-west-1.on.aws/a/b]",
		"1.dkr-ecr.cn-north-1.on.amazonwebservices.com.cn/a": "[1.dkr.ecr.cn-north-1.amazonaws.com.cn/a]",
		"10.0.0.5:5000/a":                           "[[::ffff:10.0.0.5]:5000/a]",
		"[::ffff:10.0.0.5]:5000/a":                  "[10.0.0.5:5000/a]",
		"[2001:db8::1]/a":                           "[]",
		"public.ecr.aws/docker/library/redis":       "[ecr-public.aws.com/docker/library/redis]",
		"gcr.io/project/a/b":                        "[us-docker.pkg.dev/project/gcr.io/a/b]",
		"us.gcr.io/project/a":                       "[us-docker.pkg.dev/project/us.gcr.io/a]",
		"eu.gcr.io/example.com/project/a":           "[europe-docker.pkg.dev/example.com/project/eu.gcr.io/a]",
		"asia-docker.pkg.dev/project/asia.gcr.io/a": "[asia.gcr.io/project/a]",
		"europe-docker.pkg.dev/project/gcr.io/a":    "[]", // a repository of this name elsewhere
		"us-docker.pkg.dev/project/images/a":        "[]",
		"us-docker.pkg.dev/project/gcr.io":          "[]",
		"gcr.io/project":                            "[]",
		"gcr.io/example.com/project":                "[]",
		"public.ecr.aws.example/a":                  "[]",
		"ghcr.io/a/b":                               "[]",
		"nginx":                                     "[]",
	} {
		repository, err := image.ParseRepository(name)
		if err != nil {
			t.Fatal(err)
		}
		others := repository.OtherNames()
		if got := fmt.Sprint(others); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		for _, other := range others {
			if !slices.Contains(other.OtherNames(), repository) {
				t.Errorf("%s does not lead back to %s", other, name)
			}
		}
	}
}

// TestAdviceOfReference: the next step follows from the text where that is known.
func TestAdviceOfReference(t *testing.T) {
	for input, want := range map[string]string{
		"docker://nginx:1": "write the reference without docker://, as nginx:1",
		"sha256:" + hex64:  "name its registry and repository",
		"nginx:":           "",
	} {
		_, err := image.Parse(input)
		text, advice := image.SplitAdvice(err)
		if advice != want || want != "" && strings.Contains(text, want) {
			t.Errorf("%s: %q, %q", input, text, advice)
		}
	}
}
