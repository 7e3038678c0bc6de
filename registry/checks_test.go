package registry

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
)

// TestCheckDigest: the body must be what was asked for, and what the header says it is.
func TestCheckDigest(t *testing.T) {
	body := []byte("manifest")
	own, other := image.DigestOf(body), image.DigestOf([]byte("other"))
	long := "sha512:" + strings.Repeat("ab", 64)
	sum := sha512.Sum512(body)
	longer := image.MustParseDigest("sha512:" + hex.EncodeToString(sum[:]))
	tests := []struct {
		reason, reference, header string
		refused                   bool
	}{
		{"a tag, and no header", "v1", "", false},
		{"a tag, and its header", "v1", own.String(), false},
		{"a tag, and the header of another", "v1", other.String(), true},
		{"a tag, and a header that is no digest", "v1", "sha256:x", true},
		{"a tag, and a header of another algorithm", "v1", long, true},
		{"the digest", own.String(), "", false},
		{"the digest, and its header", own.String(), own.String(), false},
		{"the digest, and the header of another", own.String(), other.String(), true},
		{"the digest, and a header that is no digest", own.String(), "x", true},
		{"another digest", other.String(), "", true},
		{"another digest, and the body's own header", other.String(), own.String(), true},
		{"another digest, and its header", other.String(), other.String(), true},
	}
	for _, test := range tests {
		digest, err := checkDigest(test.reference, test.header, body)
		if (err != nil) != test.refused || err == nil && digest != own {
			t.Errorf("%s: got %s, %v", test.reason, digest, err)
		}
	}
	// A tag goes by the digest that the registry names, and a digest by itself.
	for reference, want := range map[string]image.Digest{"v1": longer, own.String(): own, longer.String(): longer} {
		if got, err := checkDigest(reference, longer.String(), body); err != nil || got != want {
			t.Errorf("%s with a header of sha512: got %s, %v, want %s", reference, got, err, want)
		}
	}
}

// TestDescribe: a manifest is of one kind, by its header and by its own word.
func TestDescribe(t *testing.T) {
	const index, one = image.MediaTypeIndex, image.MediaTypeManifest
	typed := func(mediaType, rest string) string { return `{"mediaType":"` + mediaType + `"` + rest + `}` }
	tests := []struct {
		reason, body, header string
		want                 string // empty: refused
	}{
		{"both say the same", typed(one, ""), one, one},
		{"they contradict each other", typed(one, ""), index, ""},
		{"the header alone", `{}`, one, one},
		{"the body alone", typed(one, ""), "", one},
		{"the body alone, under a vague header", typed(one, ""), "text/plain", one},
		{"the body, under the header of something else", typed(one, ""), "text/html", ""},
		{"neither", `{}`, "", ""},
		{"the body says something else", typed("text/html", ""), "", ""},
		{"no JSON", `<html>`, one, ""},
		{"a part of another kind", `{"artifactType":5}`, one, ""},
		{"an index", typed(index, `,"manifests":[]`), index, index},
		{"an index with layers", typed(index, `,"manifests":[],"layers":[]`), index, ""},
		{"an index with a config", typed(index, `,"manifests":[],"config":{}`), index, ""},
		{"an image", typed(one, `,"config":{},"layers":[]`), one, one},
		{"an image with manifests", typed(one, `,"config":{},"manifests":[]`), one, ""},
	}
	for _, test := range tests {
		got, err := describe([]byte(test.body), test.header)
		if (err == nil) != (test.want != "") || got.MediaType != test.want {
			t.Errorf("%s: got %q, %v", test.reason, got.MediaType, err)
		}
	}
	if mediaTypeOf(http.Header{"Content-Type": {one + "; charset=utf-8"}}) != one || mediaTypeOf(http.Header{"Content-Type": {"a/b; ="}}) != "" {
		t.Error("a media type is read with its parameters, or one is made of what is none")
	}
}

func TestIsTag(t *testing.T) {
	for tag, want := range map[string]bool{
		"v1": true, "_": true, "0": true, "9": true, "a": true, "z": true, "A": true, "Z": true, "a.b": true, "a-b": true, "a_b": true,
		"": false, ".": false, "-": false, ".a": false, "-a": false, "a/b": false, "a:b": false, "a@b": false, "a[b": false, "a`b": false, "a{b": false, "a b": false, "é": false,
		strings.Repeat("a", 128): true, strings.Repeat("a", 129): false,
	} {
		if isTag(tag) != want {
			t.Errorf("%q is a tag: %t", tag, !want)
		}
	}
	repository := image.MustParse("reg.example/app").Repository()
	for reference, good := range map[string]bool{"v1": true, image.DigestOf(nil).String(): true, "../x": false, "": false} {
		if err := checkReference(question{repository: repository, reference: reference}); (err == nil) != good {
			t.Errorf("%q: got %v", reference, err)
		}
		if checkReference(question{reference: reference}) == nil {
			t.Errorf("%q of no repository was taken", reference)
		}
	}
}

