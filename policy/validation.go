package policy

import (
	"context"

	"github.com/quaymaster/quaymaster/policy/source"
)

// Validation is a rule that accepts or denies an object as a whole. It is immutable and safe for
// concurrent use.
type Validation interface {
	// Name returns the rule's name, unique in its policy.
	Name() string
	// Targets are the kinds of objects that the rule may match. It is evaluated for no others.
	Targets() []Target
	// Validate judges the object of a case. It ends with ctx.
	Validate(ctx context.Context, about Case) Validated
}

// Mutation is a rule that changes objects before all other rules are evaluated. It is immutable
// and safe for concurrent use.
type Mutation interface {
	// Name returns the rule's name, unique in its policy.
	Name() string
	// Targets are as in Validation.
	Targets() []Target
	// Mutate returns the changed object of a case. It ends with ctx.
	Mutate(ctx context.Context, about Case) Mutated
}

// Case is the input of object rules.
type Case struct {
	// Subject is the object with the data of its request.
	Subject *Subject
	// Find returns the object's images, none at the places of a kind that has none.
	// An error means that one of them cannot be read.
	Find Finder
	// Exempt are the Pod Security controls that exceptions exclude, or the values that they allow
	// in expressions; no other rule reads it.
	Exempt  []PodSecurityExemption
	Sources source.Objects // for a Generation; nil: none can be read
}

// PodSecurityExemption leaves a control of the Pod Security Standards out: for the
// object, or for containers of some images, or for some values of one field.
type PodSecurityExemption struct {
	// Control is the control's name, as in Privilege Escalation.
	Control string
	// Images are patterns for the images of containers; none means the control as it
	// holds for the pod.
	Images []string
	// Field is the path of the field that may have one of the values; empty means no field.
	Field  string
	Values []string
}

// Validated is the result of a Validation.
type Validated struct {
	// Result is empty if the rule does not match the object, and nothing is reported. Skipped:
	// the rule matches, and a condition of its author excludes the object. Undecided: the rule
	// could not be evaluated.
	Result Result
	// Reasons for the result; of a pass there need be none.
	Reasons []Reason
	// Doubtful, of a pass: it is indeterminate whether the rule applies, or it applies to a part of
	// the object alone.
	Doubtful bool
	// Exempted, of a pass: the rule holds only because of Case.Exempt.
	Exempted bool
	// Action is the effect of a failure. A failure that Admits denies nothing.
	Action Action
	// AuditAnnotations are the author's words for the audit log, by key.
	AuditAnnotations map[string]string
	// Properties are the author's words for reports, by key; few.
	Properties map[string]string
}

// Mutated is the result of a Mutation.
type Mutated struct {
	// Result is empty if the rule does not match the object. Pass: Object is the mutated object.
	// Skipped: a condition excludes the object. Undecided: the rule could not be evaluated. There
	// is no failure.
	Result Result
	// Reasons for the result; of a pass there need be none.
	Reasons []Reason
	// Object is the changed object, which shares its unchanged parts with the original; nil if
	// nothing changes.
	Object map[string]any
	// Properties are the author's words for reports, by key; few.
	Properties map[string]string
}
