package imagevalidating

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	admission "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// Broken returns a policy that stands for a document which does not compile, so that
// what it means to protect is undecided and not admitted; nil for what is no document
// at all. It speaks of the resources that the document names, as far as they can be
// read, with the controllers that follow from pods, and of pods and their controllers
// otherwise; never of Namespaces, Nodes, Leases, Events, reviews and webhook
// configurations, without which a cluster could not be mended.
func (c *Compiler) Broken(text []byte, source string, why error) *policy.Policy {
	if len(text) > field.MaxDocument {
		return nil
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil
	}
	var d struct {
		Kind           string
		Metadata, Spec json.RawMessage
	}
	var meta metadata
	var spec roughSpec
	_ = json.Unmarshal(data, &d) // what cannot be read stays empty
	_ = json.Unmarshal(d.Metadata, &meta)
	spec.read(d.Spec)
	sum := sha256.Sum256(data)
	p := &policy.Policy{
		Kind: d.Kind, Name: meta.Name, Source: source, Hash: hex.EncodeToString(sum[:]), Broken: why,
		FailOpen: spec.failurePolicy == "Ignore", AuditOnly: spec.admits,
	}
	if p.Name == "" {
		p.Name = "unnamed-" + p.Hash[:8]
	}
	p.Namespace = namespaceOf(d.Kind, meta)
	r := &brokenRule{name: p.Name, why: why, json: spec.json, quiet: spec.quiet, targets: c.roughTargets(spec)}
	if p.Namespace != "" {
		for i := range r.targets {
			r.targets[i].Namespaces = []string{p.Namespace}
		}
	}
	p.Rules = []policy.Rule{r}
	if !spec.quiet && !spec.json {
		p.Targets = r.targets
	}
	return p
}

// roughSpec is what is read of a document that does not compile. What cannot be read
// is what is strictest.
type roughSpec struct {
	failurePolicy       string
	admits, json, quiet bool
	match               *admission.MatchResources
}

func (s *roughSpec) read(text json.RawMessage) {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(text, &fields)
	_ = json.Unmarshal(fields["failurePolicy"], &s.failurePolicy)
	var match admission.MatchResources
	if json.Unmarshal(fields["matchConstraints"], &match) == nil {
		s.match = &match
	}
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

// roughTargets returns the kinds that a document names, its followers' included.
func (c *Compiler) roughTargets(spec roughSpec) []policy.Target {
	targets, ok := constraint.Rough(spec.match, c.options.Kinds)
	if !ok {
		return usualTargets()
	}
	if canGenerate(spec.match) {
		targets = append(targets, usualTargets()...)
	}
	var kept []policy.Target
	for _, t := range targets {
		if !policy.Spared(t.Group, t.Kind) {
			kept = append(kept, t)
		}
	}
	return kept
}

// usualTargets are pods and their controllers.
func usualTargets() []policy.Target {
	targets := []policy.Target{{Version: "*", Kind: "Pod"}, {Version: "*", Kind: "Pod", Subresource: "ephemeralcontainers"}}
	for _, r := range constraint.Known() {
		if slices.ContainsFunc(controllers(), func(c controller) bool { return c.resource == r.Name && c.group == r.Group }) {
			targets = append(targets, policy.Target{Group: r.Group, Version: "*", Kind: r.Kind})
		}
	}
	return targets
}

// brokenRule cannot be asked.
type brokenRule struct {
	name    string
	why     error
	json    bool
	quiet   bool
	targets []policy.Target
}

var (
	_ policy.Selective   = (*brokenRule)(nil)
	_ policy.OfDocuments = (*brokenRule)(nil)
)

// Name returns the rule's name.
func (r *brokenRule) Name() string { return r.name }

// Extractors returns none: nothing is asked of the images.
func (r *brokenRule) Extractors(*policy.Subject) []policy.Extractor { return nil }

// Targets returns what the rule may speak of.
func (r *brokenRule) Targets() []policy.Target { return r.targets }

// OnlyDocuments reports whether the policy's evaluation.mode is JSON.
func (r *brokenRule) OnlyDocuments() bool { return r.json }

// ImagePatterns returns false: which images are meant is not known.
func (r *brokenRule) ImagePatterns() ([]string, bool) { return nil, false }

// Plan returns why the policy is broken, for subjects that it may speak of.
func (r *brokenRule) Plan(_ context.Context, s *policy.Subject, _ []policy.Image) (policy.RulePlan, error) {
	if s.Operation == "DELETE" {
		return policy.RulePlan{Skip: "nothing will run after a deletion"}, nil
	}
	if r.quiet && askedAtAdmission(s) {
		return policy.RulePlan{Skip: "the policy is not asked at admission"}, nil
	}
	if r.json == (s.Kind == "") && !policy.Spared(s.Group, s.Kind) && (r.json || slices.ContainsFunc(r.targets, func(t policy.Target) bool { return speaks(t, s) })) {
		return policy.RulePlan{}, r.why
	}
	return policy.RulePlan{Skip: "the policy is broken, and does not speak of the object"}, nil
}

func speaks(t policy.Target, s *policy.Subject) bool {
	either := func(pattern, text string) bool { return pattern == "*" || pattern == text }
	sub := either(t.Subresource, s.Subresource) || s.Bare && t.Subresource == "ephemeralcontainers"
	operation := s.Bare || len(t.Operations) == 0 || slices.Contains(t.Operations, s.Operation)
	namespace := len(t.Namespaces) == 0 || slices.Contains(t.Namespaces, s.Namespace) || s.Bare && s.Namespace == ""
	return either(t.Group, s.Group) && either(t.Version, s.Version) && either(t.Kind, s.Kind) && sub && operation && namespace
}
