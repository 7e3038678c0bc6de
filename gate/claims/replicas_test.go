package claims

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// replica returns what a test lays out, whatever it is asked for.
type replica struct {
	values map[string][]byte
	asked  []string
	kept   map[string]time.Duration
}

func (r *replica) Get(_ context.Context, keys []string) map[string][]byte {
	r.asked = append(r.asked, keys...)
	return r.values
}

func (r *replica) Keep(key string, value []byte, ttl time.Duration) {
	if r.kept == nil {
		r.values, r.kept = map[string][]byte{}, map[string]time.Duration{}
	}
	r.values[key], r.kept[key] = value, ttl
}

// peerAnswer is an answer in the peers' format.
func peerAnswer(t *testing.T, change func(*shared)) string {
	t.Helper()
	q := ownQuery()
	raw, err := encode(q.Key, Entry{Answer: policy.Answer{Facts: factsIn(q, "peer")}, At: start.Add(-10 * time.Minute)}, start)
	if err != nil {
		t.Fatal(err)
	}
	var in shared
	if err := json.Unmarshal(raw, &in); err != nil {
		t.Fatal(err)
	}
	change(&in)
	changed, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(changed)
}

func unchanged(*shared) {}

// TestAnswersOfPeers: an answer of a peer or the store counts for its own key alone, no longer
// than a claim of this process, and never where the query does not accept cached claims.
func TestAnswersOfPeers(t *testing.T) {
	for _, c := range []struct {
		reason string
		answer string
		query  func(*Query)
		ok     bool
		old    bool
	}{
		{"an answer", peerAnswer(t, unchanged), nil, true, true},
		{"a new one", peerAnswer(t, func(s *shared) { s.Age = 0 }), nil, true, false},
		{"at the end of its age", peerAnswer(t, func(s *shared) { s.Age = int64(time.Hour) - 1 }), nil, true, true},
		{"past its age", peerAnswer(t, func(s *shared) { s.Age = int64(time.Hour) }), nil, false, false},
		{"older than any clock", peerAnswer(t, func(s *shared) { s.Age = 1<<63 - 1 }), nil, false, false},
		{"from the future", peerAnswer(t, func(s *shared) { s.Age = -1 }), nil, false, false},
		{"no facts", peerAnswer(t, func(s *shared) { s.Facts = nil }), nil, false, false},
		{"no key", peerAnswer(t, func(s *shared) { s.Key = "" }), nil, false, false},
		{"to another query", peerAnswer(t, func(s *shared) { s.Key = aKey("").String() }), nil, false, false},
		{"about another digest", peerAnswer(t, func(s *shared) { s.Facts[0].Subject = image.DigestOf([]byte("x")) }), nil, false, false},
		{"of another role", peerAnswer(t, func(s *shared) { s.Facts[0].Role = "signature" }), nil, false, false},
		{"without its statement", peerAnswer(t, func(s *shared) { s.Facts[0].Statement = nil }), nil, false, false},
		{"a statement of another type", peerAnswer(t, func(s *shared) { s.Facts[0].Statement.PredicateType = "x" }), nil, false, false},
		{"expired", peerAnswer(t, func(s *shared) { s.Facts[0].Expires = start }), nil, false, false},
		{"about to expire", peerAnswer(t, func(s *shared) { s.Facts[0].Expires = start.Add(time.Minute) }), nil, true, true},
		{"one of two is about another digest", peerAnswer(t, func(s *shared) {
			s.Facts = append(s.Facts, s.Facts[0])
			s.Facts[1].Subject = image.DigestOf([]byte("x"))
		}), nil, false, false},
		{"of no repository", peerAnswer(t, func(s *shared) { s.Facts[0].Repository = "" }), nil, true, true},
		{"of an invalid repository", peerAnswer(t, func(s *shared) { s.Facts[0].Repository = "UPPER CASE" }), nil, false, false},
		{"with an unknown member", strings.Replace(peerAnswer(t, unchanged), "{", `{"more":1,`, 1), nil, false, false},
		{"with an unknown member at its end", strings.TrimSuffix(peerAnswer(t, unchanged), "}") + `,"more":1}`, nil, false, false},
		{"with a member twice", strings.Replace(peerAnswer(t, unchanged), "{", `{"age":0,`, 1), nil, false, false},
		{"as long as may be", pad(peerAnswer(t, unchanged), maxShared), nil, true, true},
		{"longer", pad(peerAnswer(t, unchanged), maxShared+1), nil, false, false},
		{"no JSON", "x", nil, false, false},
		{"nothing", "", nil, false, false},
		{"to a query past the cache", peerAnswer(t, unchanged), func(q *Query) { q.Bypass = true }, false, false},
		{"to a query of a fallback", peerAnswer(t, unchanged), func(q *Query) { q.Fallback = true }, false, false},
		{"for an authority that is not cached", peerAnswer(t, unchanged), func(q *Query) { q.MaxAge = -1 }, false, false},
		{"for an authority with an age", peerAnswer(t, unchanged), func(q *Query) { q.MaxAge = 11 * time.Minute }, true, true},
		{"for an authority with less", peerAnswer(t, unchanged), func(q *Query) { q.MaxAge = 10 * time.Minute }, false, false},
	} {
		q := ownQuery()
		if c.query != nil {
			c.query(&q)
		}
		other := ownQuery() // not known to the peers, and makes them asked
		other.Predicate = "https://example.com/other"
		peers := &replica{values: map[string][]byte{q.String(): []byte(c.answer)}}
		f := newFixture(t, func(config *Config) { config.Peers = peers })
		adopted := f.AskPeers(t.Context(), []Query{other, q})
		if len(adopted) != 2 || adopted[0].OK || adopted[1].OK != c.ok || adopted[1].Old != c.old {
			t.Errorf("%s: %+v", c.reason, adopted)
		}
		if _, _, cached := f.Facts(q.Key); cached != c.ok {
			t.Errorf("%s: cached: %t", c.reason, cached)
		}
		if mayAsk := !q.Bypass && !q.Fallback && q.MaxAge >= 0; slices.Contains(peers.asked, q.String()) != mayAsk {
			t.Errorf("%s: asked for %q", c.reason, peers.asked)
		}
		if want := []string{"miss peers", map[bool]string{true: "hit peers", false: "miss peers"}[c.ok]}; !slices.Equal(f.asked, want) {
			t.Errorf("%s: observed %q", c.reason, f.asked)
		}
	}
}

