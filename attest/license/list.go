package license

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/github/go-spdx/v2/spdxexp/spdxlicenses"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// MaxEntries bounds a List.
const MaxEntries = 256

// List is a list of licences of a policy. The zero value is empty.
type List struct {
	entries []license
	// families are the versions of licences in their order, each with its names.
	families [][][]string
	versions map[string]version
}

// version is a position in a family of licences.
type version struct{ family, at int }

// ParseList parses the licences of a policy: identifiers of the SPDX list, with + or -or-later for later
// versions, or with an exception, and LicenseRef- and DocumentRef- as documents write them. Another
// identifier is an error: it would match nothing.
func ParseList(texts []string) (List, error) {
	if len(texts) > MaxEntries {
		return List{}, fmt.Errorf("the licences are more than %d", MaxEntries)
	}
	list := List{families: spdxlicenses.LicenseRanges()}
	list.versions = positions(list.families)
	for _, text := range texts {
		parsed, err := Parse(text)
		if err != nil {
			return List{}, err
		}
		entry := parsed.root
		switch {
		case entry.operator != leaf:
			return List{}, fmt.Errorf("%q: list each licence by itself", limit.Text(text, 200))
		case !entry.known && !isReference(entry.id):
			return List{}, fmt.Errorf("%q is not in the SPDX licence list %s", limit.Text(text, 200), spdxlicenses.LicenseListVersion())
		}
		list.entries = append(list.entries, entry.license)
	}
	return list, nil
}

func isReference(id string) bool {
	return strings.HasPrefix(id, "LicenseRef-") || strings.HasPrefix(id, "DocumentRef-")
}

// positions are those of every licence in its family.
func positions(families [][][]string) map[string]version {
	all := map[string]version{}
	for family, groups := range families {
		for at, group := range groups {
			for _, id := range group {
				all[id] = version{family, at}
			}
		}
	}
	return all
}

// follows reports whether a is b or a later version of it.
func (l List) follows(a, b string) bool {
	x, ok := l.versions[a]
	y, known := l.versions[b]
	return a == b || ok && known && x.family == y.family && x.at >= y.at
}

// truth is a value of strong Kleene logic; the order makes min and max its conjunction and disjunction.
type truth int

const (
	no truth = iota
	unknown
	yes
)

// answer is a truth with the first licence that keeps it from being known.
type answer struct {
	truth
	because string
}

// Suffices reports whether the licences of the list suffice: of alternatives one is enough, and each part of a
// conjunction must be in the list. "Or later" suffices with a listed version that is as late. An exception
// counts only as listed. It is an error if the answer depends on an unknown licence.
func (l List) Suffices(e Expression) (bool, error) {
	return l.answer(e.root, yes, func(one license) bool {
		return slices.ContainsFunc(l.entries, func(entry license) bool {
			if one.exception != entry.exception {
				return false
			}
			return entry.id == one.id || entry.later && l.follows(one.id, entry.id) || one.later && l.follows(entry.id, one.id) ||
				one.later && entry.later && l.related(one.id, entry.id)
		})
	})
}

// related reports whether two licences are versions of one.
func (l List) related(a, b string) bool { return l.follows(a, b) || l.follows(b, a) }

// Required reports whether a licence of the list applies whatever alternative is chosen: of a conjunction one part
// is enough, and of alternatives each must be listed, "or later" with every later version. An entry without an
// exception means the licence with any. It is an error if the answer depends on an unknown licence.
func (l List) Required(e Expression) (bool, error) {
	return l.answer(e.root, no, func(one license) bool {
		at, ok := l.versions[one.id]
		if !ok || !one.later {
			return l.covers(one.exception, one.id)
		}
		for _, names := range l.families[at.family][at.at:] {
			if !l.covers(one.exception, names...) {
				return false
			}
		}
		return true
	})
}

// covers reports whether the list has a licence by one of its names, or all from an earlier version on.
func (l List) covers(exception string, names ...string) bool {
	return slices.ContainsFunc(l.entries, func(entry license) bool {
		return (entry.exception == "" || entry.exception == exception) && slices.ContainsFunc(names, func(id string) bool {
			return entry.id == id || entry.later && l.follows(id, entry.id)
		})
	})
}

// answer evaluates an expression: conjunctions have the least answer of their parts if every part must hold
// (all is yes), and the greatest otherwise; alternatives the other one.
func (l List) answer(root node, all truth, holds func(license) bool) (bool, error) {
	result := evaluate(root, all, holds)
	if result.truth == unknown {
		return false, fmt.Errorf("licence %s: %w", limit.Text(result.because, 200), ErrUnknown)
	}
	return result.truth == yes, nil
}

// ErrUnknown means that an answer depends on a licence that is not known.
var ErrUnknown = errors.New("it is not known to the SPDX licence list, so its terms are not known")

func evaluate(n node, all truth, holds func(license) bool) answer {
	if n.operator == leaf {
		switch {
		case n.id != "" && holds(n.license):
			return answer{truth: yes}
		case !n.known:
			return answer{unknown, n.String()}
		}
		return answer{truth: no}
	}
	everyPart := (n.operator == conjunction) == (all == yes)
	result := answer{truth: no}
	if everyPart {
		result.truth = yes
	}
	for _, part := range n.parts {
		one := evaluate(part, all, holds)
		if everyPart && one.truth < result.truth || !everyPart && one.truth > result.truth {
			result = one
		}
	}
	return result
}
