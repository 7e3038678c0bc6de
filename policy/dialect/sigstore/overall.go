package sigstore

import (
	"encoding/json"
	"errors"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/clusterimagepolicy"
)

// overall is a policy over the verified claims of all authorities, and its other input.
type overall struct {
	script                    script
	spec, meta, types, config bool
}

// overall reads spec.policy. Its input holds only the data that it requests; a policy that
// refers to other data is refused: it would compare it with nothing.
func (c *Compiler) overall(doc clusterimagepolicy.Policy, authorities []clusterimagepolicy.Authority) (*overall, error) {
	is := func(choice *bool) bool { return choice != nil && *choice }
	out := &overall{
		spec: is(doc.IncludeSpec), meta: is(doc.IncludeObjectMeta), types: is(doc.IncludeTypeMeta), config: is(doc.FetchConfigFile),
	}
	data := scriptInput{
		members: []string{"authorityMatches", age.Variable}, names: datedNames(authorities),
		why: "ask for it with fetchConfigFile, includeSpec, includeObjectMeta or includeTypeMeta",
	}
	for i, authority := range authorities {
		path := "authorityMatches." + nameOf(authority, i)
		data.names["authorityMatches"] = append(data.names["authorityMatches"], nameOf(authority, i))
		data.names[path], data.names[path+".attestations"] = []string{"signatures", "attestations", "static"}, []string{}
		for _, a := range authority.Attestations {
			data.names[path+".attestations"] = append(data.names[path+".attestations"], a.Name)
		}
	}
	for _, member := range []struct {
		name string
		is   bool
	}{{"config", out.config}, {"spec", out.spec}, {"metadata", out.meta}, {"typemeta", out.types}} {
		if member.is {
			data.members = append(data.members, member.name)
		} else {
			data.absent = append(data.absent, member.name)
		}
	}
	var err error
	out.script, err = c.script(doc, "spec.policy", data)
	return out, err
}

// input is the data of a policy over all authorities, with policy-controller's names.
type input struct {
	Matches map[string]match `json:"authorityMatches"`
	// Verified are the times of signing, if the policy reads them.
	Verified *verified                  `json:"quaymaster,omitempty"`
	Config   map[string]json.RawMessage `json:"config,omitempty"`
	object
}

// object is the policy's view of the object.
type object struct {
	Spec     any       `json:"spec,omitempty"`
	Metadata any       `json:"metadata,omitempty"`
	TypeMeta *typeMeta `json:"typemeta,omitempty"`
}

type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

// object returns the policy's view of a subject's object.
func (o *overall) object(s *policy.Subject) (object, error) {
	var out object
	if s.Bare && (o.spec || o.meta || o.types) {
		return out, errors.New("only images and their namespace are known here, and the policy asks for the object; the admission webhook knows it")
	}
	if o.spec {
		out.Spec = s.Object.Map()["spec"]
	}
	if o.meta {
		out.Metadata = s.Object.Map()["metadata"]
	}
	if o.types {
		version := s.Version
		if s.Group != "" {
			version = s.Group + "/" + s.Version
		}
		out.TypeMeta = &typeMeta{APIVersion: version, Kind: s.Kind}
	}
	return out, nil
}
