package kyverno

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/autogen"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/validate"
)

// roughRule is the readable part of a rule in a document that does not compile.
type roughRule struct {
	name  string
	match json.RawMessage
	// images and object are set for a rule about these, and others for one about other
	// objects than the one under admission (generate, mutate with targets).
	images, object, others bool
	// operations are those that the part about the object evaluates where match names none.
	operations []string
}

// Broken returns a policy that replaces a document which does not compile, so that its state is
// reported and the objects that it would protect are indeterminate; nil for text that is no
// document at all. It selects the kinds that the document names, as far as they can be read, and
// pods and their controllers otherwise. It never selects Namespaces, Nodes, Leases, Events,
// reviews and webhook configurations, without which a cluster could not be repaired. A document
// without a rule for admission selects nothing.
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
	_ = json.Unmarshal(data, &d) // unreadable fields stay empty
	var meta metadata
	_ = json.Unmarshal(d.Metadata, &meta)
	sum := sha256.Sum256(data)
	p := &policy.Policy{
		Kind: d.Kind, Name: meta.Name, Source: source, Hash: hex.EncodeToString(sum[:]),
		Problems: policy.Problems{Broken: why},
		Settings: policy.Settings{FailOpen: failsOpen(d.Spec)},
	}
	if p.Name == "" {
		p.Name = "unnamed-" + p.Hash[:8]
	}
	if d.Kind == "Policy" {
		p.Namespace = meta.Namespace
		if p.Namespace == "" {
			p.Namespace = "default"
		}
	}
	rules, readable := roughRules(d.Spec)
	if !readable {
		rules = []roughRule{{name: "unreadable", images: true, object: true, operations: validate.Operations()}}
	}
	for _, r := range rules {
		if r.images {
			addRule(p, &brokenRule{name: r.name, why: why, targets: r.targets(meta.Annotations, nil)})
		}
		if r.object {
			broken := brokenRule{name: r.name, why: why, targets: match.WithSent(r.targets(meta.Annotations, r.operations))}
			p.Validations = append(p.Validations, &brokenValidation{broken})
			addTargets(p, broken.targets)
		}
	}
	return p
}

// OnlyBackground reports whether all rules of a document are about other objects than the
// one under admission, so that the gateway denies nothing because of it.
func OnlyBackground(document []byte) bool {
	var d struct {
		Spec json.RawMessage `json:"spec"`
	}
	data, err := yaml.YAMLToJSON(document)
	if err != nil || json.Unmarshal(data, &d) != nil {
		return false
	}
	rules, readable := roughRules(d.Spec)
	return readable && len(rules) > 0 && !slices.ContainsFunc(rules, func(r roughRule) bool { return r.images || r.object || !r.others })
}

// roughRules returns the rules that can be separated; false if the list itself cannot be read and
// its rules are unknown.
func roughRules(text json.RawMessage) ([]roughRule, bool) {
	var spec struct {
		Rules []json.RawMessage `json:"rules"`
	}
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, false
	}
	var rules []roughRule
	for _, raw := range spec.Rules {
		r := roughRule{operations: []string{"CREATE", "UPDATE"}}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, false
		}
		_ = json.Unmarshal(fields["name"], &r.name) // what is no text stays empty
		r.match = fields["match"]
		for name, value := range fields {
			// A misspelt one is why the document does not compile.
			switch spelling.Nearest(name, []string{"verifyImages", "validate", "mutate", "generate"}) {
			case "verifyImages":
				r.images = true
			case "validate":
				r.object, r.operations = true, validate.RoughOperations(value)
			case "mutate":
				r.others = changesOthers(value)
				r.object = r.object || !r.others
			case "generate":
				r.others = true
			}
		}
		if !r.images && !r.object && !r.others { // of no recognizable kind: it may be any
			r.object, r.operations = true, validate.Operations()
		}
		rules = append(rules, r)
	}
	return rules, true
}

