package merge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// Words is what one report says: by line what its objects say, and what is kept of words
// that have no entry. It is not for use by several goroutines at once.
type Words struct {
	scope report.Resource
	show  Selection
	// Pods: a word without a resource is that of the scope's pods, not the scope's.
	Pods  bool
	lines map[line]*said
	// Unlisted are the words that have no entry, by what is kept of their names.
	Unlisted map[Token]result.Status
}

// New returns what a report says of which nothing is known: about a scope, the zero
// one where it speaks of several objects, or about the pods of a scope.
func New(scope report.Resource, pods bool, show Selection) *Words {
	return &Words{scope: scope, show: show, Pods: pods, lines: map[line]*said{}, Unlisted: map[Token]result.Status{}}
}

// IsEmpty reports whether nothing is said.
func (r *Words) IsEmpty() bool { return len(r.lines)+len(r.Unlisted) == 0 }

// Counts reports whether words of the status are counted and not shown.
func (r *Words) Counts(status result.Status) bool { return r.show.counts(status) }

// Tokens returns what is kept of words that have no entry, in order.
func (r *Words) Tokens() []Token {
	return slices.SortedFunc(maps.Keys(r.Unlisted), func(a, b Token) int { return cmp.Compare(a.String(), b.String()) })
}

// All returns everything that has an entry, in the order of policies, rules,
// containers and objects, what has no resource first.
func (r *Words) All() []result.Result {
	lines := slices.SortedFunc(maps.Keys(r.lines), func(a, b line) int {
		return cmp.Or(cmp.Compare(a.policy, b.policy), cmp.Compare(a.kind, b.kind), cmp.Compare(a.rule, b.rule), cmp.Compare(a.container, b.container))
	})
	var words []result.Result
	for _, l := range lines {
		s := r.lines[l]
		if s.shared != nil {
			words = append(words, *s.shared)
		}
		own := sorted(s.listed)
		slices.SortStableFunc(own, func(a, b result.Result) int {
			return cmp.Or(cmp.Compare(a.Resource.Kind, b.Resource.Kind), cmp.Compare(a.Resource.Name, b.Resource.Name))
		})
		words = append(words, own...)
	}
	return words
}

// Include takes in a word that a report has, as it stands there.
func (r *Words) Include(w result.Result) {
	switch {
	case w.Resource.Name == "" && r.scope.Name == "":
	case w.Resource.Name == "", !r.Pods && r.isScope(w.Resource):
		r.put(lineOf(w), "", w)
	default:
		r.put(lineOf(w), Identity(w.Resource), w)
	}
}

// ForgetUseless forgets what was written under another Selection and has no use under
// this one: it comes back as this one has it with the next look at the objects.
func (r *Words) ForgetUseless() {
	for l, s := range r.lines {
		if r.Pods && !r.shares() {
			s.shared = nil
		}
		r.tidy(l)
	}
	for t, status := range r.Unlisted {
		if !r.show.counts(status) && (t.who != "" || !r.shares()) {
			delete(r.Unlisted, t)
		}
	}
}

// Code tells a word apart from what others say about the same in the same words.
func Code(w result.Result, who report.Resource) string {
	return tokenOf(lineOf(w), Identity(who)).String()
}
