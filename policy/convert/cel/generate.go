package cel

import (
	"reflect"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/generating"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/generation"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// generates are converted rules that generate for the same triggers.
type generates struct {
	name    string
	spec    *generation.Spec
	guessed []string // resources
	// apart tells rules apart that exceptions or suites treat differently, and joined are the names of the others.
	apart  string
	joined []string
}

// names are those of all rules.
func (g *generates) names() []string { return append([]string{g.name}, g.joined...) }

// label is the name of the first rule.
func (g *generates) label() string { return g.name }

// with returns the parts with g, which joins an earlier one of the same triggers.
func (g *generates) with(parts []part) []part {
	for _, p := range parts {
		other, is := p.(*generates)
		if !is {
			continue
		}
		a, b := *other.spec, *g.spec
		a.Generate, b.Generate = nil, nil
		if other.apart == g.apart && reflect.DeepEqual(a, b) {
			other.joined = append(other.joined, g.name)
			other.spec.Generate = append(other.spec.Generate, g.spec.Generate...)
			return parts
		}
	}
	return append(parts, g)
}

// generate converts a rule that generates.
func (c *converter) generate(d source.Document, text ruleText) *generates {
	made, err := generating.Convert(generating.Rule{Text: text.raw, Policy: d.Text, Namespaced: d.Kind == "Policy", Types: c.types})
	if err != nil {
		c.refuse(d, text.at, err)
		return nil
	}
	return &generates{name: made.Name, spec: made.Spec, guessed: made.Guessed}
}

// policy writes the rules as a policy.
func (g *generates) policy(doc *document, name string) Policy {
	return policyOf(doc, "GeneratingPolicy", name, g.spec)
}
