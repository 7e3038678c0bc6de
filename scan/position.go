package scan

import (
	"context"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate"
)

// Position is the progress of rounds, from which a new leader continues.
type Position struct {
	// Began is the start of the round, and Ended its end; zero before that.
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
	// Whole is the start of the last round of all kinds.
	Whole time.Time `json:"whole"`
	// Basis identifies the configuration at the start of the round.
	Basis Basis `json:"basis"`
	// Only are the kinds of the round; none means all.
	Only []Kind `json:"only,omitempty"`
	// Kind is the current kind, and Continue the token in its list; zero at the beginning.
	Kind     Kind   `json:"kind,omitzero"`
	Continue string `json:"continue,omitempty"`
	// GivenUp: the kind failed, and the round continues after it.
	GivenUp bool `json:"givenUp,omitempty"`
}

// isPast reports whether a kind comes before the current position.
func (p *Position) isPast(k Kind) bool {
	if p.Kind == (Kind{}) {
		return false
	}
	at := order(k, p.Kind)
	return at < 0 || at == 0 && p.GivenUp
}

// unfinished reports whether there is a round to continue.
func (p *Position) unfinished() bool { return !p.Began.IsZero() && p.Ended.IsZero() }

// covers reports whether the round includes a kind.
func (p *Position) covers(k Kind) bool { return len(p.Only) == 0 || slices.Contains(p.Only, k) }

// Basis identifies the content of the configuration.
type Basis struct {
	Policies string `json:"policies"`
	Trust    string `json:"trust"`
	Mirrors  string `json:"mirrors,omitempty"`
}

func basisOf(s gate.Snapshot) Basis {
	return Basis{Policies: s.Policies.Hash(), Trust: s.Prover.Generation(), Mirrors: s.Mirrors.Hash()}
}

// Memory stores a Position outside of this process.
type Memory interface {
	// Load returns the last saved position; zero where there is none.
	Load(ctx context.Context) (Position, error)
	Save(ctx context.Context, p Position) error
}

// Pass is one kind of which a round has listed every object.
type Pass struct {
	Kind Kind
	// Began is the time of the first page's request.
	Began time.Time
	seen  map[string]struct{}
}

// NewPass returns a pass over objects with these UIDs.
func NewPass(kind Kind, began time.Time, uids ...string) *Pass {
	p := &Pass{Kind: kind, Began: began, seen: make(map[string]struct{}, len(uids))}
	for _, uid := range uids {
		p.seen[uid] = struct{}{}
	}
	return p
}

// Has reports whether the pass includes an object with that UID.
func (p *Pass) Has(uid string) bool {
	_, ok := p.seen[uid]
	return ok
}

// Summary is the result of a round.
type Summary struct {
	Began    time.Time
	Duration time.Duration
	// Resumed: another leader began the round, and the counts cover the rest.
	Resumed bool
	// Kinds counts the scanned kinds, and Objects the evaluated objects. Of these, policies match
	// Matched, would deny Denied, and could not verify Errors. Excluded were left out by their
	// namespace.
	Kinds, Objects, Matched, Denied, Errors, Excluded int
	// Refused are kinds that cannot be listed, up to 100, and Unreadable counts invalid objects.
	Refused    []RefusedKind
	Unreadable int
}

// RefusedKind is a kind that cannot be listed.
type RefusedKind struct {
	Kind Kind
	Err  error
}

// Complete reports whether all objects were evaluated without errors.
func (s *Summary) Complete() bool { return len(s.Refused) == 0 && s.Unreadable == 0 && s.Errors == 0 }
