package evaluation

import (
	"context"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/extract"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/policy/source"
	"github.com/quaymaster/quaymaster/workload"
)

// The results of rules.
const (
	Pass  = "pass"
	Fail  = "fail"
	Warn  = "warn"
	Error = "error"
	Skip  = "skip"
)

// Answer is the result of policies for an object.
type Answer struct {
	Outcome gate.Outcome
	// Object is the object after mutation rules and image pinning.
	Object workload.Object
	Rules  []RuleResult
	// Err is the reason why nothing was evaluated.
	Err error
}

// ImageResult is the result of one rule for one image.
type ImageResult struct {
	// Image is the reference as written, Container its container with the role, and Path its
	// JSON pointer.
	Image, Container, Path string
	Result                 string
	Reasons                []policy.Reason
}

// String returns the image, where it is, and the reasons: what was expected and found, and the codes.
func (s *ImageResult) String() string {
	words := make([]string, len(s.Reasons))
	for i, r := range s.Reasons {
		var miss []string
		if r.Expected != "" {
			miss = append(miss, "expected "+r.Expected)
		}
		if r.Found != "" {
			miss = append(miss, "found "+r.Found)
		}
		words[i] = r.Message
		if len(miss) > 0 {
			words[i] += " (" + strings.Join(miss, ", ") + ")"
		}
		words[i] += " [" + string(r.Code) + "]"
	}
	return s.Container + " (" + s.Path + "), " + s.Image + ": " + strings.Join(words, "; ")
}

// RuleResult is the result of one rule. A rule about images has the worst result of its Images.
type RuleResult struct {
	Policy  *policy.Policy
	Rule    string
	Kind    policy.RuleKind
	Result  string
	Message string
	// Reasons are those of a result for the object itself.
	Reasons []policy.Reason
	// Images are those that a rule about images found, in the order of the object.
	Images []ImageResult
	// Action is the effect of a failure.
	Action policy.Action
	// Exception is the exception that caused the result Skip; nil for another cause.
	Exception *policy.Exception
	// Made are the objects that a generate rule creates.
	Made []map[string]any
	// Altered are the other objects that the rule mutates.
	Altered []Altered
	// Changed: the mutation changed the object.
	Changed bool
	// Deletion is the decision of a rule that deletes existing objects; nil for another rule.
	Deletion *Deletion
}

// Altered is an existing object, and its form after a rule mutated it because of another object.
type Altered struct {
	Target, After   workload.Object
	Result, Message string
}

// existing are the objects that rules may mutate, those that they copy, and the labels of their namespaces.
type existing struct {
	Existing
	labels func(namespace string) map[string]string
}

func (a *Answer) fill(ctx context.Context, set *set.Set, outcome gate.Outcome, targets existing) {
	a.Outcome = outcome
	a.Object = changed(a.Object, &outcome)
	for i := range outcome.Rules {
		a.Rules = append(a.Rules, ruleResult(&outcome.Rules[i]))
	}
	a.ofImages(&outcome)
	if outcome.Subject == nil || a.Object.IsDocument() {
		return
	}
	for _, r := range set.Generate(ctx, policy.Case{Subject: outcome.Subject, Find: finder(a.Object), Sources: targets.Sources}) {
		one := ruleResult(&r.RuleResult)
		for _, object := range r.Objects {
			one.Made = append(one.Made, object.Object)
		}
		for _, ref := range r.Missing {
			one.Result, one.Message = Error, strings.TrimPrefix(one.Message+"; source "+ref.String()+": "+source.ErrMissing.Error(), "; ")
		}
		a.Rules = append(a.Rules, one)
	}
	for _, r := range set.Alterations(ctx, outcome.Subject, finder(a.Object)) {
		one := ruleResult(&r.RuleResult)
		for _, by := range r.Selections {
			for _, target := range targets.Targets {
				if targets.selects(by, target) {
					one.Altered = append(one.Altered, altered(target, r.Alter(ctx, by, target.Content())))
				}
			}
		}
		a.Rules = append(a.Rules, one)
	}
}

// selects reports whether a selection matches an object.
func (e existing) selects(by policy.Selection, o workload.Object) bool {
	if o.APIVersion() != by.APIVersion || o.Kind() != by.Kind ||
		by.Namespace != "" && !wildcard.Match(by.Namespace, o.Namespace()) || by.Name != "" && !wildcard.Match(by.Name, o.Name()) {
		return false
	}
	labels := map[string]string{}
	meta, _ := o.Content()["metadata"].(map[string]any)
	written, _ := meta["labels"].(map[string]any)
	for key, value := range written {
		labels[key], _ = value.(string)
	}
	if by.Labels != nil && !by.Labels.Matches(labels) {
		return false
	}
	switch {
	case by.Namespaces == nil:
		return true
	case o.Kind() == "Namespace" && o.Group() == "":
		return by.Namespaces.Matches(labels)
	}
	if o.Namespace() == "" {
		return true
	}
	within := e.labels(o.Namespace())
	return within != nil && by.Namespaces.Matches(within)
}

