package claims

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/quaymaster/quaymaster/image"
)

// snapshotVersion changes with the meaning of a snapshot. Snapshots of older versions are
// read for as long as possible.
const snapshotVersion = 1

// Bounds of snapshots.
const (
	// minPart is the minimum size of a part: one answer of the maximum size for peers.
	minPart = maxShared + 1<<10
	// maxPart bounds the input of Restore.
	maxPart = 16 << 20
)

// part is one part of a snapshot. It can be read without the others.
type part struct {
	Version int        `json:"version"`
	Gone    []keptGone `json:"gone,omitempty"`
	Tags    []keptTag  `json:"tags,omitempty"`
	Facts   []keptFact `json:"facts,omitempty"`
}

// grain is the resolution of past times in a snapshot. They are rounded down, but the time
// of a negative entry up. Repeated verification of an image therefore does not change the
// snapshot each time.
const grain = time.Hour

// keptTag is the digest last verified for a tag; none where the tag was gone by then.
type keptTag struct {
	Scope     string       `json:"scope"`
	Reference string       `json:"reference"`
	Digest    image.Digest `json:"digest,omitzero"`
	MediaType string       `json:"mediaType,omitempty"`
	Size      int64        `json:"size,omitempty"`
	At        int64        `json:"at"` // nanoseconds since 1970, as all times here
}

// keptFact is an answer in the peers' format, the time of its verification, and how long
// it is valid: by itself, and as a stale entry.
type keptFact struct {
	At     int64          `json:"at"`
	Fresh  int64          `json:"fresh"`
	Until  int64          `json:"until"`
	Answer jsontext.Value `json:"answer"`
}

// Snapshot returns the stale cache, the newest entries first, in at most parts parts of at
// most room bytes each (at least 1 MiB and some); the rest is left out. Where
// nothing outlives its age it is empty. It holds no secret and no "none found".
func (c *Cache) Snapshot(room, parts int) ([][]byte, error) {
	if room < minPart || room > maxPart || parts < 1 {
		return nil, fmt.Errorf("snapshot: %d parts of %d bytes: want one of %d to %d bytes at least", parts, room, minPart, maxPart)
	}
	if c.config.Stale == 0 {
		return nil, nil
	}
	w := &writer{room: room, most: parts}
	for _, gone := range c.keptGone() { // first: a negative entry must not be left out
		w.add(gone, func(p *part) { p.Gone = append(p.Gone, gone) })
	}
	w.cut() // versions without this part's format read the other parts
	for _, tag := range c.tags.kept() {
		w.add(tag, func(p *part) { p.Tags = append(p.Tags, tag) })
	}
	for _, fact := range c.keptFacts() {
		w.add(fact, func(p *part) { p.Facts = append(p.Facts, fact) })
	}
	return w.parts()
}

// writer fills parts.
type writer struct {
	room, most int
	full       []part
	now        part
	size       int
}

// partFrame is the overhead of a part, entryFrame that of an entry.
const partFrame, entryFrame = 64, 1

// cut begins another part, if one more may be.
func (w *writer) cut() {
	if w.size > 0 && len(w.full)+1 < w.most {
		w.full, w.now, w.size = append(w.full, w.now), part{}, 0
	}
}

func (w *writer) add(entry any, put func(*part)) {
	encoded, err := json.Marshal(entry)
	if err != nil {
		return // a text that is no UTF-8: it is asked for again
	}
	cost := len(encoded) + entryFrame
	if partFrame+w.size+cost > w.room {
		if len(w.full)+1 >= w.most {
			return
		}
		w.cut()
	}
	put(&w.now)
	w.size += cost
}

func (w *writer) parts() ([][]byte, error) {
	var out [][]byte
	for _, p := range append(w.full, w.now) {
		if len(p.Gone)+len(p.Tags)+len(p.Facts) == 0 {
			continue
		}
		p.Version = snapshotVersion
		encoded, err := json.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("snapshot: %w", err)
		}
		out = append(out, encoded)
	}
	return out, nil
}

// past is a wall time, or now if that time is in the future because a clock is or was
// wrong. A restart must not drop such an entry, and a correct clock must not extend its
// lifetime.
func (c *Config) past(at time.Time) time.Time { return Earlier(at.Round(0), c.Now().Round(0)) }

// keptGone is the time at which a registry had no evidence any more, so that earlier facts
// are not used after a restart either.
type keptGone struct {
	Fact       string `json:"fact"`
	Repository string `json:"repository"`
	Scope      string `json:"scope,omitempty"`
	At         int64  `json:"at"`
}

func (c *Cache) keptGone() []keptGone {
	var list []keptGone
	for key, at := range c.negative.All() {
		if found, ok := c.facts.Get(key.Key); !ok || at.Before(found.At) {
			continue // verified since, or never
		}
		list = append(list, keptGone{
			Fact: key.Key.String(), Repository: key.repository.String(), Scope: key.scope,
			At: c.config.past(at).Add(grain - 1).Truncate(grain).UnixNano(), // upwards: newer than the facts it invalidates
		})
	}
	slices.SortFunc(list, func(a, b keptGone) int {
		return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.Fact, b.Fact), cmp.Compare(a.Repository, b.Repository),
			cmp.Compare(a.Scope, b.Scope))
	})
	return list
}

