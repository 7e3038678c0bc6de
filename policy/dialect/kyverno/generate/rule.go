package generate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/subresource"
)

const (
	// maxTargets bounds the targets of a rule; honest ones have one to three.
	maxTargets = 50
	// maxLoops bounds the loops of a rule.
	maxLoops = 50
	// maxElements bounds the passes of all loops of a rule for one object, and so its objects;
	// the API server accepts objects with some ten thousand elements.
	maxElements = 1000
	// maxMade bounds the memory of a rule's objects, in bytes: they exist at the same time. The
	// author of a trigger may choose how often a rule copies how much of it.
	maxMade = 16 << 20
)

// Rule holds the fields that all such rules share, as they are written.
type Rule struct {
	// Name is the rule's, unique in its policy; Path is its location, for errors.
	Name, Path string
	// Match selects triggers, and Exclude, which may be nil, leaves some out.
	Match   match.Document
	Exclude *match.Document
	Context []rulecontext.Document
	// Preconditions are any, all or the old form; nil for none.
	Preconditions any
	// ReportProperties are the author's words for reports.
	ReportProperties map[string]string
	// ImageExtractors say where images are, for rules that read them.
	ImageExtractors map[string][]rule.Extractor
	// NewForm: match and exclude may not be written without any and all.
	NewForm bool
	// SkipGenerated is skipBackgroundRequests.
	SkipGenerated bool
}

// triggers is the part of a rule that selects its objects.
type triggers struct {
	*rule.Head
	targets       []policy.Target
	preconditions *condition.Conditions // nil for none
	requester     bool
	skipGenerated bool
	// deletions: match names the operation DELETE.
	deletions bool
	// subresource is the first trigger that is a request for one, as Kind/name; empty for none.
	subresource string
	// own is the one namespace of a Policy; empty for a ClusterPolicy.
	own string
}

// compileTriggers reads the common fields of both types of rules. Does is the rule's action, for
// its variables.
func compileTriggers(o rulecontext.Options, r Rule, does any) (triggers, error) {
	t := triggers{own: o.Namespace, skipGenerated: r.SkipGenerated}
	deletion, err := operations(r.Match, r.Path+".match")
	t.deletions = deletion != ""
	errs := []error{err}
	t.Head, err = rule.Compile(rule.Options{Context: o, OldForm: !r.NewForm}, rule.Document{
		Name: r.Name, Match: r.Match, Exclude: r.Exclude, Context: r.Context, ImageExtractors: r.ImageExtractors,
		ReportProperties: r.ReportProperties,
	}, r.Path)
	errs = append(errs, err)
	t.preconditions, err = rule.Preconditions(condition.CompileExempting, o.Reading(r.Context), r.Preconditions, r.Path+".preconditions", t.Entries()...)
	if err := errors.Join(append(errs, err)...); err != nil {
		return t, err
	}
	errs = nil
	for _, target := range match.WithoutSent(t.Head.Targets()) {
		if target.Subresource == "ephemeralcontainers" && !t.NamesSubresource(target.Subresource) {
			continue // follows from a rule about pods, which is about the pod here
		}
		errs = append(errs, watchable(target, r.Path+".match"))
		if t.deletions && len(r.Match.All) > 0 { // the operations and the kinds may be in different filters
			target.Operations = []string{"CREATE", "UPDATE", "DELETE"}
		}
		if target.Subresource != "" && t.subresource == "" {
			t.subresource = target.Kind + "/" + target.Subresource
		}
		if t.own != "" {
			target.Namespaces = []string{t.own}
		}
		t.targets = append(t.targets, target)
	}
	t.requester, err = needsRequester(r, does)
	errs = append(errs, err)
	if t.subresource != "" && t.requester {
		errs = append(errs, document.Unsupported(r.Path+".match", "the trigger "+t.subresource+
			" of a rule about other objects that reads the requester, which a request for a subresource does not record,"))
	}
	if t.deletions && t.requester {
		errs = append(errs, document.Unsupported(deletion, "the operation DELETE of a rule about other objects that reads the requester, which a deletion does not record,"))
	}
	return t, errors.Join(errs...)
}