// pad lengthens a document by white space.
func pad(text string, size int) string { return text + strings.Repeat(" ", size-len(text)) }

// TestAdoptsNoOlderClaims: a peer's claims do not replace later ones of this process.
func TestAdoptsNoOlderClaims(t *testing.T) {
	for _, c := range []struct {
		reason   string
		verified time.Duration // here, before now
		signers  []string      // cached at last
	}{
		{"verified here later", 9 * time.Minute, []string{"own"}},
		{"verified here at the same time", 10 * time.Minute, []string{"own"}},
		{"verified there later", 11 * time.Minute, []string{"peer"}},
	} {
		q := ownQuery()
		f := newFixture(t, func(config *Config) {
			config.Peers = &replica{values: map[string][]byte{q.String(): []byte(peerAnswer(t, unchanged))}}
		})
		f.now = start.Add(-c.verified)
		f.search(t, q, policy.Answer{Facts: factsIn(q, "own")})
		f.now = start
		adopted := f.AskPeers(t.Context(), []Query{q})
		if answer, _, _ := f.Facts(q.Key); len(adopted) != 1 || !slices.Equal(signersOf(adopted[0].Answer), c.signers) || !slices.Equal(signersOf(answer), c.signers) {
			t.Errorf("%s: %+v, cached %q", c.reason, adopted, signersOf(answer))
		}
	}
}

