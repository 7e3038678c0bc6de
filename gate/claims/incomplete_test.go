package claims

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// counted counts the claims kept for other replicas.
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

// TestIncompleteOverKnown: claims of a fallback do not replace those of an earlier repository that
// cannot be read now, and are cached over claims that were as incomplete.
func TestIncompleteOverKnown(t *testing.T) {
	now := time.Now()
	key := aKey("https://example.com/scan")
	for _, c := range []struct {
		reason     string
		passed     time.Duration // since the earlier claims were verified
		incomplete bool          // the earlier claims
		fresh      int           // facts that are cached at last
		stale      bool          // the earlier claims serve as stale entries
	}{
		{"known and fresh", 2 * time.Minute, false, 1, true},
		{"known and stale", 2 * time.Hour, false, 0, true},
		{"too old to be stale", 25 * time.Hour, false, 2, false},
		{"as incomplete, and fresh", 30 * time.Second, true, 2, false},
		{"as incomplete, and old", 2 * time.Minute, true, 2, false},
	} {
		clock := now
		known, err := New(Config{
			Fact: time.Hour, None: time.Minute, Tag: time.Minute, Stale: 24 * time.Hour, Timeout: time.Minute,
			Now: func() time.Time { return clock },
		})
		if err != nil {
			t.Fatal(err)
		}
		search := func(q Query, facts int) {
			_, err := known.Search(t.Context(), []Query{q}, "", func(context.Context) []policy.Answer {
				fact := aFact(key, key.Predicate, clock)
				fact.Origin.Repository, fact.Expires = q.Repository, time.Time{}
				return []policy.Answer{{Facts: slices.Repeat([]verify.Fact{fact}, facts)}}
			})
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
		}
		own := Query{Key: key, Repository: image.MustParse("registry.example/app").Repository()}
		mirror := Query{Key: key, Repository: image.MustParse("mirror.example/app").Repository(), Fallback: true, Incomplete: true}
		if c.incomplete {
			search(mirror, 1)
		} else {
			search(own, 1)
		}
		clock = now.Add(c.passed)
		search(mirror, 2)
		if answer, _, _ := known.Facts(key); len(answer.Facts) != c.fresh {
			t.Errorf("%s: %d facts are cached, want %d", c.reason, len(answer.Facts), c.fresh)
		}
		if before, ok := known.Stale(own, 24*time.Hour); ok != c.stale || ok && len(before.Answer.Facts) != 1 {
			t.Errorf("%s: a stale entry: %t with %d facts, want %t", c.reason, ok, len(before.Answer.Facts), c.stale)
		}
	}
}

// TestCompleteOverIncomplete: claims that are added to incomplete ones are cached as briefly, and
// not shared; without those they are.
func TestCompleteOverIncomplete(t *testing.T) {
	for _, incomplete := range []bool{true, false} {
		store := &replica{}
		f := newFixture(t, func(c *Config) { c.Store = store })
		q := mirrorQuery()
		q.Incomplete = incomplete
		f.search(t, q, policy.Answer{Facts: factsIn(q, "a")})
		q.Incomplete, q.Repository = false, image.MustParse("other.example/app").Repository()
		f.search(t, q, policy.Answer{Facts: factsIn(q, "b")})
		if answer, _, _ := f.Facts(q.Key); len(answer.Facts) != 2 {
			t.Errorf("incomplete %t: %d facts", incomplete, len(answer.Facts))
		}
		if parts, err := f.Snapshot(minPart, 9); err != nil || (len(parts) == 0) != incomplete {
			t.Errorf("incomplete %t: a snapshot of %d parts, %v", incomplete, len(parts), err)
		}
		f.now = f.now.Add(time.Minute)
		if _, _, ok := f.Facts(q.Key); ok == incomplete || (len(store.kept) == 0) != incomplete {
			t.Errorf("incomplete %t: cached later: %t, for the store: %v", incomplete, ok, store.kept)
		}
	}
}
