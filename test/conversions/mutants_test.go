package conversions

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/workload"
)

// change is a fault of a kind that a converter may have: a pattern of CEL, and what stands in its place.
type change struct {
	sort, with string
	of         *regexp.Regexp
}

func changes() []change {
	operator := func(of, with string) change {
		return change{"operator", with, regexp.MustCompile(of)}
	}
	null := func(of, with string) change {
		return change{"null check", with, regexp.MustCompile(of)}
	}
	return []change{
		operator(` == `, " != "), operator(` != `, " == "), operator(` < `, " <= "), operator(` <= `, " < "), operator(` > `, " >= "), operator(` >= `, " > "),
		operator(` && `, " || "), operator(` \|\| `, " && "), operator(`\.all\(`, ".exists("), operator(`\.exists\(`, ".all("), operator(`!\(`, "("),
		operator(`startsWith\(`, "endsWith("), operator(`endsWith\(`, "startsWith("), operator(`!variables\.`, "variables."), operator(`!has\(`, "has("),
		null(`\.orValue\([^()]*\)`, ".value()"), null(`!has\([^()]*\) \|\| `, ""), null(`has\([^()]*\) && `, ""), null(` && has\([^()]*\)`, ""), null(` \|\| !has\([^()]*\)`, ""),
	}
}

// equivalents are faults that no object shows, each with the reason.
func equivalents() []equivalent {
	null := func(of, reason string) equivalent { return equivalent{"", regexp.MustCompile(of), reason} }
	return []equivalent{
		null(`\[[^\]]*has\(object\.spec\)[^\]]* -> `, "every object of a built-in kind with a spec has it"),
		null(`^\[spec validations.*ontainer\.\?image\[\.orValue|^\[spec validations.*\[[^\]]*has\(\w*[cC]ontainer\.image\)[^\]]* -> `, "the API server refuses a container without an image before it validates"),
		null(`\.metadata\.\?name\[\.orValue`, "every object has a name when it is validated"),
		null(`container\.\?name\[\.orValue`, "every container has a name"),
		null(`hostPath\.\?path\[\.orValue|\[[^\]]*has\(volume\.hostPath\.path\)[^\]]* -> `, "the type always writes the path of a hostPath"),
		null(`userInfo\.\?groups\[\.orValue`, "an API server puts every user into a group"),
		null(`matchExpression\.\?key\[\.orValue`, "the type always writes the key of a node selector"),
		null(`\?rules\[\.orValue\(null\)`, "the type always writes the rules of a role"),
		null(`\?generateName\[\.orValue`, "an object without a name has one that is generated"),
		null(`\.\?topologyKey\[\.orValue`, "the type always writes the topologyKey"),
		null(`matchExpression\.\?operator\[\.orValue`, "the type always writes the operator of a node selector"),
		null(`port\.\?port\[\.orValue\(0\)`, "the type always writes the port of a Service"),
		{
			"disallow-host-ports-range", regexp.MustCompile(`has\(port\.hostPort\)(\[| \|\| -> \]| -> ).*port\.hostPort == 0`),
			"the type never writes a hostPort of 0: the second alternative holds only where the first one does",
		},
	}
}

// equivalent is a fault, by the text of a mutant with single blanks, in a policy; all policies if it is empty.
type equivalent struct {
	policy string
	of     *regexp.Regexp
	reason string
}

func isEquivalent(policy, what string) bool {
	return slices.ContainsFunc(equivalents(), func(e equivalent) bool {
		return (e.policy == "" || e.policy == policy) && e.of.MatchString(what)
	})
}

// mutant is a result with one fault.
type mutant struct {
	of         int // the policy
	sort, what string
	result     []workload.Object
}

