package merge

import (
	"slices"

	"github.com/quaymaster/quaymaster/report/result"
)

// Selection selects the results with an entry. The zero value selects all.
type Selection struct {
	// Statuses are the selected statuses; none means all.
	Statuses []result.Status
	// CountPasses: a pass is counted in the summary and has no entry, whether Statuses contains
	// it or not.
	CountPasses bool
}

// counts reports whether results of the status are counted and not shown.
func (s Selection) counts(status result.Status) bool {
	return s.CountPasses && status == result.Pass
}

// shows reports whether results of the status have an entry.
func (s Selection) shows(status result.Status) bool {
	return !s.counts(status) && (len(s.Statuses) == 0 || slices.Contains(s.Statuses, status))
}

// tellsPasses reports whether a report distinguishes passes from missing results. A shared result
// requires that: otherwise the first failure would apply to all objects that passed.
func (s Selection) tellsPasses() bool { return s.CountPasses || s.shows(result.Pass) }
