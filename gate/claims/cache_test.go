package claims

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// fixture is a Cache with a clock that tests set, and what its observer was notified of.
type fixture struct {
	*Cache
	now   time.Time
	asked []string
}

func (f *fixture) Asked(layer Layer, known bool) {
	if known {
		f.asked = append(f.asked, "hit "+string(layer))
	} else {
		f.asked = append(f.asked, "miss "+string(layer))
	}
}

// start is whole hours, the resolution of snapshots.
var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newFixture(t *testing.T, change func(*Config)) *fixture {
	t.Helper()
	f := &fixture{now: start}
	config := Config{
		Fact: time.Hour, None: time.Minute, Tag: time.Minute, Stale: 24 * time.Hour, Timeout: time.Minute,
		Now: func() time.Time { return f.now }, Observer: f,
	}
	if change != nil {
		change(&config)
	}
	var err error
	f.Cache, err = New(config)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// search answers one query.
func (f *fixture) search(t *testing.T, q Query, answer policy.Answer) {
	t.Helper()
	if _, err := f.Search(t.Context(), []Query{q}, "", func(context.Context) []policy.Answer { return []policy.Answer{answer} }); err != nil {
		t.Fatal(err)
	}
}

// ownQuery asks for statements in the image's own repository, and mirrorQuery in a fallback.
func ownQuery() Query {
	return Query{Key: aKey("https://example.com/scan"), Repository: image.MustParse("registry.example/app").Repository(), Scope: "anonymous"}
}

func mirrorQuery() Query {
	q := ownQuery()
	q.Repository, q.Fallback = image.MustParse("mirror.example/app").Repository(), true
	return q
}

// factsIn returns facts with these signers, which do not expire, of the query's repository.
func factsIn(q Query, signers ...string) []verify.Fact {
	var facts []verify.Fact
	for _, signer := range signers {
		fact := aFact(q.Key, `{}`, start)
		fact.Expires, fact.Signer.ID, fact.Origin.Repository = time.Time{}, signer, q.Repository
		facts = append(facts, fact)
	}
	return facts
}

func signersOf(answer policy.Answer) []string {
	var signers []string
	for _, fact := range answer.Facts {
		signers = append(signers, fact.Signer.ID)
	}
	return signers
}

// TestNewRefuses: a duration without which nothing is bounded is required.
func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		reason string
		change func(*Config)
		ok     bool
	}{
		{"all is set", func(*Config) {}, true},
		{"nothing outlives its age", func(c *Config) { c.Stale = 0 }, true},
		{"no age of claims", func(c *Config) { c.Fact, c.Stale = 0, 0 }, false},
		{"no age of none found", func(c *Config) { c.None = 0 }, false},
		{"no age of tags", func(c *Config) { c.Tag = 0 }, false},
		{"a negative age of stale entries", func(c *Config) { c.Stale = -1 }, false},
		{"no timeout", func(c *Config) { c.Timeout = 0 }, false},
	} {
		config := Config{Fact: time.Hour, None: time.Minute, Tag: time.Minute, Stale: time.Hour, Timeout: time.Minute, Now: time.Now}
		c.change(&config)
		if _, err := New(config); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestLookup: a cached claim answers until its age has passed, and is old from the age of "none
// found"; "none found" answers for its own repository and credentials alone.
func TestLookup(t *testing.T) {
	facts := policy.Answer{Facts: factsIn(ownQuery(), "a")}
	none := policy.Answer{Instead: []string{"a signature"}}
	same := func(*Query) {}
	for _, c := range []struct {
		reason  string
		cached  policy.Answer
		after   time.Duration
		query   func(*Query)
		ok, old bool
		asked   []string
	}{
		{"a claim", facts, 0, same, true, false, []string{"hit facts"}},
		{"a claim that is as new as none found may be", facts, time.Minute - 1, same, true, false, []string{"hit facts"}},
		{"a claim that is older", facts, time.Minute, same, true, true, []string{"hit facts"}},
		{"a claim at its end", facts, time.Hour - 1, same, true, true, []string{"hit facts"}},
		{"a claim after its end", facts, time.Hour, same, false, false, []string{"miss facts", "miss none"}},
		{"of an authority with an age", facts, time.Minute, func(q *Query) { q.MaxAge = 1 }, true, true, []string{"hit facts"}},
		{"of an authority that is not cached", facts, 0, func(q *Query) { q.MaxAge = -1 }, false, false, nil},
		{"past the cache", facts, time.Minute, func(q *Query) { q.Bypass = true }, false, false, nil},
		{"a fallback without claims of its own", facts, 0, func(q *Query) { q.Fallback = true }, false, false, []string{"miss none"}},
		{"another repository of the image", facts, 0, func(q *Query) { q.Repository = mirrorQuery().Repository }, true, false, []string{"hit facts"}},
		{"another digest", facts, 0, func(q *Query) { q.Digest = image.DigestOf([]byte("x")) }, false, false, []string{"miss facts", "miss none"}},
		{"none found", none, time.Minute - 1, same, true, false, []string{"miss facts", "hit none"}},
		{"none found, of a fallback", none, 0, func(q *Query) { q.Fallback = true }, true, false, []string{"hit none"}},
		{"none found, longer ago", none, time.Minute, same, false, false, []string{"miss facts", "miss none"}},
		{"none found, past the cache", none, 0, func(q *Query) { q.Bypass = true }, false, false, nil},
		{"none found, by other credentials", none, 0, func(q *Query) { q.Scope = "b" }, false, false, []string{"miss facts", "miss none"}},
		{"none found, elsewhere", none, 0, func(q *Query) { q.Repository = mirrorQuery().Repository }, false, false, []string{"miss facts", "miss none"}},
	} {
		f := newFixture(t, nil)
		f.search(t, ownQuery(), c.cached)
		f.now = start.Add(c.after)
		q := ownQuery()
		c.query(&q)
		answer, old, ok := f.Lookup(q)
		if ok != c.ok || old != c.old || !slices.Equal(f.asked, c.asked) {
			t.Errorf("%s: %t, old %t, asked %q", c.reason, ok, old, f.asked)
		}
		if ok && (!slices.Equal(signersOf(answer), signersOf(c.cached)) || len(answer.Instead) != len(c.cached.Instead)) {
			t.Errorf("%s: %+v", c.reason, answer)
		}
		_, wasOld, known := f.Facts(q.Key)
		if wasOld && !known {
			t.Errorf("%s: old, and not cached", c.reason)
		}
	}
	f := newFixture(t, func(c *Config) { c.Observer = nil })
	if _, _, ok := f.Lookup(ownQuery()); ok {
		t.Error("an empty cache answers")
	}
}

// TestNotKept: no error is cached, nor a claim with an authority that forbids it.
func TestNotKept(t *testing.T) {
	found := factsIn(ownQuery(), "a")
	gaps := []error{errors.New("the registry failed")}
	for _, c := range []struct {
		reason string
		answer policy.Answer
		maxAge time.Duration
		kept   bool
	}{
		{"a claim", policy.Answer{Facts: found}, 0, true},
		{"none found", policy.Answer{}, 0, true},
		{"a claim, and an error", policy.Answer{Facts: found, Gaps: gaps}, 0, false},
		{"an error", policy.Answer{Gaps: gaps}, 0, false},
		{"a claim that is not cached", policy.Answer{Facts: found}, -1, false},
		{"none found, which is not cached", policy.Answer{}, -1, false},
	} {
		f := newFixture(t, nil)
		q := ownQuery()
		q.MaxAge = c.maxAge
		f.search(t, q, c.answer)
		if _, _, ok := f.Lookup(ownQuery()); ok != c.kept {
			t.Errorf("%s: kept: %t", c.reason, ok)
		}
	}
}

// TestAgeOfClaims: claims are cached no longer than their evidence and their authority allow.
func TestAgeOfClaims(t *testing.T) {
	expiring := factsIn(ownQuery(), "a", "b")
	expiring[1].Expires = start.Add(10 * time.Minute)
	for _, c := range []struct {
		reason         string
		facts          []verify.Fact
		maxAge         time.Duration
		fresh, staleAt time.Duration // until when it answers, and serves as a stale entry
	}{
		{"the default", factsIn(ownQuery(), "a"), 0, time.Hour, 24 * time.Hour},
		{"one fact expires", expiring, 0, 10 * time.Minute, 10 * time.Minute},
		{"the authority's age", factsIn(ownQuery(), "a"), 5 * time.Minute, 5 * time.Minute, 0},
		{"the authority's age is longer", factsIn(ownQuery(), "a"), 5 * time.Hour, time.Hour, 0},
	} {
		f := newFixture(t, nil)
		q := ownQuery()
		q.MaxAge = c.maxAge
		f.search(t, q, policy.Answer{Facts: c.facts})
		for _, later := range []time.Duration{
			0, 1, 4 * time.Minute, 9 * time.Minute, 59 * time.Minute, 23 * time.Hour, c.fresh - 1, c.fresh, c.staleAt, max(0, c.staleAt-1),
		} {
			f.now = start.Add(later)
			if _, _, ok := f.Facts(q.Key); ok != (later < c.fresh) {
				t.Errorf("%s: after %s answers: %t", c.reason, later, ok)
			}
			if _, ok := f.Stale(ownQuery(), 48*time.Hour); ok != (later < c.staleAt) {
				t.Errorf("%s: after %s a stale entry: %t", c.reason, later, ok)
			}
		}
	}
}

// TestStale: a stale entry serves within the policy's window, and never past a later "none found".
func TestStale(t *testing.T) {
	for _, c := range []struct {
		reason string
		change func(*Config)
		later  func(*fixture) // after the claim was verified
		query  func(*Query)
		window time.Duration
		ok     bool
	}{
		{"within the window", nil, nil, nil, 2*time.Hour + 1, true},
		{"at the end of the window", nil, nil, nil, 2 * time.Hour, false},
		{"nothing outlives its age", func(c *Config) { c.Stale = 0 }, nil, nil, 24 * time.Hour, false},
		{"a fallback", nil, nil, func(q *Query) { q.Fallback = true }, 24 * time.Hour, false},
		{"an authority with an age", nil, nil, func(q *Query) { q.MaxAge = 1 }, 24 * time.Hour, false},
		{"an authority that is not cached", nil, nil, func(q *Query) { q.MaxAge = -1 }, 24 * time.Hour, false},
		{"another digest", nil, nil, func(q *Query) { q.Digest = image.DigestOf([]byte("x")) }, 24 * time.Hour, false},
		{"none found since", nil, func(f *fixture) { f.search(t, ownQuery(), policy.Answer{}) }, nil, 24 * time.Hour, false},
		{"none found since, elsewhere", nil, func(f *fixture) {
			q := ownQuery()
			q.Scope = "b"
			f.search(t, q, policy.Answer{})
		}, nil, 24 * time.Hour, true},
		{"none found, and verified at the same time", nil, func(f *fixture) {
			f.search(t, ownQuery(), policy.Answer{})
			f.search(t, ownQuery(), policy.Answer{Facts: factsIn(ownQuery(), "b")})
		}, nil, 24 * time.Hour, false},
		{"none found, and verified since", nil, func(f *fixture) {
			f.search(t, ownQuery(), policy.Answer{})
			f.now = f.now.Add(1)
			f.search(t, ownQuery(), policy.Answer{Facts: factsIn(ownQuery(), "b")})
		}, nil, 24 * time.Hour, true},
		{"an error since", nil, func(f *fixture) {
			f.search(t, ownQuery(), policy.Answer{Gaps: []error{errors.New("unavailable")}})
		}, nil, 24 * time.Hour, true},
	} {
		f := newFixture(t, c.change)
		f.search(t, ownQuery(), policy.Answer{Facts: factsIn(ownQuery(), "a")})
		f.now = start.Add(2 * time.Hour)
		if c.later != nil {
			c.later(f)
		}
		q := ownQuery()
		if c.query != nil {
			c.query(&q)
		}
		entry, ok := f.Stale(q, c.window)
		if ok != c.ok || ok != (len(entry.Answer.Facts) == 1) {
			t.Errorf("%s: %t, %+v", c.reason, ok, entry)
		}
	}
}

// TestSilence: a location is silent for some seconds, and others are not.
func TestSilence(t *testing.T) {
	at, other := ownQuery().Location(), mirrorQuery().Location()
	f := newFixture(t, nil)
	if f.IsSilent(at) {
		t.Error("silent before it was noted")
	}
	f.NoteSilence(at)
	if !f.IsSilent(at) || f.IsSilent(other) {
		t.Errorf("the location: %t, another: %t", f.IsSilent(at), f.IsSilent(other))
	}
	f.now = f.now.Add(silence)
	if f.IsSilent(at) {
		t.Error("silent after its time")
	}
	f = newFixture(t, func(c *Config) { c.Stale = 0 })
	f.NoteSilence(at)
	if f.IsSilent(at) {
		t.Error("silent, though no stale entry could serve")
	}
}

// TestHash: an authority's hash is that of the key behind it now.
func TestHash(t *testing.T) {
	f := newFixture(t, nil)
	a := &verify.Authority{Name: "a", Key: &verify.Key{Ref: "k8s://n/s"}}
	hash := func(pem string) string {
		resolved := *a
		resolved.Key = &verify.Key{Ref: "k8s://n/s", PEM: []byte(pem)}
		got, err := f.Hash(a, resolved)
		want, _ := resolved.Hash()
		if err != nil || got != want {
			t.Errorf("key %q: %q, %v, want %q", pem, got, err, want)
		}
		return got
	}
	if f.IsHashed(a) {
		t.Error("hashed before its key was resolved")
	}
	if first := hash("one"); first != hash("one") || first == hash("two") {
		t.Error("the hash does not follow the key")
	}
	if other := (&verify.Authority{Name: "a"}); !f.IsHashed(a) || f.IsHashed(other) {
		t.Errorf("hashed: %t, another: %t", f.IsHashed(a), f.IsHashed(other))
	}
	// A cached hash is not computed again, whatever else is passed.
	if got, err := f.Hash(a, verify.Authority{Key: &verify.Key{PEM: []byte("two")}, Formats: []attest.Format{"x"}}); err != nil || got != hash("two") {
		t.Errorf("not from the cache: %q, %v", got, err)
	}
	unresolved := &verify.Authority{Key: &verify.Key{Ref: "k8s://n/s"}}
	if got, err := f.Hash(unresolved, *unresolved); err == nil || got != "" || f.IsHashed(unresolved) {
		t.Errorf("a key that is not resolved: %q, %v", got, err)
	}
	if _, err := f.Hash(&verify.Authority{}, verify.Authority{Name: "keyless"}); err != nil {
		t.Errorf("an authority without a key: %v", err)
	}
}

// TestHashesOfLargeAuthorities: authorities that expressions make for one request each do not stay
// in memory, where they have large roots.
func TestHashesOfLargeAuthorities(t *testing.T) {
	f := newFixture(t, nil)
	kept := 0
	var all []*verify.Authority
	for i := range 64 {
		a := &verify.Authority{Name: strconv.Itoa(i), TrustedRoot: bytes.Repeat([]byte{byte(i)}, 1<<20), Key: &verify.Key{PEM: []byte("k")}}
		if _, err := f.Hash(a, *a); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	f.hashes.CleanUp() // else excess entries go during later calls
	for _, a := range all {
		if f.IsHashed(a) {
			kept++
		}
	}
	if kept == 0 || kept > 16 {
		t.Errorf("%d of %d authorities of 1 MiB are kept", kept, len(all))
	}
}

// TestSearchErrors: a search without one answer for each query is an error.
func TestSearchErrors(t *testing.T) {
	f := newFixture(t, nil)
	queries := []Query{ownQuery(), mirrorQuery()}
	both := func(context.Context) []policy.Answer { return make([]policy.Answer, 2) }
	if found, err := f.Search(t.Context(), queries, "", both); err != nil || len(found) != 2 {
		t.Errorf("two answers: %d, %v", len(found), err)
	}
	three := func(context.Context) []policy.Answer { return make([]policy.Answer, 3) }
	if found, err := f.Search(t.Context(), queries, "", three); err == nil || found != nil {
		t.Errorf("three answers to two queries: %d, %v", len(found), err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if found, err := f.Search(ended, queries, "", both); !errors.Is(err, context.Canceled) || found != nil {
		t.Errorf("after the end of the request: %d, %v", len(found), err)
	}
}

// TestFallbackClaims: claims of a fallback are added to fresh ones, keep their age, and replace
// those that are not fresh any more.
func TestFallbackClaims(t *testing.T) {
	for _, c := range []struct {
		reason   string
		after    time.Duration
		fallback bool
		signers  []string
		staleFor time.Duration // since the first verification
	}{
		{"added to fresh claims", 30 * time.Minute, true, []string{"own", "mirror"}, 24 * time.Hour},
		{"the claims are at their end", time.Hour, true, []string{"mirror"}, 25 * time.Hour},
		{"no fallback: verified again", 30 * time.Minute, false, []string{"mirror"}, 24*time.Hour + 30*time.Minute},
	} {
		f := newFixture(t, nil)
		f.search(t, ownQuery(), policy.Answer{Facts: factsIn(ownQuery(), "own")})
		f.now = start.Add(c.after)
		q := mirrorQuery()
		q.Fallback = c.fallback
		f.search(t, q, policy.Answer{Facts: factsIn(q, "mirror")})
		if answer, _, ok := f.Facts(q.Key); !ok || !slices.Equal(signersOf(answer), c.signers) {
			t.Errorf("%s: %q, %t", c.reason, signersOf(answer), ok)
		}
		f.now = start.Add(c.staleFor - 1)
		if _, ok := f.Stale(ownQuery(), 48*time.Hour); !ok {
			t.Errorf("%s: no stale entry after %s", c.reason, c.staleFor-1)
		}
		f.now = start.Add(c.staleFor)
		if _, ok := f.Stale(ownQuery(), 48*time.Hour); ok {
			t.Errorf("%s: a stale entry after %s", c.reason, c.staleFor)
		}
	}
}
