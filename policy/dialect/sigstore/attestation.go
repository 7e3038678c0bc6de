package sigstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/clusterimagepolicy"
	scripts "github.com/quaymaster/quaymaster/policy/dialect/sigstore/internal/script"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// maxAttestations bounds the attestations of one authority.
const maxAttestations = 50

// statement is a compiled attestation. Written is its type as the policy has it.
type statement struct {
	path, name, predicateType, written string
	script                             script
}

// short is the attestation's place in the policy, for verdicts.
func (s *statement) short() string { return strings.TrimPrefix(s.path, "spec.") }

func (c *Compiler) statements(list []clusterimagepolicy.Attestation, path string) ([]statement, error) {
	var out []statement
	var errs []error
	if len(list) > maxAttestations {
		return nil, field.Fail(path+".attestations", "%d are more than %d", len(list), maxAttestations)
	}
	names := map[string]bool{}
	for i, doc := range list {
		place := fmt.Sprintf("%s.attestations[%d]", path, i)
		one := statement{path: place, name: doc.Name, predicateType: attest.PredicateURI(doc.PredicateType), written: doc.PredicateType}
		switch {
		case doc.Name == "":
			errs = append(errs, field.Fail(place+".name", "is empty"))
		case names[doc.Name]:
			errs = append(errs, field.Fail(place+".name", "%q is the name of an earlier attestation", doc.Name))
		}
		names[doc.Name] = true
		switch {
		case doc.PredicateType == "":
			errs = append(errs, field.Fail(place+".predicateType", "is empty"))
		case !strings.Contains(one.predicateType, ":"):
			errs = append(errs, field.Fail(place+".predicateType", "%q is neither a URI nor one of cosign's short names, such as slsaprovenance", doc.PredicateType))
		}
		if doc.Policy != nil {
			errs = append(errs, c.condition(&one, *doc.Policy))
		}
		out = append(out, one)
	}
	return out, errors.Join(errs...)
}

// condition reads a policy about one statement.
func (c *Compiler) condition(one *statement, doc clusterimagepolicy.Policy) (err error) {
	path := one.path + ".policy"
	for _, beside := range []struct {
		name string
		is   bool
	}{
		{"fetchConfigFile", doc.FetchConfigFile != nil}, {"includeSpec", doc.IncludeSpec != nil},
		{"includeObjectMeta", doc.IncludeObjectMeta != nil}, {"includeTypeMeta", doc.IncludeTypeMeta != nil},
	} {
		if beside.is {
			return field.Fail(path+"."+beside.name, "belongs to spec.policy; a policy of an attestation sees the statement alone")
		}
	}
	one.script, err = c.script(doc, path, ofStatements())
	return err
}

// ofStatements is the input of a condition on a statement.
func ofStatements() scriptInput {
	return scriptInput{
		members: []string{"predicateType", "predicate", age.Variable}, names: map[string][]string{age.Variable: scripts.SigningNames()},
		absent: []string{"_type", "subject"}, why: "it was compared when the statement was proved",
	}
}

// ask returns the requirement for the attestation, with the current external texts.
func (s *statement) ask(c *Compiler, external map[string]string, by policy.Requirement) (policy.Attestation, error) {
	out := policy.Attestation{Name: s.name, Path: s.short(), PredicateType: s.predicateType, Signers: []policy.Requirement{by}}
	if s.script.language == "" {
		return out, nil
	}
	condition, err := s.script.now(c, external)
	if err != nil {
		return out, fmt.Errorf("%s: %w", s.short(), err)
	}
	out.Condition = condition.OfStatement(s.predicateType)
	return out, nil
}
