// Package result has the results of test suites, and writes them as text, JSON, YAML, Markdown and
// JUnit.
package result

import "time"

// Report is the result of suites, in their order.
type Report struct {
	Suites []Suite `json:"suites"`
	Passed int     `json:"passed"`
	Failed int     `json:"failed"`
	// Skipped counts the checks of rules that do not apply to the object.
	Skipped int `json:"skipped"`
}

// Suite is the result of one suite.
type Suite struct {
	Name   string  `json:"name"`
	Path   string  `json:"path"`
	Checks []Check `json:"checks"`
	// Error is the reason why the suite could not be run; all of its checks then fail.
	Error string `json:"error,omitempty"`
	// Warnings are about unknown fields, and rows that check nothing.
	Warnings []string `json:"warnings,omitempty"`
	// Duration is how long it took.
	Duration time.Duration `json:"-"`
}

// Count counts the checks by their outcomes.
func (r *Report) Count() {
	for _, s := range r.Suites {
		for _, c := range s.Checks {
			switch c.Outcome {
			case Passed:
				r.Passed++
			case Skipped:
				r.Skipped++
			default:
				r.Failed++
			}
		}
	}
}

// Outcome is the result of a check.
type Outcome string

// The outcomes.
const (
	// Passed: the rule has the expected result.
	Passed Outcome = "passed"
	// Failed: the rule has another result, or the check failed to run.
	Failed Outcome = "failed"
	// Skipped: the rule does not apply to the object, and the expectation was not fail.
	Skipped Outcome = "skipped"
)

// Check is one expectation and its outcome.
type Check struct {
	Policy string `json:"policy"`
	Rule   string `json:"rule,omitempty"`
	// Resource is kind/namespace/name.
	Resource string `json:"resource"`
	// Want is the expected result, Got the rule's; empty for a rule without a result for the
	// object.
	Want    string  `json:"want"`
	Got     string  `json:"got,omitempty"`
	Outcome Outcome `json:"outcome"`
	// Reason is the short reason, Message the rule's message.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// As returns the check with its outcome.
func (c Check) As(outcome Outcome, reason string) Check {
	c.Outcome, c.Reason = outcome, reason
	return c
}
