package kyvernocel

import (
	"context"
	"encoding/json"
	"slices"

	admission "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// Broken is the rule of a document that does not compile: it cannot be evaluated for the objects
// that the document may match. Each unreadable field counts as its strictest value.
type Broken struct {
	name string
	// targets are the resources that the document names, as far as they can be read,
	// with the controllers that follow from pods, and pods and their controllers
	// otherwise; never Namespaces, Nodes, Leases, Events, reviews and webhook
	// configurations, without which a cluster could not be mended.
	targets []policy.Target
	why     error
	action  policy.Action
	json    bool
	quiet   bool
}

var (
	_ policy.Selective   = (*Broken)(nil)
	_ policy.OfDocuments = (*Broken)(nil)
	_ policy.Validation  = (*Broken)(nil)
	_ policy.Mutation    = BrokenMutation{}
)

// Roughly reads the targets of matchConstraints that may not compile; it is
// constraint.Rough or constraint.RoughOfAll with the kinds of a cluster.
type Roughly struct {
	Targets func(*admission.MatchResources) ([]policy.Target, bool)
	// Operations are those of unreadable rules; none means CREATE and UPDATE.
	Operations []string
}

// ReadBroken returns a policy without rules that replaces a document which does not compile, so
// that the objects that it would protect are indeterminate and not admitted. It also returns the
// rule; nil for text that is no document at all.
func ReadBroken(text []byte, source string, why error, roughly Roughly) (*policy.Policy, *Broken) {
	if len(text) > field.MaxDocument {
		return nil, nil
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, nil
	}
	var d struct {
		Kind           string
		Metadata, Spec json.RawMessage
	}
	var meta Metadata
	var spec rough
	_ = json.Unmarshal(data, &d) // unreadable fields stay empty
	_ = json.Unmarshal(d.Metadata, &meta)
	spec.read(d.Spec)
	p := &policy.Policy{
		Kind: d.Kind, Name: meta.Name, Source: source, Hash: HashOf(data), Problems: policy.Problems{Broken: why},
		Settings: policy.Settings{FailOpen: spec.failurePolicy == "Ignore", AuditOnly: spec.admits},
	}
	if p.Name == "" {
		p.Name = "unnamed-" + p.Hash[:8]
	}
	p.Namespace = NamespaceOf(d.Kind, meta)
	b := &Broken{
		name: p.Name, why: why, action: policy.Enforce, json: spec.json, quiet: spec.quiet,
		targets: Confine(spec.targets(roughly), p.Namespace),
	}
	if p.AuditOnly {
		b.action = policy.Audit
	}
	if !spec.quiet && !spec.json {
		p.Targets = b.targets
	}
	return p, b
}

// rough is a spec that is read field by field.
type rough struct {
	failurePolicy       string
	admits, json, quiet bool
	match               *admission.MatchResources
	controllers         []string // that the document names
}

func (s *rough) read(text json.RawMessage) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(text, &fields)
	_ = json.Unmarshal(fields["failurePolicy"], &s.failurePolicy)
	var match admission.MatchResources
	if json.Unmarshal(fields["matchConstraints"], &match) == nil {
		s.match = &match
	}
	var autogen struct {
		PodControllers struct{ Controllers []string }
	}
	_ = json.Unmarshal(fields["autogen"], &autogen)
	s.controllers = autogen.PodControllers.Controllers
	var actions []string
	if json.Unmarshal(fields["validationActions"], &actions) == nil && len(actions) > 0 {
		s.admits = !slices.ContainsFunc(actions, func(a string) bool { return a != "Audit" && a != "Warn" })
	}
	var evaluation struct {
		Mode      string
		Admission struct{ Enabled *bool }
	}
	if json.Unmarshal(fields["evaluation"], &evaluation) == nil {
		s.json = evaluation.Mode == "JSON"
		s.quiet = evaluation.Admission.Enabled != nil && !*evaluation.Admission.Enabled
	}
}

