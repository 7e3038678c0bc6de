package sigstore

import (
	"errors"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/sigstore/internal/field"
)

// overall is a policy over the results of all authorities, and what of the object
// it sees.
type overall struct {
	condition         policy.Condition
	spec, meta, types bool
	// matches are the authorities that pass, as they are shown to it.
	matches map[string]any
}

// overall compiles spec.policy where all authorities are static, so that what they
// come to is known beforehand.
func (c *Compiler) overall(doc statePolicy, authorities []authority) (*overall, error) {
	const path = "spec.policy"
	for _, a := range authorities {
		if a.Static == nil {
			return nil, field.Unsupported(path, "a policy over what authorities proved")
		}
	}
	is := func(choice *bool) bool { return choice != nil && *choice }
	switch {
	case is(doc.FetchConfigFile):
		return nil, field.Unsupported(path+".fetchConfigFile", "a policy over an image's configuration")
	case doc.Remote != nil:
		return nil, field.Unsupported(path+".remote", "a policy that is fetched from the network")
	case doc.ConfigMapRef != nil:
		return nil, field.Unsupported(path+".configMapRef", "a policy over all authorities in a ConfigMap")
	case doc.Type != "cue" && doc.Type != "rego":
		return nil, field.Fail(path+".type", "unknown type %q: want cue or rego", doc.Type)
	}
	out := &overall{spec: is(doc.IncludeSpec), meta: is(doc.IncludeObjectMeta), types: is(doc.IncludeTypeMeta), matches: map[string]any{}}
	absent := []string{"config"}
	for _, member := range []struct {
		name string
		is   bool
	}{{"spec", out.spec}, {"metadata", out.meta}, {"typemeta", out.types}} {
		if !member.is {
			absent = append(absent, member.name)
		}
	}
	for i, a := range authorities {
		if a.Static.Action == "pass" {
			out.matches[nameOf(a, i)] = map[string]any{"static": true}
		}
	}
	var err error
	out.condition, _, err = c.compileText(doc.Type, doc.Data, absent)
	return out, field.Below(path+".data", err)
}

// holds asks about an object.
func (o *overall) holds(s *policy.Subject) (bool, string, error) {
	data := map[string]any{"authorityMatches": o.matches}
	if s.Bare && (o.spec || o.meta || o.types) {
		return false, "", errors.New("only images and their namespace are known here, and the policy asks for the object; the admission webhook knows it")
	}
	if o.spec {
		data["spec"] = s.Object.Map()["spec"]
	}
	if o.meta {
		data["metadata"] = s.Object.Map()["metadata"]
	}
	if o.types {
		version := s.Version
		if s.Group != "" {
			version = s.Group + "/" + s.Version
		}
		data["typemeta"] = map[string]any{"apiVersion": version, "kind": s.Kind}
	}
	return o.condition.Holds(data)
}
