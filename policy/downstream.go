package policy

import "context"

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
	// Existing: triggers that were there before the policy count too.
	Existing bool
	// Synchronize: the objects are kept as the rule defines them. They are restored after a change or a
	// deletion, and deleted with their trigger and with the rule. Otherwise they are created once.
	Synchronize bool
	// Orphan: the objects stay when the rule goes.
	Orphan bool
	// SkipGenerated: a trigger that a rule about other objects made is none.
	SkipGenerated bool
	Deletions     bool // the deletion of an object is a trigger, too, and leaves earlier objects of the rule
	// Kinds are those of the objects, each once.
	Kinds []ObjectKind
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
	Objects    []Downstream
	Properties map[string]string // the author's words for reports
}

// Downstream is an object that a Generation generates.
type Downstream struct {
	// Object has an apiVersion, a kind, a name and, unless its kind has none, a
	// namespace. It is not to be changed.
	Object map[string]any
	// Synchronize is as in Terms.
	Synchronize bool
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
	// SkipGenerated is as in Terms.
	SkipGenerated() bool
	// Existing selects the objects that the trigger of a case changes, and returns the change. It
	// ends with ctx, and so does its result.
	Existing(ctx context.Context, about Case) Selected
}

// Selected is which objects an Alteration changes.
type Selected struct {
	// Result is as in Generated.
	Result Result
	// Reasons for the result; of a pass there need be none.
	Reasons []Reason
	// Selections are processed in order.
	Selections []Selection
	// Alter returns the changed form of an object that one of the selections found. It is not
	// safe for concurrent use.
	Alter      func(ctx context.Context, by Selection, target map[string]any) Mutated
	Properties map[string]string // the author's words for reports about the trigger
}

// Selection selects existing objects.
type Selection struct {
	// APIVersion and Kind are those of the objects.
	APIVersion, Kind string
	// Namespace and Name are patterns with * and ?; empty means any.
	Namespace, Name string
	// Labels selects by labels, and Namespaces by those of an object's namespace, if it is in one; nil
	// means any. Query is Labels, or a wider selector, in the form that the API server accepts.
	Labels, Namespaces LabelSelector
	Query              string
	// Position distinguishes the selections of one rule.
	Position int
}

// LabelSelector selects objects by their labels.
type LabelSelector interface {
	// Matches reports whether labels are as they are to be.
	Matches(labels map[string]string) bool
}
