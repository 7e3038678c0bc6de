package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/integer"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/workload"
)

// Report is the result of a trial.
type Report struct {
	Objects []Object `json:"objects"`
	// Errors are about documents that could not be read: nothing is decided then, or in the case of policies,
	// nothing is admitted.
	Errors   []Fault  `json:"errors,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Summary counts the results of rules.
	Summary map[string]int `json:"summary"`
}

// Fault is an error about one of the Documents.
type Fault struct {
	// In is the name of the field of Documents, in JSON; empty for all of them.
	In      string `json:"in,omitempty"`
	Message string `json:"message"`
}

// Object is an object with its result: allow, deny, error or unchecked.
type Object struct {
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	Result    gate.Result `json:"result"`
	Reasons   []string    `json:"reasons,omitempty"`
	Rules     []Rule      `json:"rules"`
	// Mutation is the change by rules; nil for none.
	Mutation *Change `json:"mutation,omitempty"`
}

// Rule is the result of a rule for an object: pass, fail, warn, error or skip.
type Rule struct {
	Policy  string `json:"policy"`
	Rule    string `json:"rule,omitempty"`
	Kind    string `json:"kind"`
	Result  string `json:"result"`
	Message string `json:"message,omitempty"`
	// Audit: a failure does not deny.
	Audit     bool   `json:"audit,omitempty"`
	Exception string `json:"exception,omitempty"`
	// Changed: the rule changes the object.
	Changed bool            `json:"changed,omitempty"`
	Reasons []policy.Reason `json:"reasons,omitempty"`
	Images  []Image         `json:"images,omitempty"`
	// Generates are the objects that the rule makes, Mutates the other objects that it changes.
	Generates []Change `json:"generates,omitempty"`
	Mutates   []Change `json:"mutates,omitempty"`
}

// Image is the result of a rule for one image.
type Image struct {
	Image     string          `json:"image"`
	Container string          `json:"container"`
	Path      string          `json:"path"`
	Result    string          `json:"result"`
	Reasons   []policy.Reason `json:"reasons,omitempty"`
}

// Change is an object before and after, in YAML; one that is made has no text before.
type Change struct {
	Name   string `json:"name"`
	Before string `json:"before,omitempty"`
	After  string `json:"after"`
}

// maxMessage bounds a message, in bytes: foreign texts are in some.
const maxMessage = 4 << 10

// add adds the result for an object.
func (r *Report) add(in *Input, policies []evaluation.Policy, object workload.Object, a *evaluation.Answer) error {
	one := Object{Kind: object.Kind(), Namespace: object.Namespace(), Name: object.Name(), Result: a.Outcome.Result, Rules: []Rule{}}
	for _, reason := range a.Outcome.Reasons {
		one.Reasons = append(one.Reasons, limit.Text(reason.Message, maxMessage))
	}
	if a.Err != nil {
		one.fail(a.Err.Error())
	}
	for i := range a.Rules {
		rule, err := in.rule(policies, &a.Rules[i])
		if err != nil {
			return err
		}
		r.Summary[rule.Result]++
		one.Rules = append(one.Rules, rule)
	}
	change, err := mutation(object, a)
	if err != nil {
		one.fail(err.Error())
	}
	one.Mutation = change
	if len(in.Unread) > 0 && one.Result.Admits() {
		one.fail("policies that could not be read were not evaluated")
	}
	r.Objects = append(r.Objects, one)
	return nil
}

func (o *Object) fail(message string) {
	o.Result, o.Reasons = gate.Error, append(o.Reasons, limit.Text(message, maxMessage))
}

func (r *Input) rule(policies []evaluation.Policy, s *evaluation.RuleResult) (Rule, error) {
	rule := Rule{
		Policy: s.Policy.ID(), Rule: s.Rule, Kind: string(s.Kind), Result: s.Result, Message: limit.Text(s.Message, maxMessage),
		Audit: s.Result == evaluation.Fail && s.Action.Admits(), Changed: s.Changed, Reasons: s.Reasons,
	}
	if s.Kind == policy.ImageRule {
		rule.Kind = "verifyImages"
	}
	if s.Exception != nil {
		rule.Exception = s.Exception.ID()
	}
	if IsUnscored(policies, s) {
		rule.Result = evaluation.Warn
	}
	for _, found := range s.Images {
		rule.Images = append(rule.Images, Image(found))
	}
	for _, made := range s.Made {
		change := Change{Name: NameOf(made)}
		var err error
		change.After, err = asYAML(made)
		if err != nil {
			return rule, err
		}
		change.Before, err = r.existing(change.Name)
		if err != nil {
			return rule, err
		}
		rule.Generates = append(rule.Generates, change)
	}
	for i := range s.Altered {
		change, err := alteration(&s.Altered[i])
		if err != nil {
			return rule, err
		}
		if change != nil {
			rule.Mutates = append(rule.Mutates, *change)
		}
		if evaluation.Worse(s.Altered[i].Result, rule.Result) {
			rule.Result, rule.Message = s.Altered[i].Result, limit.Text(s.Altered[i].Message, maxMessage)
		}
	}
	return rule, nil
}

// existing returns the object of a name among the documents, which a rule that generates it replaces; empty
// for none.
func (r *Input) existing(name string) (string, error) {
	for _, object := range slices.Concat(r.Objects, r.beside) {
		if content := object.Content(); NameOf(content) == name {
			return asYAML(json.RawMessage(object.JSON()))
		}
	}
	return "", nil
}

// mutation returns the change of the object by the rules; nil for none.
func mutation(before workload.Object, a *evaluation.Answer) (*Change, error) {
	if a.Object.IsZero() || reflect.DeepEqual(a.Object.Content(), before.Content()) {
		return nil, nil
	}
	after, err := Mutated(before, a)
	if err != nil {
		return nil, err
	}
	return changeOf(before, after)
}

// alteration returns the change of another object; nil for none.
func alteration(a *evaluation.Altered) (*Change, error) {
	content := a.After.Content()
	if reflect.DeepEqual(content, a.Target.Content()) {
		return nil, nil
	}
	if err := integer.Exact(content); err != nil {
		return nil, errors.New(NameOf(content) + ": " + err.Error())
	}
	return changeOf(a.Target, content)
}

func changeOf(before workload.Object, after any) (*Change, error) {
	change := &Change{Name: NameOf(before.Content())}
	var err error
	change.Before, err = asYAML(json.RawMessage(before.JSON()))
	if err != nil {
		return nil, err
	}
	change.After, err = asYAML(after)
	return change, err
}

func asYAML(object any) (string, error) {
	text, err := yaml.Marshal(object)
	if err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	return string(text), nil
}

// IsUnscored reports whether a failure counts as a warning, as its policy says.
func IsUnscored(policies []evaluation.Policy, s *evaluation.RuleResult) bool {
	return s.Result == evaluation.Fail && slices.ContainsFunc(policies, func(p evaluation.Policy) bool {
		return p.Made(s.Policy) && p.Annotation("policies.kyverno.io/scored") == "false"
	})
}

// NameOf is the kind, namespace and name of an object.
func NameOf(content map[string]any) string {
	meta, _ := content["metadata"].(map[string]any)
	parts := []string{fmt.Sprint(content["kind"])}
	if namespace, _ := meta["namespace"].(string); namespace != "" {
		parts = append(parts, namespace)
	}
	return strings.Join(append(parts, fmt.Sprint(meta["name"])), "/")
}

// Mutated returns an object after its evaluation, for YAML. An object that no rule changed is
// its own text: decoding rounds integers of 2^53 or more.
func Mutated(before workload.Object, a *evaluation.Answer) (any, error) {
	content := a.Object.Content()
	changed := slices.ContainsFunc(a.Rules, func(r evaluation.RuleResult) bool { return r.Changed })
	if !changed && reflect.DeepEqual(content, before.Content()) {
		return json.RawMessage(before.JSON()), nil
	}
	if err := integer.Exact(content); err != nil {
		return nil, fmt.Errorf("%s: the object is changed, and cannot be written: %w: write the integer as text, or leave the object out", before, err)
	}
	return content, nil
}
