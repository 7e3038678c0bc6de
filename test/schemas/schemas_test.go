package schemas_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/peers"
	"github.com/quaymaster/quaymaster/test/schemas"
)

var update = flag.Bool("update", false, "write the definitions and the schemas for editors")

const deploy = "../../deploy/"

// upstream returns the definition of another project that is the model of one of ours; nil for our
// own kinds.
func upstream(t *testing.T, file string) *schemas.Definition {
	t.Helper()
	name := filepath.Base(file)
	group, _, _ := strings.Cut(name, "_")
	module, folder := peers.Kyverno, filepath.Join("config", "crds", group)
	switch group {
	case "quaymaster.dev":
		return nil
	case "kyverno.io":
		folder = filepath.Join("config", "crds", "kyverno")
	case "policy.sigstore.dev":
		module, folder = peers.PolicyController, "config"
		name = map[string]string{"policy.sigstore.dev_clusterimagepolicies.yaml": "300-clusterimagepolicy.yaml", "policy.sigstore.dev_trustroots.yaml": "300-trustroot.yaml"}[name]
	}
	at, err := peers.Module(t.Context(), module)
	if err != nil {
		t.Fatal(err)
	}
	model, err := schemas.Read(filepath.Join(at, folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return model
}

// TestDefinitions: the schemas of other projects' kinds are theirs, made structural; the first
// version, which kubectl explains, has descriptions. -update writes them.
func TestDefinitions(t *testing.T) {
	files, err := filepath.Glob(deploy + "crds/*.yaml")
	if err != nil || len(files) != 21 {
		t.Fatalf("%d definitions, %v", len(files), err)
	}
	written := map[string]bool{}
	for _, file := range files {
		own, err := schemas.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		model := upstream(t, file)
		for i, version := range own.Versions {
			if model != nil {
				schema, err := model.Spec(version)
				if err != nil {
					t.Fatal(err)
				}
				if err := own.SetSpec(version, schemas.Structural(schema, i == 0)); err != nil {
					t.Fatal(err)
				}
			}
			schema, err := own.Spec(version)
			if err != nil {
				t.Fatal(err)
			}
			to := filepath.Join("schemas", own.Group, strings.ToLower(own.Kind)+"_"+version+".json")
			written[to] = true
			same(t, deploy+to, editor(t, own, version, schema))
		}
		if model != nil {
			content, err := own.Encode()
			if err != nil {
				t.Fatal(err)
			}
			same(t, file, content)
		}
	}
	there, err := filepath.Glob(deploy + "schemas/*/*.json")
	// That of the settings file follows from its types, in deploy.
	if err != nil || len(there) != len(written)+1 {
		t.Errorf("%d schemas for editors, want %d (%v)", len(there), len(written)+1, err)
	}
}

// editor returns a kind's schema for editors.
func editor(t *testing.T, d *schemas.Definition, version string, spec map[string]any) []byte {
	t.Helper()
	content, err := json.Marshal(map[string]any{
		"$schema": "http://json-schema.org/draft-07/schema#", "title": d.Kind + " of " + d.Group + "/" + version,
		"type": "object", "required": []string{"apiVersion", "kind", "metadata", "spec"}, "additionalProperties": false,
		"properties": map[string]any{
			"apiVersion": map[string]any{"const": d.Group + "/" + version}, "kind": map[string]any{"const": d.Kind},
			"metadata": map[string]any{"type": "object"}, "spec": schemas.Editor(spec), "status": map[string]any{"type": "object"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(content, '\n')
}

// same compares a file with its content, or writes it.
func same(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what follows from the definitions (%v): run make manifests", file, err)
	}
}

// TestSchemas: no level of a definition drops unknown fields or sets a default, and each level that
// has descriptions is described.
func TestSchemas(t *testing.T) {
	files, err := filepath.Glob(deploy + "crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	levels, described := 0, 0
	for _, file := range files {
		d, err := schemas.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, version := range d.Versions {
			schema, err := d.Spec(version)
			if err != nil {
				t.Fatal(err)
			}
			walk(schema, d.Kind+"."+version+".spec", func(path string, s map[string]any) {
				if _, has := s["default"]; has {
					t.Errorf("%s has a default, which compilers of policies do not have", path)
				}
				if s["description"] != nil {
					described++
				}
				if s["type"] != "object" || s["additionalProperties"] != nil {
					return
				}
				levels++
				if s["x-kubernetes-preserve-unknown-fields"] != true {
					t.Errorf("%s drops unknown fields, which the gateway then cannot refuse", path)
				}
			})
		}
	}
	if levels < 1000 || described < 1000 {
		t.Errorf("%d levels, %d descriptions", levels, described)
	}
}

func walk(schema map[string]any, path string, see func(string, map[string]any)) {
	see(path, schema)
	properties, _ := schema["properties"].(map[string]any)
	for name, below := range properties {
		if s, ok := below.(map[string]any); ok {
			walk(s, path+"."+name, see)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if s, ok := schema[key].(map[string]any); ok {
			walk(s, path+"[]", see)
		}
	}
}

// TestStructural: the parts of its model that a schema keeps, and those that it does not.
func TestStructural(t *testing.T) {
	model := map[string]any{
		"type": "object", "description": "Spec is all of it. And more.\n\nFurther text.", "required": []any{"mode", "rules"},
		"properties": map[string]any{
			"mode":  map[string]any{"type": "string", "default": "Audit", "enum": []any{"Audit", "Enforce"}},
			"rules": map[string]any{"type": "array", "items": map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string", "maxLength": 63}}}},
			"names": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
			"any":   map[string]any{"x-kubernetes-preserve-unknown-fields": true},
		},
	}
	want := map[string]any{
		"type": "object", "description": "Spec is all of it.", "x-kubernetes-preserve-unknown-fields": true,
		"properties": map[string]any{
			"mode": map[string]any{"type": "string", "enum": []any{"Audit", "Enforce"}},
			"rules": map[string]any{"type": "array", "items": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": map[string]any{"name": map[string]any{"type": "string", "maxLength": 63}},
			}},
			"names": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}},
			"any":   map[string]any{"x-kubernetes-preserve-unknown-fields": true},
		},
	}
	if got := encode(t, schemas.Structural(model, true)); got != encode(t, want) {
		t.Errorf("got  %s\nwant %s", got, encode(t, want))
	}
	if slices.Contains(keys(schemas.Structural(model, false)), "description") {
		t.Error("a description is kept")
	}
	edited := schemas.Editor(schemas.Structural(model, false))
	if edited["additionalProperties"] != false || strings.Contains(encode(t, edited), "x-kubernetes") {
		t.Errorf("for editors: %s", encode(t, edited))
	}
	if names := edited["properties"].(map[string]any)["names"].(map[string]any); names["additionalProperties"] == false {
		t.Error("a map has no names")
	}
}

func keys(m map[string]any) []string {
	var all []string
	for key := range m {
		all = append(all, key)
	}
	return all
}

func encode(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