// operations refuses CONNECT, which leaves nothing that a watch would return. It returns the path of
// the first DELETE; empty for none.
func operations(m match.Document, path string) (deletion string, err error) {
	var errs []error
	check := func(list []string, path string) {
		for i, operation := range list {
			switch at := path + "[" + strconv.Itoa(i) + "]"; {
			case operation == "CONNECT":
				errs = append(errs, document.Unsupported(at, "the operation CONNECT of a rule about other objects"))
			case operation == "DELETE" && deletion == "":
				deletion = at
			}
		}
	}
	check(m.Resources.Operations, path+".resources.operations")
	for i, f := range m.Any {
		check(f.Resources.Operations, fmt.Sprintf("%s.any[%d].resources.operations", path, i))
	}
	for i, f := range m.All {
		check(f.Resources.Operations, fmt.Sprintf("%s.all[%d].resources.operations", path, i))
	}
	return deletion, errors.Join(errs...)
}

// watchable refuses kinds of triggers that cannot be watched.
func watchable(t policy.Target, path string) error {
	switch {
	case wildcard.Contains(t.Kind):
		return document.Unsupported(path, "a rule about other objects with triggers of many kinds ("+t.Kind+")")
	case t.Subresource == "":
		return nil
	}
	if err := subresource.Check(t.Group, t.Kind, t.Subresource); err != nil {
		return document.Unsupported(path, "a rule about other objects with the trigger "+t.Kind+"/"+t.Subresource+" ("+err.Error()+")")
	}
	return nil
}

// Targets returns the kinds of triggers.
func (t *triggers) Targets() []policy.Target { return t.targets }

// NeedsRequester reports whether the rule reads the requester of the trigger.
func (t *triggers) NeedsRequester() bool { return t.requester }

// Selects reports whether the rule may match an object; an indeterminate match counts.
func (t *triggers) Selects(s *policy.Subject) bool {
	if s.Document || !t.isOf(s.Subresource) || s.Operation == "DELETE" && !t.deletions {
		return false
	}
	applies, err := t.Applies(s)
	return err != nil || applies
}

// isOf reports whether the rule names a subresource, or may match objects themselves.
func (t *triggers) isOf(subresource string) bool {
	return slices.ContainsFunc(t.targets, func(t policy.Target) bool { return t.Subresource == subresource })
}

// ask evaluates whether the rule matches the object of a case. The answer is nil if it does, and
// then the context is the data for its expressions.
func (t *triggers) ask(ctx context.Context, about policy.Case) (variable.Context, *rule.Answer) {
	if !t.concerns(about.Subject) {
		return nil, &rule.Answer{}
	}
	data, answer, doubt := t.Ask(ctx, about)
	if answer == nil && doubt != nil {
		answer = rule.Undecided(doubt)
	}
	if answer != nil {
		return nil, answer
	}
	return data, met(t.preconditions, data, t.Path()+".preconditions")
}

// concerns reports whether a subject of this sort may be a trigger at all.
func (t *triggers) concerns(s *policy.Subject) bool {
	switch {
	case !t.isOf(s.Subresource):
		return false
	case s.Operation == "DELETE":
		return t.deletions && !s.OldObject.IsZero()
	}
	return s.Operation != "CONNECT" && !s.Object.IsZero()
}

// met evaluates preconditions. A generated object may grant rights; so a rule with indeterminate
// preconditions is not applied.
func met(preconditions *condition.Conditions, data variable.Context, path string) *rule.Answer {
	if preconditions == nil {
		return nil
	}
	held, err := preconditions.Evaluate(data)
	switch {
	case err != nil:
		return rule.Undecided(field.Below(path, err))
	case held.Indeterminate:
		return rule.Undecided(field.Below(path, held.Cause()))
	case !held.Held:
		return rule.Skip("preconditions not met: " + held.Words())
	}
	return nil
}

// text fills in a template that must give a string with something in it.
func text(t *variable.Template, data variable.Context, path string) (string, error) {
	value, err := t.Execute(data)
	if err != nil {
		return "", field.Below(path, err)
	}
	switch value.(type) {
	case string, float64, bool:
	default:
		return "", field.Fail(path, "want a string, and it is %s", jmespath.Text(value))
	}
	return jmespath.Text(value), nil
}

// decode reads a part of a rule strictly.
func decode(part, into any, path string) error {
	data, err := json.Marshal(part)
	if err != nil {
		return field.Below(path, err)
	}
	return document.Decode(data, into, path)
}
