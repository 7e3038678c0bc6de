package policy

// RuleKind is the type of a rule.
type RuleKind string

// The kinds of rules.
const (
	ImageRule    RuleKind = ""               // asks about images
	ValidateRule RuleKind = "validate"       // a Validation
	MutateRule   RuleKind = "mutate"         // a Mutation
	GenerateRule RuleKind = "generate"       // a Generation
	AlterRule    RuleKind = "mutateExisting" // an Alteration
	DeleteRule   RuleKind = "delete"         // a Deletion
)

// RuleResult is the result of a rule as a whole.
type RuleResult struct {
	Policy *Policy
	Rule   string
	// Kind is the type of the rule.
	Kind RuleKind
	// Skip is the reason why the rule does not apply.
	Skip string
	// Err is the reason why the rule could not be evaluated; the subject is then undecided.
	Err       error
	Renewed   bool // unchanged images were not the rule's in the old object
	Unchanged bool // it does not apply: its images ran before the update, or its mutation changes nothing
	// Exception is the exception that caused Skip; nil for any other cause.
	Exception *Exception
	Others    []*Exception // that exempt the object together with Exception
	// Judge makes the final decision on the checks of a rule about images; nil where they decide.
	Judge Judge
	// Ruling is the result of an object rule, or of a judge, for the object itself, and Action
	// its effect. The gate sets a judge's.
	Ruling Ruling
	Action Action
	// AuditAnnotations are the author's words for the audit log, Properties those for reports.
	AuditAnnotations, Properties map[string]string
	// Changed: the mutation changed the object.
	Changed bool
}

// OfObject reports whether it is about the object itself, and not about images alone.
func (r *RuleResult) OfObject() bool { return r.Judge != nil || r.Kind != ImageRule }

// Finder returns the images that a rule reads: those in the standard fields, or those at the
// rule's extractors. The gate supplies it.
type Finder func(extractors []Extractor) ([]Image, error)
