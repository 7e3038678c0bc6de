package tagdigest

import (
	"context"
	"errors"
	"testing"

	"github.com/quaymaster/quaymaster/image"
)

// TestOneDigest: rules read the digest of a tag that is verified.
func TestOneDigest(t *testing.T) {
	tag := image.MustParse("registry.example/app:1")
	pinned := func(content string) image.Pinned {
		found, err := tag.Pin(image.Descriptor{Digest: image.DigestOf([]byte(content))})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, c := range []struct {
		reason string
		steps  string // r: a rule reads; v: a digest is verified; f: the tag cannot be resolved; m: the tag moves
		want   string // the version of each r and v; "-" is an error
	}{
		{"a rule reads first", "rmv", "11"},
		{"the digest is verified first", "vmr", "11"},
		{"two rules", "rmr", "11"},
		{"two checks without a rule, with other credentials", "vmv", "12"},
		{"and a rule that reads afterwards", "vmvr", "121"},
		{"and one that reads between them", "vrmv", "111"},
		{"a failure is not kept", "fmr", "-2"},
	} {
		ctx, version := With(t.Context()), "1"
		if With(ctx) != ctx {
			t.Fatal("the digests of a request are replaced")
		}
		resolve := func(context.Context, image.Ref) (image.Pinned, error) { return pinned(version), nil }
		fail := func(context.Context, image.Ref) (image.Pinned, error) { return image.Pinned{}, errors.New("no answer") }
		got := ""
		for _, step := range c.steps {
			var found image.Pinned
			var err error
			switch step {
			case 'm':
				version = "2"
				continue
			case 'r':
				found, err = Read(ctx, tag, resolve)
			case 'f':
				found, err = Read(ctx, tag, fail)
			case 'v':
				found, err = Of(ctx).Verify(pinned(version), nil)
			}
			switch {
			case err != nil:
				got += "-"
			case found.Digest() == pinned("1").Digest():
				got += "1"
			default:
				got += "2"
			}
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
		}
	}
}

// TestWithout: a caller outside of a request, and a reference with a digest, have the answer.
func TestWithout(t *testing.T) {
	ref := image.MustParse("registry.example/app@" + image.DigestOf([]byte("1")).String())
	resolve := func(_ context.Context, ref image.Ref) (image.Pinned, error) {
		return ref.Pin(image.Descriptor{Digest: image.DigestOf([]byte("1"))})
	}
	for _, ctx := range []context.Context{t.Context(), With(t.Context())} {
		read, err := Read(ctx, ref, resolve)
		if err != nil || read.Digest() != ref.Digest() {
			t.Errorf("read %s, %v", read, err)
		}
		if verified, err := Of(ctx).Verify(read, nil); err != nil || verified.String() != read.String() {
			t.Errorf("verified %s, %v", verified, err)
		}
	}
}