// changesOthers reports whether `mutate` of a rule has targets.
func changesOthers(mutate json.RawMessage) bool {
	var m struct {
		Targets []json.RawMessage `json:"targets"`
	}
	_ = json.Unmarshal(mutate, &m) // an unreadable value has none
	return len(m.Targets) > 0
}

// targets returns the kinds that the rule names, its followers' included, at operations
// where it names none; nil means those that bring images, and no deletion.
func (r roughRule) targets(annotations map[string]string, operations []string) []policy.Target {
	targetsOf := match.Block.Targets
	if operations != nil {
		targetsOf = func(b match.Block) []policy.Target { return b.TargetsAt(operations) }
	}
	var doc match.Document
	if err := json.Unmarshal(r.match, &doc); err != nil {
		return podTargets(operations)
	}
	block, err := match.Compile(doc, "match")
	if err != nil && !block.ReadsKinds() || block.Empty() {
		return podTargets(operations)
	}
	targets := targetsOf(block)
	kinds, err := autogen.Controllers(annotations)
	if err != nil {
		kinds = match.PodControllers()
	}
	if match.OfPods(block, match.Block{}) {
		for _, g := range autogen.Followers(r.name, kinds) {
			targets = match.JoinTargets(targets, targetsOf(block.ForKinds(g.Kinds, false)))
		}
	}
	var kept []policy.Target
	for _, t := range targets {
		if !policy.IsExemptKind(t.Group, t.Kind) {
			kept = append(kept, t)
		}
	}
	return kept
}

// podTargets are those of a rule whose kinds are unknown. It does not hold at deletions: pods
// need no protection that the rule may not have meant, and a kubelet that cannot delete a pod
// blocks its node.
func podTargets(operations []string) []policy.Target {
	if operations != nil {
		operations = slices.DeleteFunc(slices.Clone(operations), func(o string) bool { return o == "DELETE" })
	}
	return match.PodTargets(operations)
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

// brokenRule replaces a rule that cannot be evaluated.
type brokenRule struct {
	name    string
	why     error
	targets []policy.Target
}

var _ policy.Selective = (*brokenRule)(nil)

// Name returns the rule's name.
func (r *brokenRule) Name() string { return r.name }

// Extractors returns none: the images are not evaluated.
func (r *brokenRule) Extractors(*policy.Subject) []policy.Extractor { return nil }

// Targets returns the kinds that the rule may match.
func (r *brokenRule) Targets() []policy.Target { return r.targets }

// ImagePatterns returns false: the images of the rule are unknown.
func (r *brokenRule) ImagePatterns() ([]string, bool) { return nil, false }

// Plan returns why the policy is broken, for subjects that it may match.
func (r *brokenRule) Plan(_ context.Context, s *policy.Subject, _ []policy.Image) (policy.RulePlan, error) {
	if s.Operation == "DELETE" {
		return policy.RulePlan{Skip: "nothing will run after a deletion"}, nil
	}
	if !policy.IsExemptKind(s.Group, s.Kind) && match.MayMatch(r.targets, s) {
		return policy.RulePlan{}, r.why
	}
	return policy.RulePlan{Skip: "the policy is broken, and does not match the object"}, nil
}

// brokenValidation replaces an object rule that cannot be evaluated.
type brokenValidation struct{ brokenRule }

var _ policy.Validation = (*brokenValidation)(nil)

// Validate returns why the policy is broken, for objects that it may match.
func (r *brokenValidation) Validate(_ context.Context, about policy.Case) policy.Validated {
	s := about.Subject
	if s.Document || policy.IsExemptKind(s.Group, s.Kind) || !match.MayMatch(r.targets, s) {
		return policy.Validated{}
	}
	return policy.Validated{Result: policy.Indeterminate, Action: policy.Enforce, Reasons: []policy.Reason{rule.ReasonOf(r.why)}}
}