// TestAsksForFew: peers and the store are asked for a bounded number of keys, and for none where
// there are none.
func TestAsksForFew(t *testing.T) {
	var queries []Query
	var keys []string
	for i := range maxAsked + 1 {
		q := ownQuery()
		q.Predicate = fmt.Sprint(i)
		queries, keys = append(queries, q), append(keys, q.String())
	}
	peers, store := &replica{}, &replica{}
	f := newFixture(t, func(c *Config) { c.Peers, c.Store = peers, store })
	if got := f.AskPeers(t.Context(), queries); len(got) != maxAsked+1 || !slices.Equal(peers.asked, keys[:maxAsked]) {
		t.Errorf("%d answers, asked for %d", len(got), len(peers.asked))
	}
	if got := f.AskPeers(t.Context(), []Query{mirrorQuery()}); got != nil || len(peers.asked) != maxAsked {
		t.Errorf("a fallback alone: %v, asked for %d", got, len(peers.asked))
	}
	if got := f.AskStore(t.Context(), queries[:1]); len(got) != 1 || len(store.asked) != 1 {
		t.Errorf("the store: %v, asked for %d", got, len(store.asked))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got := f.AskPeers(ended, queries[:1]); len(got) != 1 || got[0].OK {
		t.Errorf("after the end of the request: %+v", got)
	}
	f = newFixture(t, nil)
	if f.AskPeers(t.Context(), queries) != nil || f.AskStore(t.Context(), queries) != nil {
		t.Error("answers without peers and a store")
	}
}

// TestShared: peers receive cached claims, for the keys that parse.
func TestShared(t *testing.T) {
	f := newFixture(t, nil)
	q := ownQuery()
	f.search(t, q, policy.Answer{Facts: factsIn(q, "own")})
	none := aKey("").String()
	if known := f.Shared([]string{"", "x", none, q.String()}); len(known) != 1 || known[q.String()] == nil {
		t.Errorf("%q", slices.Collect(maps.Keys(known)))
	}
	if known := f.Shared(append(slices.Repeat([]string{none}, maxAsked-1), q.String())); len(known) != 1 {
		t.Errorf("the last key that is looked up: %d", len(known))
	}
	if known := f.Shared(append(slices.Repeat([]string{none}, maxAsked), q.String())); len(known) != 0 {
		t.Errorf("one more key: %d", len(known))
	}
}

// TestStore: claims go to the store for as long as they are cached here, and come back with their age.
func TestStore(t *testing.T) {
	q := ownQuery()
	at := func(at time.Time, answer string) string {
		return fmt.Sprintf(`{"at":%d,"answer":%s}`, at.UnixNano(), answer)
	}
	young := peerAnswer(t, func(s *shared) { s.Age = 0 })
	for _, c := range []struct {
		reason, entry string
		ok, old       bool
	}{
		{"an entry", at(start, young), true, false},
		{"an older one", at(start.Add(-time.Minute), young), true, true},
		{"an answer that is older than its entry", at(start, peerAnswer(t, unchanged)), true, true},
		{"past its age", at(start.Add(-time.Hour), young), false, false},
		{"by a clock that is ahead", at(start.Add(time.Hour), young), true, false},
		{"an answer alone", young, false, false},
		{"with an unknown member", strings.Replace(at(start, young), "{", `{"more":1,`, 1), false, false},
		{"with an unknown member at its end", strings.TrimSuffix(at(start, young), "}") + `,"more":1}`, false, false},
		{"no answer", fmt.Sprintf(`{"at":%d}`, start.UnixNano()), false, false},
		{"to another query", at(start, peerAnswer(t, func(s *shared) { s.Key = aKey("").String() })), false, false},
		{"no JSON", "x", false, false},
		{"as long as may be", pad(at(start, young), maxKept), true, false},
		{"longer", pad(at(start, young), maxKept+1), false, false},
	} {
		f := newFixture(t, func(config *Config) { config.Store = &replica{values: map[string][]byte{q.String(): []byte(c.entry)}} })
		if adopted := f.AskStore(t.Context(), []Query{q}); len(adopted) != 1 || adopted[0].OK != c.ok || adopted[0].Old != c.old {
			t.Errorf("%s: %+v", c.reason, adopted)
		}
	}
	store := &replica{}
	f := newFixture(t, func(c *Config) { c.Store = store })
	facts := factsIn(q, "own")
	f.search(t, q, policy.Answer{Facts: facts})
	if store.kept[q.String()] != time.Hour {
		t.Errorf("kept for %v, want an hour", store.kept)
	}
	f = newFixture(t, func(c *Config) { c.Store = store })
	f.now = start.Add(30 * time.Minute)
	if adopted := f.AskStore(t.Context(), []Query{q}); len(adopted) != 1 || !adopted[0].OK || !adopted[0].Old {
		t.Errorf("another replica: %+v", adopted)
	}
	for reason, change := range map[string]func(*verify.Fact){
		"claims at their end":          func(fact *verify.Fact) { fact.Expires = start },
		"claims that JSON would alter": func(fact *verify.Fact) { fact.Notes = []string{"\xff"} },
	} {
		store = &replica{}
		facts := factsIn(q, "own")
		change(&facts[0])
		newFixture(t, func(c *Config) { c.Store = store }).search(t, q, policy.Answer{Facts: facts})
		if len(store.kept) != 0 {
			t.Errorf("%s are kept: %v", reason, store.kept)
		}
	}
}

// TestParseKey: a key is read in the form it was written alone.
func TestParseKey(t *testing.T) {
	key := aKey("https://example.com/scan")
	text := key.String()
	long := key
	long.Of = strings.Repeat("x", maxKey-len(text))
	longer := key
	longer.Of = long.Of + "x"
	for _, c := range []struct {
		reason, text string
		ok           bool
	}{
		{"as written", text, true},
		{"as long as may be", long.String(), true},
		{"longer", longer.String(), false},
		{"with white space", text + " ", false},
		{"of another kind", strings.Replace(text, `"statement"`, `"other"`, 1), false},
		{"with fewer parts", strings.Replace(text, `,""]`, `]`, 1), false},
		{"with more parts", strings.Replace(text, `,""]`, `,"",""]`, 1), false},
		{"with no digest", strings.Replace(text, key.Digest.String(), "x", 1), false},
		{"no list", `{}`, false},
		{"nothing", ``, false},
	} {
		if got, err := ParseKey(c.text); (err == nil) != c.ok || c.ok && got.String() != c.text {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
	key.Of = "\xff"
	if key.String() != "" {
		t.Errorf("a part that is no UTF-8: %q", key.String())
	}
	if _, err := decode([]byte(peerAnswer(t, func(s *shared) { s.Key = "" })), key, start); err == nil {
		t.Error("an answer without a key is adopted for a key that cannot be written")
	}
	if _, err := encode(key, Entry{Answer: policy.Answer{Facts: factsIn(ownQuery(), "own")}, At: start}, start); err == nil {
		t.Error("an answer to a key that cannot be written is shared")
	}
}
