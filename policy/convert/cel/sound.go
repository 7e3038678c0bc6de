package cel

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/exception"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// sound refuses the results that the engine does not take, such as those with a resource that cannot exist: a
// conversion that is no policy would leave its objects without any.
func sound(c *converter, d source.Document, made []Policy) []Policy {
	var kept []Policy
	for _, p := range made {
		if strings.HasSuffix(p.Kind, "ValidatingPolicy") && !strings.HasSuffix(p.Kind, "ImageValidatingPolicy") {
			text, err := p.YAML()
			if err == nil {
				_, err = c.results.Compile(text, p.Name)
			}
			if err != nil {
				c.Refuse(d.At("spec"), "the result "+p.Name+" is no policy: "+err.Error(), "keep the policy")
				c.staying[p.From] = append(c.staying[p.From], p.Rules...)
				c.targets[p.From] = slices.DeleteFunc(c.targets[p.From], func(t exception.Target) bool { return t.Name == p.Name && t.Kind == p.Kind })
				continue
			}
		}
		kept = append(kept, p)
	}
	return kept
}
