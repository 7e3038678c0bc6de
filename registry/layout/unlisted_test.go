package layout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// failing fails to open as many files as it is set to.
type failing struct {
	counted
	left *int
}

func (f failing) Open(name string) (io.ReadCloser, error) {
	if *f.left > 0 {
		*f.left--
		return nil, errors.New("the disk does not answer")
	}
	return f.counted.Open(name)
}

// manifestOf is a referrer of a subject, which no index.json lists.
func manifestOf(subject image.Digest) string {
	return fmt.Sprintf(`{"config":{},"layers":[],"subject":{"digest":%q}}`, subject)
}

// TestUnlistedAmongLayers: of layers the beginning alone is read, so that many are no reason to find
// nothing. As many objects of JSON exceed the bound, once.
func TestUnlistedAmongLayers(t *testing.T) {
	subject := image.DigestOf([]byte("subject"))
	for _, test := range []struct {
		reason, start string
		kind          image.Kind
	}{
		{"layers", "\x1f\x8b", ""},
		{"objects of JSON", " {", image.Bound},
	} {
		files := counted{inMemory{}, map[string]int{}}
		files.put(manifestOf(subject))
		large := test.start + strings.Repeat("x", content.MaxManifest-len(test.start))
		for i := range maxUnlisted/content.MaxManifest + 1 {
			files.inMemory[fmt.Sprintf("blobs/sha256/%064x", i)] = large
		}
		layout := &Layout{unlisted: newUnlisted(), files: files}
		for range 2 {
			list, err := layout.Referrers(t.Context(), image.Repository{}, subject, nil)
			if image.KindOf(err) != test.kind || err == nil && len(list) != 1 {
				t.Errorf("%s: %v, %v", test.reason, list, err)
			}
		}
		if n := files.opened[fmt.Sprintf("blobs/sha256/%064x", 0)]; n != 1 {
			t.Errorf("%s: searched %d times", test.reason, n)
		}
	}
}

// TestUnlistedAfterFailures: a file that cannot be read now is an error now, next to what is found; a
// later search finds it. A caller waits and searches no longer than its context allows.
func TestUnlistedAfterFailures(t *testing.T) {
	subject, failures := image.DigestOf([]byte("subject")), 1
	files := failing{counted{inMemory{}, map[string]int{}}, &failures}
	files.put(manifestOf(subject))
	files.put(manifestOf(subject) + " ")
	layout := &Layout{unlisted: newUnlisted(), files: files}
	if list, err := layout.Referrers(t.Context(), image.Repository{}, subject, nil); len(list) != 1 || image.KindOf(err) != image.Unavailable {
		t.Errorf("while a file cannot be read: %v, %v", list, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	opened := len(files.opened)
	if list, err := layout.Referrers(ended, image.Repository{}, subject, nil); len(list) != 0 || image.KindOf(err) != image.Unavailable || len(files.opened) != opened {
		t.Errorf("after the context's end: %v, %v", list, err)
	}
	layout.unlisted.turn <- struct{}{}
	if _, err := layout.unlisted.about(ended, subject, layout); !errors.Is(err, context.Canceled) {
		t.Errorf("while another caller searches: %v", err)
	}
	<-layout.unlisted.turn
	for range 2 {
		if list, err := layout.Referrers(t.Context(), image.Repository{}, subject, nil); len(list) != 2 || err != nil {
			t.Errorf("later: %v, %v", list, err)
		}
	}
}