// TestBlobs: how much is read for a descriptor, and what must come.
func TestBlobs(t *testing.T) {
	body := []byte("blob")
	digest := image.DigestOf(body)
	tests := []struct {
		reason string
		blob   image.Descriptor
		most   int64
		want   int64 // -1: refused
		bound  bool  // as past a bound
	}{
		{"its size", image.Descriptor{Digest: digest, Size: 4}, 10, 4, false},
		{"as much as may be", image.Descriptor{Digest: digest, Size: 10}, 10, 10, false},
		{"more", image.Descriptor{Digest: digest, Size: 11}, 10, -1, true},
		{"no size", image.Descriptor{Digest: digest}, 10, 10, false},
		{"no size, and no bound below ours", image.Descriptor{Digest: digest}, maxBlob + 1, maxBlob, false},
		{"a negative size", image.Descriptor{Digest: digest, Size: -1}, 10, -1, false},
		{"nothing may be read, and nothing is said", image.Descriptor{Digest: digest}, 0, 0, false},
		{"a negative bound", image.Descriptor{Digest: digest}, -1, -1, false},
		{"no digest", image.Descriptor{Size: 4}, 10, -1, false},
	}
	for _, test := range tests {
		got, err := blobBound(test.blob, test.most)
		if (err == nil) != (test.want >= 0) || err == nil && got != test.want {
			t.Errorf("%s: got %d, %v", test.reason, got, err)
		}
		if _, is := errors.AsType[*limit.ExceededError](err); is != test.bound || err != nil && (kindOfBound(err) == image.Bound) != test.bound {
			t.Errorf("%s: got %v, of kind %s", test.reason, err, kindOfBound(err))
		}
	}
	if kindOfBound(errTooManyReferrers) != image.Bound {
		t.Error("a list that is too long is no bound")
	}
	for size, good := range map[int64]bool{0: true, 4: true, 3: false, 5: false} {
		if err := checkBlob(image.Descriptor{Digest: digest, Size: size}, body); (err == nil) != good {
			t.Errorf("a blob of %d bytes for one of 4: got %v", size, err)
		}
	}
	if checkBlob(image.Descriptor{Digest: image.DigestOf(nil), Size: 4}, body) == nil {
		t.Error("a blob of another digest was taken")
	}
}

// TestFromConfig reads what docker's and podman's files hold.
func TestFromConfig(t *testing.T) {
	encoded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	tests := []struct {
		reason string
		config authn.AuthConfig
		want   auth.Credential
		fails  bool
	}{
		{"plain", authn.AuthConfig{Username: "u", Password: "p"}, auth.Credential{Username: "u", Password: "p"}, false},
		{"encoded", authn.AuthConfig{Auth: encoded("u:p:q")}, auth.Credential{Username: "u", Password: "p:q"}, false},
		{"plain beside encoded", authn.AuthConfig{Username: "u", Password: "p", Auth: "%"}, auth.Credential{Username: "u", Password: "p"}, false},
		{"a user beside encoded", authn.AuthConfig{Username: "u", Auth: encoded("x:y")}, auth.Credential{Username: "u"}, false},
		{"a password beside encoded", authn.AuthConfig{Password: "p", Auth: encoded("x:y")}, auth.Credential{Password: "p"}, false},
		{"an identity token", authn.AuthConfig{Username: "<token>", IdentityToken: "t"}, auth.Credential{RefreshToken: "t"}, false},
		{"no base64", authn.AuthConfig{Auth: "%"}, auth.EmptyCredential, true},
		{"base64 that ends in something else", authn.AuthConfig{Auth: encoded("u:p") + "%"}, auth.EmptyCredential, true},
		{"no password", authn.AuthConfig{Auth: encoded("u")}, auth.EmptyCredential, true},
		{"nothing", authn.AuthConfig{}, auth.EmptyCredential, false},
	}
	for _, test := range tests {
		if got, err := fromConfig(&test.config); got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: got %+v, %v", test.reason, got, err)
		}
	}
}

// given is a keychain, and the credential in it.
type given struct {
	config *authn.AuthConfig
	err    error
}

func (g given) Resolve(authn.Resource) (authn.Authenticator, error) { return g, nil }

func (g given) Authorization() (*authn.AuthConfig, error) { return g.config, g.err }

// TestBrokenCredential: a credential that cannot be read is told of, and nobody is asked
// without it.
func TestBrokenCredential(t *testing.T) {
	repository := image.MustParse("reg.example/app").Repository()
	for reason, test := range map[string]struct {
		keychain authn.Keychain
		want     auth.Credential
		fails    bool
	}{
		"one":                     {given{config: &authn.AuthConfig{Username: "u", Password: "p"}}, auth.Credential{Username: "u", Password: "p"}, false},
		"one that cannot be had":  {given{err: errors.New("locked")}, auth.EmptyCredential, true},
		"one that cannot be read": {given{config: &authn.AuthConfig{Auth: "%"}}, auth.EmptyCredential, true},
	} {
		got, _, err := credentials{{Name: "test", Keychain: test.keychain}}.find(t.Context(), repository)
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: got %+v, %v", reason, got, err)
		}
	}
}

// TestNobodyIsAsked: for what is no reference no request is made; the client here has no
// way to make one.
func TestNobodyIsAsked(t *testing.T) {
	client, repository := &Client{}, image.MustParse("reg.example/app").Repository()
	for reason, ask := range map[string]func() error{
		"no reference": func() error { _, err := client.Resolve(t.Context(), image.Ref{}); return err },
		"no repository": func() error {
			_, err := client.Blob(t.Context(), image.Repository{}, image.Descriptor{Digest: image.DigestOf(nil)}, 10)
			return err
		},
		"a path": func() error { _, err := client.head(t.Context(), "test", repository, "../x"); return err },
		"a path of a manifest": func() error {
			_, _, err := client.Manifest(t.Context(), repository, "../x")
			return err
		},
	} {
		if ask() == nil {
			t.Errorf("%s: no error", reason)
		}
	}
	if got, err := client.Describe(t.Context(), image.Pinned{}); err != nil || !got.IsZero() {
		t.Errorf("nothing to describe: got %v, %v", got, err)
	}
}
