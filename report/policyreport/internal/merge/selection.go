package merge

import (
	"slices"

	"github.com/quaymaster/quaymaster/report/result"
)

// Selection says which results a report shows. The zero one shows all.
type Selection struct {
	// Statuses that are shown; none means all.
	Statuses []result.Status
	// CountPasses: a pass is counted in the summary and has no entry, whatever Statuses
	// says of it.
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

// tellsPasses reports whether a report tells who passes from who was never asked, which
// a shared word needs: otherwise the first failure would speak for all that passed.
func (s Selection) tellsPasses() bool { return s.CountPasses || s.shows(result.Pass) }
