package document

import "testing"

func TestPruned(t *testing.T) {
	const preserve = `"x-kubernetes-preserve-unknown-fields":true`
	for _, row := range []struct {
		reason, schema, want string
	}{
		{"spec keeps all", `{"type":"object","properties":{"spec":{"type":"object",` + preserve + `}}}`, ""},
		{"spec keeps nothing", `{"type":"object","properties":{"spec":{"type":"object"}}}`, "spec"},
		{"no spec in the schema, and the root prunes", `{"type":"object"}`, "spec"},
		{"no spec in the schema, and the root keeps all", `{"type":"object",` + preserve + `}`, ""},
		{"a part of spec prunes", `{"properties":{"spec":{"type":"object",` + preserve +
			`,"properties":{"rules":{"type":"array","items":{"type":"object"}}}}}}`, "spec.rules[]"},
		{"all parts of spec keep all", `{"properties":{"spec":{"type":"object",` + preserve +
			`,"properties":{"rules":{"type":"array","items":{"type":"object",` + preserve + `}},"n":{"type":"integer"}}}}}`, ""},
		{"a map knows every name", `{"properties":{"spec":{"type":"object","additionalProperties":{"type":"string"}}}}`, ""},
		{"a map of what prunes", `{"properties":{"spec":{"type":"object","additionalProperties":{"type":"object"}}}}`, "spec.*"},
	} {
		d, err := parseDefinition([]byte(`{"spec":{"versions":[{"name":"v1","served":true,"schema":{"openAPIV3Schema":` + row.schema + `}}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		place, lost, err := d.pruned("v1")
		if err != nil || place != row.want || lost != (row.want != "") {
			t.Errorf("%s: got %q, %t, %v; want %q", row.reason, place, lost, err, row.want)
		}
	}
}

func FuzzDefinition(f *testing.F) {
	f.Add([]byte(`{"spec":{"versions":[{"name":"v1","served":true,"schema":{"openAPIV3Schema":{"properties":{"spec":{"items":{}}}}}}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := parseDefinition(raw)
		if err != nil {
			return
		}
		version, served := d.version([]string{"v1"})
		if served != (version == "v1") {
			t.Errorf("version %q, served %t", version, served)
		}
		_, _, _ = d.pruned("v1")
		d.established()
	})
}
