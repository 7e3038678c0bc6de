package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// Bounds of the gate's cache. An answer without statements costs about a kilobyte, so 64
// MiB hold some 60,000 of them: more images than a large cluster runs.
const (
	factBytes   = 64 << 20
	noneBytes   = 8 << 20
	maxTags     = 50_000
	maxHashes   = 10_000
	maxIndexes  = 10_000
	refBytes    = 8 << 20
	dataBytes   = 16 << 20
	answerBytes = 1 << 10
)

// factKey identifies a cached fact. A fact about a digest is valid for all credentials and every
// repository of the image, but not where a policy names other sources of evidence: an image that
// was signed for one environment is not signed for another.
type factKey struct {
	digest                image.Digest
	authority, generation string
	role                  attest.Role
	predicate, sources    string
	artifact              bool
}

// noneKey identifies a cached "none found", which is valid only for one evidence
// repository and one set of credentials.
type noneKey struct {
	factKey
	repository image.Repository
	scope      string
}

func (k noneKey) String() string {
	return fmt.Sprintf("%s %q %q %q %q %t %q %q %q", k.digest, k.authority, k.generation, k.role, k.predicate, k.artifact, k.repository, k.sources, k.scope)
}

type tagKey struct{ scope, ref string }

// memory is the gate's cache, shared by all requests, with the lookups in progress that
// several requests share. A key holds everything that the answer depends on, so a changed
// policy, key or root never hits an older entry.
type memory struct {
	options  options
	facts    *cache.Cache[factKey, proved]
	nones    *cache.Cache[noneKey, policy.Answer]
	tags     *cache.Cache[tagKey, image.Descriptor]
	hashes   *cache.Cache[*verify.Authority, hashed]
	refs     *cache.Cache[string, image.Ref]
	data     *cache.Cache[dataKey, policy.ImageData]
	indexes  *cache.Cache[image.Digest, []image.Digest]
	lasts    *lasts // nil: nothing outlives its age
	resolves *cache.Flight[tagKey, image.Descriptor]
	searches *cache.Flight[string, []policy.Answer]
	recalls  *cache.Flight[string, map[string][]byte]
}

// proved is an answer with facts, and the time of its verification. Until fresh has
// passed, no other source is asked; until the end of its age it serves as a stale entry
// while registries do not answer.
type proved struct {
	answer           policy.Answer
	at, fresh, until time.Time
}

type hashed struct{ pem, hash string }

func newMemory(o options) (*memory, error) {
	m := &memory{options: o}
	var err error
	m.facts, err = cache.New(cache.Options[factKey, proved]{
		MaxCost: factBytes, MaxTTL: max(o.age, o.keptFor()), Now: o.now,
		Cost: func(_ factKey, p proved) int { return costOf(p.answer) },
	})
	if err != nil {
		return nil, err
	}
	m.nones, err = cache.New(cache.Options[noneKey, policy.Answer]{
		MaxCost: noneBytes, MaxTTL: o.noneAge, Now: o.now,
		Cost: func(_ noneKey, a policy.Answer) int { return costOf(a) },
	})
	if err != nil {
		return nil, err
	}
	m.tags, err = cache.New(cache.Options[tagKey, image.Descriptor]{MaxCost: maxTags, MaxTTL: o.tagAge, Now: o.now})
	if err != nil {
		return nil, err
	}
	m.hashes, err = cache.New(cache.Options[*verify.Authority, hashed]{MaxCost: maxHashes, MaxTTL: 24 * time.Hour, Now: o.now})
	if err != nil {
		return nil, err
	}
	m.refs, err = cache.New(cache.Options[string, image.Ref]{
		MaxCost: refBytes, MaxTTL: 24 * time.Hour, Now: o.now,
		Cost: func(text string, _ image.Ref) int { return 256 + 2*len(text) },
	})
	if err != nil {
		return nil, err
	}
	m.data, err = cache.New(cache.Options[dataKey, policy.ImageData]{
		MaxCost: dataBytes, MaxTTL: o.age, Now: o.now,
		Cost: func(_ dataKey, d policy.ImageData) int { return dataCost(d) },
	})
	if err != nil {
		return nil, err
	}
	m.indexes, err = cache.New(cache.Options[image.Digest, []image.Digest]{MaxCost: maxIndexes, MaxTTL: o.age, Now: o.now})
	if err != nil {
		return nil, err
	}
	if o.keeps {
		m.lasts, err = newLasts(o)
		if err != nil {
			return nil, err
		}
	}
	m.resolves, err = cache.NewFlight[tagKey, image.Descriptor](o.timeout)
	if err != nil {
		return nil, err
	}
	m.recalls, err = cache.NewFlight[string, map[string][]byte](o.timeout)
	if err != nil {
		return nil, err
	}
	m.searches, err = cache.NewFlight[string, []policy.Answer](o.timeout)
	return m, err
}

