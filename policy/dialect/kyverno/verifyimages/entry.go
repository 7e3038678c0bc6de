package verifyimages

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/action"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages/imageverification"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// Options are the dependencies of entries.
type Options struct {
	// Engine evaluates expressions; required.
	Engine *jmespath.Engine
	// Namespace is a Policy's, which may use no other's secrets; empty for a
	// ClusterPolicy.
	Namespace string
	// SecretNamespace is where secrets are that a ClusterPolicy names without one.
	SecretNamespace string
	// Known are the names of the rule's context, which variables may read.
	Known []string
	// Platforms selects the manifests of a multi-platform image that must be verified.
	Platforms policy.Platforms
}

// Lazy is a rule's context, built when the first expression needs it.
type Lazy func() (variable.Context, error)

// Entry is one entry of verifyImages, compiled. It is immutable and safe for
// concurrent use.
type Entry struct {
	path  string // in the document, for errors
	short string // in the rule, for verdicts
	// action is the entry's own setting; empty means the policy's.
	action policy.Action
	// pins is mutateDigest.
	pins bool
	// template is the entry without its late parts, which are evaluated on statements. static is
	// its compiled form, if it has no variables.
	template *variable.Template
	static   *prepared
	// patterns are those of the images; nil if they depend on a variable.
	patterns []string
	builder  builder

	conditions []*condition.Conditions // late, by attestation; nil for none
	dated      []bool                  // whether they read the time of signing
	deny       *condition.Conditions   // late; nil for none
	message    *variable.Template
}

// prepared is an entry with its variables resolved.
type prepared struct {
	references, exempt []string
	check              policy.Check // but for image and conditions
}

// Compile reads an entry, the JSON value of which is raw. The path rulePath is the rule's in
// the document, and short the entry's in the rule. Errors are about fields.
func Compile(options Options, raw any, rulePath, short string) (*Entry, error) {
	e := &Entry{path: document.Join(rulePath, short), short: short}
	c := compiler{options}
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, field.Below(e.path, err)
	}
	var v imageverification.Entry
	if err := document.Decode(text, &v, e.path); err != nil {
		return nil, err
	}
	if err := fold(&v, e.path); err != nil {
		return nil, err
	}
	e.pins = isTrue(v.MutateDigest)
	errs := []error{emptyLists(raw, e.path)}
	if len(v.Attestors)+len(v.Attestations) == 0 && isTrue(v.Required) && !document.WrittenEmpty(raw, "attestors") {
		errs = append(errs, field.Fail(e.path,
			"requires a verification and has no attestors: say required: false if only the digest matters, or name attestors"))
	}
	if v.FailureAction != "" {
		e.action, err = action.Parse(v.FailureAction, e.path+".failureAction")
		errs = append(errs, err)
		if e.action == policy.Audit && (v.MutateDigest == nil || *v.MutateDigest) {
			errs = append(errs, field.Fail(e.path+".mutateDigest", "must be false where failureAction is Audit, as Kyverno wants it"))
		}
	}
	errs = append(errs, c.late(e, &v))
	written, err := document.Plain(v)
	if err != nil {
		return nil, errors.Join(append(errs, field.Below(e.path, err))...)
	}
	errs = append(errs, rulecontext.Undefined(written, e.path, c.Known))
	e.template, err = c.template(written, e.path)
	if err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	e.builder = builder{namespace: c.Namespace, secretNamespace: c.SecretNamespace, platforms: c.Platforms}
	e.builder.lenient = !e.template.Plain()
	made, err := e.builder.prepare(v, e.path)
	errs = append(errs, err)
	e.builder.lenient = false
	if e.template.Plain() {
		e.static = made
	}
	if made != nil && !slices.ContainsFunc(v.ImageReferences, c.varies) {
		e.patterns = made.references
	}
	return e, errors.Join(errs...)
}

// Asks reports whether any part of the entry is evaluated on a context.
func (e *Entry) Asks() bool {
	return e.static == nil || e.deny != nil || slices.ContainsFunc(e.conditions, func(c *condition.Conditions) bool { return c != nil })
}

type compiler struct{ Options }