func (t *Tags) kept() []keptTag {
	var list []keptTag
	for key, known := range t.verified.All() {
		d := known.Descriptor
		list = append(list, keptTag{Scope: key.Scope, Reference: key.Reference, Digest: d.Digest, MediaType: d.MediaType,
			Size: d.Size, At: t.config.past(known.At).Truncate(grain).UnixNano()})
	}
	slices.SortFunc(list, func(a, b keptTag) int {
		return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.Reference, b.Reference), cmp.Compare(a.Scope, b.Scope))
	})
	return list
}

func (c *Cache) keptFacts() []keptFact {
	var list []keptFact
	for key, found := range c.facts.All() {
		if found.brief { // a restored entry would be shared with other replicas
			continue
		}
		found.At = c.config.past(found.At)
		answer, err := encode(key, found, found.At)
		if err != nil {
			continue
		}
		list = append(list, keptFact{
			At: found.At.Truncate(grain).UnixNano(), Fresh: found.fresh.Truncate(grain).UnixNano(), Until: found.until.Truncate(grain).UnixNano(), Answer: answer,
		})
	}
	slices.SortFunc(list, func(a, b keptFact) int {
		return cmp.Or(cmp.Compare(b.At, a.At), slices.Compare(a.Answer, b.Answer))
	})
	return list
}

// RestoreTrusted restores a part of a snapshot and returns the number of its valid
// entries. The caller must have authenticated the part, as by a MAC: a gate with the same
// policies of trust must have written it. Newer entries of this process are not replaced,
// and no entry outlives its original lifetime.
func (c *Cache) RestoreTrusted(raw []byte) (entries int, err error) {
	if len(raw) > maxPart {
		return 0, fmt.Errorf("restore a snapshot: it is larger than %d bytes", maxPart)
	}
	var p part
	if err := json.Unmarshal(raw, &p, json.RejectUnknownMembers(true)); err != nil {
		return 0, fmt.Errorf("restore a snapshot: %w", err)
	}
	if p.Version != snapshotVersion {
		return 0, fmt.Errorf("restore a snapshot: it is of version %d, and this is version %d", p.Version, snapshotVersion)
	}
	if c.config.Stale == 0 {
		return 0, errors.New("restore a snapshot: nothing is kept here beyond its age")
	}
	for _, gone := range p.Gone {
		if c.restoreGone(gone) {
			entries++
		}
	}
	for _, tag := range p.Tags {
		if c.tags.restore(tag) {
			entries++
		}
	}
	for _, fact := range p.Facts {
		if c.restoreFact(fact) {
			entries++
		}
	}
	return entries, nil
}

func (c *Cache) restoreGone(gone keptGone) bool {
	fact, err := ParseKey(gone.Fact)
	if err != nil {
		return false
	}
	repository, err := image.ParseRepository(gone.Repository)
	if err != nil || repository.String() != gone.Repository {
		return false
	}
	key := noneKey{Key: fact, repository: repository, scope: gone.Scope}
	at := c.config.past(time.Unix(0, gone.At))
	if known, ok := c.negative.Get(key); ok && !c.config.past(known).Before(at) {
		return false
	}
	left := c.config.Stale - passed(at, c.config.Now())
	if left <= 0 {
		return false
	}
	c.negative.Put(key, at, left)
	return true
}

func (t *Tags) restore(tag keptTag) bool {
	ref, err := image.Parse(tag.Reference)
	if err != nil || ref.String() != tag.Reference || !ref.Digest().IsZero() {
		return false
	}
	key, at := Tag{Scope: tag.Scope, Reference: tag.Reference}, t.config.past(time.Unix(0, tag.At))
	if known, ok := t.verified.Get(key); ok && !t.config.past(known.At).Before(at) {
		return false
	}
	left := t.config.Stale - passed(at, t.config.Now())
	if left <= 0 {
		return false
	}
	t.verified.Put(key, Verified{Descriptor: image.Descriptor{Digest: tag.Digest, MediaType: tag.MediaType, Size: tag.Size}, At: at}, left)
	return true
}

func (c *Cache) restoreFact(kept keptFact) bool {
	var told struct {
		Key string `json:"key"`
	}
	if err := json.Unmarshal(kept.Answer, &told); err != nil {
		return false
	}
	key, err := ParseKey(told.Key)
	if err != nil {
		return false
	}
	now := c.config.Now()
	found, err := decode(kept.Answer, key, now)
	if err != nil {
		return false
	}
	found.At = c.config.past(time.Unix(0, kept.At))
	if known, ok := c.facts.Get(key); ok && !c.config.past(known.At).Before(found.At) {
		return false
	}
	found.fresh = Earlier(time.Unix(0, kept.Fresh), found.At.Add(c.config.Fact))
	found.until = Earlier(time.Unix(0, kept.Until), found.At.Add(c.config.Stale))
	left := max(found.fresh.Sub(now), found.until.Sub(now))
	if left <= 0 {
		return false
	}
	c.facts.Put(key, found, left)
	return true
}
