package cel

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/imageverification"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/requirement"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/selection"
	"github.com/quaymaster/quaymaster/policy/convert/internal/ivp"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/convert/kyverno"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

// platformsAnnotation selects the images of an index that are verified.
const platformsAnnotation = "quaymaster.dev/platforms"

// imageSpec is that of an ImageValidatingPolicy, with the fields in the order in which they are read.
type imageSpec struct {
	*spec                             // its validations are those below
	Images       []ivp.ImageReference `json:"matchImageReferences"`
	Pin          *ivp.Pinning         `json:"validationConfigurations"`
	Credentials  *ivp.Credentials     `json:"credentials,omitempty"`
	Attestors    []ivp.Attestor       `json:"attestors"`
	Attestations []ivp.Attestation    `json:"attestations,omitempty"`
	Validations  []ivp.Validation     `json:"validations"`
}

// imagesRule is a rule that verifies images.
type imagesRule struct {
	Name          string            `json:"name"`
	Match         match.Document    `json:"match"`
	Exclude       *match.Document   `json:"exclude"`
	Preconditions any               `json:"preconditions"`
	VerifyImages  []json.RawMessage `json:"verifyImages"`
}

// verifyImages converts a rule about images: each of its entries becomes a policy.
func (c *converter) verifyImages(d source.Document, doc *document, compiled *policy.Policy, text ruleText) []part {
	before := len(c.Problems)
	var from imagesRule
	err := json.Unmarshal(text.raw, &from)
	if err == nil {
		err = onlyFields(text.raw, "name", "match", "exclude", "preconditions", "verifyImages", "skipBackgroundRequests")
	}
	if err != nil {
		c.refuse(d, text.at, err)
	}
	settings, scope, err := c.imagesSelected(from, compiled, text)
	if err != nil {
		c.refuse(d, text.at, err)
	}
	c.guessed(doc, settings.selection.Guessed)
	if _, is := doc.Metadata.Annotations[platformsAnnotation]; is {
		c.Refuse(d.At("metadata.annotations["+platformsAnnotation+"]"), "platforms of which the images are verified", "keep the policy as it is")
	}
	var made []part
	for i, raw := range from.VerifyImages {
		entry := c.imagesEntry(d, raw, source.Index(source.Below(text.at, "verifyImages"), i), scope)
		if entry == nil {
			continue // it is a problem already
		}
		one := &verifies{settings: *settings, entry: entry}
		if len(from.VerifyImages) > 1 {
			one.number = "-" + strconv.Itoa(i+1)
		}
		made = append(made, one)
	}
	if len(c.Problems) > before {
		return nil
	}
	return made
}

// verifies is an entry of a rule that verifies images.
type verifies struct {
	settings rule
	entry    *ivp.Policy
	number   string // of several entries
}

// label is the name of the rule, with the number of the entry.
func (v *verifies) label() string { return v.settings.name + v.number }

// names is that of the rule.
func (v *verifies) names() []string { return []string{v.settings.name} }

// imagesSelected writes the objects of a rule: a precondition on the operation as operations, others as a condition.
func (c *converter) imagesSelected(from imagesRule, compiled *policy.Policy, text ruleText) (*rule, jmespath.Scope, error) {
	operations := []string{"CREATE", "UPDATE"}
	r := &rule{name: from.Name}
	scope := jmespath.Scope{Object: requirement.ShapeOf(c.types, from.Match), Operations: operations}
	if from.Preconditions != nil {
		from.Match = requirement.Restrict(from.Match, operations, func(given []string) []string {
			allowed, _ := requirement.Operations(from.Preconditions, given)
			return allowed
		})
		scope.Operations = requirement.OperationsOf(from.Match)
		if len(scope.Operations) == 0 {
			return r, scope, &source.Unsupported{Path: "preconditions", Found: "no operation of the match"}
		}
		_, from.Preconditions = requirement.Operations(from.Preconditions, operations)
	}
	made, err := requirement.Of(requirement.Rule{Preconditions: from.Preconditions}, scope)
	if err != nil {
		return r, scope, err
	}
	r.selection, err = selection.Of(from.Match, from.Exclude, operations)
	r.applies(made.Condition)
	if err != nil {
		return r, scope, err
	}
	return r, scope, r.follow(compiled, text)
}

// imagesEntry converts an entry with its conditions; nil where it has a problem.
func (c *converter) imagesEntry(d source.Document, raw json.RawMessage, at string, scope jmespath.Scope) *ivp.Policy {
	rest, conditions, err := imageverification.Split(raw, c.engine, scope)
	if err != nil {
		c.refuse(d, at, err)
		return nil
	}
	p, ok := kyverno.Entry(c.Conversion, rest, d.At(at))
	if !ok {
		return nil
	}
	more, err := conditions.Validations(p)
	if err != nil {
		c.refuse(d, at, err)
		return nil
	}
	p.Validations = append(p.Validations, more...)
	return p
}

// policy writes an entry with the settings of its policy and the selection of its rule.
func (v *verifies) policy(doc *document, name string) Policy {
	action := doc.Spec.ValidationFailureAction
	if len(v.entry.Actions) > 0 {
		action = map[bool]string{true: string(policy.Enforce), false: string(policy.Audit)}[v.entry.Actions[0] == string(admission.Deny)]
	}
	v.settings.actions = actionsOf(strings.EqualFold(action, string(policy.Enforce)), doc.Spec.EmitWarning)
	p := (&group{first: &v.settings}).policy(doc, name)
	common, _ := p.spec.(*spec) // as group writes it
	return policyOf(doc, "ImageValidatingPolicy", name, &imageSpec{
		spec: common, Images: v.entry.Images, Pin: v.entry.Pin, Credentials: v.entry.Credentials,
		Attestors: v.entry.Attestors, Attestations: v.entry.Attestations, Validations: v.entry.Validations,
	})
}

// onlyFields refuses other fields of a rule.
func onlyFields(raw json.RawMessage, known ...string) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) && string(fields[name]) != "null" {
			return &source.Unsupported{Path: name, Found: "has no form yet that is known to be equal"}
		}
	}
	return nil
}
