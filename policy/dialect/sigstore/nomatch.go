package sigstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
)

// Unmatched is the action for images that no ClusterImagePolicy matches:
// policy-controller's no-match-policy.
type Unmatched string

// The choices. The empty one is policy-controller's default, which denies.
const (
	UnmatchedDeny  Unmatched = "deny"
	UnmatchedWarn  Unmatched = "warn"
	UnmatchedAllow Unmatched = "allow"
)

// NoMatch returns the policy about images that none of the given policies names;
// nil for UnmatchedAllow. Policies of other dialects, and broken ones, name no
// image here. It is to be made anew whenever the policies change.
func (c *Compiler) NoMatch(choice Unmatched, policies []*policy.Policy) (*policy.Policy, error) {
	r := &noMatchRule{options: c.options, action: policy.Enforce}
	switch choice {
	case "", UnmatchedDeny:
	case UnmatchedWarn:
		r.action = policy.Warn
	case UnmatchedAllow:
		return nil, nil
	default:
		return nil, fmt.Errorf("no-match-policy: unknown value %q: want deny, warn or allow", string(choice))
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", r.action)
	r.everything, _ = compileMatch(nil)
	for _, p := range policies {
		for _, one := range p.Rules {
			if ours, ok := one.(*rule); ok {
				r.rules = append(r.rules, ours)
				fmt.Fprintf(h, "%s=%s\n", p.ID(), p.Hash)
			}
		}
	}
	return &policy.Policy{
		Kind: kind, Name: noMatchName, Source: "the setting no-match-policy", Hash: hex.EncodeToString(h.Sum(nil)),
		Settings: policy.Settings{AuditOnly: r.action != policy.Enforce}, Rules: []policy.Rule{r}, Targets: r.Targets(),
	}, nil
}

// noMatchName is no name that an object can have.
const noMatchName = "(no match)"

// noMatchRule refuses images that no other rule matches.
type noMatchRule struct {
	options    Options
	action     policy.Action
	rules      []*rule
	everything []selected
}

var (
	_ policy.Selective  = (*noMatchRule)(nil)
	_ policy.Rematching = (*noMatchRule)(nil)
)

// MayRematch reports whether an update may take an object away from a policy, by its labels.
func (r *noMatchRule) MayRematch() bool {
	return slices.ContainsFunc(r.rules, func(one *rule) bool { return selectsByLabels(one.match) })
}

// ReadsUpdate returns false: only the policies' selectors read the object.
func (r *noMatchRule) ReadsUpdate(*policy.Subject) bool { return false }

// Name returns the rule's name.
func (r *noMatchRule) Name() string { return "no-match-policy" }

// Extractors returns none: images are in the standard fields of a pod specification.
func (r *noMatchRule) Extractors(*policy.Subject) []policy.Extractor { return nil }

// Targets returns pods and objects that create pods.
func (r *noMatchRule) Targets() []policy.Target { return targets(r.everything) }

// ImagePatterns returns false: it matches the images that other rules do not.
func (r *noMatchRule) ImagePatterns() ([]string, bool) { return nil, false }

// Plan refuses each image that no policy matches. If the match depends on unknown values,
// the rule returns an error.
func (r *noMatchRule) Plan(_ context.Context, s *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	skip, err := r.options.skips(s)
	if skip != "" {
		return policy.RulePlan{Skip: skip}, nil
	}
	if matched, _ := matches(r.everything, s); !matched {
		return policy.RulePlan{Skip: "policies match pods and the workloads that create pods"}, nil
	}
	var plan policy.RulePlan
	for _, i := range images {
		named, unsure := r.named(i, s)
		switch {
		case i.Unchanged || named:
			continue
		case err != nil || unsure != nil:
			return policy.RulePlan{}, fmt.Errorf("whether a policy names %s: %w", i.Ref, cmp.Or(err, unsure))
		}
		plan.Checks = append(plan.Checks, policy.Check{
			Entry: "no-match-policy", Image: i, Action: r.action,
			Claims: policy.Claims{Required: true, Deny: refuse{}, DenyMessage: "no ClusterImagePolicy names " + i.Ref.String()},
		})
	}
	return plan, nil
}

func (r *noMatchRule) named(i policy.Image, s *policy.Subject) (bool, error) {
	var unknown error
	known := slices.ContainsFunc(r.rules, func(one *rule) bool {
		if !one.concerns(i.Ref) {
			return false
		}
		matched, err := matches(one.match, s)
		if err != nil {
			unknown = err
		}
		return matched
	})
	return known, unknown
}
