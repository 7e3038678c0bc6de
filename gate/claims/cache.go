// Package claims caches verified claims about images: those that this process verified, and
// those that other replicas did.
//
// It implements the caching rules of the verification: claims are cached and verdicts are
// not; a claim expires no later than its evidence; "none found" is cached briefly, and per
// location and credentials; errors are never cached. Claims and digests of tags that are
// kept beyond their age serve while registries do not answer. The formats of peers, the
// shared store and snapshots are internal to the project.
package claims

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// Cache holds verified claims, shared by all requests, with the lookups in progress that
// several requests share. It is safe for concurrent use.
type Cache struct {
	config Config
	facts  *cache.Cache[Key, Entry]
	nones  *cache.Cache[noneKey, policy.Answer]
	hashes *cache.Cache[*verify.Authority, hashed]
	tags   *Tags
	// negative holds the time at which the registry reported no evidence: facts verified before it
	// are not used as stale entries. It and unresponsive are nil where nothing outlives its age.
	negative     *cache.Cache[noneKey, time.Time]
	unresponsive *cache.Cache[Location, struct{}]
	searches     *cache.Flight[string, []policy.Answer]
	backfills    *cache.Flight[string, map[string][]byte]
}

type hashed struct{ pem, hash string }

// New makes a Cache.
func New(config Config) (*Cache, error) {
	c := &Cache{config: config}
	var err error
	c.facts, err = cache.New(cache.Options[Key, Entry]{
		MaxCost: factBytes, MaxTTL: max(config.Fact, config.Stale), Now: config.Now,
		Cost: func(_ Key, e Entry) int { return costOf(e.Answer) },
	})
	if err != nil {
		return nil, err
	}
	c.nones, err = cache.New(cache.Options[noneKey, policy.Answer]{
		MaxCost: noneBytes, MaxTTL: config.None, Now: config.Now,
		Cost: func(_ noneKey, a policy.Answer) int { return costOf(a) },
	})
	if err != nil {
		return nil, err
	}
	c.hashes, err = cache.New(cache.Options[*verify.Authority, hashed]{
		MaxCost: hashBytes, MaxTTL: 24 * time.Hour, Now: config.Now,
		Cost: func(a *verify.Authority, h hashed) int { return answerBytes + a.Size() + len(h.pem) },
	})
	if err != nil {
		return nil, err
	}
	if err := c.newStale(); err != nil {
		return nil, err
	}
	c.tags, err = newTags(&c.config)
	if err != nil {
		return nil, err
	}
	c.backfills, err = cache.NewFlight[string, map[string][]byte](config.Timeout)
	if err != nil {
		return nil, err
	}
	c.searches, err = cache.NewFlight[string, []policy.Answer](config.Timeout)
	return c, err
}

// newStale makes what records the failures of registries, where entries outlive their age.
func (c *Cache) newStale() (err error) {
	if c.config.Stale == 0 {
		return nil
	}
	c.negative, err = cache.New(cache.Options[noneKey, time.Time]{MaxCost: maxGone, MaxTTL: c.config.Stale, Now: c.config.Now})
	if err != nil {
		return err
	}
	c.unresponsive, err = cache.New(cache.Options[Location, struct{}]{MaxCost: maxSilent, MaxTTL: silence, Now: c.config.Now})
	return err
}

// Tags returns the digests behind tags.
func (c *Cache) Tags() *Tags { return c.tags }

// Hash returns the authority's hash, cached by the policy's own pointer for as long as the
// key behind it is the same.
func (c *Cache) Hash(a *verify.Authority, resolved verify.Authority) (string, error) {
	var pem []byte
	if resolved.Key != nil {
		pem = resolved.Key.PEM
	}
	if known, ok := c.hashes.Get(a); ok && known.pem == string(pem) {
		return known.hash, nil
	}
	hash, err := resolved.Hash()
	if err != nil {
		return "", err
	}
	c.hashes.Put(a, hashed{pem: string(pem), hash: hash}, 24*time.Hour)
	return hash, nil
}

// IsHashed reports whether an authority's key was resolved before.
func (c *Cache) IsHashed(a *verify.Authority) bool {
	_, ok := c.hashes.Get(a)
	return ok
}

// Lookup returns the cached answer to a query. Old means that it was found longer ago than
// "none" would be kept: enough to allow, but not to deny, since a newer statement may exist.
func (c *Cache) Lookup(q Query) (answer policy.Answer, old, ok bool) {
	if q.MaxAge < 0 || q.Bypass {
		return policy.Answer{}, false, false
	}
	if !q.Fallback { // a fallback is asked for claims that are not cached
		answer, old, ok = c.Facts(q.Key)
		c.config.asked(LayerFacts, ok)
	}
	if ok {
		return answer, old, true
	}
	answer, ok = c.nones.Get(q.none())
	c.config.asked(LayerNone, ok)
	return answer, false, ok
}

// Facts returns the cached claims of a key; old is as with Lookup.
func (c *Cache) Facts(key Key) (answer policy.Answer, old, ok bool) {
	known, ok := c.facts.Get(key)
	now := c.config.Now()
	if !ok || !isBefore(now, known.fresh) {
		return policy.Answer{}, false, false
	}
	return known.Answer, passed(known.At, now) >= c.config.None, true
}

