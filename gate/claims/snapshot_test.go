package claims

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// snapshotPart is a part with a claim, a tag, and a negative entry of another claim.
func snapshotPart(t *testing.T) part {
	t.Helper()
	f := newFixture(t, nil)
	f.search(t, ownQuery(), policy.Answer{Facts: factsIn(ownQuery(), "own")})
	f.Tags().Keep(Tag{Scope: "a", Reference: "registry.example/app:v1"}, image.Descriptor{Digest: image.DigestOf([]byte("one"))})
	gone := goneQuery()
	f.search(t, gone, policy.Answer{Facts: factsIn(gone, "own")})
	f.search(t, gone, policy.Answer{})
	var whole part
	parts, err := f.Snapshot(minPart, 9)
	for _, raw := range parts {
		var one part
		if err := json.Unmarshal(raw, &one); err != nil {
			t.Fatal(err)
		}
		whole.Version = one.Version
		whole.Gone, whole.Tags, whole.Facts = append(whole.Gone, one.Gone...), append(whole.Tags, one.Tags...), append(whole.Facts, one.Facts...)
	}
	if err != nil || len(whole.Gone) != 1 || len(whole.Tags) != 1 || len(whole.Facts) != 2 {
		t.Fatalf("%+v, %v", whole, err)
	}
	if strings.Contains(string(whole.Facts[0].Answer), "gone") {
		whole.Facts[0] = whole.Facts[1]
	}
	whole.Facts = whole.Facts[:1]
	return whole
}

func goneQuery() Query {
	q := ownQuery()
	q.Predicate = "gone"
	return q
}