// targets returns the kinds that a document names, its followers' included.
func (s *rough) targets(roughly Roughly) []policy.Target {
	targets, ok := roughly.Targets(s.match)
	if !ok {
		return s.usualTargets(roughly.Operations)
	}
	if canGenerate(s.match) && len(targets) > 0 { // of one rule, and so of the same operations
		targets = append(targets, s.usualTargets(targets[0].Operations)...)
	}
	var kept []policy.Target
	for _, t := range targets {
		if !policy.IsExemptKind(t.Group, t.Kind) {
			kept = append(kept, t)
		}
	}
	return kept
}

// usualTargets are pods and their controllers, with those that the document names, at some
// operations.
func (s *rough) usualTargets(operations []string) []policy.Target {
	targets := []policy.Target{{Version: "*", Kind: "Pod", Operations: operations},
		{Version: "*", Kind: "Pod", Subresource: "ephemeralcontainers", Operations: operations}}
	followed := controllers()
	for _, name := range s.controllers {
		if c, ok := find(name); ok {
			followed = append(followed, c)
		}
	}
	for _, r := range constraint.Known() {
		if slices.ContainsFunc(followed, func(c controller) bool { return c.resource == r.Name && c.group == r.Group }) {
			targets = append(targets, policy.Target{Group: r.Group, Version: "*", Kind: r.Kind, Operations: operations})
		}
	}
	return targets
}

// Name returns the rule's name.
func (b *Broken) Name() string { return b.name }

// Extractors returns none: the images are not evaluated.
func (b *Broken) Extractors(*policy.Subject) []policy.Extractor { return nil }

// Targets returns the kinds that the rule may match.
func (b *Broken) Targets() []policy.Target { return b.targets }

// OnlyDocuments reports whether the document's evaluation.mode is JSON.
func (b *Broken) OnlyDocuments() bool { return b.json }

// ImagePatterns returns false: the images of the rule are unknown.
func (b *Broken) ImagePatterns() ([]string, bool) { return nil, false }

// Plan returns why the policy is broken, for subjects that it may match.
func (b *Broken) Plan(_ context.Context, s *policy.Subject, _ []policy.Image) (policy.RulePlan, error) {
	if s.Operation == "DELETE" {
		return policy.RulePlan{Skip: "nothing will run after a deletion"}, nil
	}
	matches, skip := b.Matches(s)
	if !matches {
		return policy.RulePlan{Skip: skip}, nil
	}
	return policy.RulePlan{}, b.why
}

// Validate returns why the policy is broken, for subjects that it may match.
func (b *Broken) Validate(_ context.Context, about policy.Case) policy.Validated {
	if matches, _ := b.Matches(about.Subject); !matches {
		return policy.Validated{}
	}
	return policy.Validated{Result: policy.Indeterminate, Action: b.action, Reasons: b.reasons()}
}

// BrokenMutation is the rule of a document about mutations, which apply to Kubernetes objects alone.
type BrokenMutation struct{ *Broken }

// OnlyDocuments returns false.
func (BrokenMutation) OnlyDocuments() bool { return false }

// Mutate returns why the policy is broken, for subjects that it may match.
func (b BrokenMutation) Mutate(_ context.Context, about policy.Case) policy.Mutated {
	if matches, _ := b.Matches(about.Subject); !matches {
		return policy.Mutated{}
	}
	return policy.Mutated{Result: policy.Indeterminate, Reasons: b.reasons()}
}

func (b *Broken) reasons() []policy.Reason {
	return []policy.Reason{{Code: policy.PolicyError, Message: b.why.Error()}}
}

// Matches reports whether the document may match a subject; otherwise skip is the reason.
func (b *Broken) Matches(s *policy.Subject) (matches bool, skip string) {
	switch {
	case b.quiet && AskedAtAdmission(s):
		return false, "the policy is not asked at admission"
	case b.json != (s.Kind == ""), policy.IsExemptKind(s.Group, s.Kind),
		!b.json && !slices.ContainsFunc(b.targets, func(t policy.Target) bool { return about(t, s) }):
		return false, "the policy is broken, and does not match the object"
	}
	return true, ""
}

func about(t policy.Target, s *policy.Subject) bool {
	version := t.Version == "*" || t.Version == s.Version || s.IsBody()
	return version && (s.Bare || t.IsAt(s.Operation)) && t.Means(s) && constraint.MayBeOf(t, s)
}
