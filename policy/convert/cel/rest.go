package cel

import (
	"encoding/json"
	"slices"

	"github.com/quaymaster/quaymaster/policy/convert/internal/manifest"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// rest keeps the unconverted part of a document that has problems beyond those before.
func (c *converter) rest(d source.Document, before int) {
	if !c.options.Partial || len(c.Problems) == before {
		return
	}
	var doc struct {
		document
		Spec map[string]json.RawMessage `json:"spec"`
	}
	var rules struct {
		Spec struct {
			Rules []json.RawMessage `json:"rules"`
		} `json:"spec"`
	}
	if json.Unmarshal(d.Text, &doc) != nil || json.Unmarshal(d.Text, &rules) != nil {
		return // it is no policy, and a problem says so
	}
	m := &doc.Metadata
	delete(m.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	name := m.Name
	if d.Kind == "Policy" {
		namespace := m.Namespace
		if namespace == "" {
			namespace = "default"
		}
		name = namespace + "/" + name
	}
	staying := slices.DeleteFunc(slices.Clone(rules.Spec.Rules), func(raw json.RawMessage) bool {
		return c.targets[name] != nil && !slices.Contains(c.staying[name], ruleName(raw))
	})
	if len(staying) == 0 {
		staying = rules.Spec.Rules
	}
	if len(staying) < len(rules.Spec.Rules) {
		text, err := json.Marshal(staying)
		if err != nil {
			return
		}
		doc.Spec["rules"] = text
	}
	rest := Policy{
		apiVersion: d.APIVersion, Kind: d.Kind, Name: m.Name, Namespace: m.Namespace, File: fileOf(d),
		labels: m.Labels, annotations: m.Annotations, spec: doc.Spec,
	}
	for _, raw := range staying {
		rest.staying = append(rest.staying, ruleName(raw))
	}
	c.result.Rest = append(c.result.Rest, rest)
}

func ruleName(raw json.RawMessage) string {
	var rule struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(raw, &rule) != nil {
		return ""
	}
	return rule.Name
}

// beside keeps a document of another group.
func (c *converter) beside(d source.Document) {
	text := []byte(d.YAML)
	if len(text) == 0 {
		var err error
		text, err = manifest.Marshal(json.RawMessage(d.Text))
		if err != nil {
			return // it is no YAML, and no result stands beside it
		}
	}
	c.result.Beside = append(c.result.Beside, Policy{File: fileOf(d), written: text})
}
