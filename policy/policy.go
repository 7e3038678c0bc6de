package policy

import (
	"context"
	"time"
)

// Policy is a compiled policy of any dialect. It is immutable once it is in a
// Set.
type Policy struct {
	// Kind is the document's kind, as in ClusterPolicy.
	Kind string
	// Name is the document's name.
	Name string
	// Namespace confines the policy to objects of one namespace; empty for
	// cluster-wide kinds.
	Namespace string
	// Source is where the document was read, for messages.
	Source string
	// Hash is the SHA-256 of the document's content, in hexadecimal.
	Hash string
	Metadata
	Settings
	// Rules about images, in the order of the document.
	Rules []Rule
	ObjectRules
	// Created is when the document came into its cluster; zero for one of a file.
	Created time.Time
	// Targets are the kinds of objects that its rules may match, including the rules for pod
	// controllers. An endpoint may skip the policy for other kinds.
	Targets []Target
	Problems
}

// Metadata is the author's description of a policy, for reports.
type Metadata struct {
	// Title, Category and Severity are set by the author.
	Title, Category, Severity string
	// Unscored: reports show its failures as warnings. Denials do not depend on it.
	Unscored bool
	// Unreported: reports in the cluster have none of its results.
	Unreported bool
}

// Settings are the settings of a policy as a whole.
type Settings struct {
	// FailOpen is failurePolicy Ignore: an error admits. The default is to deny.
	FailOpen bool
	// AuditOnly means that no entry of the policy enforces, so that a rule with an error warns
	// and does not deny.
	AuditOnly bool
	// AuditedBy is the source of an audit setting that overrides the policy's own action; empty
	// if there is none. Audited sets it.
	AuditedBy string
	// FirstRuleOnly: of its mutations, and of its validations, only the first that
	// applies to an object counts.
	FirstRuleOnly bool
	// Unscanned is why scans of existing objects omit the policy; empty if they include it.
	Unscanned string
	// OfServer: the API server evaluates the policy itself at admission, before it calls webhooks.
	OfServer bool
	// OnlyScanned: admission is switched off for the policy, and scans alone evaluate it.
	OnlyScanned bool
	// StaleIfError is the maximum age of cached verifications while the registry does not answer; nil: the gate's.
	StaleIfError *time.Duration
	Timeout      time.Duration // the author's time limit for a decision; zero means none
}

// ObjectRules are the rules about objects, in the order of the document. Generations and
// Alterations are those for objects other than the trigger.
type ObjectRules struct {
	Mutations   []Mutation
	Validations []Validation
	Generations []Generation
	Alterations []Alteration
	Deletions   []Deletion // delete objects on a schedule; admission does not evaluate them
}

// Problems are the errors and warnings of a compiled policy.
type Problems struct {
	// Broken is the reason why the policy could not be compiled; nil if it was. The rules of a
	// broken policy cannot be evaluated, so that the objects that it matches are undecided.
	Broken error
	// Unserved are resources that it names and that are not there.
	Unserved []Unserved
	// Warnings are problems of an active policy, a sentence each. They are shown when the policy
	// is written, in its condition, in the log and on the command line.
	Warnings []string
}

// IsEmpty reports whether the policy has no rule of a supported type.
func (p *Policy) IsEmpty() bool {
	return len(p.Rules)+len(p.Mutations)+len(p.Validations)+len(p.Generations)+len(p.Alterations)+len(p.Deletions) == 0
}

// Form distinguishes the compiled forms of the same document over time: the broken parts, the
// errors, and the resources that were missing.
func (p *Policy) Form() string {
	form := p.Hash
	if p.Broken != nil {
		form += " " + p.Broken.Error()
	}
	for _, u := range p.Unserved {
		form += " " + u.Err.Error()
	}
	return form
}

// ID returns kind/name or kind/namespace/name, unique in a Set.
func (p *Policy) ID() string {
	if p.Namespace != "" {
		return p.Kind + "/" + p.Namespace + "/" + p.Name
	}
	return p.Kind + "/" + p.Name
}