func costOf(a policy.Answer) int {
	cost := answerBytes * (1 + len(a.Facts) + len(a.Rejections))
	for _, fact := range a.Facts {
		if fact.Statement != nil {
			cost += len(fact.Statement.Predicate)
		}
	}
	return cost
}

func dataCost(d policy.ImageData) int {
	cost := answerBytes + len(d.Index)
	for _, child := range d.Children {
		cost += answerBytes + len(child.Manifest) + len(child.Config)
	}
	return cost
}

// keepData caches the data of an image.
func (m *memory) keepData(key dataKey, data policy.ImageData) { m.data.Put(key, data, m.options.age) }

// parse reads a reference. Its meaning never changes, and the same few are read repeatedly.
func (m *memory) parse(text string) (image.Ref, error) {
	if ref, ok := m.refs.Get(text); ok {
		return ref, nil
	}
	text = strings.Clone(text) // a substring would keep all of the object's text alive
	ref, err := image.Parse(text)
	if err == nil {
		m.refs.Put(text, ref, 24*time.Hour)
	}
	return ref, err
}

// hash returns the authority's hash, kept by the policy's own pointer for as
// long as the key behind it is the same.
func (m *memory) hash(a *verify.Authority, resolved verify.Authority) (string, error) {
	var pem []byte
	if resolved.Key != nil {
		pem = resolved.Key.PEM
	}
	if known, ok := m.hashes.Get(a); ok && known.pem == string(pem) {
		return known.hash, nil
	}
	hash, err := resolved.Hash()
	if err != nil {
		return "", err
	}
	m.hashes.Put(a, hashed{pem: string(pem), hash: hash}, 24*time.Hour)
	return hash, nil
}

// hashed reports whether an authority's key was resolved before.
func (m *memory) hashed(a *verify.Authority) bool {
	_, ok := m.hashes.Get(a)
	return ok
}

// recall returns the cached answer to an inquiry. Old means that it was found longer ago
// than "none" would be kept: enough to allow, but not to deny, since a newer statement may
// exist.
func (m *memory) recall(in *inquiry) (answer policy.Answer, old, ok bool) {
	if !in.place.isLater { // a fallback is asked for claims that are not cached
		answer, old, ok = m.recallFacts(in.fact)
		m.options.asked(LayerFacts, ok)
	}
	if ok {
		return answer, old, true
	}
	answer, ok = m.nones.Get(in.none)
	m.options.asked(LayerNone, ok)
	return answer, false, ok
}

func (m *memory) recallFacts(key factKey) (answer policy.Answer, old, ok bool) {
	known, ok := m.facts.Get(key)
	now := m.options.now()
	if !ok || !isBefore(now, known.fresh) {
		return policy.Answer{}, false, false
	}
	return known.answer, passed(known.at, now) >= m.options.noneAge, true
}

// keep caches an answer: facts no longer than their evidence is valid, "none" briefly, and
// errors never.
func (m *memory) keep(in *inquiry, answer policy.Answer) {
	switch {
	case in.authority.MaxAge < 0 || len(answer.Gaps) > 0:
	case len(answer.Facts) == 0:
		m.nones.Put(in.none, answer, m.options.noneAge)
		m.lasts.deny(in.none, m.options.now())
	default:
		found := proved{answer: answer, at: m.options.now()}
		if known, ok := m.facts.Get(in.fact); ok && in.place.isLater && isBefore(found.at, known.fresh) {
			found.answer, found.at = merge(known.answer, answer, in.none.repository), known.at
		}
		m.share(in.fact, found, m.keepFacts(in, found))
	}
}

