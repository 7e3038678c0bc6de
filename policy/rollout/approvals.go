package rollout

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
	// formatVersion is the version of Encode's format.
	formatVersion = 1
	// MaxEncoded bounds the result of Encode, in bytes: a Secret holds a mebibyte.
	MaxEncoded = 900 << 10
	// maxDecoded bounds the decompressed input of Decode: some ten thousand policies.
	maxDecoded = 64 << 20
	// maxGone bounds the deleted policies that are kept.
	maxGone = 1_000
	// goneGrace is how soon after a policy went one of its name has to be made to follow
	// upon it, as with kubectl replace --force. It is ample for clocks that differ.
	goneGrace = 10 * time.Minute
)

// ErrVersion reports that a later version of this product wrote the approvals.
var ErrVersion = errors.New("it was written by a later version")

// Approved is the version of a policy that was approved last.
type Approved struct {
	Hash string `json:"hash"`
	// Enforcing: it denies.
	Enforcing bool `json:"enforcing,omitempty"`
	// Text is the document; empty where it exceeded the size bound.
	Text []byte `json:"text,omitempty"`
	// Gone: there is no such policy at the moment. It may come back.
	Gone bool `json:"gone,omitempty"`
	// GoneAt is since when, in seconds of Unix time; zero in approvals that earlier versions
	// wrote: long ago.
	GoneAt int64 `json:"goneAt,omitempty"`
}

// precedes reports whether a version of the same name is a successor of the approved one.
// It is not if that was deleted long before the version was created: then it is a policy
// of its own. A version without a creation time counts as created now.
func (a Approved) precedes(v Version, now time.Time) bool {
	made := v.Created
	if made.IsZero() {
		made = now
	}
	return !a.Gone || made.Sub(time.Unix(a.GoneAt, 0)) <= goneGrace
}

// Approvals records approved versions. It is immutable; a nil one is empty, and holds no
// version.
type Approvals struct{ approved map[string]Approved }

// Effect is the version that is active in place of a given one.
type Effect string

// The standings.
const (
	Itself   Effect = "itself"   // the version
	Previous Effect = "previous" // the last approved one
	Audited  Effect = "audited"  // the version, which denies nothing
)

// New returns approvals of versions.
func New(versions ...Version) *Approvals { return (*Approvals)(nil).Approve(versions...) }

// Of returns which version is active in place of a version. Where the approvals record that
// another one was active but lacks its text, it is the given version: enforcement is not
// weakened. A version that comes long after the deletion of the policy of its name counts
// as new.
func (l *Approvals) Of(v Version, now time.Time) Effect {
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

// Before returns the approved version of a policy.
func (l *Approvals) Before(id string) (Approved, bool) {
	if l == nil {
		return Approved{}, false
	}
	found, ok := l.approved[id]
	return found, ok
}

// Approve returns the approvals with these versions.
func (l *Approvals) Approve(versions ...Version) *Approvals {
	made := &Approvals{approved: map[string]Approved{}}
	if l != nil {
		maps.Copy(made.approved, l.approved)
	}
	for _, v := range versions {
		text := v.Text
		if !v.Enforcing {
			text = nil // not needed: its successor audits
		}
		made.approved[v.ID] = Approved{Hash: v.Hash, Enforcing: v.Enforcing, Text: text}
	}
	return made
}

// There returns the approvals updated by the list of existing policies. Deleted ones are kept,
// up to a bound: one that comes back unchanged is active at once. They stay deleted where
// another policy has their name since.
func (l *Approvals) There(now time.Time, versions ...Version) *Approvals {
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
			gone++
			if gone > maxGone {
				delete(made.approved, id)
				continue
			}
		}
		made.approved[id] = a
	}
	return made
}

// Equal reports whether two approvals are the same.
func (l *Approvals) Equal(other *Approvals) bool {
	if l == nil || other == nil {
		return l == other
	}
	return maps.EqualFunc(l.approved, other.approved, func(a, b Approved) bool {
		return a.Hash == b.Hash && a.Enforcing == b.Enforcing && a.Gone == b.Gone && a.GoneAt == b.GoneAt && bytes.Equal(a.Text, b.Text)
	})
}

// encoded is the approvals as they are written.
type encoded struct {
	Version  int                 `json:"version"`
	Policies map[string]Approved `json:"policies"`
}

// Encode encodes the approvals, compressed. If the text exceeds the bound, the longest texts are left
// out.
func (l *Approvals) Encode() ([]byte, error) {
	if l == nil {
		return nil, errors.New("rollout: there are no approvals")
	}
	out := encoded{Version: formatVersion, Policies: maps.Clone(l.approved)}
	longest := slices.SortedFunc(maps.Keys(out.Policies), func(a, b string) int { return len(out.Policies[b].Text) - len(out.Policies[a].Text) })
	for begin := 0; ; {
		text, err := out.compress()
		if err != nil || len(text) <= MaxEncoded {
			return text, err
		}
		if begin == len(longest) {
			return nil, fmt.Errorf("rollout: %d policies take more than %d bytes", len(longest), MaxEncoded)
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
		return nil, fmt.Errorf("rollout: write the approvals: %w", err)
	}
	return b.Bytes(), nil
}

// Decode decodes the output of Encode. It refuses damaged input, and with ErrVersion input
// of a later version.
func Decode(text []byte) (*Approvals, error) {
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("rollout: read the approvals: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(r, maxDecoded+1))
	if err != nil {
		return nil, fmt.Errorf("rollout: read the approvals: %w", err)
	}
	if len(plain) > maxDecoded {
		return nil, fmt.Errorf("rollout: the approvals exceed the bound of %d bytes", maxDecoded)
	}
	var in encoded
	if err := json.Unmarshal(plain, &in); err != nil {
		return nil, fmt.Errorf("rollout: read the approvals: %w", err)
	}
	if in.Version > formatVersion {
		return nil, fmt.Errorf("rollout: the approvals have version %d: %w", in.Version, ErrVersion)
	}
	if in.Version != formatVersion || in.Policies == nil {
		return nil, errors.New("rollout: the content is not a list of approvals")
	}
	for id, a := range in.Policies {
		if id == "" || a.Hash == "" {
			return nil, errors.New("rollout: the approvals have an entry without a name or a hash")
		}
	}
	return &Approvals{approved: in.Policies}, nil
}
