package cleanup

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/policy"
)

// ErrConflict means that another process has written the records since they were read.
var ErrConflict = errors.New("another process has written the records of runs")

// Record is the last run of a rule.
type Record struct {
	// Form identifies the content of the policy.
	Form string `json:"form"`
	// Scheduled is the time of its schedule. For a rule without a run it is the time from which its
	// schedule counts.
	Scheduled time.Time `json:"scheduled"`
	// Open: the run has not ended.
	Open bool `json:"open,omitempty"`
	// Deletions counts the requests that were made or reserved.
	Deletions int `json:"deletions,omitempty"`
}

// Records are the last runs of all rules, as stored.
type Records struct {
	// Version is that of the stored object; empty if there is none.
	Version string
	Runs    map[string]Record
}

// Store stores the records across leaders.
type Store interface {
	// Load returns the stored records; none if there are none.
	Load(ctx context.Context) (Records, error)
	// Save writes the records if the stored ones still have their version, and returns the new
	// version; ErrConflict.
	Save(ctx context.Context, r Records) (version string, err error)
}

// ledger is the state of the records in this process. It is safe for concurrent use.
type ledger struct {
	store Store

	mu      sync.Mutex
	records Records
	stale   bool // another process has written: they are to be loaded again
}

// load replaces the state by the stored one.
func (l *ledger) load(ctx context.Context) error {
	loaded, err := l.store.Load(ctx)
	if err != nil {
		return fmt.Errorf("read the records of runs: %w", err)
	}
	if loaded.Runs == nil {
		loaded.Runs = map[string]Record{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records, l.stale = loaded, false
	return nil
}

// isStale reports whether another process has written the records.
func (l *ledger) isStale() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stale
}

// get returns the record of a rule.
func (l *ledger) get(key string) (Record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.records.Runs[key]
	return r, ok
}

// update stores changes of records, and none of them if that fails. A failed write may have been
// stored all the same; the next one then is a conflict.
func (l *ledger) update(ctx context.Context, change func(runs map[string]Record)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stale {
		return ErrConflict
	}
	next := Records{Version: l.records.Version, Runs: maps.Clone(l.records.Runs)}
	change(next.Runs)
	version, err := l.store.Save(ctx, next)
	if err != nil {
		l.stale = true // the stored records are unknown
		return fmt.Errorf("write the records of runs: %w", err)
	}
	next.Version = version
	l.records = next
	return nil
}

// keyOf is the key of a rule. It is short: the records of all rules are one object.
func keyOf(p *policy.Policy, rule string) string {
	return digest(p.ID() + "\n" + rule)
}

// formOf identifies the content of a policy, and the document that has it: of one that was deleted
// and created again the schedule begins anew.
func formOf(p *policy.Policy) string {
	return digest(p.Hash + "\n" + p.Created.UTC().Format(time.RFC3339))
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
