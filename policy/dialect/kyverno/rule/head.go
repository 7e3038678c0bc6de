package rule

import (
	"bytes"
	"cmp"
	"context"
	"errors"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// Document holds the common fields of all types of rules, as they are written. The fields of one
// type are decoded with it, by embedding.
type Document struct {
	Name                   string                 `json:"name"`
	Context                []rulecontext.Document `json:"context"`
	Match                  match.Document         `json:"match"`
	Exclude                *match.Document        `json:"exclude"`
	ImageExtractors        map[string][]Extractor `json:"imageExtractors"`
	Preconditions          any                    `json:"preconditions"`
	SkipBackgroundRequests *bool                  `json:"skipBackgroundRequests"`
	ReportProperties       map[string]string      `json:"reportProperties"`
}

// Options are the policy settings for a rule.
type Options struct {
	// Context are the dependencies of its context; the Engine is required.
	Context rulecontext.Options
	// OldForm: match and exclude may be written without any and all.
	OldForm bool
	// Background: the rule is not evaluated at admission, as with admission: false.
	Background bool
	// Kinds replace pods, in a rule generated from a pod rule; empty for all others.
	Kinds []string
	// Gate is the policy's own condition, evaluated first; nil for none.
	Gate Gate
	// Plain: nothing that the rule does reads its context, so that there is none.
	Plain bool
	// Preconditions compiles the preconditions; nil means condition.Compile.
	Preconditions condition.Compiler
	// Operations are the default if the rule's match names none; empty means CREATE and UPDATE.
	Operations []string
}

// Gate is a condition on all evaluations of a policy.
type Gate interface {
	// Opens reports whether the policy is to be evaluated. An error means that it is
	// indeterminate.
	Opens(ctx context.Context, s *policy.Subject) (bool, error)
	// BeyondObject reports whether the condition reads more of a request than the object,
	// its identity and the operation.
	BeyondObject() bool
}

// Head holds the common parts of all types of rules, compiled. It is immutable and safe for
// concurrent use.
type Head struct {
	name, path    string
	selection     match.Selection
	entries       rulecontext.Entries
	extractors    map[string][]policy.Extractor
	preconditions *condition.Conditions // nil for none
	background    bool
	plain         bool
	gate          Gate
	targets       []policy.Target
	properties    Properties
	ofUsers       bool // match or exclude select by the requester
}

// Compile reads the common part of a rule. Path is the rule's, for errors, which are
// about fields.
func Compile(options Options, doc Document, path string) (*Head, error) {
	h := &Head{name: doc.Name, path: path, background: options.Background, plain: options.Plain, gate: options.Gate}
	var err error
	h.selection, err = match.CompileSelection(doc.Match, doc.Exclude, path, options.Context.Namespace)
	errs := []error{err}
	h.ofUsers = doc.Match.SelectsUsers() || doc.Exclude != nil && doc.Exclude.SelectsUsers()
	if !options.OldForm && (doc.Match.OldForm() || doc.Exclude != nil && doc.Exclude.OldForm()) {
		errs = append(errs, field.Fail(path+".match", "the old form without any and all is not part of this version: write any or all"))
	}
	options.Context = options.Context.Reading(doc.Context)
	h.entries, err = rulecontext.Compile(options.Context, doc.Context, path+".context")
	errs = append(errs, err)
	h.extractors, err = CompileExtractors(options.Context.Engine, doc.ImageExtractors, h.selection.Match, path+".imageExtractors")
	errs = append(errs, err)
	h.preconditions, err = Preconditions(options.Preconditions, options.Context, doc.Preconditions, path+".preconditions", h.Entries()...)
	errs = append(errs, err)
	h.properties, err = CompileProperties(options.Context.Engine, doc.ReportProperties, path+".reportProperties")
	errs = append(errs, err)
	if len(options.Kinds) > 0 {
		h.selection = h.selection.ForKinds(options.Kinds)
	}
	h.targets = match.WithSent(h.selection.Match.TargetsAt(options.Operations))
	return h, errors.Join(errs...)
}

// Plain reports whether a rule has no variable in any field.
func Plain(raw []byte) bool { return !bytes.Contains(raw, []byte("{{")) }

// Preconditions reads preconditions; nil where there are none. Known are the names that they may
// read in addition to those of every context. Compile may be nil, as in Options.
func Preconditions(compile condition.Compiler, options rulecontext.Options, doc any, path string, known ...string) (*condition.Conditions, error) {
	if doc == nil {
		return nil, nil
	}
	if compile == nil {
		compile = condition.Compile
	}
	compiled, err := compile(options.Engine, doc)
	if err == nil && compiled.Empty() {
		compiled = nil
	}
	return compiled, errors.Join(field.Below(path, err), document.NeverHolds(doc, path), rulecontext.CheckConditions(doc, path, known))
}

// Name returns the rule's name.
func (h *Head) Name() string { return h.name }

// Path returns the location of the rule in its document.
func (h *Head) Path() string { return h.path }

// Targets returns the kinds that the rule matches.
func (h *Head) Targets() []policy.Target { return h.targets }

// NamesSubresource reports whether match names a subresource of pods.
func (h *Head) NamesSubresource(name string) bool { return h.selection.Match.NamesSubresource(name) }

// Entries returns the names of the rule's context.
func (h *Head) Entries() []string { return h.entries.Names() }

// Properties are the author's words for reports.
func (h *Head) Properties() Properties { return h.properties }

// Answer is the final result of a rule that needs no further evaluation.
type Answer struct {
	// Result is empty if the rule does not match the object; otherwise Skipped or Undecided.
	Result  policy.Result
	Reasons []policy.Reason
}

// Skip is the answer of a rule with a condition that excludes the object.
func Skip(why string) *Answer {
	return &Answer{Result: policy.Skipped, Reasons: []policy.Reason{{Code: policy.SkippedByPolicy, Message: why}}}
}

// Undecided is the answer of a rule that could not be evaluated.
func Undecided(err error) *Answer {
	return &Answer{Result: policy.Indeterminate, Reasons: []policy.Reason{ReasonOf(err)}}
}

// ReasonOf puts an error into words.
func ReasonOf(err error) policy.Reason {
	if errors.Is(err, context.DeadlineExceeded) {
		return policy.Reason{Code: policy.TimedOut, Message: err.Error(), Hint: hint.Of(policy.TimedOut)}
	}
	return policy.Reason{Code: policy.PolicyError, Message: err.Error()}
}

// Ask evaluates whether the rule applies. The answer is nil if it applies or may apply. The
// context is then the data for its expressions, nil for a rule that is Plain. An error is the
// reason why the rule's match is indeterminate: a denial or a change by the rule is then in
// doubt, and an acceptance is not.
func (h *Head) Ask(ctx context.Context, about policy.Case) (variable.Context, *Answer, error) {
	s := about.Subject
	if s.Document || h.background && askedAtAdmission(s) {
		return nil, &Answer{}, nil
	}
	applies := h.selection.Applies(s)
	if applies.False() {
		return nil, &Answer{}, nil
	}
	doubt := field.Below(h.path, applies.Cause())
	if policy.IsUnconverted(doubt) {
		return nil, Undecided(doubt), nil
	}
	if h.gate != nil {
		switch opens, err := h.gate.Opens(ctx, s); {
		case err != nil:
			doubt = cmp.Or(doubt, err)
		case !opens:
			return nil, &Answer{}, nil
		}
	}
	if s.Bare {
		return nil, Undecided(cmp.Or(doubt, field.Below(h.path, match.Unknown("the object")))), nil
	}
	if h.plain && h.preconditions == nil {
		return nil, nil, doubt
	}
	data := h.entries.Context(ctx, rulecontext.Source{Subject: s, Images: func() ([]policy.Image, error) {
		if about.Find == nil {
			return nil, nil
		}
		return about.Find(h.extractors[s.Kind])
	}})
	answer, unmet := Met(h.preconditions, data, h.path+".preconditions")
	return data, answer, cmp.Or(doubt, unmet)
}

// Met evaluates preconditions, of which nil hold. The answer is nil if they hold or are
// indeterminate: the object's author must not choose that the rule is skipped. An error is
// the reason why they are indeterminate.
func Met(preconditions *condition.Conditions, data variable.Context, path string) (*Answer, error) {
	if preconditions == nil {
		return nil, nil
	}
	result, err := preconditions.Evaluate(data)
	switch {
	case err != nil:
		return Undecided(field.Below(path, err)), nil
	case !result.Held && !result.Indeterminate:
		return Skip("preconditions not met: " + result.Words()), nil
	}
	return nil, field.Below(path, result.Cause())
}

// Applies reports whether match and exclude select the object. An error means that it is
// indeterminate.
func (h *Head) Applies(s *policy.Subject) (bool, error) { return h.selection.Applies(s).Result() }

// AssumesUser reports whether the rule applies to an object without a requester only because any
// user may have made it.
func (h *Head) AssumesUser(s *policy.Subject) bool { return h.ofUsers && !askedAtAdmission(s) }

// askedAtAdmission reports whether the subject has a requester: an admission request has one,
// files and scans of existing objects have none.
func askedAtAdmission(s *policy.Subject) bool { return s.User.Name != "" || len(s.User.Groups) > 0 }