// altered is the result for a target.
func altered(target workload.Object, m policy.Mutated) Altered {
	a := Altered{Target: target, After: target, Result: resultOf(m.Result), Message: Words(m.Reasons)}
	if m.Result == "" {
		a.Result = Skip
	}
	if m.Object == nil {
		return a
	}
	after, err := target.With(m.Object)
	if err != nil {
		a.Result, a.Message = Error, err.Error()
		return a
	}
	a.After = after
	return a
}

// ofImages adds the results of image rules.
func (a *Answer) ofImages(outcome *gate.Outcome) {
	for _, verdict := range outcome.Verdicts {
		for i := range verdict.Decisions {
			d := &verdict.Decisions[i]
			if d.Check == nil || d.Check.Policy == nil {
				continue
			}
			found := ImageResult{
				Image: verdict.Image.Ref.Written(), Container: verdict.Image.Role + " " + verdict.Image.Container, Path: verdict.Image.Pointer,
				Result: resultOf(d.Result), Reasons: d.Reasons,
			}
			if d.Check.Exception != nil && d.Check.Exception.AsPass {
				found.Result = Pass
			}
			one := RuleResult{Policy: d.Check.Policy, Rule: d.Check.Rule, Result: found.Result, Action: d.Check.Action, Images: []ImageResult{found}}
			at := slices.IndexFunc(a.Rules, func(r RuleResult) bool {
				return r.Policy == one.Policy && r.Rule == one.Rule && r.Kind == policy.ImageRule
			})
			switch {
			case at < 0:
				a.Rules = append(a.Rules, one)
			case Worse(one.Result, a.Rules[at].Result):
				one.Images, one.Message = append(a.Rules[at].Images, found), a.Rules[at].Message
				a.Rules[at] = one
			default:
				a.Rules[at].Images = append(a.Rules[at].Images, found)
			}
		}
	}
	for i := range a.Rules {
		a.Rules[i].explain()
	}
}

// explain appends to the message each image that fails an image rule.
func (s *RuleResult) explain() {
	if len(s.Images) == 0 {
		return
	}
	var lines []string
	if s.Message != "" {
		lines = append(lines, s.Message)
	}
	for i := range s.Images {
		if found := &s.Images[i]; Worse(found.Result, Pass) {
			lines = append(lines, found.String())
		}
	}
	if len(lines) == 0 {
		lines = append(lines, Words(s.Images[0].Reasons))
	}
	s.Message = strings.Join(lines, "\n")
}

func ruleResult(r *policy.RuleResult) RuleResult {
	s := RuleResult{Policy: r.Policy, Rule: r.Rule, Kind: r.Kind, Action: r.Action, Exception: r.Exception, Changed: r.Changed}
	switch {
	case r.Err != nil:
		s.Result, s.Message = Error, r.Err.Error()
	case r.Skip != "":
		s.Result, s.Message = Skip, r.Skip
		if r.Exception != nil && r.Exception.AsPass {
			s.Result = Pass
		}
	default:
		s.Result, s.Message, s.Reasons = resultOf(r.Ruling.Result), Words(r.Ruling.Reasons), r.Ruling.Reasons
	}
	return s
}

// changed returns the object after mutation rules and image pinning.
func changed(object workload.Object, outcome *gate.Outcome) workload.Object {
	if !outcome.Changed.IsZero() {
		object = outcome.Changed
	}
	if pins := outcome.Patch[outcome.Mutations:]; len(pins) > 0 {
		if pinned, err := workload.Apply(object, pins); err == nil {
			object = pinned
		}
	}
	return object
}

// results are in ascending order of severity.
var results = []string{Skip, Pass, Warn, Error, Fail}

// Worse reports whether result a is more severe than b.
func Worse(a, b string) bool { return slices.Index(results, a) > slices.Index(results, b) }

func resultOf(r policy.Result) string {
	switch r {
	case policy.Pass:
		return Pass
	case policy.Fail:
		return Fail
	case policy.Skipped:
		return Skip
	}
	return Error
}

// Words joins the messages of reasons.
func Words(reasons []policy.Reason) string {
	messages := make([]string, len(reasons))
	for i, r := range reasons {
		messages[i] = r.Message
	}
	return strings.Join(messages, "; ")
}

// finder finds the images of an object for rules that are evaluated outside of the gate.
func finder(object workload.Object) policy.Finder {
	return extract.Finder(func() (workload.Object, error) { return object, nil }, image.Parse)
}

// Join adds the results of policies that were evaluated later.
func (a *Answer) Join(later Answer) {
	if len(a.Rules) == 0 && a.Err == nil && a.Outcome.Result == "" {
		*a = later
		return
	}
	a.Rules, a.Object = append(a.Rules, later.Rules...), later.Object
	if a.Err == nil {
		a.Err = later.Err
	}
	a.Outcome.Reasons = append(slices.Clip(a.Outcome.Reasons), later.Outcome.Reasons...)
	a.Outcome.Warnings = append(slices.Clip(a.Outcome.Warnings), later.Outcome.Warnings...)
	a.Outcome.Result = gate.First(a.Outcome.Result, later.Outcome.Result)
}
