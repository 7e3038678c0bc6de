package policy

import (
	"context"

	"github.com/quaymaster/quaymaster/policy/source"
)

// Generation is a rule that generates other objects for an object, its trigger. It is immutable
// and safe for concurrent use.
type Generation interface {
	// Name returns the rule's name, unique in its policy.
	Name() string
	// Targets are the kinds and operations of its triggers. It is evaluated for no others.
	Targets() []Target
	// Selects reports whether the rule may match an object, as far as that is decidable without a
	// lookup.
	Selects(subject *Subject) bool
	// NeedsRequester reports whether the rule reads the requester of the trigger. The requester
	// is no longer available once the trigger exists.
	NeedsRequester() bool
	// Terms are the lifetime settings of the generated objects.
	Terms() Terms
	// Generate returns the objects that the object of a case requires. It ends with ctx.
	Generate(ctx context.Context, about Case) Generated
}

// Terms select the triggers of a Generation, and hold the lifetime settings of the objects that
// it generates.
type Terms struct {
	Existing bool // triggers that were there before the policy count, too
	// Synchronize: the objects are kept as the rule defines them. They are restored after a change or a
	// deletion, and deleted with their trigger and with the rule. Otherwise they are created once.
	Synchronize   bool
	Orphan        bool         // the objects stay when the rule goes
	SkipGenerated bool         // a trigger that a rule about other objects made is none
	Deletions     bool         // the deletion of an object is a trigger, too, and leaves earlier objects of the rule
	Kinds         []ObjectKind // of the objects, each once; those of expressions are not known
	// Apply: the objects are written by server-side apply, so that other field managers keep the
	// fields that the rule does not set.
	Apply bool
}

// ObjectKind is a kind of objects, as they write it.
type ObjectKind struct{ APIVersion, Kind string }

// Generated is the result of a Generation.
type Generated struct {
	// Result is empty if the rule does not match the object. Pass: Objects must exist. Skipped: a
	// condition excludes the object, and no objects must exist. Undecided: the rule could not be
	// evaluated. There is no failure.
	Result Result
	// Reasons for the result; of a pass there need be none.
	Reasons []Reason
	// Objects are those that are to be there, each of them whole.
	Objects []Downstream
	// Read are the objects that it was read from. Objects has nothing of those that do not exist.
	source.Read
	Properties map[string]string // the author's words for reports
}

// Downstream is an object that a Generation generates.
type Downstream struct {
	// Object has an apiVersion, a kind, a name and, unless its kind has none, a
	// namespace. It is not to be changed.
	Object map[string]any
	// Synchronize and Orphan are as in Terms.
	Synchronize, Orphan bool
	Source              source.Ref // the object of which it is a copy; zero for none
}

// Alteration is a rule that changes existing objects after another object, its trigger, was
// created, changed or deleted. It is immutable and safe for concurrent use.
type Alteration interface {
	// Name returns the rule's name, unique in its policy.
	Name() string
	// Targets are the kinds of its triggers, not of the objects that it changes. It is evaluated
	// for no other kinds.
	Targets() []Target
	// Selects and NeedsRequester are as in Generation.
	Selects(subject *Subject) bool
	NeedsRequester() bool
	// OnPolicyChange: existing triggers count when the policy is added or changes.
	OnPolicyChange() bool
	SkipGenerated() bool // as in Terms
	// Existing selects the objects that the trigger of a case changes, and returns the change. It
	// ends with ctx, and so does its result.
	Existing(ctx context.Context, about Case) Selected
}

// Selected is which objects an Alteration changes.
type Selected struct {
	Result  Result   // as in Generated
	Reasons []Reason // as in Generated
	// Selections are processed in order.
	Selections []Selection
	// Alter returns the changed form of an object that one of the selections found. It is not
	// safe for concurrent use.
	Alter      func(ctx context.Context, by Selection, target map[string]any) Mutated
	Properties map[string]string // the author's words for reports about the trigger
}

// Selection selects existing objects.
type Selection struct {
	APIVersion, Kind string // of the objects
	// Namespace and Name are patterns with * and ?; empty means any.
	Namespace, Name string
	// Labels selects by labels, and Namespaces by those of an object's namespace, if it is in one; nil
	// means any. Query is Labels, or a wider selector, in the form that the API server accepts.
	Labels, Namespaces LabelSelector
	Query              string
	Position           int // distinguishes the selections of one rule
}

// LabelSelector selects objects by their labels.
type LabelSelector interface {
	Matches(labels map[string]string) bool // whether they are as they are to be
}