// Stale returns the claims of a query that were verified less than window ago, for use
// while the registry does not answer.
func (c *Cache) Stale(q Query, window time.Duration) (Entry, bool) {
	if c.config.Stale == 0 || q.Fallback || q.MaxAge != 0 {
		return Entry{}, false
	}
	now := c.config.Now()
	gone, isGone := c.negative.Get(q.none())
	before, ok := c.facts.Get(q.Key)
	if ok && (!isGone || gone.Before(before.At)) && isBefore(now, before.until) && passed(before.At, now) < window {
		return before, true
	}
	return Entry{}, false
}

// IsSilent reports whether a location did not answer recently.
func (c *Cache) IsSilent(at Location) bool {
	if c.unresponsive == nil {
		return false
	}
	_, silent := c.unresponsive.Get(at)
	return silent
}

// NoteSilence records that a location does not answer.
func (c *Cache) NoteSilence(at Location) {
	if c.unresponsive != nil {
		c.unresponsive.Put(at, struct{}{}, silence)
	}
}

// Search answers queries about one digest and one location. Concurrent callers with the same
// queries and the same apart share one search, and its answers are cached. The error is the reason
// why there are no answers, as the end of ctx.
func (c *Cache) Search(ctx context.Context, queries []Query, apart string, look func(context.Context) []policy.Answer) ([]policy.Answer, error) {
	var key strings.Builder
	for _, q := range queries {
		key.WriteString(q.none().String() + "\n")
	}
	key.WriteString(apart)
	answers, err := c.searches.Do(ctx, key.String(), func(ctx context.Context) ([]policy.Answer, error) {
		answers := look(ctx)
		for i, q := range queries {
			c.keep(q, answers[i])
		}
		return answers, nil
	})
	if err == nil && len(answers) != len(queries) {
		err = fmt.Errorf("%d answers to %d questions; this is a defect", len(answers), len(queries))
	}
	if err != nil {
		return nil, fmt.Errorf("search for evidence: %w", err)
	}
	return answers, nil
}

// keep caches an answer: facts no longer than their evidence is valid, "none" briefly, and
// errors never.
func (c *Cache) keep(q Query, answer policy.Answer) {
	switch {
	case q.MaxAge < 0 || len(answer.Gaps) > 0 || q.Partial && len(answer.Facts) > 0:
	case len(answer.Facts) == 0:
		c.nones.Put(q.none(), answer, c.config.None)
		if c.negative != nil {
			c.negative.Put(q.none(), c.config.Now(), c.config.Stale)
		}
	default:
		found := Entry{Answer: answer, At: c.config.Now(), brief: q.Incomplete}
		known, ok := c.facts.Get(q.Key)
		if ok && q.Incomplete && !known.brief { // the claims of all repositories outlast those of one
			return
		}
		if ok && q.Fallback && isBefore(found.At, known.fresh) {
			found.Answer, found.At, found.brief = Merge(known.Answer, answer, q.Repository), known.At, known.brief
		}
		age := c.keepFacts(q, found)
		if !found.brief {
			c.config.share(q.Key, found, age)
		}
	}
}

// keepFacts caches facts for the rest of their time since verification, which it returns,
// and beyond that as stale entries for an unresponsive registry.
func (c *Cache) keepFacts(q Query, found Entry) time.Duration {
	age, kept := c.config.Fact, c.config.Stale
	if q.MaxAge > 0 {
		age, kept = min(age, q.MaxAge), 0
	}
	if found.brief {
		age, kept = min(age, c.config.None), 0
	}
	now := c.config.Now()
	age, kept = age-passed(found.At, now), kept-passed(found.At, now)
	for _, fact := range found.Answer.Facts {
		if !fact.Expires.IsZero() {
			age, kept = min(age, fact.Expires.Sub(now)), min(kept, fact.Expires.Sub(now))
		}
	}
	found.fresh, found.until = now.Add(age), now.Add(kept)
	c.facts.Put(q.Key, found, max(age, kept))
	return age
}

func isAbsent(gap error) bool {
	of, ok := errors.AsType[attest.Gap](gap)
	return ok && of.Absent
}

// Merge adds a fallback's facts to an answer and replaces its earlier facts and rejections: a
// fallback is searched again for as long as a check is not met.
func Merge(first, more policy.Answer, at image.Repository) policy.Answer {
	facts, rejections := slices.Clone(first.Facts), slices.Clone(first.Rejections)
	if len(more.Facts) > 0 && len(more.Gaps) == 0 {
		facts = slices.DeleteFunc(facts, func(f verify.Fact) bool { return f.Origin.Repository == at })
		rejections = slices.DeleteFunc(rejections, func(r *verify.Rejection) bool {
			return r.Origin.Repository == at || r.Origin.Repository.IsZero() && slices.ContainsFunc(more.Rejections, func(m *verify.Rejection) bool {
				return m.Origin == r.Origin && m.Authority == r.Authority && m.Error() == r.Error()
			})
		})
	}
	instead := slices.Clip(first.Instead)
	for _, one := range more.Instead {
		if !slices.Contains(instead, one) {
			instead = append(instead, one)
		}
	}
	gaps := slices.Clip(first.Gaps)
	if len(more.Facts)+len(more.Rejections)+len(more.Instead) > 0 { // a mirror has the image
		gaps = slices.DeleteFunc(slices.Clone(gaps), isAbsent)
	}
	return policy.Answer{
		Facts:      append(facts, more.Facts...),
		Rejections: append(rejections, more.Rejections...),
		Gaps:       append(gaps, more.Gaps...),
		Instead:    instead,
	}
}
