package kyverno

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// roughRule is what is read of a rule in a document that does not compile.
type roughRule struct {
	Name         string          `json:"name"`
	VerifyImages json.RawMessage `json:"verifyImages"`
	Match        json.RawMessage `json:"match"`
}

// Broken returns a policy that stands for a document which does not compile, so
// that what it means to protect is undecided and not admitted; nil if none of its
// rules is ours. It speaks of the kinds that the document names, as far as they
// can be read, and of pods and their controllers otherwise; never of Namespaces,
// Nodes, Leases, Events, reviews and webhook configurations, without which a
// cluster could not be mended.
func Broken(document []byte, source string, why error) *policy.Policy {
	var d struct {
		Kind     string          `json:"kind"`
		Metadata json.RawMessage `json:"metadata"`
		Spec     json.RawMessage `json:"spec"`
	}
	data, err := yaml.YAMLToJSON(document)
	if err != nil || len(document) > maxDocument {
		return nil
	}
	_ = json.Unmarshal(data, &d) // what cannot be read stays empty
	var meta metadata
	_ = json.Unmarshal(d.Metadata, &meta)
	sum := sha256.Sum256(data)
	p := &policy.Policy{
		Kind: d.Kind, Name: meta.Name, Source: source, Hash: hex.EncodeToString(sum[:]), Broken: why, FailOpen: failsOpen(d.Spec),
	}
	if p.Name == "" {
		p.Name = "unnamed-" + p.Hash[:8]
	}
	if d.Kind == "Policy" {
		if p.Namespace = meta.Namespace; p.Namespace == "" {
			p.Namespace = "default"
		}
	}
	rules, readable := roughRules(d.Spec)
	if !readable {
		addRule(p, &brokenRule{name: "unreadable", why: why, targets: usualTargets()})
	}
	for _, r := range rules {
		if r.VerifyImages != nil {
			addRule(p, &brokenRule{name: r.Name, why: why, targets: r.targets(meta.Annotations)})
		}
	}
	if len(p.Rules) == 0 {
		return nil
	}
	return p
}

// roughRules returns the rules that can be told apart; false if the list itself
// cannot be read, so that nobody knows what it holds.
func roughRules(text json.RawMessage) ([]roughRule, bool) {
	var spec struct {
		Rules []json.RawMessage `json:"rules"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, false
	}
	var rules []roughRule
	for _, raw := range spec.Rules {
		var r roughRule
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, false
		}
		_ = json.Unmarshal(fields["name"], &r.Name) // what is no text stays empty
		r.Match = fields["match"]
		for field, value := range fields {
			// A misspelt one is why the document does not compile.
			if nearest(field, []string{"verifyImages"}) != "" {
				r.VerifyImages = value
			}
		}
		rules = append(rules, r)
	}
	return rules, true
}

// targets returns the kinds that the rule names, its followers' included.
func (r roughRule) targets(annotations map[string]string) []policy.Target {
	var doc matchBlock
	if err := json.Unmarshal(r.Match, &doc); err != nil {
		return usualTargets()
	}
	match, err := compileBlock(doc, "match")
	if err != nil || len(match.filters) == 0 {
		return usualTargets()
	}
	targets := match.targets()
	kinds, err := controllers(annotations)
	if err != nil {
		kinds = podControllers()
	}
	if canGenerate(match, block{}) {
		for _, g := range generate(r.Name, kinds) {
			targets = joinTargets(targets, match.forKinds(g.kinds).targets())
		}
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
	targets := filter{kinds: []kindSelector{{group: "", version: "*", kind: "Pod"}}}.targets()
	for _, kind := range podControllers() {
		targets = append(targets, policy.Target{Group: groupOf(kind), Version: "*", Kind: kind})
	}
	return targets
}

// failsOpen reads the failure setting, and fails closed where it cannot.
func failsOpen(text json.RawMessage) bool {
	var spec struct {
		FailurePolicy        any            `json:"failurePolicy"`
		WebhookConfiguration map[string]any `json:"webhookConfiguration"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return false
	}
	if own := spec.WebhookConfiguration["failurePolicy"]; own != nil && own != "" {
		return own == "Ignore"
	}
	return spec.FailurePolicy == "Ignore"
}

// brokenRule cannot be asked.
type brokenRule struct {
	name    string
	why     error
	targets []policy.Target
}

var _ policy.Selective = (*brokenRule)(nil)

// Name returns the rule's name.
func (r *brokenRule) Name() string { return r.name }

// Extractors returns none: nothing is asked of the images.
func (r *brokenRule) Extractors(*policy.Subject) []policy.Extractor { return nil }

// Targets returns what the rule may speak of.
func (r *brokenRule) Targets() []policy.Target { return r.targets }

// ImagePatterns returns false: which images are meant is not known.
func (r *brokenRule) ImagePatterns() ([]string, bool) { return nil, false }

// Plan returns why the policy is broken, for subjects that it may speak of.
func (r *brokenRule) Plan(_ context.Context, s *policy.Subject, _ []policy.Image) (policy.RulePlan, error) {
	if s.Operation == "DELETE" {
		return policy.RulePlan{Skip: "nothing will run after a deletion"}, nil
	}
	if !policy.Spared(s.Group, s.Kind) && speaks(r.targets, s) {
		return policy.RulePlan{}, r.why
	}
	return policy.RulePlan{Skip: "the policy is broken, and does not speak of the object"}, nil
}

func speaks(targets []policy.Target, s *policy.Subject) bool {
	for _, t := range targets {
		kind := kindSelector{group: t.Group, version: t.Version, kind: t.Kind, subresource: t.Subresource}
		if s.Bare {
			if kind.matchesBare(s, false) && (s.Namespace == "" || len(t.Namespaces) == 0 || wildcard.Any(t.Namespaces, s.Namespace)) {
				return true
			}
			continue
		}
		operations := t.Operations
		if len(operations) == 0 {
			operations = []string{"CREATE", "UPDATE"}
		}
		if kind.matches(s) && wildcard.Any(operations, s.Operation) && (len(t.Namespaces) == 0 || wildcard.Any(t.Namespaces, s.Namespace)) {
			return true
		}
	}
	return false
}
