package cel

import (
	"encoding/json"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/comment"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// remark is a comment of the source, and the paths where it belongs, the best first.
type remark struct {
	text  string
	paths [][]string
}

// put writes the comment at the first path that there is, or else at the top.
func (r *remark) put(root *yaml.Node) {
	for _, path := range r.paths {
		if comment.Put(root, path, r.text) {
			return
		}
	}
	comment.Put(root, nil, r.text)
}

// carry gives the comments of a document to what a conversion adds to the results for it.
func (r *Result) carry(d source.Document, convert func()) {
	policies, rest := len(r.Policies), len(r.Rest)
	convert()
	made, left := r.Policies[policies:], r.Rest[rest:]
	if len(made)+len(left) == 0 {
		return
	}
	rules := ruleNames(d)
	for _, one := range comment.Read(d.YAML) {
		if i, ok := ruleAt(one.Path); ok && i < len(rules) {
			carryRule(one, rules[i], made, left)
			continue
		}
		var below []string // the field of the spec
		if len(one.Path) > 1 && one.Path[0] == "spec" {
			below = one.Path[1:]
		}
		switch {
		case len(made) == 0:
			left[0].remarks = append(left[0].remarks, remark{one.Text, ancestors(one.Path)})
		case below == nil:
			made[0].remarks = append(made[0].remarks, remark{one.Text, ancestors(one.Path)})
		default:
			made[0].remarks = append(made[0].remarks, remark{one.Text, append(placesOf(below, 0), []string{"spec"})})
		}
	}
}

// carryRule gives a comment within a rule to the first result of the rule.
func carryRule(one comment.Comment, rule string, made, left []Policy) {
	for i := range made {
		p := &made[i]
		at := slices.Index(p.Rules, rule)
		if at < 0 {
			continue
		}
		statement := 0
		if at < len(p.statements) {
			statement = p.statements[at]
		}
		p.remarks = append(p.remarks, remark{one.Text, append(placesOf(one.Path[3:], statement), []string{"spec"})})
		return
	}
	for i := range left {
		if at := slices.Index(left[i].staying, rule); at >= 0 {
			path := slices.Concat(one.Path[:2], []string{strconv.Itoa(at)}, one.Path[3:])
			left[i].remarks = append(left[i].remarks, remark{one.Text, ancestors(path)})
			return
		}
	}
}

// placesOf are the places in a result for what stands at a path below a rule, or below the spec of a policy.
func placesOf(path []string, statement int) [][]string {
	statements := [][]string{
		{"spec", "validations", strconv.Itoa(statement)}, {"spec", "mutations", "0"}, {"spec", "generate", "0"}, {"spec", "validations"},
	}
	if len(path) == 0 {
		return statements
	}
	fields := map[string][]string{
		"match":                            {"matchConstraints"},
		"exclude":                          {"matchConditions", "conditions", "matchConstraints"},
		"preconditions":                    {"matchConditions", "matchConstraints"},
		"celPreconditions":                 {"matchConditions"},
		"conditions":                       {"conditions", "matchConditions"},
		"context":                          {"variables"},
		"exceptions":                       {"policyRefs"},
		"validationFailureAction":          {"validationActions"},
		"validationFailureActionOverrides": {"validationActions"},
		"admission":                        {"evaluation"},
		"background":                       {"evaluation"},
		"webhookTimeoutSeconds":            {"webhookConfiguration"},
		"imageReferences":                  {"matchImageReferences"},
	}
	name := path[0]
	if name == "verifyImages" && len(path) > 2 { // below an entry
		name = path[2]
	}
	var places [][]string
	for _, field := range append(fields[name], name) { // or one of the same name
		places = append(places, []string{"spec", field})
	}
	return append(places, statements...)
}

// ancestors are a path and those above it, but the top.
func ancestors(path []string) (all [][]string) {
	for n := len(path); n > 0; n-- {
		all = append(all, path[:n])
	}
	return all
}

// ruleAt returns the index of the rule that a path is in.
func ruleAt(path []string) (int, bool) {
	if len(path) < 3 || path[0] != "spec" || path[1] != "rules" {
		return 0, false
	}
	i, err := strconv.Atoi(path[2])
	return i, err == nil
}

// ruleNames are the names of a document's rules.
func ruleNames(d source.Document) (names []string) {
	var doc struct {
		Spec struct {
			Rules []json.RawMessage `json:"rules"`
		} `json:"spec"`
	}
	if json.Unmarshal(d.Text, &doc) != nil {
		return nil
	}
	for _, raw := range doc.Spec.Rules {
		names = append(names, ruleName(raw))
	}
	return names
}
