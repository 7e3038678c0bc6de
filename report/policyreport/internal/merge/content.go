package merge

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// Content is the content of one report: the results of its objects by line, and the tokens of
// results without an entry. It is not safe for concurrent use.
type Content struct {
	scope scope
	show  Selection
	// Pods: a result without a resource applies to the scope's pods, not to the scope.
	Pods  bool
	lines entries
	// Unlisted are the results without an entry, by token.
	Unlisted map[Token]result.Status
}

// entries are the results with an entry, by line.
type entries map[line]*entry

// scope is the object that a report is about; zero for a report about several objects.
type scope report.Resource

// New returns the empty content of a report: on a scope, on several objects (a zero scope), or on
// the pods of a scope.
func New(on report.Resource, pods bool, show Selection) *Content {
	return &Content{scope: scope(on), show: show, Pods: pods, lines: entries{}, Unlisted: map[Token]result.Status{}}
}

// IsEmpty reports whether there are no results.
func (c *Content) IsEmpty() bool { return len(c.lines)+len(c.Unlisted) == 0 }

// Counts reports whether results of the status are counted and have no entry.
func (c *Content) Counts(status result.Status) bool { return c.show.counts(status) }

// Tokens returns the tokens of results without an entry, in order.
func (c *Content) Tokens() []Token {
	return slices.SortedFunc(maps.Keys(c.Unlisted), func(a, b Token) int { return cmp.Compare(a.String(), b.String()) })
}

// All returns all results with an entry, in the order of policies, rules, containers and objects,
// those without a resource first.
func (c *Content) All() []result.Result {
	lines := slices.SortedFunc(maps.Keys(c.lines), func(a, b line) int {
		return cmp.Or(cmp.Compare(a.policy, b.policy), cmp.Compare(a.kind, b.kind), cmp.Compare(a.rule, b.rule), cmp.Compare(a.container, b.container))
	})
	var results []result.Result
	for _, l := range lines {
		s := c.lines[l]
		if s.shared != nil {
			results = append(results, *s.shared)
		}
		own := sorted(s.listed)
		slices.SortStableFunc(own, func(a, b result.Result) int {
			return cmp.Or(cmp.Compare(a.Resource.Kind, b.Resource.Kind), cmp.Compare(a.Resource.Name, b.Resource.Name))
		})
		results = append(results, own...)
	}
	return results
}

// Include adds a result as stored in a report.
func (c *Content) Include(w result.Result) {
	switch {
	case w.Resource.Name == "" && c.scope.Name == "":
	case w.Resource.Name == "", !c.Pods && c.scope.is(w.Resource):
		c.put(lineOf(w), "", w)
	default:
		c.put(lineOf(w), Identity(w.Resource), w)
	}
}

// ForgetUseless removes results that another Selection stored and this one does not need. The
// next evaluation of the objects restores them in the form of this one.
func (c *Content) ForgetUseless() {
	for l, s := range c.lines {
		if c.Pods && !c.shares() {
			s.shared = nil
		}
		c.lines.tidy(l)
	}
	for t, status := range c.Unlisted {
		if !c.show.counts(status) && (t.who != "" || !c.shares()) {
			delete(c.Unlisted, t)
		}
	}
}

// Code distinguishes a result from equal results of other objects.
func Code(w result.Result, who report.Resource) string {
	return tokenOf(lineOf(w), Identity(who)).String()
}
