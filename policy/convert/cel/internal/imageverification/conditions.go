package imageverification

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/condition"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages/imageverification"
	engine "github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// Conditions are those of an entry on its attestations.
type Conditions struct {
	engine *engine.Engine
	scope  jmespath.Scope
	entry  imageverification.Entry
}

// Split takes the conditions out of an entry, which is JSON, and returns the rest of it. Scope has the names that the
// conditions may read besides the members of predicates.
func Split(raw json.RawMessage, engine *engine.Engine, scope jmespath.Scope) (rest json.RawMessage, c *Conditions, err error) {
	c = &Conditions{engine: engine, scope: scope}
	var fields map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(raw, &c.entry), json.Unmarshal(raw, &fields)); err != nil {
		return nil, nil, err
	}
	delete(fields, "validate")
	if list := fields["attestations"]; list != nil {
		var attestations []map[string]json.RawMessage
		if err := json.Unmarshal(list, &attestations); err != nil {
			return nil, nil, err
		}
		for _, a := range attestations {
			delete(a, "conditions")
		}
		fields["attestations"], err = json.Marshal(attestations)
		if err != nil {
			return nil, nil, err
		}
	}
	rest, err = json.Marshal(fields)
	return rest, c, err
}

// payload is the predicate of an attestation of the image, or the document that a notary signed.
func (c *Conditions) payload(name string) string {
	text := "extractPayload(image, attestations." + name + ")"
	if c.entry.Type != "Notary" {
		text += ".predicate"
	}
	return text
}

// Validations returns the conditions as validations of a policy that was made of the rest of the entry.
func (c *Conditions) Validations(made *ivp.Policy) (all []ivp.Validation, err error) {
	for i, a := range c.entry.Attestations {
		if a.Conditions == nil {
			continue
		}
		at := source.Index("attestations", i) + ".conditions"
		scope, err := c.within(a.Conditions, made.Attestations[i].Name, at)
		if err != nil {
			return nil, err
		}
		text, err := condition.CompileExempting(a.Conditions, scope)
		if err != nil {
			return nil, below(at, err)
		}
		all = append(all, ivp.Validation{
			Expression: ivp.Every(text), Message: "the statement of the type " + a.Type + a.PredicateType + " does not meet the conditions",
		})
	}
	if v := c.entry.Validate; v != nil {
		one, err := c.denial(v, made)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// within is the scope of the conditions on one predicate, the members of which are names.
func (c *Conditions) within(conditions any, attestation, at string) (jmespath.Scope, error) {
	names, err := c.names(conditions, at)
	scope := c.scope
	scope.Untyped = true
	for _, name := range names {
		if name == age.Variable {
			return scope, &source.Unsupported{Path: at, Found: name + ": the time of signing (write firstSignedAt or lastSignedAt in CEL)"}
		}
		if !rulecontext.Reserved(name) && !scope.Has(name) { // those of the rule precede
			scope = scope.With(name, jmespath.Binding{Text: c.payload(attestation), Shape: shape.Shape{Kinds: shape.Object}, Member: true})
		}
	}
	return scope, err
}

// names are the members of the context that conditions read.
func (c *Conditions) names(conditions any, at string) ([]string, error) {
	template, err := variable.Compile(c.engine, conditions)
	if err != nil {
		return nil, &source.Unsupported{Path: at, Found: err.Error()}
	}
	names, known := template.Reads()
	if !known {
		return nil, &source.Unsupported{Path: at, Found: "an expression that may read every member of the predicate"}
	}
	return names, nil
}

// denial writes the condition that denies by the predicates of all attestations, which it names.
func (c *Conditions) denial(v *imageverification.Validation, made *ivp.Policy) (ivp.Validation, error) {
	const at = "validate.deny.conditions"
	if strings.Contains(v.Message, "{{") {
		return ivp.Validation{}, &source.Unsupported{Path: "validate.message", Found: fmt.Sprintf("%q: a variable", v.Message)}
	}
	scope := c.scope
	for i, a := range c.entry.Attestations {
		if a.Name != "" {
			scope = scope.With(a.Name, jmespath.Binding{Text: c.payload(made.Attestations[i].Name), Shape: shape.Shape{Kinds: shape.Object}})
		}
	}
	admits, _, err := condition.CompileDeny(v.Deny.Conditions, scope)
	if err != nil {
		return ivp.Validation{}, below(at, err)
	}
	message := v.Message
	if message == "" {
		message = "the policy's deny condition holds"
	}
	return ivp.Validation{Expression: ivp.Every(admits.Text), Message: message}, nil
}

// below adds a path to an error.
func below(path string, err error) error {
	if found, ok := errors.AsType[*source.Unsupported](err); ok {
		return &source.Unsupported{Path: source.Below(path, found.Path), Found: found.Found}
	}
	return err
}
