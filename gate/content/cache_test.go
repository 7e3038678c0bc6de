package content

import (
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// TestCache: callers with other credentials do not receive content read with these, an error is
// not kept, and neither is anything beyond its age.
func TestCache(t *testing.T) {
	now := time.Now()
	kept, err := NewCache(time.Hour, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	registry := documents{found: map[image.Digest][]byte{}}
	configured := registry.add(`{}`)
	digest := registry.add(fmt.Sprintf(`{"config":{"digest":%q,"size":2}}`, configured))
	ref, err := image.Parse("registry.example/app@" + digest.String())
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := ref.Pin(image.Descriptor{Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
	reader, mine := Reader{Fetcher: registry, Parallel: 1}, Key{Digest: digest, Scope: "mine", Want: policy.DataOne}
	if _, err := kept.ReadData(t.Context(), Reader{Fetcher: documents{}, Parallel: 1}, pinned, mine); err == nil {
		t.Error("a registry without the image: want an error")
	}
	if _, ok := kept.Data(mine); ok {
		t.Error("what could not be read is kept")
	}
	if _, err := kept.ReadData(t.Context(), reader, pinned, mine); err != nil {
		t.Fatal(err)
	}
	if all, err := kept.Descendants(t.Context(), reader, pinned); err != nil || len(all) != 0 {
		t.Errorf("descendants of a manifest: %v, %v", all, err)
	}
	for _, c := range []struct {
		reason string
		key    Key
		after  time.Duration
		want   bool
	}{
		{"the same", mine, 0, true},
		{"nothing is wanted", Key{Digest: digest, Scope: "other"}, 0, true},
		{"other credentials", Key{Digest: digest, Scope: "other", Want: policy.DataOne}, 0, false},
		{"more is wanted", Key{Digest: digest, Scope: "mine", Want: policy.DataEach}, 0, false},
		{"another image", Key{Digest: configured, Scope: "mine", Want: policy.DataOne}, 0, false},
		{"within its age", mine, 59 * time.Minute, true},
		{"beyond its age", mine, 2 * time.Minute, false},
	} {
		now = now.Add(c.after)
		if _, ok := kept.Data(c.key); ok != c.want {
			t.Errorf("%s: %t", c.reason, ok)
		}
	}
}
