// Package review sums up the conversion of policies for the review of the change: the results, the constructs that stay,
// and the comparison of both forms, as Markdown (GitHub Flavored Markdown 0.29).
package review

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/convert/equality"
	"github.com/quaymaster/quaymaster/workload"
)

// Policy is a policy of the source.
type Policy struct {
	// Policy is its name, with its namespace before it if it has one; Kind is that of the source, and File where it is.
	Policy string `json:"policy"`
	Kind   string `json:"kind"`
	File   string `json:"file,omitempty"`
	// Results are the converted policies, as Kind/name; none for a policy that stays.
	Results []string `json:"results,omitempty"`
	// Stays are the parts that are not converted.
	Stays []Part `json:"stays,omitempty"`
	// Strict are the rules whose excuse of existing violations is left out.
	Strict []string `json:"strict,omitempty"`
	*equality.Report
	// Error is why the forms were not compared.
	Error string `json:"error,omitempty"`

	pair equality.Pair
}

// Part is a part of a policy that is not converted.
type Part struct {
	// Path is its place in the policy, Found the construct there.
	Path  string `json:"path"`
	Found string `json:"found"`
}

// Of finds the parts of each policy of the source. Results are the documents of the conversion.
func Of(source, results []workload.Object, of cel.Result) (policies []Policy, beside []workload.Object, err error) {
	pairs, beside, err := equality.Match(source, results)
	if err != nil {
		return nil, nil, err
	}
	for _, pair := range pairs {
		from := pair.Source[0]
		p := Policy{Policy: pair.Name, Kind: from.Kind(), File: from.Source(), pair: pair}
		for _, result := range pair.Result {
			if result.Kind() != "PolicyException" {
				p.Results = append(p.Results, result.Kind()+"/"+result.Name())
			}
		}
		for _, problem := range of.Problems {
			if path, ok := strings.CutPrefix(problem.Path, from.Source()+": "); ok {
				p.Stays = append(p.Stays, Part{path, problem.Found})
			}
		}
		for _, rule := range of.Dropped {
			if name, ok := strings.CutPrefix(rule, from.Name()+"/"); ok {
				p.Strict = append(p.Strict, name)
			}
		}
		policies = append(policies, p)
	}
	return policies, beside, nil
}

var ruleAt = regexp.MustCompile(`^spec\.rules\[([0-9]+)\]`)

// Pair is the policy with its results, for a comparison: without the rules that stay. It is false for a policy that
// stays whole.
func (p *Policy) Pair() (equality.Pair, bool) {
	pair := p.pair
	if len(pair.Result) == 0 || len(p.Results) == 0 {
		return pair, false
	}
	var staying []int
	for _, problem := range p.Stays {
		found := ruleAt.FindStringSubmatch(problem.Path)
		if found == nil {
			return pair, false
		}
		at, err := strconv.Atoi(found[1])
		if err != nil {
			return pair, false
		}
		staying = append(staying, at)
	}
	if len(staying) == 0 {
		return pair, true
	}
	reduced, ok := without(pair.Source[0], staying)
	pair.Source = slices.Clone(pair.Source)
	pair.Source[0] = reduced
	return pair, ok
}

// without returns a policy without rules.
func without(policy workload.Object, rules []int) (workload.Object, bool) {
	var content map[string]any
	if json.Unmarshal(policy.JSON(), &content) != nil {
		return policy, false
	}
	spec, _ := content["spec"].(map[string]any)
	all, _ := spec["rules"].([]any)
	var rest []any
	for i, rule := range all {
		if !slices.Contains(rules, i) {
			rest = append(rest, rule)
		}
	}
	if len(rest) == 0 {
		return policy, false
	}
	spec["rules"] = rest
	reduced, err := policy.With(content)
	return reduced, err == nil
}

// State is how far a policy is converted.
func (p *Policy) State() string {
	switch {
	case len(p.Results) == 0:
		return Staying
	case len(p.Stays) > 0:
		return InPart
	}
	return Converted
}

// The states of a Policy.
const (
	Converted = "converted"
	InPart    = "in part"
	Staying   = "stays"
)

// Summary are the sums of a review.
type Summary struct {
	Policies  int `json:"policies"`
	Converted int `json:"converted"`
	InPart    int `json:"inPart"`
	Staying   int `json:"staying"`
	// Compared, Different and Failed count policies, Objects and Matched requests.
	Compared  int `json:"compared"`
	Different int `json:"different"`
	Failed    int `json:"failed"`
	Objects   int `json:"objects"`
	Matched   int `json:"matched"`
}

// Sum sums up policies.
func Sum(policies []Policy) (s Summary) {
	for i := range policies {
		p := &policies[i]
		s.Policies++
		switch p.State() {
		case Converted:
			s.Converted++
		case InPart:
			s.InPart++
		default:
			s.Staying++
		}
		if p.Error != "" {
			s.Failed++
		}
		if p.Report != nil {
			s.Compared, s.Objects, s.Matched = s.Compared+1, s.Objects+p.Objects, s.Matched+p.Matched
			if !p.Equal() {
				s.Different++
			}
		}
	}
	return s
}
