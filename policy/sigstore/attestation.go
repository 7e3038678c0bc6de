package sigstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/cue"
	"github.com/quaymaster/quaymaster/policy/rego"
	"github.com/quaymaster/quaymaster/policy/sigstore/internal/field"
)

// maxAttestations bounds the attestations of one authority.
const maxAttestations = 50

// statement is a compiled attestation.
type statement struct {
	path, name, predicateType string
	// language is empty for no condition; text says what the condition is made of.
	language, text string
	// condition is nil for none, and for one whose text is in a ConfigMap.
	condition policy.Condition
	configMap *configMapRef
}

// short is the attestation's place in the policy, for verdicts.
func (s *statement) short() string { return strings.TrimPrefix(s.path, "spec.") }

func (c *Compiler) statements(list []attestation, path string) ([]statement, error) {
	var out []statement
	var errs []error
	if len(list) > maxAttestations {
		return nil, field.Fail(path+".attestations", "%d are more than %d", len(list), maxAttestations)
	}
	names := map[string]bool{}
	for i, doc := range list {
		place := fmt.Sprintf("%s.attestations[%d]", path, i)
		one := statement{path: place, name: doc.Name, predicateType: attest.PredicateURI(doc.PredicateType)}
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
func (c *Compiler) condition(one *statement, doc statePolicy) error {
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
	if doc.Type != "cue" && doc.Type != "rego" {
		return field.Fail(path+".type", "unknown type %q: want cue or rego", doc.Type)
	}
	one.language, one.text = doc.Type, doc.Type+"\n"+doc.Data
	var err error
	switch {
	case doc.Remote != nil:
		return field.Unsupported(path+".remote", "a policy that is fetched from the network")
	case (doc.Data == "") == (doc.ConfigMapRef == nil):
		return field.Fail(path, "want one of data and configMapRef")
	case doc.ConfigMapRef != nil:
		if doc.ConfigMapRef.Name == "" || doc.ConfigMapRef.Key == "" {
			return field.Fail(path+".configMapRef", "want a name and a key")
		}
		ref := *doc.ConfigMapRef
		ref.Namespace = cmp.Or(ref.Namespace, c.options.Namespace)
		one.configMap, one.text = &ref, doc.Type+"\n"+ref.String()
	default:
		one.condition, err = c.language(doc.Type, doc.Data, one.predicateType)
	}
	return field.Below(path+".data", err)
}

// String names the text that is meant.
func (r configMapRef) String() string {
	return fmt.Sprintf("ConfigMap %s/%s, key %s", r.Namespace, r.Name, r.Key)
}

// text returns what a ConfigMap says now.
func (c *Compiler) text(ctx context.Context, r configMapRef) ([]byte, error) {
	if c.options.Lookup == nil {
		return nil, fmt.Errorf("the policy in %s: there is no cluster to look it up in", r)
	}
	object, err := c.options.Lookup.ConfigMap(ctx, r.Namespace, r.Name)
	if err != nil {
		return nil, fmt.Errorf("the policy in %s: %w", r, err)
	}
	data, _ := object["data"].(map[string]any)
	text, ok := data[r.Key].(string)
	if !ok {
		return nil, fmt.Errorf("the policy in %s: there is no such key", r)
	}
	return []byte(text), nil
}

// language compiles a policy in CUE or Rego.
func (c *Compiler) language(name, text, predicateType string) (policy.Condition, error) {
	inner, timeless, err := c.compileText(name, text, absent())
	if err != nil {
		return nil, err
	}
	return &statementCondition{predicateType: predicateType, inner: inner, timeless: timeless}, nil
}

// compileText compiles a text; absent are members of the data that it is not
// handed. Timeless says that the answer for the same data is always the same.
func (c *Compiler) compileText(name, text string, absent []string) (condition policy.Condition, timeless bool, err error) {
	if name == "cue" {
		made, err := cue.Compile(text, cue.Options{Absent: absent})
		if err != nil {
			return nil, false, err
		}
		return made, true, nil
	}
	made, err := rego.Compile(text, rego.Options{Absent: absent, Now: c.options.Now})
	if err != nil {
		return nil, false, err
	}
	return made, made.Timeless(), nil
}

// absent are the members of a statement that a condition is not handed: they were
// compared when the statement was proved.
func absent() []string { return []string{"_type", "subject"} }

// maxRemembered bounds the statements whose answers a condition remembers.
const maxRemembered = 256

// statementCondition asks a condition about the statement whose predicate it is
// given. The answer is remembered by the predicate's content, unless it depends on
// the time; that nobody could ask is not.
type statementCondition struct {
	inner         policy.Condition
	predicateType string
	timeless      bool

	mu         sync.Mutex
	remembered map[[sha256.Size]byte]remembered
}

type remembered struct {
	holds bool
	why   string
}

// Holds asks about the statement.
func (c *statementCondition) Holds(predicate any) (bool, string, error) {
	data := map[string]any{"predicateType": c.predicateType, "predicate": predicate}
	if !c.timeless {
		return c.inner.Holds(data)
	}
	text, err := json.Marshal(predicate)
	if err != nil {
		return false, "", err
	}
	key := sha256.Sum256(text)
	c.mu.Lock()
	known, ok := c.remembered[key]
	c.mu.Unlock()
	if ok {
		return known.holds, known.why, nil
	}
	holds, why, err := c.inner.Holds(data)
	if err != nil {
		return false, "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.remembered == nil || len(c.remembered) >= maxRemembered {
		c.remembered = map[[sha256.Size]byte]remembered{}
	}
	c.remembered[key] = remembered{holds: holds, why: why}
	return holds, why, nil
}
