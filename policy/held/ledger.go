package held

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

const (
	// formatVersion is that of what Encode writes.
	formatVersion = 1
	// MaxEncoded bounds what Encode returns, in bytes: a Secret takes a mebibyte.
	MaxEncoded = 900 << 10
	// maxDecoded bounds what Decode reads: some ten thousand policies.
	maxDecoded = 64 << 20
	// maxGone bounds the policies that are remembered though they are gone.
	maxGone = 1_000
	// goneGrace is how soon after a policy went one of its name has to be made to follow
	// upon it, as with kubectl replace --force. It is ample for clocks that differ.
	goneGrace = 10 * time.Minute
)

// ErrVersion says that a ledger was written by a later version of this product.
var ErrVersion = errors.New("it was written by a later version")

// Approved is the version of a policy that was approved last.
type Approved struct {
	Hash string `json:"hash"`
	// Enforcing: it denies.
	Enforcing bool `json:"enforcing,omitempty"`
	// Text is the document; empty where there was no room for it.
	Text []byte `json:"text,omitempty"`
	// Gone: there is no such policy at the moment. It may come back.
	Gone bool `json:"gone,omitempty"`
	// GoneAt is since when, in seconds of Unix time; zero in ledgers that earlier versions
	// wrote: long ago.
	GoneAt int64 `json:"goneAt,omitempty"`
}

// precedes reports whether a version of the same name follows upon what was approved. It
// does not if that was gone for long when the version was made: then it is a policy of its
// own. What has no time of its own is made now.
func (a Approved) precedes(v Version, now time.Time) bool {
	made := v.Created
	if made.IsZero() {
		made = now
	}
	return !a.Gone || made.Sub(time.Unix(a.GoneAt, 0)) <= goneGrace
}

// Ledger knows what was approved. It is immutable; a nil one knows nothing, and holds
// nothing.
type Ledger struct{ approved map[string]Approved }

// Standing is what is asked in place of a version.
type Standing string

// The standings.
const (
	Itself   Standing = "itself"   // the version
	Previous Standing = "previous" // what was approved before
	Audited  Standing = "audited"  // the version, which denies nothing
)

// New returns a ledger that approves versions.
func New(versions ...Version) *Ledger { return (*Ledger)(nil).Approve(versions...) }

// Of says what is asked in place of a version. Where the ledger knows that another one
// was in force and not what it said, it is the version: nothing is weakened. A version that
// comes long after the policy of its name went is as good as new.
func (l *Ledger) Of(v Version, now time.Time) Standing {
	if l == nil || v.Accepted || !v.Enforcing {
		return Itself
	}
	before, known := l.approved[v.ID]
	switch {
	case known && before.Hash == v.Hash:
		return Itself
	case !known, !before.Enforcing, !before.precedes(v, now):
		return Audited
	case len(before.Text) == 0:
		return Itself
	}
	return Previous
}

// Before returns what was approved of a policy.
func (l *Ledger) Before(id string) (Approved, bool) {
	if l == nil {
		return Approved{}, false
	}
	found, ok := l.approved[id]
	return found, ok
}

// Approve returns a ledger with these versions.
func (l *Ledger) Approve(versions ...Version) *Ledger {
	made := &Ledger{approved: map[string]Approved{}}
	if l != nil {
		maps.Copy(made.approved, l.approved)
	}
	for _, v := range versions {
		text := v.Text
		if !v.Enforcing {
			text = nil // nothing needs it: what follows upon it audits
		}
		made.approved[v.ID] = Approved{Hash: v.Hash, Enforcing: v.Enforcing, Text: text}
	}
	return made
}

// There returns a ledger that notes which policies there are. Those that are gone are
// remembered, up to a bound: one that comes back as it was is in force at once. They stay
// gone where another policy has their name since.
func (l *Ledger) There(now time.Time, versions ...Version) *Ledger {
	there := make(map[string]Version, len(versions))
	for _, v := range versions {
		there[v.ID] = v
	}
	made := l.Approve()
	gone := 0
	for _, id := range slices.Sorted(maps.Keys(made.approved)) {
		a := made.approved[id]
		v, is := there[id]
		switch {
		case is && (v.Hash == a.Hash || a.precedes(v, now)):
			a.Gone, a.GoneAt = false, 0
		case !a.Gone:
			a.Gone, a.GoneAt = true, now.Unix()
		default: // a clock may have been wrong
			a.GoneAt = min(a.GoneAt, now.Unix())
		}
		if a.Gone {
			if gone++; gone > maxGone {
				delete(made.approved, id)
				continue
			}
		}
		made.approved[id] = a
	}
	return made
}

// Equal reports whether two ledgers say the same.
func (l *Ledger) Equal(other *Ledger) bool {
	if l == nil || other == nil {
		return l == other
	}
	return maps.EqualFunc(l.approved, other.approved, func(a, b Approved) bool {
		return a.Hash == b.Hash && a.Enforcing == b.Enforcing && a.Gone == b.Gone && a.GoneAt == b.GoneAt && bytes.Equal(a.Text, b.Text)
	})
}

// encoded is a ledger as it is written.
type encoded struct {
	Version  int                 `json:"version"`
	Policies map[string]Approved `json:"policies"`
}

// Encode writes a ledger, compressed. Where there is not room enough, the longest texts
// are left out.
func (l *Ledger) Encode() ([]byte, error) {
	if l == nil {
		return nil, errors.New("held: there is no ledger")
	}
	out := encoded{Version: formatVersion, Policies: maps.Clone(l.approved)}
	longest := slices.SortedFunc(maps.Keys(out.Policies), func(a, b string) int { return len(out.Policies[b].Text) - len(out.Policies[a].Text) })
	for begin := 0; ; {
		text, err := out.compress()
		if err != nil || len(text) <= MaxEncoded {
			return text, err
		}
		if begin == len(longest) {
			return nil, fmt.Errorf("held: %d policies take more than %d bytes", len(longest), MaxEncoded)
		}
		end := min(len(longest), begin+max(1, (len(longest)-begin)/4))
		for _, id := range longest[begin:end] {
			a := out.Policies[id]
			a.Text = nil
			out.Policies[id] = a
		}
		begin = end
	}
}

func (e encoded) compress() ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(w).Encode(e), w.Close()); err != nil {
		return nil, fmt.Errorf("held: write the ledger: %w", err)
	}
	return b.Bytes(), nil
}

// Decode reads what Encode wrote. It refuses what is damaged, and with ErrVersion what it
// is too old for.
func Decode(text []byte) (*Ledger, error) {
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("held: read the ledger: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxDecoded+1))
	if err != nil {
		return nil, fmt.Errorf("held: read the ledger: %w", err)
	}
	if len(plain) > maxDecoded {
		return nil, fmt.Errorf("held: the ledger exceeds the bound of %d bytes", maxDecoded)
	}
	var in encoded
	if err := json.Unmarshal(plain, &in); err != nil {
		return nil, fmt.Errorf("held: read the ledger: %w", err)
	}
	if in.Version > formatVersion {
		return nil, fmt.Errorf("held: the ledger has version %d: %w", in.Version, ErrVersion)
	}
	if in.Version != formatVersion || in.Policies == nil {
		return nil, errors.New("held: what is there is no ledger")
	}
	for id, a := range in.Policies {
		if id == "" || a.Hash == "" {
			return nil, errors.New("held: the ledger has an entry without a name or a hash")
		}
	}
	return &Ledger{approved: in.Policies}, nil
}
