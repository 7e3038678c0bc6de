package scan

import (
	"context"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate"
)

// Position is how far rounds have come: what a new leader needs to go on.
type Position struct {
	// Began is when the round began, and Ended when it was done; zero while it is not.
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended,omitzero"`
	// Whole is when the last round about all kinds began.
	Whole time.Time `json:"whole"`
	// Basis names what was decided by when it began.
	Basis Basis `json:"basis"`
	// Only are the kinds that the round is about; none means all.
	Only []Kind `json:"only,omitempty"`
	// Kind is what is looked at, and Continue where in its list; zero at the beginning.
	Kind     Kind   `json:"kind,omitzero"`
	Continue string `json:"continue,omitempty"`
	// GivenUp: it could not be looked at, and the round goes on behind it.
	GivenUp bool `json:"givenUp,omitempty"`
}

// isPast reports whether a kind comes before where the round is.
func (p *Position) isPast(k Kind) bool {
	if p.Kind == (Kind{}) {
		return false
	}
	at := order(k, p.Kind)
	return at < 0 || at == 0 && p.GivenUp
}

// unfinished reports whether there is a round to go on with.
func (p *Position) unfinished() bool { return !p.Began.IsZero() && p.Ended.IsZero() }

// covers reports whether the round is about a kind.
func (p *Position) covers(k Kind) bool { return len(p.Only) == 0 || slices.Contains(p.Only, k) }

// Basis names the content of what is decided by.
type Basis struct {
	Policies string `json:"policies"`
	Trust    string `json:"trust"`
	Mirrors  string `json:"mirrors,omitempty"`
}

func basisOf(s gate.Snapshot) Basis {
	return Basis{Policies: s.Policies.Hash(), Trust: s.Prover.Generation(), Mirrors: s.Mirrors.Hash()}
}

// Memory keeps a Position beyond this process.
type Memory interface {
	// Load returns what was saved last; zero where nothing was.
	Load(ctx context.Context) (Position, error)
	Save(ctx context.Context, p Position) error
}

// Pass is one kind of which a round has seen every object.
type Pass struct {
	Kind Kind
	// Began is when its first page was asked for.
	Began time.Time
	seen  map[string]struct{}
}

// NewPass returns a pass that has seen objects by their UIDs.
func NewPass(kind Kind, began time.Time, uids ...string) *Pass {
	p := &Pass{Kind: kind, Began: began, seen: make(map[string]struct{}, len(uids))}
	for _, uid := range uids {
		p.seen[uid] = struct{}{}
	}
	return p
}

// Has reports whether there is an object of that UID.
func (p *Pass) Has(uid string) bool {
	_, ok := p.seen[uid]
	return ok
}

// Summary is what a round came to.
type Summary struct {
	Began    time.Time
	Duration time.Duration
	// Resumed: somebody else began it, and the numbers are of the rest.
	Resumed bool
	// Kinds were looked at; Objects are those that were judged, of which policies speak
	// of Matched, would deny Denied, and could not say about Unable. Excluded were left
	// out by their namespace.
	Kinds, Objects, Matched, Denied, Unable, Excluded int
	// Refused are kinds that could not be listed, up to 100, and Unreadable how many
	// objects could not be read.
	Refused    []RefusedKind
	Unreadable int
}

// RefusedKind is a kind that could not be listed.
type RefusedKind struct {
	Kind Kind
	Err  error
}

// Complete reports whether everything was looked at.
func (s *Summary) Complete() bool { return len(s.Refused) == 0 && s.Unreadable == 0 && s.Unable == 0 }
