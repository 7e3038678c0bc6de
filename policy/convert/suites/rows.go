package suites

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// row is an expectation, with the policies that its rule has become.
type row struct {
	node    *yaml.Node
	kind    string
	result  string
	targets []int // of the converted policies; none if the policy stays
}

// cell is what a row says about an object and a policy.
type cell struct {
	target            int
	kind, name, other string
}

// weight orders results: of several rules that have become one policy, the gravest counts.
func weight(result string) int {
	return slices.Index([]string{"skip", "pass", "warn", "error", "fail"}, result)
}

// rows names the new policies in the rows. Several rules may have become one policy, so that a row loses the objects
// for which another row has a graver result.
func (c *converter) rows(list *yaml.Node) {
	rows := make([]row, len(list.Content))
	gravest := map[cell]string{}
	for i, node := range list.Content {
		rows[i] = c.row(node, source.Index("results", i))
		for _, target := range rows[i].targets {
			for _, name := range objectsOf(node) {
				key := rows[i].cell(target, name)
				if known, is := gravest[key]; !is || weight(rows[i].result) > weight(known) {
					gravest[key] = rows[i].result
				}
			}
		}
	}
	written := map[cell]bool{}
	var out []*yaml.Node
	for _, r := range rows {
		if r.targets == nil {
			out = append(out, r.node)
			continue
		}
		c.result.Converted = true
		for _, target := range r.targets {
			if made := c.rowFor(r, target, gravest, written); made != nil {
				out = append(out, made)
			}
		}
	}
	list.Content = out
}

func (r row) cell(target int, name string) cell {
	other := at(r.node, "operation") + " " + at(r.node, "patchedResources") + " " + at(r.node, "generatedResource")
	return cell{target, r.kind, name, other}
}

// row reads a row, and moves the names of its files.
func (c *converter) row(node *yaml.Node, place string) row {
	for _, key := range []string{"patchedResources", "patchedResource", "generatedResource", "generatedResources", "cloneSourceResource"} {
		if value := field(node, key); value != nil {
			c.files(value)
		}
	}
	r := row{node: node, kind: at(node, "kind"), result: at(node, "result")}
	if r.result == "" {
		r.result = at(node, "status")
	}
	if selectsOther(node) {
		return r
	}
	policy, rule := at(node, "policy"), at(node, "rule")
	var all []int
	for i, p := range c.own {
		if isOf(p, policy) && (slices.Contains(p.Rules, rule) || len(p.Rules) == 0 && rule == "") {
			all = append(all, i)
		}
	}
	for _, i := range all {
		if len(all) == 1 || r.kind == "" || c.own[i].MatchesKind(r.kind) {
			r.targets = append(r.targets, i)
		}
	}
	if len(r.targets) > 1 && r.result != "pass" && r.result != "skip" {
		c.refuse(place, fmt.Sprintf("the rule %s has become several policies about the same kind, of which any may have the result %s", rule, r.result),
			"write a row for each by hand")
	}
	return r
}

// isOf reports whether a policy was converted from one of a name, or of NAMESPACE/NAME.
func isOf(p cel.Policy, name string) bool {
	_, short, namespaced := strings.Cut(p.From, "/")
	return p.From != "" && (p.From == name || namespaced && short == name)
}

// selectsOther reports whether a row selects policies of a kind in CEL.
func selectsOther(node *yaml.Node) bool {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if strings.HasPrefix(node.Content[i].Value, "is") && node.Content[i+1].Value == "true" {
			return true
		}
	}
	return false
}

// objectsOf returns the names of a row's objects; one empty name where it names none, and means all of its kind.
func objectsOf(node *yaml.Node) (names []string) {
	for _, key := range []string{"resources", "resourceSpecs"} {
		if list := field(node, key); list != nil {
			for _, one := range list.Content {
				names = append(names, nameOf(one))
			}
		}
	}
	if one := field(node, "resource"); one != nil {
		names = append(names, one.Value)
	}
	if names == nil {
		return []string{""}
	}
	return names
}

// nameOf is the name in a list of resources, or the fields of an entry of resourceSpecs.
func nameOf(node *yaml.Node) string {
	if node.Kind == yaml.ScalarNode {
		return node.Value
	}
	text, err := yaml.Marshal(node)
	if err != nil {
		return ""
	}
	return string(text)
}

// rowFor is a row about one of the policies; nil if no object remains.
func (c *converter) rowFor(r row, target int, gravest map[cell]string, written map[cell]bool) *yaml.Node {
	p := c.own[target]
	keep := func(name string) bool {
		key := r.cell(target, name)
		if gravest[key] != r.result || written[key] {
			return false
		}
		written[key] = true
		return true
	}
	node := without(r.node, "rule")
	remains := false
	for _, key := range []string{"resources", "resourceSpecs"} {
		list := field(node, key)
		if list == nil {
			continue
		}
		kept := *list
		kept.Content = slices.DeleteFunc(slices.Clone(list.Content), func(one *yaml.Node) bool { return !keep(nameOf(one)) })
		remains = remains || len(kept.Content) > 0
		node = set(node, key, &kept, "")
	}
	if one := field(node, "resource"); one != nil {
		remains = remains || keep(one.Value)
	}
	if field(node, "resources") == nil && field(node, "resourceSpecs") == nil && field(node, "resource") == nil {
		remains = keep("")
	}
	if !remains {
		return nil
	}
	name := scalar(p.Name)
	name.LineComment, name.HeadComment = field(node, "policy").LineComment, field(node, "policy").HeadComment
	if r.result == "skip" && !c.exempts && !p.Skips() {
		for _, key := range []string{"result", "status"} {
			if field(node, key) != nil {
				node = set(node, key, scalar("pass"), "")
			}
		}
	}
	node = set(node, "policy", name, "")
	return set(node, "is"+strings.TrimPrefix(p.Kind, "Namespaced"), &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"}, "policy")
}

// Tested returns the objects with which a suite tests rules, by the name of the policy and that of the rule.
func Tested(text []byte) map[string]map[string]string {
	all := map[string]map[string]string{}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var node yaml.Node
		if decoder.Decode(&node) != nil { // Convert reports an error
			return all
		}
		if len(node.Content) == 0 {
			continue
		}
		results := field(node.Content[0], "results")
		if results == nil {
			continue
		}
		for _, row := range results.Content {
			_, name, namespaced := strings.Cut(at(row, "policy"), "/")
			if !namespaced {
				name = at(row, "policy")
			}
			if all[name] == nil {
				all[name] = map[string]string{}
			}
			objects := strings.Split(all[name][at(row, "rule")], "\n")
			for _, object := range objectsOf(row) {
				objects = append(objects, at(row, "kind")+" "+at(row, "operation")+" "+object)
			}
			slices.Sort(objects)
			all[name][at(row, "rule")] = strings.Join(slices.Compact(objects), "\n")
		}
	}
}
