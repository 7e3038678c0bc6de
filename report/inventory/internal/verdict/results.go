package verdict

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// Results count the results of rules, with the names of reports.
type Results struct {
	Pass  int64 `json:"pass"`
	Fail  int64 `json:"fail"`
	Warn  int64 `json:"warn"`
	Error int64 `json:"error"`
	Skip  int64 `json:"skip"`
}

// Kind is the result of a rule.
type Kind uint8

// The kinds, as Results count them.
const (
	Pass Kind = iota
	Fail
	Warn
	Error
	Skip
)

// Add counts one result.
func (r *Results) Add(kind Kind) {
	switch kind {
	case Pass:
		r.Pass++
	case Fail:
		r.Fail++
	case Warn:
		r.Warn++
	case Error:
		r.Error++
	case Skip:
		r.Skip++
	}
}

// OfRule returns the result of an entry of a rule for images.
func OfRule(d *report.Decision) Kind { return OfResult(d.Result, d.Action == policy.Warn) }

// OfResult returns the result of a rule; a failure may only warn.
func OfResult(result policy.Result, warns bool) Kind {
	switch {
	case result == policy.Skipped:
		return Skip
	case result == policy.Indeterminate:
		return Error
	case result != policy.Fail:
		return Pass
	case warns:
		return Warn
	default:
		return Fail
	}
}

// Gravity is greater for a graver result.
func (k Kind) Gravity() int { return slices.Index([]Kind{Skip, Pass, Warn, Error, Fail}, k) }
