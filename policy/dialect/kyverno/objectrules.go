package kyverno

import (
	"encoding/json"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/autogen"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/mutate"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/validate"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// ruleOptions are the policy settings for object rules.
func (p *policyCompiler) ruleOptions() rule.Options {
	return rule.Options{Context: p.contextOptions(), OldForm: p.oldForm(), Background: p.out.OnlyScanned, Gate: p.gate}
}

// validation compiles a rule with validate, and those that follow from it.
func (p *policyCompiler) validation(raw json.RawMessage, path string) error {
	options := validate.Options{Rule: p.ruleOptions(), Actions: p.actions, CEL: p.language, Manifests: p.options.Manifests}
	options.Manifests.Namespace = p.out.Namespace
	compiled, err := validate.Compile(options, raw, path)
	if err != nil {
		return err
	}
	if err := checkKinds(compiled.Targets(), path, !p.out.OnlyScanned); err != nil {
		return err
	}
	p.addValidation(compiled)
	if compiled.IsOfManifests() {
		return nil
	}
	return p.follow(raw, path, func(f follower) error {
		options.Rule.Kinds, options.Template, options.Original = f.Kinds, f.Template, raw
		follower, err := validate.Compile(options, f.raw, path)
		if err == nil {
			p.addValidation(follower)
		}
		return err
	})
}

func (p *policyCompiler) addValidation(r *validate.Rule) {
	p.out.Validations, p.out.Warnings = append(p.out.Validations, r), append(p.out.Warnings, r.Warnings()...)
	p.asks, p.enforces = true, p.enforces || r.CanEnforce()
	addTargets(p.out, r.Targets())
}

// mutation compiles a rule with mutate, and the rules generated from it. It enforces: no other
// component applies a mutation that such a rule fails to apply.
func (p *policyCompiler) mutation(raw json.RawMessage, path string) error {
	options := p.ruleOptions()
	compiled, err := mutate.Compile(options, raw, path)
	if err != nil {
		return err
	}
	if err := checkKinds(compiled.Targets(), path, true); err != nil {
		return err
	}
	p.addMutation(compiled)
	return p.follow(raw, path, func(f follower) error {
		options.Kinds = f.Kinds
		follower, err := mutate.Compile(options, f.raw, path)
		if err == nil {
			p.addMutation(follower)
		}
		return err
	})
}

func (p *policyCompiler) addMutation(r *mutate.Rule) {
	p.out.Mutations = append(p.out.Mutations, r)
	p.asks, p.enforces = true, true
	addTargets(p.out, r.Targets())
}

// follower is a rule that follows from one about pods, as it would be written.
type follower struct {
	autogen.Follower
	raw json.RawMessage
}

// follow notes the rules that follow from one about pods. Add compiles each of them after all
// rules of the policy as they are written, as in Kyverno: the order decides under applyRules One.
func (p *policyCompiler) follow(raw json.RawMessage, path string, add func(follower) error) error {
	if !p.autogen {
		return nil
	}
	speaks, err := autogen.AboutPods(raw)
	if err != nil || !speaks {
		return err
	}
	var written map[string]any
	if err := json.Unmarshal(raw, &written); err != nil {
		return field.Fail(path, "%w", field.Readable(err))
	}
	name, _ := written["name"].(string)
	for _, g := range autogen.Followers(name, p.controllers) {
		text, err := json.Marshal(autogen.Rewrite(written, g))
		if err != nil {
			return field.Below(path, err)
		}
		p.generated = append(p.generated, func() error { return add(follower{Follower: g, raw: text}) })
	}
	return nil
}

// addTargets adds the targets of an object rule, in the policy's namespace alone if it has one.
func addTargets(p *policy.Policy, targets []policy.Target) {
	p.Targets = joinConfined(p.Targets, match.WithoutSent(targets), p.Namespace)
}

// otherRule is a rule about other objects as it is written.
type otherRule struct {
	rule.Document
	Mutate   any `json:"mutate"`
	Generate any `json:"generate"`
}

// other reads the common fields of rules for other objects.
func (p *policyCompiler) other(raw json.RawMessage, path string) (otherRule, generate.Rule, error) {
	var doc otherRule
	if err := document.Decode(raw, &doc, path); err != nil {
		return doc, generate.Rule{}, err
	}
	if p.gate != nil {
		return doc, generate.Rule{}, document.Unsupported(matchConditions, "a condition in CEL, in a policy about other objects,")
	}
	return doc, generate.Rule{
		Name: doc.Name, Path: path, Match: doc.Match, Exclude: doc.Exclude, Context: doc.Context, Preconditions: doc.Preconditions,
		ReportProperties: doc.ReportProperties, ImageExtractors: doc.ImageExtractors, NewForm: !p.oldForm(),
		SkipGenerated: doc.SkipBackgroundRequests == nil || *doc.SkipBackgroundRequests,
	}, nil
}

// otherSettings are the settings in spec for rules for other objects.
func (p *policyCompiler) otherSettings() generate.Settings {
	is := func(value *bool) bool { return value != nil && *value }
	s := p.doc.Spec
	return generate.Settings{
		Existing: is(s.GenerateExisting) || is(s.GenerateExistingOnPolicyUpdate), Apply: is(s.UseServerSideApply), OnPolicyUpdate: is(s.MutateExistingOnPolicyUpdate),
	}
}

// generation compiles a rule with generate.
func (p *policyCompiler) generation(raw json.RawMessage, path string) error {
	doc, head, err := p.other(raw, path)
	if err != nil {
		return err
	}
	compiled, err := generate.CompileGenerate(p.contextOptions(), p.otherSettings(), head, doc.Generate)
	if err != nil {
		return err
	}
	if err := checkKinds(compiled.Targets(), path, compiled.NeedsRequester()); err != nil {
		return err
	}
	p.out.Generations = append(p.out.Generations, compiled)
	if compiled.NeedsRequester() {
		addTargets(p.out, compiled.Targets())
	}
	return nil
}

// alteration compiles a rule with mutate that has targets.
func (p *policyCompiler) alteration(raw json.RawMessage, path string) error {
	doc, head, err := p.other(raw, path)
	if err != nil {
		return err
	}
	compiled, err := generate.CompileTargets(p.contextOptions(), p.otherSettings(), head, doc.Mutate)
	if err != nil {
		return err
	}
	if err := checkKinds(compiled.Targets(), path, compiled.NeedsRequester()); err != nil {
		return err
	}
	p.out.Alterations = append(p.out.Alterations, compiled)
	if compiled.NeedsRequester() {
		addTargets(p.out, compiled.Targets())
	}
	return nil
}