// keepFacts caches facts for the rest of their time since verification, which it returns,
// and beyond that as stale entries for an unresponsive registry.
func (m *memory) keepFacts(in *inquiry, found proved) time.Duration {
	age, kept := m.options.age, m.options.keptFor()
	if in.authority.MaxAge > 0 {
		age, kept = min(age, in.authority.MaxAge), 0
	}
	now := m.options.now()
	age, kept = age-passed(found.at, now), kept-passed(found.at, now)
	for _, fact := range found.answer.Facts {
		if !fact.Expires.IsZero() {
			age, kept = min(age, fact.Expires.Sub(now)), min(kept, fact.Expires.Sub(now))
		}
	}
	found.fresh, found.until = now.Add(age), now.Add(kept)
	m.facts.Put(in.fact, found, max(age, kept))
	return age
}

// askPeers asks the other replicas. Concurrent requests for the same keys share one call.
func (m *memory) askPeers(ctx context.Context, peers Peers, keys []string) map[string][]byte {
	known, err := m.recalls.Do(ctx, strings.Join(keys, "\n"), func(ctx context.Context) (map[string][]byte, error) {
		return peers.Recall(ctx, keys), nil
	})
	if err != nil { // a peer that does not answer counts as a miss
		return nil
	}
	return known
}

// askStore asks the shared store. Concurrent requests for the same keys share one call.
func (m *memory) askStore(ctx context.Context, store Store, keys []string) map[string][]byte {
	known, err := m.recalls.Do(ctx, "store\n"+strings.Join(keys, "\n"), func(ctx context.Context) (map[string][]byte, error) {
		return store.Recall(ctx, keys), nil
	})
	if err != nil { // a store that does not answer counts as a miss
		return nil
	}
	return known
}

var errNotRemembered = errors.New("the tag's digest is not remembered")

// pin returns the digest of a reference from the cache alone.
func (m *memory) pin(scope string, ref image.Ref) (image.Pinned, error) {
	if digest := ref.Digest(); !digest.IsZero() {
		return ref.Pin(image.Descriptor{Digest: digest})
	}
	known, ok := m.tags.Get(tagKey{scope: scope, ref: ref.String()})
	if !ok {
		return image.Pinned{}, errNotRemembered
	}
	return ref.Pin(known)
}

// resolve returns the digest of a tag, from the cache while it is fresh. Concurrent
// callers with the same tag, credentials and apart share one request.
func (m *memory) resolve(ctx context.Context, scope, apart string, ref image.Ref,
	ask func(context.Context, image.Ref) (image.Pinned, error)) (image.Pinned, error) {
	key := tagKey{scope: scope, ref: ref.String()}
	known, ok := m.tags.Get(key)
	m.options.asked(LayerTags, ok)
	if ok {
		return ref.Pin(known)
	}
	together := key
	together.scope += apart
	descriptor, err := m.resolves.Do(ctx, together, func(ctx context.Context) (image.Descriptor, error) {
		ctx, end := m.options.begin(ctx, PhaseResolve)
		defer end()
		pinned, err := ask(ctx, ref)
		if err != nil {
			return image.Descriptor{}, err
		}
		m.tags.Put(key, pinned.Descriptor(), m.options.tagAge)
		return pinned.Descriptor(), nil
	})
	if err != nil {
		return image.Pinned{}, err
	}
	return ref.Pin(descriptor)
}

// apart returns a name that separates a caller from the shared requests of others, from
// the session's method Apart if it has one; "" shares.
func apart(session any, repository image.Repository) string {
	if tenant, ok := session.(interface{ Apart(image.Repository) string }); ok {
		if name := tenant.Apart(repository); name != "" {
			return "\x00" + name
		}
	}
	return ""
}

// search answers inquiries about one digest and one group of evidence repositories.
// Concurrent callers with the same inquiries share one search.
func (m *memory) search(ctx context.Context, inquiries []*inquiry, look func(context.Context) []policy.Answer) []policy.Answer {
	var key strings.Builder
	for _, in := range inquiries {
		key.WriteString(in.none.String() + "\n")
	}
	key.WriteString(apart(inquiries[0].session, inquiries[0].none.repository))
	answers, err := m.searches.Do(ctx, key.String(), func(ctx context.Context) ([]policy.Answer, error) {
		answers := look(ctx)
		for i, in := range inquiries {
			m.keep(in, answers[i])
		}
		return answers, nil
	})
	if err == nil && len(answers) != len(inquiries) {
		err = fmt.Errorf("%d answers to %d questions; this is a defect", len(answers), len(inquiries))
	}
	if err == nil {
		return answers
	}
	answers = make([]policy.Answer, len(inquiries))
	for i := range answers {
		answers[i].Gaps = []error{fmt.Errorf("search for evidence: %w", err)}
	}
	return answers
}
