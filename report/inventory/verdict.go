package inventory

import "github.com/quaymaster/quaymaster/report/inventory/internal/verdict"

// Verdict is what was decided about an image or an object, in one word. The words are
// a contract: they stand in addresses and in the API.
type Verdict = verdict.Verdict

// The verdicts.
const (
	// Allowed: policies speak of it, and all of them are content.
	Allowed = verdict.Allowed
	// Warned: it is allowed, and something is held against it: a failure under audit, a
	// failure that an override outweighs, or a look that failed and is admitted.
	Warned = verdict.Warned
	// Unchecked: no policy speaks of it.
	Unchecked = verdict.Unchecked
	Denied    = verdict.Denied
	// Unable: something could not be looked at.
	Unable = verdict.Unable
)

// Verdicts are all of them, the one that asks for most attention first.
func Verdicts() []Verdict { return verdict.Verdicts() }

// Tally counts by verdict.
type Tally = verdict.Tally

// Results count what rules came to, in the words of reports.
type Results = verdict.Results