// mutants are all results of a policy with one fault each.
func mutants(of int, c *converted) (all []mutant) {
	for d, document := range c.pair.Result {
		add := func(sort, what string, edit func(content map[string]any)) {
			content := parsed(document)
			edit(content)
			text, err := json.Marshal(content)
			if err != nil {
				return
			}
			changed, err := workload.Parse(text)
			if err != nil {
				return
			}
			result := slices.Clone(c.pair.Result)
			result[d] = changed
			all = append(all, mutant{of, sort, what, result})
		}
		walk(parsed(document), nil, func(at []any, text string) {
			for _, change := range changes() {
				for _, found := range change.of.FindAllStringIndex(masked(text), -1) {
					with := text[:found[0]] + change.with + text[found[1]:]
					what := fmt.Sprintf("%v: ...%s[%s -> %s]%s...", at, text[max(0, found[0]-60):found[0]], text[found[0]:found[1]], change.with,
						text[found[1]:min(len(text), found[1]+40)])
					if isEquivalent(c.pair.Name, strings.Join(strings.Fields(what), " ")) {
						continue
					}
					add(change.sort, what, func(content map[string]any) { put(content, at, with) })
				}
			}
		})
		spec, _ := document.Content()["spec"].(map[string]any)
		conditions, _ := spec["matchConditions"].([]any)
		for i := range conditions {
			add("precondition", fmt.Sprintf("without %v", conditions[i]), func(content map[string]any) {
				spec, _ := content["spec"].(map[string]any)
				list, _ := spec["matchConditions"].([]any)
				spec["matchConditions"] = slices.Delete(list, i, i+1)
			})
		}
	}
	return all
}

func parsed(o workload.Object) (content map[string]any) {
	_ = json.Unmarshal(o.JSON(), &content) // it is the text of an object
	return content
}

var textForm = regexp.MustCompile(`'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"`)

// masked hides the texts in an expression, each sign by another that no change has.
func masked(expression string) string {
	return textForm.ReplaceAllStringFunc(expression, func(text string) string { return strings.Repeat("\x00", len(text)) })
}

// walk visits the expressions of a policy that decide.
func walk(node any, at []any, do func(at []any, text string)) {
	switch node := node.(type) {
	case map[string]any:
		for _, key := range sorted(node) {
			if text, ok := node[key].(string); ok && key == "expression" {
				do(append(slices.Clone(at), key), text)
			}
			walk(node[key], append(slices.Clone(at), key), do)
		}
	case []any:
		for i := range node {
			walk(node[i], append(slices.Clone(at), i), do)
		}
	}
}

func sorted(node map[string]any) (keys []string) {
	for key := range node {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func put(node any, at []any, value string) {
	for _, step := range at[:len(at)-1] {
		switch step := step.(type) {
		case string:
			node = node.(map[string]any)[step]
		case int:
			node = node.([]any)[step]
		}
	}
	node.(map[string]any)[at[len(at)-1].(string)] = value
}

// TestMutants changes results: at least 95 of 100 faults are found.
func TestMutants(t *testing.T) {
	carried := slices.DeleteFunc(corpus(t), func(c converted) bool { return c.pair.Result == nil })
	var all []mutant
	for i := range carried {
		all = append(all, mutants(i, &carried[i])...)
	}
	from := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // a repeatable choice
	from.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	whole := len(all)
	usual, least := 250, 90 // 95 of 100 are the aim, for all mutants together; a part of them in each run is below it
	if os.Getenv("QUAYMASTER_LONG") != "" {
		usual, least = whole, 95
	}
	all = all[:min(len(all), number(t, "QUAYMASTER_CONVERT_MUTANTS", usual))]
	var mutex sync.Mutex
	found, tried, broken := map[string]int{}, map[string]int{}, 0
	each(len(all), func(i int) {
		m := &all[i]
		c := carried[m.of]
		c.pair.Result = m.result
		report, err := check(t.Context(), &c, 4000, true)
		mutex.Lock()
		defer mutex.Unlock()
		if err != nil { // it does not compile, which nobody takes for a result
			broken++
			return
		}
		tried[m.sort]++
		if !report.Equal() {
			found[m.sort]++
			return
		}
		t.Logf("not found: %s: %s", c.name(), m.what)
	})
	sumFound, sumTried := 0, 0
	for sort := range tried {
		t.Logf("%s: found %d of %d", sort, found[sort], tried[sort])
		sumFound, sumTried = sumFound+found[sort], sumTried+tried[sort]
	}
	t.Logf("found %d of %d, of %d possible; %d do not compile", sumFound, sumTried, whole, broken)
	if sumFound*100 < sumTried*least {
		t.Errorf("%d of %d faults are found", sumFound, sumTried)
	}
}
