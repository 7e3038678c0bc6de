package verifyimages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages/imageverification"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// attestations compiles the statements that are wanted, without conditions.
func (b builder) attestations(list []imageverification.Attestation, path string) ([]policy.Attestation, error) {
	var out []policy.Attestation
	var errs []error
	names := map[string]bool{}
	for i, doc := range list {
		short := fmt.Sprintf("attestations[%d]", i)
		place := document.Join(path, short)
		one := policy.Attestation{Name: doc.Name, Path: short, PredicateType: doc.Type, Artifact: b.kind == "Notary", LatestDecides: true}
		switch {
		case doc.Type == "" && doc.PredicateType == "":
			errs = append(errs, field.Fail(place+".type", "is missing"))
		case doc.Type == "":
			one.PredicateType = doc.PredicateType
		case doc.PredicateType != "" && doc.PredicateType != doc.Type:
			errs = append(errs, field.Fail(place+".predicateType", "%q contradicts type %q", doc.PredicateType, doc.Type))
		}
		if doc.Name != "" && (names[doc.Name] || rulecontext.Reserved(doc.Name) || doc.Name == age.Variable) {
			errs = append(errs, field.Fail(place+".name", "%q is taken", doc.Name))
		}
		names[doc.Name] = true
		if len(doc.Attestors) == 0 {
			errs = append(errs, field.Fail(place+".attestors", "is missing, so that any signer would be accepted: name the required signers"))
		}
		var err error
		one.Signers, err = b.sets(doc.Attestors, path, short+".attestors")
		errs = append(errs, err)
		out = append(out, one)
	}
	return out, errors.Join(errs...)
}

// predicateCondition evaluates conditions on a predicate, with its members as variables next to
// the rule's own. The rule's own variables take precedence: a statement must not replace the
// request.
type predicateCondition struct {
	conditions *condition.Conditions
	base       Lazy
	// dated: the conditions read the time of signing, signed.
	dated  bool
	signed age.Signing
}

var _ policy.Condition = predicateCondition{}

// Signed implements decide.SignedCondition.
func (c predicateCondition) Signed(at age.Signing) policy.Condition {
	c.signed = at
	return c
}

func (c predicateCondition) Holds(data any) (bool, string, error) {
	predicate, ok := data.(map[string]any)
	if !ok {
		return false, "", errors.New("the predicate is no object, so that it has nothing to name")
	}
	base, err := c.base()
	if err != nil {
		return false, "", err
	}
	members := merge(predicate, base)
	if c.dated {
		members[age.Variable] = verified(c.signed)
	}
	result, err := c.conditions.Evaluate(members)
	if err == nil {
		err = result.Cause()
	}
	if err != nil || result.Held {
		return err == nil, "", err
	}
	return false, result.Words(), nil
}

// verified is the variable age.Variable for a statement. It replaces a member of the predicate. A default
// stands in for no part of it: an image of unknown age must not seem old.
func verified(signed age.Signing) *variable.Deferred {
	value, err := signed.Value()
	return variable.DeferPartial(func() (any, error) { return value, err }, func(_ any, path []string) error {
		if _, ok := value[strings.Join(path, ".")]; len(path) > 0 && !ok {
			return fmt.Errorf("%s.%s is not defined: there are signedAt and timeSource", age.Variable, strings.Join(path, "."))
		}
		return nil
	})
}

// readsVerified reports whether conditions may read the variable.
func readsVerified(conditions any) bool {
	text, err := json.Marshal(conditions)
	return err != nil || bytes.Contains(text, []byte(age.Variable))
}

// denyCondition evaluates conditions on predicates by their names. It holds if the image is to be
// denied. A failed evaluation is therefore an error, which denies too, and not false.
type denyCondition struct {
	conditions *condition.Conditions
	base       Lazy
}

var _ policy.Condition = denyCondition{}

func (c denyCondition) Holds(data any) (bool, string, error) {
	predicates, ok := data.(map[string]any)
	if !ok {
		return true, "", errors.New("the predicates have no names")
	}
	base, err := c.base()
	if err != nil {
		return true, "", err
	}
	result, err := c.conditions.Evaluate(merge(base, predicates))
	switch {
	case err != nil:
		return true, "", err
	case result.Held:
		return true, result.Words(), nil
	}
	return false, result.Words(), result.Cause()
}

// merge joins two contexts; the second wins.
func merge(first, second map[string]any) variable.Context {
	joined := make(variable.Context, len(first)+len(second))
	maps.Copy(joined, first)
	maps.Copy(joined, second)
	return joined
}
