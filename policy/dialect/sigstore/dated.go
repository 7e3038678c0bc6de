package sigstore

import (
	"fmt"

	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/clusterimagepolicy"
	scripts "github.com/quaymaster/quaymaster/policy/dialect/sigstore/internal/script"
	"github.com/quaymaster/quaymaster/verify"
)

// verified holds the verified times of signing for a policy over all authorities, by the names of
// authorityMatches. They are no part of that, the form of which is policy-controller's.
type verified struct {
	Matches map[string]times `json:"authorityMatches"`
}

// times are those of one authority's evidence.
type times struct {
	Signatures   *span            `json:"signatures,omitempty"`
	Attestations map[string]*span `json:"attestations,omitempty"`
}

// span is the first and the last signature, or statement of a name.
type span struct {
	First map[string]any `json:"first"`
	Last  map[string]any `json:"last"`
}

// datedNames are the names of verified below the member of the input.
func datedNames(authorities []clusterimagepolicy.Authority) map[string][]string {
	matches := age.Variable + ".authorityMatches"
	names := map[string][]string{age.Variable: {"authorityMatches"}, matches: {}}
	spanned := func(path string) {
		names[path] = []string{"first", "last"}
		names[path+".first"], names[path+".last"] = scripts.SigningNames(), scripts.SigningNames()
	}
	for i, authority := range authorities {
		path := matches + "." + nameOf(authority, i)
		names[matches] = append(names[matches], nameOf(authority, i))
		names[path], names[path+".attestations"] = []string{"signatures", "attestations"}, []string{}
		spanned(path + ".signatures")
		for _, a := range authority.Attestations {
			names[path+".attestations"] = append(names[path+".attestations"], a.Name)
			spanned(path + ".attestations." + a.Name)
		}
	}
	return names
}

// spanOf returns the verified times of facts. A fact without one does not count beside others; the error is
// age.ErrUnknown if none has one.
func spanOf(c *scripts.Condition, facts []verify.Fact) (*span, error) {
	var out span
	for _, end := range []struct {
		into *map[string]any
		of   func([]verify.Fact) (age.Signing, []verify.Fact)
	}{{&out.First, age.Earliest}, {&out.Last, age.Latest}} {
		at, _ := end.of(facts)
		value, err := c.Signing(at)
		if err != nil {
			return nil, fmt.Errorf("the time of signing: %w", err)
		}
		*end.into = value
	}
	return &out, nil
}
