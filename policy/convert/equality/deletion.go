package equality

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/sampling"
	"github.com/quaymaster/quaymaster/policy/deletion"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
)

// undecided is the decision of a rule that could not be evaluated.
const undecided = "could not be evaluated"

// deletes is the decision of a rule about a stored object, with the treatment of dependents; empty where the
// object stays.
func deletes(r *evaluation.RuleResult) string {
	switch r.Deletion.Verdict {
	case deletion.Delete:
		return fmt.Sprintf("yes %s", r.Deletion.Rule.Propagation())
	case deletion.Unknown:
		return undecided
	}
	return ""
}

const (
	// runs is the number of times of a schedule that are compared: those of a year of weeks.
	runs = 60
	// shownRuns bounds the times that are reported.
	shownRuns = 3
)

// schedules returns times at which one side alone deletes.
func schedules(source, result *side) []string {
	left, right := source.runs(), result.runs()
	var all []string
	for _, at := range slices.SortedFunc(maps.Keys(left), time.Time.Compare) {
		if !right[at] && len(all) < shownRuns {
			all = append(all, at.Format(time.RFC3339)+": the source alone")
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(right), time.Time.Compare) {
		if !left[at] && len(all) < 2*shownRuns {
			all = append(all, at.Format(time.RFC3339)+": the result alone")
		}
	}
	return all
}

// runs are the first times of each schedule.
func (s *side) runs() map[time.Time]bool {
	all := map[time.Time]bool{}
	for place := range s.evaluator.Policies() {
		for _, rule := range s.evaluator.Policy(place).Deletions {
			at := sampling.Now()
			for range runs {
				at = rule.Next(at)
				if at.IsZero() {
					break
				}
				all[at] = true
			}
		}
	}
	return all
}
