package deploy_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	strict "sigs.k8s.io/yaml"
)

// resource is the content of docs/resources.md about one of our own kinds.
type resource struct {
	Spec struct {
		Group, Scope string
		Names        struct {
			Kind, Plural string
			ShortNames   []string
		}
		Versions []struct {
			Name    string
			Columns []struct{ Name, JSONPath string } `json:"additionalPrinterColumns"`
			Schema  struct {
				OpenAPI field `json:"openAPIV3Schema"`
			}
		}
	}
}

// field is a part of a schema.
type field struct {
	Type, Format, Description, Pattern       string
	Enum                                     []any
	MinLength, MaxLength, MinItems, MaxItems *int64
	Minimum, Maximum                         *float64
	Required                                 []string
	Properties                               map[string]field
	Items                                    *field
	Open                                     bool                       `json:"x-kubernetes-preserve-unknown-fields"`
	Rules                                    []struct{ Message string } `json:"x-kubernetes-validations"`
}

// pages are where a kind is explained.
var pages = map[string]string{"ImageOverride": "overrides.md", "RegistryMirror": "mirrors.md"}

// TestResourceReference: docs/resources.md follows from the definitions of our own kinds. -update
// writes it.
func TestResourceReference(t *testing.T) {
	files, err := filepath.Glob("crds/quaymaster.dev_*.yaml")
	if err != nil || len(files) != len(pages) {
		t.Fatalf("definitions %v, %v; pages for %d", files, err, len(pages))
	}
	var text strings.Builder
	text.WriteString("# Resources\n\nThe kinds of the API group `quaymaster.dev`, as the API server checks them; made from\n`deploy/crds`. All others that the gateway reads are other projects'.\n")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r resource
		if err := strict.Unmarshal(content, &r); err != nil {
			t.Fatal(err)
		}
		r.write(t, &text)
	}
	same(t, "../docs/resources.md", []byte(text.String()))
}

func (r *resource) write(t *testing.T, to *strings.Builder) {
	t.Helper()
	names := r.Spec.Names
	if pages[names.Kind] == "" {
		t.Fatalf("no page explains a %s", names.Kind)
	}
	for _, version := range r.Spec.Versions {
		fmt.Fprintf(to, "\n## %s\n\n`%s/%s`, of the %s; `%s`, in short `%s`. It is explained in [%s](%s).\n", names.Kind,
			r.Spec.Group, version.Name, strings.ToLower(r.Spec.Scope), names.Plural, strings.Join(names.ShortNames, "`, `"), pages[names.Kind], pages[names.Kind])
		to.WriteString("\n| field | type | |\n|---|---|---|\n")
		for _, part := range []string{"spec", "status"} {
			each := version.Schema.OpenAPI.Properties[part]
			each.write(to, part, slices.Contains(version.Schema.OpenAPI.Required, part))
		}
		var columns []string
		for _, c := range version.Columns {
			columns = append(columns, c.Name)
		}
		fmt.Fprintf(to, "\n`kubectl get %s -o wide` shows %s.\n", names.Plural, strings.Join(columns, ", "))
	}
}

// write has a line for a field, and for those below it.
func (f *field) write(to *strings.Builder, path string, required bool) {
	kind := f.Type
	if f.Format != "" {
		kind += ", " + f.Format
	}
	fmt.Fprintf(to, "| `%s` | %s | %s |\n", path, kind, strings.ReplaceAll(strings.Join(f.constraints(required), "; "), "|", `\|`))
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		below := f.Properties[name]
		below.write(to, path+"."+name, slices.Contains(f.Required, name))
	}
	if f.Items != nil && (len(f.Items.Properties) > 0 || f.Items.Pattern != "") {
		f.Items.write(to, path+"[]", false)
	}
}

// between returns the allowed number of items; nothing without a bound.
func between(least, most *int64, what string) []string {
	switch {
	case least != nil && most != nil:
		return []string{fmt.Sprintf("%d to %d %s", *least, *most, what)}
	case most != nil:
		return []string{fmt.Sprintf("%d %s at most", *most, what)}
	case least != nil:
		return []string{fmt.Sprintf("%d %s at least", *least, what)}
	}
	return nil
}

// constraints are all that a schema asks of a field.
func (f *field) constraints(required bool) []string {
	var said []string
	if required {
		said = append(said, "required")
	}
	if f.Description != "" {
		said = append(said, f.Description)
	}
	if len(f.Enum) > 0 {
		words := make([]string, len(f.Enum))
		for i, each := range f.Enum {
			words[i] = fmt.Sprintf("`%v`", each)
		}
		said = append(said, strings.Join(words, ", "))
	}
	said = append(said, between(f.MinLength, f.MaxLength, "characters")...)
	said = append(said, between(f.MinItems, f.MaxItems, "entries")...)
	if f.Pattern != "" {
		said = append(said, "`"+f.Pattern+"`")
	}
	for _, rule := range f.Rules {
		said = append(said, "refused otherwise: "+rule.Message)
	}
	if f.Open && len(f.Properties) == 0 {
		said = append(said, "checked by the gateway, which names the field that is wrong")
	}
	return said
}
