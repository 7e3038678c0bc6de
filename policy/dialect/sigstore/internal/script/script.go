package script

import (
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/lang/cue"
	"github.com/quaymaster/quaymaster/policy/lang/rego"
)

// Options are the options of a compilation.
type Options struct {
	// CUE: the text is CUE; else it is Rego.
	CUE bool
	// Members are the members of the input, and Absent those that it lacks, for the reason AbsentWhy.
	Members, Absent []string
	AbsentWhy       string
	// Names are all names below members, by path, for policies in Rego.
	Names map[string][]string
	// Now is the clock; nil means that policies in Rego have none, and those in CUE no ages.
	Now func() time.Time
}

// Compile compiles a policy. It refuses one that refers to another member of the input.
func Compile(text string, o Options) (*Condition, error) {
	if o.CUE {
		made, err := cue.Compile(text, cue.Options{Absent: o.Absent, AbsentWhy: o.AbsentWhy, Members: o.Members})
		if err != nil {
			return nil, err
		}
		c := &Condition{inner: made, timeless: true, now: o.Now}
		if made.Reads(age.Variable) { // it reads the age, which grows
			c.dated, c.timeless = true, false
		}
		return c, nil
	}
	made, err := rego.Compile(text, rego.Options{Absent: o.Absent, AbsentWhy: o.AbsentWhy, Members: o.Members, Names: o.Names, Now: o.Now})
	if err != nil {
		return nil, err
	}
	return &Condition{inner: made, timeless: made.Timeless(), dated: made.Reads(age.Variable)}, nil
}

// OfStatement returns the condition on the statements of a type, given their predicates.
func (c *Condition) OfStatement(predicateType string) policy.TextCondition {
	return statement{inner: c, predicateType: predicateType}
}

// IsDated reports whether the policy reads the verified times of signing, the member age.Variable of its input.
func (c *Condition) IsDated() bool { return c.dated }

// Signing returns a verified time as a value of that member. Policies in CUE, which have no clock, have its age in
// seconds (ageSeconds), too. Without a time the error is age.ErrUnknown.
func (c *Condition) Signing(at age.Signing) (map[string]any, error) {
	value, err := at.Value()
	if err == nil && c.now != nil {
		value["ageSeconds"] = int64(c.now().Sub(at.At) / time.Second)
	}
	return value, err
}

// SigningNames are the members of a signing for policies in Rego.
func SigningNames() []string { return []string{"signedAt", "timeSource"} }

// statement evaluates a condition on a statement, given its predicate.
type statement struct {
	inner         *Condition
	predicateType string
	signed        age.Signing
}

var _ policy.TextCondition = statement{}

// Signed implements decide.SignedCondition.
func (c statement) Signed(at age.Signing) policy.Condition {
	c.signed = at
	return c
}

// Holds evaluates the condition on the statement.
func (c statement) Holds(predicate any) (bool, string, error) {
	data := map[string]any{"predicateType": c.predicateType, "predicate": predicate}
	if c.inner.dated {
		signing, err := c.inner.Signing(c.signed)
		if err != nil {
			return false, "", err
		}
		data[age.Variable] = signing
	}
	return c.inner.Holds(data)
}

// HoldsText evaluates the condition on the statement with this predicate text. It keeps
// integers past 2^53, which a predicate decoded to float64 has lost.
func (c statement) HoldsText(predicate []byte) (bool, string, error) {
	data, err := rego.Decode(predicate)
	if err != nil {
		return false, "", err
	}
	return c.Holds(data)
}
