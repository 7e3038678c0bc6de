package evidence

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// maxSigners bounds the signers of an image.
const maxSigners = 8

// Signer is the signer of an image or of an attestation of it.
type Signer struct {
	// Name is a short name for tables.
	Name           string `json:"name"`
	Subject        string `json:"subject,omitempty"`
	Issuer         string `json:"issuer,omitempty"`
	KeyFingerprint string `json:"keyFingerprint,omitempty"`
}

// SignersOf returns the signers of an image, with texts of bounded length.
func SignersOf(image *report.Image) []Signer {
	var signers []Signer
	for n := range image.Decisions {
		for k := range image.Decisions[n].Proofs {
			s := image.Decisions[n].Proofs[k].Signer
			made := Signer{Name: Cut(s.String(), maxName), Subject: Cut(s.Subject, maxName),
				Issuer: Cut(s.Issuer, maxName), KeyFingerprint: Cut(s.KeyFingerprint, maxName)}
			if len(signers) < maxSigners && !slices.Contains(signers, made) {
				signers = append(signers, made)
			}
		}
	}
	return signers
}

// Decisions returns the results of an image that are stored: all, or the gravest if there are too many.
// The second result counts the others.
func Decisions(image *report.Image) ([]report.Decision, int) {
	return gravest(image.Decisions, func(d *report.Decision) int { return gravity(d.Result, d.Action) })
}

// rulesOf is the same for the rules of an object.
func rulesOf(r report.Record) ([]report.Rule, int) {
	return gravest(r.Rules, func(rule *report.Rule) int {
		if rule.Error != "" {
			return gravity(policy.Indeterminate, "")
		}
		return gravity(rule.Result, rule.Action)
	})
}

// gravest returns up to maxList elements, and the number of the others. The order changes only where
// some are left out.
func gravest[T any](list []T, gravity func(*T) int) ([]T, int) {
	if len(list) <= maxList {
		return list, 0
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b T) int { return gravity(&b) - gravity(&a) })
	return sorted[:maxList], len(list) - maxList
}

// gravity is greater for a graver result.
func gravity(result policy.Result, action policy.Action) int {
	switch {
	case result == policy.Fail && action != policy.Warn:
		return 3
	case result == policy.Indeterminate:
		return 2
	case result == policy.Fail:
		return 1
	default:
		return 0
	}
}