// late takes the parts out of v that are evaluated on statements.
func (c compiler) late(e *Entry, v *imageverification.Entry) error {
	var errs []error
	for i := range v.Attestations {
		a := &v.Attestations[i]
		var compiled *condition.Conditions
		if a.Conditions != nil {
			var err error
			compiled, err = condition.CompileExempting(c.Engine.Foreign(), a.Conditions)
			place := e.path + ".attestations[" + strconv.Itoa(i) + "].conditions"
			errs = append(errs, field.Below(place, err), document.Constant(a.Conditions, place), rulecontext.Misspelt(a.Conditions, place))
		}
		e.conditions, e.dated = append(e.conditions, compiled), append(e.dated, a.Conditions != nil && readsVerified(a.Conditions))
		a.Conditions = nil
	}
	if v.Validate == nil {
		return errors.Join(errs...)
	}
	path := e.path + ".validate"
	switch {
	case v.Validate.Deny == nil:
		errs = append(errs, field.Fail(path+".deny", "is missing, and without it validate means nothing"))
	case v.Validate.Deny.Conditions == nil:
		errs = append(errs, field.Fail(path+".deny.conditions", "is missing"))
	case c.reads(v.Validate.Deny.Conditions, age.Variable):
		errs = append(errs, field.Fail(path+".deny.conditions", "%s is the time of one statement: read it in attestations[].conditions", age.Variable))
	case len(v.Attestations) == 0:
		errs = append(errs, field.Fail(path+".deny", "refers to attestations by their names, and there is none"))
	default:
		var err error
		e.deny, err = condition.CompileDeny(c.Engine.Foreign(), v.Validate.Deny.Conditions)
		errs = append(errs, field.Below(path+".deny.conditions", err),
			document.Constant(v.Validate.Deny.Conditions, path+".deny.conditions"), rulecontext.Misspelt(v.Validate.Deny.Conditions, path+".deny.conditions"))
		e.message, err = c.template(v.Validate.Message, path+".message")
		errs = append(errs, err)
	}
	v.Validate = nil
	return errors.Join(errs...)
}

// reads reports whether a value reads a name; false if the value is broken, which is reported elsewhere.
func (c compiler) reads(value any, name string) bool {
	t, err := variable.Compile(c.Engine, value)
	if err != nil {
		return false
	}
	names, _ := t.Reads()
	return slices.Contains(names, name)
}

// varies reports whether a text has a variable.
func (c compiler) varies(text string) bool {
	t, err := variable.Compile(c.Engine, text)
	return err != nil || !t.Plain()
}

func (c compiler) template(doc any, path string) (*variable.Template, error) {
	t, err := variable.Compile(c.Engine, doc)
	return t, field.Below(path, err)
}

// prepare fills in the variables.
func (e *Entry) prepare(base Lazy) (*prepared, error) {
	if e.static != nil {
		return e.static, nil
	}
	data, err := base()
	if err != nil {
		return nil, err
	}
	filled, err := e.template.Execute(data)
	if err != nil {
		return nil, field.Below(e.path, err)
	}
	text, err := json.Marshal(filled)
	if err != nil {
		return nil, field.Below(e.path, err)
	}
	var v imageverification.Entry
	if err := document.Decode(text, &v, e.path); err != nil {
		return nil, err
	}
	return e.builder.prepare(v, e.path)
}

// Action returns the entry's own action for a failure; empty means the policy's.
func (e *Entry) Action() policy.Action { return e.action }

// Pins reports whether the entry pins images.
func (e *Entry) Pins() bool { return e.pins }

// Patterns returns the entry's image patterns; false if they depend on a variable.
func (e *Entry) Patterns() ([]string, bool) {
	return e.patterns, e.patterns != nil
}

// Checks returns the entry's checks for each image that it concerns.
func (e *Entry) Checks(images []policy.Image, action policy.Action, data Lazy) ([]policy.Check, error) {
	made, err := e.prepare(data)
	if err != nil {
		return nil, err
	}
	template := made.check
	template.Action = action
	e.judge(&template, data)
	var checks []policy.Check
	for _, i := range images {
		if i.Unchanged || !reference.Concerns(made.references, i.Ref) {
			continue
		}
		check := template
		check.Image = i
		why := "the policy's skipImageReferences names " + i.Ref.String()
		switch {
		case reference.Exempts(made.exempt, i.Ref):
			check.Skip = why
		case i.Copy.IsZero() && reference.ExemptsTag(made.exempt, i.Ref): // the tag of a copy may be another image's
			check.AtTag = &policy.Check{Skip: why}
		}
		checks = append(checks, check)
	}
	return checks, nil
}

// judge attaches the late conditions, which read the rule's context.
func (e *Entry) judge(check *policy.Check, data Lazy) {
	check.Attestations = slices.Clone(check.Attestations)
	for i, conditions := range e.conditions {
		if conditions != nil {
			check.Attestations[i].Condition = predicateCondition{conditions: conditions, base: data, dated: e.dated[i]}
		}
	}
	if e.deny == nil {
		return
	}
	check.Deny = denyCondition{conditions: e.deny, base: data}
	if message, err := e.say(data); err == nil {
		check.DenyMessage, _ = message.(string)
	} else {
		check.DenyMessage = "the attestations are denied (the policy's own message cannot be written: " + err.Error() + ")"
	}
}

func (e *Entry) say(base Lazy) (any, error) {
	data, err := base()
	if err != nil {
		return nil, err
	}
	return e.message.Execute(data)
}

// fold moves the deprecated fields to where they are now.
func fold(v *imageverification.Entry, path string) error {
	if at, problem := v.Fold(); problem != "" {
		return field.Fail(path+"."+at, "%s", problem)
	}
	return nil
}
