package sigstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// Broken returns a policy in place of a document that does not compile, so that its images
// are undecided and not admitted: it matches pods and objects that create pods, since the
// intended images are unknown, where the compiler's policies hold. Its action is the document's, if
// that can be read. It is nil for content that is no document at all.
func (c *Compiler) Broken(document []byte, source string, why error) *policy.Policy {
	if len(document) > field.MaxDocument {
		return nil
	}
	data, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil
	}
	var d struct {
		Metadata json.RawMessage `json:"metadata"`
		Spec     json.RawMessage `json:"spec"`
	}
	var meta struct {
		Name string `json:"name"`
	}
	var settings struct {
		Mode any `json:"mode"`
	}
	_ = json.Unmarshal(data, &d) // unreadable fields stay empty
	_ = json.Unmarshal(d.Metadata, &meta)
	_ = json.Unmarshal(d.Spec, &settings)
	sum := sha256.Sum256(data)
	hash := hex.EncodeToString(sum[:])
	if meta.Name == "" {
		meta.Name = "unnamed-" + hash[:8]
	}
	everything, _ := compileMatch(nil)
	r := &brokenRule{why: why, match: everything, options: c.options}
	return &policy.Policy{
		Kind: kind, Name: meta.Name, Source: source, Hash: hash, Problems: policy.Problems{Broken: why},
		Settings: policy.Settings{AuditOnly: settings.Mode == "warn"}, Rules: []policy.Rule{r}, Targets: r.Targets(),
	}
}

// brokenRule cannot be evaluated.
type brokenRule struct {
	why     error
	match   []selected
	options Options
}

var _ policy.Selective = (*brokenRule)(nil)

// Name returns the rule's name.
func (r *brokenRule) Name() string { return ruleName }

// Extractors returns none: nothing is asked of the images.
func (r *brokenRule) Extractors(*policy.Subject) []policy.Extractor { return nil }

// Targets returns the objects that the rule may match.
func (r *brokenRule) Targets() []policy.Target { return targets(r.match) }

// ImagePatterns returns false: the intended images are unknown.
func (r *brokenRule) ImagePatterns() ([]string, bool) { return nil, false }

// Plan returns why the policy is broken, for subjects that it may match.
func (r *brokenRule) Plan(_ context.Context, s *policy.Subject, _ []policy.Image) (policy.RulePlan, error) {
	matched, unknown := matches(r.match, s)
	if !matched && unknown == nil {
		return policy.RulePlan{Skip: "the policy is broken, and does not match the object"}, nil
	}
	if skip, _ := r.options.skips(s); skip != "" { // an unknown namespace may be labelled
		return policy.RulePlan{Skip: skip}, nil
	}
	return policy.RulePlan{}, r.why
}
