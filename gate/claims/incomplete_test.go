package claims

import (
	"context"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// counted counts what is kept for other replicas.
type counted struct{ kept int }

func (*counted) Get(context.Context, []string) map[string][]byte { return nil }

func (c *counted) Keep(string, []byte, time.Duration) { c.kept++ }

// TestIncomplete: claims of a fallback are cached briefly, and for this process alone, where an
// earlier repository could not be read.
func TestIncomplete(t *testing.T) {
	now := time.Now()
	key := aKey("https://example.com/scan")
	for _, c := range []struct {
		reason     string
		incomplete bool
		shared     int
	}{
		{"all was read", false, 1},
		{"an earlier repository was not", true, 0},
	} {
		store := &counted{}
		clock := now
		known, err := New(Config{
			Fact: time.Hour, None: time.Minute, Tag: time.Minute, Stale: 24 * time.Hour, Timeout: time.Minute, Store: store,
			Now: func() time.Time { return clock },
		})
		if err != nil {
			t.Fatal(err)
		}
		query := Query{Key: key, Repository: image.MustParse("mirror.example/app").Repository(), Fallback: true, Incomplete: c.incomplete}
		found, err := known.Search(t.Context(), []Query{query}, "", func(context.Context) []policy.Answer {
			return []policy.Answer{{Facts: []verify.Fact{aFact(key, key.Predicate, now)}}}
		})
		if err != nil || len(found) != 1 || len(found[0].Facts) != 1 {
			t.Fatalf("%s: %v, %v", c.reason, found, err)
		}
		if _, _, ok := known.Facts(key); !ok {
			t.Errorf("%s: not cached", c.reason)
		}
		if got := len(known.Shared([]string{key.String()})); got != c.shared || store.kept != c.shared {
			t.Errorf("%s: %d for peers and %d for the store, want %d", c.reason, got, store.kept, c.shared)
		}
		clock = now.Add(2 * time.Minute)
		if _, _, ok := known.Facts(key); ok == c.incomplete {
			t.Errorf("%s: later cached: %t", c.reason, ok)
		}
		primary := query
		primary.Fallback = false
		if _, ok := known.Stale(primary, time.Hour); ok == c.incomplete {
			t.Errorf("%s: a stale entry: %t", c.reason, ok)
		}
	}
}
