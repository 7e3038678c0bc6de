package merge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// Words is the content of one report: the results of its objects by line, and the tokens of
// results without an entry. It is not safe for concurrent use.
type Words struct {
	scope report.Resource
	show  Selection
	// Pods: a result without a resource applies to the scope's pods, not to the scope.
	Pods  bool
	lines map[line]*said
	// Unlisted are the results without an entry, by token.
	Unlisted map[Token]result.Status
}

// New returns the empty content of a report: on a scope, on several objects (a zero scope), or on
// the pods of a scope.
func New(scope report.Resource, pods bool, show Selection) *Words {
	return &Words{scope: scope, show: show, Pods: pods, lines: map[line]*said{}, Unlisted: map[Token]result.Status{}}
}

// IsEmpty reports whether there are no results.
func (r *Words) IsEmpty() bool { return len(r.lines)+len(r.Unlisted) == 0 }

// Counts reports whether results of the status are counted and have no entry.
func (r *Words) Counts(status result.Status) bool { return r.show.counts(status) }

// Tokens returns the tokens of results without an entry, in order.
func (r *Words) Tokens() []Token {
	return slices.SortedFunc(maps.Keys(r.Unlisted), func(a, b Token) int { return cmp.Compare(a.String(), b.String()) })
}

// All returns all results with an entry, in the order of policies, rules, containers and objects,
// those without a resource first.
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

// Include adds a result as stored in a report.
func (r *Words) Include(w result.Result) {
	switch {
	case w.Resource.Name == "" && r.scope.Name == "":
	case w.Resource.Name == "", !r.Pods && r.isScope(w.Resource):
		r.put(lineOf(w), "", w)
	default:
		r.put(lineOf(w), Identity(w.Resource), w)
	}
}

// ForgetUseless removes results that another Selection stored and this one does not need. The
// next evaluation of the objects restores them in the form of this one.
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

// Code distinguishes a result from equal results of other objects.
func Code(w result.Result, who report.Resource) string {
	return tokenOf(lineOf(w), Identity(who)).String()
}
