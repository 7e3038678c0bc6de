package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
)

// maxDepth bounds the nesting of a schema; known policy CRDs stay below 40.
const maxDepth = 100

// definition is the relevant part of a CustomResourceDefinition (apiextensions.k8s.io/v1).
type definition struct {
	Spec struct {
		PreserveUnknownFields bool `json:"preserveUnknownFields"` // remains from definitions of v1beta1
		Versions              []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
			Schema struct {
				OpenAPI json.RawMessage `json:"openAPIV3Schema"`
			} `json:"schema"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// properties is the relevant part of a schema.
type properties struct {
	Preserve   bool                  `json:"x-kubernetes-preserve-unknown-fields"`
	Type       string                `json:"type"`
	Properties map[string]properties `json:"properties"`
	Items      *properties           `json:"items"`
	// Additional is true, false or a schema; its presence means that any name is a known field.
	Additional json.RawMessage `json:"additionalProperties"`
}

func parseDefinition(raw []byte) (definition, error) {
	var d definition
	if err := json.Unmarshal(raw, &d); err != nil {
		return definition{}, fmt.Errorf("read the definition: %w", err)
	}
	return d, nil
}

// established reports whether the API server serves it.
func (d definition) established() bool {
	for _, c := range d.Status.Conditions {
		if c.Type == "Established" {
			return c.Status == "True"
		}
	}
	return false
}

// version returns the first of the given versions that is served.
func (d definition) version(wanted []string) (string, bool) {
	served := sets.New[string]()
	for _, v := range d.Spec.Versions {
		if v.Served {
			served.Insert(v.Name)
		}
	}
	i := slices.IndexFunc(wanted, served.Has)
	if i < 0 {
		return "", false
	}
	return wanted[i], true
}

// pruned returns the first path at or under spec where the API server drops unknown fields, and
// false if it retains them all.
func (d definition) pruned(version string) (string, bool, error) {
	if d.Spec.PreserveUnknownFields {
		return "", false, nil
	}
	for _, v := range d.Spec.Versions {
		if v.Name != version {
			continue
		}
		var root properties
		if err := json.Unmarshal(v.Schema.OpenAPI, &root); err != nil {
			return "", false, fmt.Errorf("read the schema of version %s: %w", version, err)
		}
		spec, known := root.Properties["spec"]
		switch {
		case !known && root.Preserve:
			return "", false, nil
		case !known:
			return "spec", true, nil
		}
		return spec.pruned("spec", maxDepth)
	}
	return "", false, fmt.Errorf("has no version %s", version)
}

func (p properties) pruned(place string, depth int) (string, bool, error) {
	if depth == 0 {
		return "", false, errors.New("the schema is nested deeper than " + fmt.Sprint(maxDepth))
	}
	if p.Type == "object" && !p.Preserve && len(p.Additional) == 0 {
		return place, true, nil
	}
	names := make([]string, 0, len(p.Properties))
	for name := range p.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if at, lost, err := p.Properties[name].pruned(place+"."+name, depth-1); lost || err != nil {
			return at, lost, err
		}
	}
	if p.Items != nil {
		return p.Items.pruned(place+"[]", depth-1)
	}
	if values := new(properties); len(p.Additional) > 0 && json.Unmarshal(p.Additional, values) == nil {
		return values.pruned(place+".*", depth-1)
	}
	return "", false, nil
}
