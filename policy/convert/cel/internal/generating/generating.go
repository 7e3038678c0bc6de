package generating

import (
	"encoding/json"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/condition"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/generation"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/requirement"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/selection"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/triggers"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	types "github.com/quaymaster/quaymaster/policy/internal/schema"
)

// generateDocument is a rule that generates.
type generateDocument struct {
	Name           string                 `json:"name"`
	Match          match.Document         `json:"match"`
	Exclude        *match.Document        `json:"exclude"`
	Context        []rulecontext.Document `json:"context"`
	Preconditions  any                    `json:"preconditions"`
	SkipBackground *bool                  `json:"skipBackgroundRequests"`
	Generate       struct {
		generation.Document
		Synchronize bool              `json:"synchronize"`
		Orphan      bool              `json:"orphanDownstreamOnPolicyDelete"`
		Existing    *bool             `json:"generateExisting"`
		ForEach     []generation.Loop `json:"foreach"`
	} `json:"generate"`
}

// generateSettings are settings of a policy for its rules that generate.
type generateSettings struct {
	Spec struct {
		Existing       bool  `json:"generateExisting"`
		ExistingOfOld  bool  `json:"generateExistingOnPolicyUpdate"`
		ServerSide     bool  `json:"useServerSideApply"`
		AdmissionIsSet *bool `json:"admission"`
	} `json:"spec"`
}

// Rule is a rule as it is written, and its policy.
type Rule struct {
	Text, Policy json.RawMessage
	// Namespaced: the policy is of a namespace.
	Namespaced bool
	// Types finds the types of kinds; required.
	Types *types.Finder
}

// Made is a converted rule.
type Made struct {
	// Name is that of the rule.
	Name string
	Spec *generation.Spec
	// Guessed are the resources of custom kinds, of which only the kinds suggest the names.
	Guessed []string
}

// Convert converts a rule. A construct without a form is a *source.Unsupported with the path below the rule.
func Convert(r Rule) (*Made, error) {
	var from generateDocument
	var settings generateSettings
	err := triggers.Known(r.Text, map[string][]string{
		"": {"name", "match", "exclude", "context", "preconditions", "skipBackgroundRequests", "generate"},
		"generate": {
			"apiVersion", "kind", "name", "namespace", "data", "clone", "cloneList", "synchronize", "orphanDownstreamOnPolicyDelete", "generateExisting", "foreach",
		},
	})
	if err == nil {
		err = json.Unmarshal(r.Text, &from)
	}
	if err == nil {
		err = json.Unmarshal(r.Policy, &settings)
	}
	if err != nil {
		return nil, err
	}
	if s := settings.Spec.AdmissionIsSet; s != nil && !*s {
		return nil, &source.Unsupported{Path: "generate", Found: "admission: false of the policy"}
	}
	selected, err := selection.Of(from.Match, from.Exclude, []string{"CREATE", "UPDATE"})
	if err != nil {
		return nil, err
	}
	kinds, err := triggers.Kinds(from.Match)
	if err != nil {
		return nil, err
	}
	scope := triggers.Scope(r.Types, selected.Resources, kinds)
	s := &generation.Spec{ServerSide: settings.Spec.ServerSide}
	s.Variables, scope, err = requirement.Entries(from.Context, scope, r.Namespaced)
	if err != nil {
		return nil, err
	}
	s.MatchConditions, err = triggers.Require(selected.Conditions, from.Preconditions, scope, condition.CompileExempting)
	if err != nil {
		return nil, err
	}
	s.MatchConstraints.ResourceRules = selected.Resources
	s.Evaluation = evaluationOf(&from, settings.Spec.Existing || settings.Spec.ExistingOfOld)
	s.Generate, err = entriesOf(&from, generation.Options{Scope: scope, Namespaced: r.Namespaced})
	if err != nil {
		return nil, source.Located("generate", err)
	}
	return &Made{Name: from.Name, Spec: s, Guessed: selected.Guessed}, nil
}

// evaluationOf are the settings of a rule; existing is that of its policy.
func evaluationOf(from *generateDocument, existing bool) *generation.Evaluation {
	if from.Generate.Existing != nil {
		existing = *from.Generate.Existing
	}
	on := func(is bool) *generation.Enabled {
		if !is {
			return nil
		}
		return &generation.Enabled{Enabled: true}
	}
	e := generation.Evaluation{Existing: on(existing), Synchronize: on(from.Generate.Synchronize), Orphan: on(from.Generate.Orphan)}
	if from.SkipBackground != nil && !*from.SkipBackground {
		e.SkipBackground = from.SkipBackground
	}
	if e == (generation.Evaluation{}) {
		return nil
	}
	return &e
}

// entriesOf are the objects of a rule, or those of its loops.
func entriesOf(from *generateDocument, options generation.Options) (all []generation.Entry, err error) {
	for i, l := range from.Generate.ForEach {
		made, err := generation.ForEach(l, options)
		if err != nil {
			return nil, source.Located(source.Index("foreach", i), err)
		}
		all = append(all, made)
	}
	if len(all) > 0 {
		return all, nil
	}
	made, err := generation.Of(from.Generate.Document, options)
	return []generation.Entry{made}, err
}
