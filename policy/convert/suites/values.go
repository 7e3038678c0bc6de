package suites

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/suite/document"
)

// variables converts a file of values: where it names converted policies, the result has one of its own.
func (c *converter) variables(node *yaml.Node) {
	name := node.Value
	c.files(node)
	text, err := document.ReadFile(filepath.Join(c.From, name))
	if err != nil {
		c.refuse("variables", err.Error(), "mend the suite")
		return
	}
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil || len(file.Content) == 0 || file.Content[0].Kind != yaml.MappingNode {
		c.refuse("variables", "no file of values", "mend the suite")
		return
	}
	values := file.Content[0]
	if spec := field(values, "spec"); spec != nil {
		values = spec
	}
	if !c.values(values, name+": ") {
		return
	}
	out, err := yaml.Marshal(&file)
	if err != nil {
		c.refuse("variables", err.Error(), "mend the suite")
		return
	}
	own := filepath.Base(name)
	c.result.Values[own] = out
	node.Value = own
}

// values names the new policies in values, and reports whether any is named. A value for what a policy looks up has no form:
// a policy in CEL reads the suite's own objects.
func (c *converter) values(values *yaml.Node, place string) (changed bool) {
	policies := field(values, "policies")
	if policies == nil {
		return false
	}
	var out []*yaml.Node
	for i, entry := range policies.Content {
		name := at(entry, "name")
		var names, converted []string
		for _, p := range c.own {
			if isOf(p, name) && !slices.Contains(names, p.Name) {
				names, converted = append(names, p.Name), append(converted, p.Rules...)
			}
		}
		changed = changed || len(names) > 0
		if len(names) > 0 {
			c.lookups(entry, source.Index(source.Below(place, "policies"), i), converted)
		}
		for _, n := range names {
			out = append(out, set(without(entry, "rules"), "name", scalar(n), ""))
		}
		if len(names) == 0 || c.stays(name) {
			out = append(out, entry)
		}
	}
	policies.Content = out
	return changed
}

// lookups refuses values for anything but the request, of converted rules.
func (c *converter) lookups(entry *yaml.Node, place string, converted []string) {
	const do = "write the objects that the policy reads into context, and leave the values out"
	if rules := field(entry, "rules"); rules != nil {
		for i, rule := range rules.Content {
			if slices.Contains(converted, at(rule, "name")) {
				c.refuse(source.Index(place+".rules", i), "values for what a rule looks up", do)
			}
		}
	}
	resources := field(entry, "resources")
	if resources == nil {
		return
	}
	for i, one := range resources.Content {
		values := field(one, "values")
		if values == nil {
			continue
		}
		for k := 0; k+1 < len(values.Content); k += 2 {
			key := values.Content[k].Value
			if !strings.HasPrefix(key, "request.") {
				c.refuse(source.Index(place+".resources", i)+".values", fmt.Sprintf("a value for %s", key), do)
			}
		}
	}
}