// TestRestore: a part restores valid entries that are later than those here, for the rest of their time.
func TestRestore(t *testing.T) {
	for _, c := range []struct {
		reason          string
		after           time.Duration
		change          func(*part)
		before          func(*fixture) // caches claims beforehand
		tag, fact, gone bool           // restored
	}{
		{"at once", 0, nil, nil, true, true, true},
		{"shortly before its end", 24*time.Hour - time.Minute, nil, nil, true, true, true},
		{"after its end", 24 * time.Hour, nil, nil, false, false, false},
		{"by a clock that was ahead", 0, func(p *part) {
			p.Tags[0].At, p.Gone[0].At, p.Facts[0].At = start.Add(time.Hour).UnixNano(), start.Add(time.Hour).UnixNano(), start.Add(time.Hour).UnixNano()
		}, nil, true, true, true},
		{"a tag that is none", 0, func(p *part) { p.Tags[0].Reference = "?" }, nil, false, true, true},
		{"a tag in another form", 0, func(p *part) { p.Tags[0].Reference = "app:v1" }, nil, false, true, true},
		{"a digest in place of a tag", 0, func(p *part) { p.Tags[0].Reference = "registry.example/app@" + image.DigestOf(nil).String() }, nil, false, true, true},
		{"a key that is none", 0, func(p *part) { p.Gone[0].Fact = "x" }, nil, true, true, false},
		{"a repository that is none", 0, func(p *part) { p.Gone[0].Repository = "?" }, nil, true, true, false},
		{"a repository in another form", 0, func(p *part) { p.Gone[0].Repository = "app" }, nil, true, true, false},
		{"an answer that is none", 0, func(p *part) { p.Facts[0].Answer = []byte(`[]`) }, nil, true, false, true},
		{"an answer without a key", 0, func(p *part) { p.Facts[0].Answer = []byte(`{"age":0}`) }, nil, true, false, true},
		{"an answer without facts", 0, func(p *part) {
			p.Facts[0].Answer = []byte(peerAnswer(t, func(s *shared) { s.Facts = nil }))
		}, nil, true, false, true},
		{"a shorter time of its own", time.Hour, func(p *part) { p.Facts[0].Until = start.Add(time.Hour).UnixNano() }, nil, true, false, true},
		{"a longer time of its own", 24 * time.Hour, func(p *part) { p.Facts[0].Until = start.Add(48 * time.Hour).UnixNano() }, nil, false, false, false},
		{"later entries are here", time.Hour, nil, keepAll, false, false, false},
		{"entries of the same time are here", 0, nil, keepAll, false, false, false},
		{"earlier entries are here", 0, nil, func(f *fixture) {
			f.now = start.Add(-time.Hour)
			keepAll(f)
			f.now = start
		}, true, true, true},
	} {
		p := snapshotPart(t)
		if c.change != nil {
			c.change(&p)
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		f := newFixture(t, nil)
		f.now = start.Add(c.after)
		if c.before != nil {
			c.before(f)
		}
		want := 0
		for _, restored := range []bool{c.tag, c.fact, c.gone} {
			if restored {
				want++
			}
		}
		got, err := f.RestoreTrusted(raw)
		if err != nil || got != want {
			t.Errorf("%s: %d entries, %v, want %d", c.reason, got, err, want)
		}
		if c.before != nil {
			continue
		}
		if found, ok := f.Tags().Stale(Tag{Scope: "a", Reference: "registry.example/app:v1"}, 48*time.Hour); ok != c.tag || ok && found.At.After(start) {
			t.Errorf("%s: the tag: %+v, %t", c.reason, found, ok)
		}
		if found, ok := f.Stale(ownQuery(), 48*time.Hour); ok != c.fact || ok && found.At.After(start) {
			t.Errorf("%s: the claim: %+v, %t", c.reason, found, ok)
		}
		if _, ok := f.negative.Get(goneQuery().none()); ok != c.gone {
			t.Errorf("%s: the negative entry: %t", c.reason, ok)
		}
	}
}

// keepAll caches the entries of a part.
func keepAll(f *fixture) {
	f.Tags().Keep(Tag{Scope: "a", Reference: "registry.example/app:v1"}, image.Descriptor{Digest: image.DigestOf([]byte("two"))})
	f.keep(ownQuery(), policy.Answer{Facts: factsIn(ownQuery(), "here")})
	f.keep(goneQuery(), policy.Answer{})
}

// TestRestoreRefuses: a part of another form is refused as a whole.
func TestRestoreRefuses(t *testing.T) {
	whole := snapshotPart(t)
	raw, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, c := range []struct {
		reason, text string
		change       func(*Config)
		ok           bool
	}{
		{"a part", text, nil, true},
		{"as long as may be", pad(text, maxPart), nil, true},
		{"longer", pad(text, maxPart+1), nil, false},
		{"of another version", strings.Replace(text, `"version":1`, `"version":2`, 1), nil, false},
		{"with an unknown member", strings.TrimSuffix(text, "}") + `,"more":1}`, nil, false},
		{"nothing outlives its age here", text, func(c *Config) { c.Stale = 0 }, false},
		{"no JSON", "x", nil, false},
	} {
		if got, err := newFixture(t, c.change).RestoreTrusted([]byte(c.text)); (err == nil) != c.ok || (got > 0) != c.ok {
			t.Errorf("%s: %d, %v", c.reason, got, err)
		}
	}
}

// TestSnapshotBounds: a snapshot has parts of a bounded size, and is empty where nothing outlives its age.
func TestSnapshotBounds(t *testing.T) {
	for _, c := range []struct {
		reason      string
		room, parts int
		stale       time.Duration
		ok          bool
		want        int
	}{
		{"the smallest part", minPart, 1, time.Hour, true, 1},
		{"the largest part", maxPart, 1, time.Hour, true, 1},
		{"too small", minPart - 1, 1, time.Hour, false, 0},
		{"too large", maxPart + 1, 1, time.Hour, false, 0},
		{"no part", minPart, 0, time.Hour, false, 0},
		{"nothing outlives its age", minPart, 1, 0, true, 0},
	} {
		f := newFixture(t, func(config *Config) { config.Stale = c.stale })
		f.search(t, ownQuery(), policy.Answer{Facts: factsIn(ownQuery(), "own")})
		if parts, err := f.Snapshot(c.room, c.parts); (err == nil) != c.ok || len(parts) != c.want {
			t.Errorf("%s: %d parts, %v", c.reason, len(parts), err)
		}
	}
}

// TestSnapshotOfNegativeEntries: a negative entry is kept while it is later than the claim that it
// outdates.
func TestSnapshotOfNegativeEntries(t *testing.T) {
	for _, c := range []struct {
		reason  string
		verify  []time.Duration // when the claim was verified
		missing time.Duration
		want    int
	}{
		{"verified, and none found later", []time.Duration{0}, time.Second, 1},
		{"verified since", []time.Duration{0, time.Minute}, time.Second, 0},
		{"never verified", nil, time.Second, 0},
	} {
		f := newFixture(t, nil)
		q := ownQuery()
		for i, at := range c.verify {
			f.now = start.Add(at)
			f.keep(q, policy.Answer{Facts: factsIn(q, "own")})
			if i == 0 {
				f.now = start.Add(c.missing)
				f.keep(q, policy.Answer{})
			}
		}
		if len(c.verify) == 0 {
			f.keep(q, policy.Answer{})
		}
		if got := f.keptGone(); len(got) != c.want {
			t.Errorf("%s: %+v", c.reason, got)
		}
	}
}
