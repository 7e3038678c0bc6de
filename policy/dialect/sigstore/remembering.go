package sigstore

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/rego"
)

// maxRemembered bounds the cached answers of a condition: twice as many images as a large
// cluster runs of one policy, at some hundred bytes each.
const maxRemembered = 2048

// remembering is a condition that caches its answers by the data's content, unless they
// depend on the time. Errors are not cached.
type remembering struct {
	inner    policy.Condition
	timeless bool

	mu            sync.Mutex
	recent, older map[[sha256.Size]byte]remembered
}

type remembered struct {
	holds bool
	why   string
}

// Holds asks about decoded JSON.
func (r *remembering) Holds(data any) (bool, string, error) {
	if !r.timeless {
		return r.inner.Holds(data)
	}
	text, err := json.Marshal(data)
	if err != nil {
		return false, "", err
	}
	return r.holdsText(text)
}

// holdsText asks about JSON, with its integers as they are written.
func (r *remembering) holdsText(text []byte) (bool, string, error) {
	key := sha256.Sum256(text)
	if known, ok := r.recall(key); r.timeless && ok {
		return known.holds, known.why, nil
	}
	data, err := rego.Decode(text)
	if err != nil {
		return false, "", err
	}
	holds, why, err := r.inner.Holds(data)
	if err != nil {
		return false, "", err
	}
	if r.timeless {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.keep(key, remembered{holds: holds, why: why})
	}
	return holds, why, nil
}

// recall returns an answer, and keeps it among the recent ones.
func (r *remembering) recall(key [sha256.Size]byte) (remembered, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.recent[key]; ok {
		return known, true
	}
	known, ok := r.older[key]
	if ok {
		r.keep(key, known)
	}
	return known, ok
}

// keep evicts answers that were not used while the recent ones became too many.
func (r *remembering) keep(key [sha256.Size]byte, known remembered) {
	if r.recent == nil || len(r.recent) >= maxRemembered/2 {
		r.older, r.recent = r.recent, map[[sha256.Size]byte]remembered{}
	}
	r.recent[key] = known
}

// ofStatement evaluates a condition on a statement, given its predicate.
type ofStatement struct {
	inner         policy.Condition
	predicateType string
}

var _ policy.TextCondition = ofStatement{}

// Holds asks about the statement.
func (c ofStatement) Holds(predicate any) (bool, string, error) {
	return c.inner.Holds(map[string]any{"predicateType": c.predicateType, "predicate": predicate})
}

// HoldsText evaluates the condition on the statement with this predicate text. It keeps
// integers past 2^53, which a predicate decoded to float64 has lost.
func (c ofStatement) HoldsText(predicate []byte) (bool, string, error) {
	data, err := rego.Decode(predicate)
	if err != nil {
		return false, "", err
	}
	return c.Holds(data)
}
