package port_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/checker"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/port"
)

func open(t *testing.T, ring int) *port.Port {
	t.Helper()
	p, err := port.Open(t.Context(), ring)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestImages: images are named by the line's address, no two are alike, and only those that
// the policy's signer signed count as signed.
func TestImages(t *testing.T) {
	p := open(t, 0)
	digests, signed := map[string]bool{}, map[string]bool{}
	for _, truth := range []checker.Truth{checker.Signed, checker.Unsigned, checker.Foreign} {
		fresh, err := p.New(truth)
		if err != nil {
			t.Fatal(err)
		}
		p.AddSigned(signed)
		for _, image := range []port.Image{fresh, p.Image(truth, 0), p.Image(truth, 1)} {
			if image.Truth != truth || image.New != (image == fresh) || digests[image.Digest] || signed[image.Digest] != (truth == checker.Signed) ||
				!strings.HasPrefix(image.Name, p.Line.Address()+"/") || image.ByDigest != strings.TrimSuffix(image.Name, ":1.0")+"@"+image.Digest {
				t.Errorf("%s: %+v", truth, image)
			}
			digests[image.Digest] = true
		}
		if p.Image(truth, 0) != p.Image(truth, port.Known) {
			t.Errorf("%s: the known images do not come round", truth)
		}
	}
	if text, err := p.Policy("web", "shop-*", 5); err != nil || !strings.Contains(text, p.Line.Address()+"/*") || !strings.Contains(text, "shop-*") {
		t.Errorf("the policy is %s, %v", text, err)
	}
}

// TestRing: after so many new images, those of before come again, each of its truth.
func TestRing(t *testing.T) {
	p := open(t, 4)
	digests := map[string]bool{}
	for n := range 20 {
		truth := []checker.Truth{checker.Signed, checker.Unsigned}[n%2]
		image, err := p.New(truth)
		if err != nil || image.Truth != truth {
			t.Fatalf("%+v, %v", image, err)
		}
		digests[image.Digest] = true
	}
	if len(digests) != 4 || len(p.Images()) != 4+3*port.Known {
		t.Errorf("%d new images of %d, want 4", len(digests), len(p.Images()))
	}
	if _, err := p.New(checker.Foreign); err == nil {
		t.Error("there is an image of a truth that the ring has not")
	}
}
