package inventory

import "github.com/quaymaster/quaymaster/report/inventory/internal/verdict"

// Verdict is the verdict on an image or an object. The values are a contract: URLs and the API
// contain them.
type Verdict = verdict.Verdict

// The verdicts.
const (
	// Allowed: policies match it, and all of them pass.
	Allowed = verdict.Allowed
	// Warned: it is allowed with a problem: a failure under audit, a failure that an override
	// outweighs, or an admitted verification error.
	Warned = verdict.Warned
	// Unchecked: no policy matches it.
	Unchecked = verdict.Unchecked
	Denied    = verdict.Denied
	// Errored: something could not be verified.
	Errored = verdict.Errored
)

// Cause is the image or the rule that a verdict on an object results from.
type Cause = verdict.Cause

// Verdicts returns all verdicts, the most severe first.
func Verdicts() []Verdict { return verdict.Verdicts() }

// Tally counts by verdict.
type Tally = verdict.Tally

// Results count the results of rules, with the names of reports.
type Results = verdict.Results
