// Package script evaluates the policies in CUE and Rego of ClusterImagePolicies (policy.sigstore.dev/v1beta1),
// on statements and on other data.
package script

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/rego"
)

// maxCachedAnswers bounds the cached answers of a condition: twice as many images as a large
// cluster runs of one policy, at some hundred bytes each.
const maxCachedAnswers = 2048

// Condition is a compiled policy. It caches its answers by the data's content, unless they depend on the
// time. Errors are not cached.
type Condition struct {
	inner    policy.Condition
	timeless bool
	// dated: the policy reads verified times.
	dated bool
	// now is the clock of ages, which policies in CUE have; nil for none.
	now func() time.Time

	mu            sync.Mutex
	recent, older map[[sha256.Size]byte]cachedAnswer
}

type cachedAnswer struct {
	holds bool
	why   string
}

// Holds evaluates the condition on decoded JSON.
func (c *Condition) Holds(data any) (bool, string, error) {
	if !c.timeless {
		return c.inner.Holds(data)
	}
	text, err := json.Marshal(data)
	if err != nil {
		return false, "", err
	}
	return c.HoldsText(text)
}

// HoldsText evaluates the condition on JSON, and keeps large integers exact.
func (c *Condition) HoldsText(text []byte) (bool, string, error) {
	key := sha256.Sum256(text)
	if known, ok := c.get(key); c.timeless && ok {
		return known.holds, known.why, nil
	}
	data, err := rego.Decode(text)
	if err != nil {
		return false, "", err
	}
	holds, why, err := c.inner.Holds(data)
	if err != nil {
		return false, "", err
	}
	if c.timeless {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.put(key, cachedAnswer{holds: holds, why: why})
	}
	return holds, why, nil
}

// get returns an answer, and moves it to the recent ones.
func (c *Condition) get(key [sha256.Size]byte) (cachedAnswer, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.recent[key]; ok {
		return known, true
	}
	known, ok := c.older[key]
	if ok {
		c.put(key, known)
	}
	return known, ok
}

// put adds an answer. When the recent ones are too many, it evicts those that were not used since.
func (c *Condition) put(key [sha256.Size]byte, known cachedAnswer) {
	if c.recent == nil || len(c.recent) >= maxCachedAnswers/2 {
		c.older, c.recent = c.recent, map[[sha256.Size]byte]cachedAnswer{}
	}
	c.recent[key] = known
}
