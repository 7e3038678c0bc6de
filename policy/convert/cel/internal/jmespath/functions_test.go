package jmespath_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/signature"
)

var update = flag.Bool("update", false, "write the page of functions")

// TestFunctions: each function of the source has a form, or a reason.
func TestFunctions(t *testing.T) {
	table := jmespath.Functions()
	for _, f := range signature.Functions() {
		at := slices.IndexFunc(table, func(row jmespath.Function) bool { return row.Name == f.Name })
		if at < 0 {
			t.Errorf("%s is not in the table", f.Name)
			continue
		}
		if table[at].CEL == "" && table[at].Note == "" {
			t.Errorf("%s has no form and no reason", f.Name)
		}
	}
	if len(table) != len(signature.Functions()) {
		t.Errorf("the table has %d functions, want %d", len(table), len(signature.Functions()))
	}
}

// TestPage: the page of functions is that of the table.
func TestPage(t *testing.T) {
	var out strings.Builder
	out.WriteString("# Functions of JMESPath in CEL\n\n" +
		"`quaymaster convert --to cel` writes these forms. A function without one, or with arguments of other types, is\n" +
		"refused with its path. The types are those of the kinds that a rule matches.\n\n" +
		"This page is generated from the compiler's table: `go test ./policy/convert/cel/internal/jmespath -run TestPage -update`.\n\n" +
		"| Function | CEL | Limit, or reason |\n|---|---|---|\n")
	forms := 0
	for _, f := range jmespath.Functions() {
		cel := "none"
		if f.CEL != "" {
			cel, forms = "`"+strings.ReplaceAll(f.CEL, "|", `\|`)+"`", forms+1
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", f.Name, cel, f.Note)
	}
	fmt.Fprintf(&out, "\n%d of %d functions have a form.\n", forms, len(jmespath.Functions()))
	page := filepath.Join("..", "..", "..", "..", "..", "docs", "convert-functions.md")
	if *update {
		if err := os.WriteFile(page, []byte(out.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(page)
	if err != nil || string(have) != out.String() {
		t.Errorf("docs/convert-functions.md differs from the table: run this test with -update: %v", err)
	}
}

func ExampleCompile() {
	made, err := jmespath.Compile("request.object.metadata.labels.team || 'none'", jmespath.Scope{})
	if err != nil {
		panic(err)
	}
	fmt.Println(made.Text)
	// Output: object.metadata.?labels.?team.orValue('') != '' ? object.metadata.labels.team : 'none'
}

// TestForms evaluates the form of each function for boundary values of its arguments.
func TestForms(t *testing.T) {
	const x, y = "request.object.metadata.annotations.x", "request.object.metadata.labels"
	rows := map[string][]string{
		"starts_with": {"starts_with(" + x + ", 'a')", "starts_with(" + x + ", '')"}, "ends_with": {"ends_with(" + x + ", 'b')"},
		"to_upper": {"request.object.spec.containers[].to_upper(name)"}, "to_lower": {"request.object.spec.containers[].to_lower(image)"},
		"split": {"split(" + x + ", ',')", "split(" + x + ", '')"}, "replace_all": {"replace_all(" + x + ", 'a', 'b')", "replace_all(" + x + ", '', '-')"},
		"regex_match": {"regex_match('^a+$', " + x + ")", `regex_match('\d|é', ` + x + ")"}, "pattern_match": {"pattern_match('a*', " + x + ")", "pattern_match('?', " + x + ")"},
		"base64_encode": {"base64_encode(" + x + ")"}, "md5": {"md5(" + x + ")"}, "sha1": {"sha1(" + x + ")"}, "sha256": {"sha256(" + x + ")"},
		"length": {"length(" + x + ")", "length(" + y + ")", "length(request.object.spec.volumes)"}, "keys": {"keys(" + y + ")"},
		"contains":    {"contains(" + x + ", 'a')", "contains(" + x + ", '')", "contains(request.object.spec.containers[].name, 'a')", "contains(keys(" + y + "), 'app')"},
		"join":        {"join('-', request.object.spec.containers[].name)", "join('', request.object.spec.volumes[].name)"},
		"label_match": {"label_match(" + y + ", request.object.spec.nodeSelector)", "label_match(request.object.spec.nodeSelector, " + y + ")"},
		"divide":      {"divide(request.object.spec.containers[0].resources.limits.memory || '1', '2Gi')"},
		"to_string":   {"to_string(request.object.spec.containers[0].image)", "to_string(request.object.spec.priority || `7`)", "to_string(request.object.spec.hostNetwork || `false`)"},
		"parse_json":  {"parse_json(" + x + ")"}, "parse_yaml": {"parse_yaml(" + x + ")"},
	}
	s, scope := newSides(t), scopeOf(t, pod())
	for _, f := range jmespath.Functions() {
		if f.CEL != "" && len(rows[f.Name]) == 0 && f.Name != "time_since" { // which is compared with a duration, as a condition
			t.Errorf("%s has a form and no row", f.Name)
		}
		for _, text := range rows[f.Name] {
			made, err := jmespath.Compile(text, scope)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			for _, value := range []string{"", "a", "A", "aa", "ab", "a,b", "é", "ß", "1", "true", "null", `{"a": [1]}`, "[", "a\nb", "Gi", "1Gi"} {
				for _, spec := range []string{"{}", "{priority: 5, hostNetwork: true, nodeSelector: {app: a}, volumes: [{name: v}, {name: w}]}", "{nodeSelector: {}, volumes: []}", "{nodeSelector: {app: b, c: d}}"} {
					one := object(t, "{metadata: {annotations: {}, labels: {app: a}}, spec: "+spec+"}")
					one["metadata"].(map[string]any)["annotations"].(map[string]any)["x"] = value
					one["spec"].(map[string]any)["containers"] = []any{map[string]any{"name": "a", "image": "B" + value, "resources": map[string]any{"limits": map[string]any{"memory": "3Gi"}}}}
					if value == "ß" || value == "é" && strings.HasPrefix(f.Name, "to_") { // letters outside of ASCII: the limit of the form
						continue
					}
					if why := s.differ(t, text, made, map[string]any{"object": one}); why != "" {
						t.Errorf("%s\n%s of %q, %s: %s", text, made.Text, value, spec, why)
					}
				}
			}
		}
	}
}