// Rule is one compiled rule.
type Rule interface {
	// Name returns the rule's name, unique in its policy.
	Name() string
	// Extractors returns where the rule finds images in objects of a kind; none
	// means the standard places of a pod specification.
	Extractors(subject *Subject) []Extractor
	// Plan returns whether the rule applies to the subject, and the check for each of the images.
	// An error means that the rule could not be evaluated (a lookup failed, a variable is
	// undefined), never that it does not apply.
	Plan(ctx context.Context, subject *Subject, images []Image) (RulePlan, error)
}

// Selective is a Rule with a known set of possible matches, so that a large Set evaluates only
// the rules that can match.
type Selective interface {
	Rule
	// Targets are the kinds of objects that the rule may match.
	Targets() []Target
	// ImagePatterns are patterns for references, in the syntax of package reference. If the rule
	// has a check for an image, one of the patterns matches the image. False means that the
	// patterns are unknown beforehand.
	ImagePatterns() ([]string, bool)
}

// OfDocuments is a Rule that can match documents other than Kubernetes objects.
type OfDocuments interface {
	Rule
	// OnlyDocuments reports whether the rule matches such documents only, and no object.
	OnlyDocuments() bool
}

// OnlyDocuments reports whether a rule, of any kind, matches only documents that are not
// Kubernetes objects.
func OnlyDocuments(rule any) bool {
	of, ok := rule.(interface{ OnlyDocuments() bool })
	return ok && of.OnlyDocuments()
}

// Extractor is the location of images in an object that is not a pod specification.
type Extractor struct {
	// Name groups the images that it finds.
	Name string
	// Path is a JSON pointer with `*` for every element.
	Path string
	// Value is the field that holds the image, relative to Path; empty means
	// that Path names it itself.
	Value string
	// Key is the field with the name of the entry; empty means its position.
	Key string
	// Transform makes a reference of the value; nil leaves it.
	Transform func(string) (string, error)
	// Ambiguous: the same text also occurs elsewhere, and it is unknown which occurrence is the
	// image, so that it is not replaced.
	Ambiguous bool
	// Fresh: the value was no image of the rule before the update, whatever stood there.
	Fresh bool
}

// Locating is a Rule with expressions that select the images among the values at its extractors.
type Locating interface {
	Rule
	// Locate returns extractors of the images alone, each of one location. None means that the
	// object has no image for the rule. An error means that the images are unknown.
	Locate(ctx context.Context, subject *Subject) ([]Extractor, error)
}

// Rematching is a Rule that states whether updates of other fields may bring images under it. Of
// other rules it is assumed.
type Rematching interface {
	// MayRematch reports whether it reads more of an object than images, kind and namespace.
	MayRematch() bool
	// ReadsUpdate reports whether an update changes a value that it reads to decide about images.
	ReadsUpdate(subject *Subject) bool
}

// RulePlan holds the checks of one rule for one subject.
type RulePlan struct {
	// Skip is the reason why the rule does not apply; empty means that it applies.
	Skip string
	// Checks, one for each image and entry of the rule that concerns it. An
	// image that no entry concerns has none.
	Checks []Check
	// Judge makes the final decision on them, and is evaluated even if there are none; nil if the
	// checks decide.
	Judge Judge
	// Action is the effect of a Judge's ruling against the object itself.
	Action Action
}

// ImagesOf returns the images that a rule finds in a subject.
func ImagesOf(ctx context.Context, rule Rule, subject *Subject, find Finder) ([]Image, error) {
	extractors := rule.Extractors(subject)
	if of, ok := rule.(Locating); ok {
		located, err := of.Locate(ctx, subject)
		if err != nil || len(located) == 0 && len(extractors) > 0 {
			return nil, err
		}
		extractors = located
	}
	return find(extractors)
}
