package cleanup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/internal/schedule"
	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/unsent"
)

// Options are the dependencies of a Compiler.
type Options struct {
	// Context are those of context entries; the Engine is required, and Namespace is not read.
	Context rulecontext.Options
	// Now is the time before which a schedule need have none; nil means time.Now.
	Now func() time.Time
}

// Compiler compiles policies. It is immutable and safe for concurrent use.
type Compiler struct{ options Options }

// New makes a Compiler; it refuses options without an engine.
func New(options Options) (*Compiler, error) {
	if options.Context.Engine == nil {
		return nil, errors.New("cleanup policies: an engine for expressions is required")
	}
	return &Compiler{options: options}, nil
}

// FieldError is a fault of a policy with its path in the document.
type FieldError = field.Error

// Recognises is the function of that name.
func (*Compiler) Recognises(apiVersion, kind string) bool { return Recognises(apiVersion, kind) }

// Compile compiles one document, YAML or JSON. Source is where it was read. Errors refer to fields
// (*FieldError), all of them joined; a policy with an error never becomes active in part.
func (c *Compiler) Compile(text []byte, source string) (*policy.Policy, error) {
	out, err := c.compile(text, source)
	if err != nil {
		return nil, fmt.Errorf("policy in %s: %w", source, err)
	}
	return out, nil
}

func (c *Compiler) compile(text []byte, source string) (*policy.Policy, error) {
	var d policyDocument
	data, err := field.Read(text, &d)
	if err != nil {
		return nil, err
	}
	if !Recognises(d.APIVersion, d.Kind) {
		return nil, fmt.Errorf("%s %s is no cleanup policy: want CleanupPolicy or ClusterCleanupPolicy of kyverno.io/v2 or v2beta1", d.APIVersion, d.Kind)
	}
	var meta metadata
	if err := json.Unmarshal(d.Metadata, &meta); err != nil {
		return nil, field.Fail("metadata", "%w", field.Readable(err))
	}
	out := newPolicy(d.Kind, meta, data, source)
	errs := []error{document.UnknownAnnotations(meta.Annotations)}
	if meta.Name == "" {
		errs = append(errs, field.Fail("metadata.name", "is empty"))
	}
	r, err := c.rule(d.Spec, out)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.Kind, meta.Name, err)
	}
	out.Deletions = []policy.Deletion{r}
	return out, nil
}

func newPolicy(kind string, meta metadata, data []byte, source string) *policy.Policy {
	sum := sha256.Sum256(data)
	out := &policy.Policy{
		Kind: kind, Name: meta.Name, Source: source, Hash: hex.EncodeToString(sum[:]),
		Metadata: policy.Metadata{
			Title:    meta.Annotations["policies.kyverno.io/title"],
			Category: meta.Annotations["policies.kyverno.io/category"],
			Severity: meta.Annotations["policies.kyverno.io/severity"],
			Unscored: meta.Annotations["policies.kyverno.io/scored"] == "false", Unreported: document.IsUnreported(meta.Labels),
		},
	}
	if meta.Created != nil {
		out.Created = *meta.Created
	}
	if kind == Kind {
		out.Namespace = meta.Namespace
		if out.Namespace == "" {
			out.Namespace = "default"
		}
	}
	return out
}

// Broken returns a policy that replaces a document which does not compile; nil for text that is no
// document at all. It has no rules: it deletes nothing, and admission does not depend on it.
func (*Compiler) Broken(text []byte, source string, why error) *policy.Policy {
	if len(text) > field.MaxDocument {
		return nil
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil
	}
	var d struct {
		Kind     string
		Metadata json.RawMessage
	}
	var meta metadata
	_ = json.Unmarshal(data, &d) // unreadable fields stay empty
	_ = json.Unmarshal(d.Metadata, &meta)
	p := newPolicy(d.Kind, meta, data, source)
	p.Broken, p.AuditOnly = why, true // nothing of it denies
	if p.Name == "" {
		p.Name = "unnamed-" + p.Hash[:8]
	}
	return p
}

// OnlyBackground reports that admission does not depend on these policies.
func (*Compiler) OnlyBackground([]byte) bool { return true }

// rule compiles the specification.
func (c *Compiler) rule(s spec, out *policy.Policy) (*deletion, error) {
	d := &deletion{name: out.Name, namespace: out.Namespace}
	var err error
	d.Terms, err = schedule.ParseTerms(s.Schedule, s.DeletionPropagationPolicy, c.options.Now)
	errs := []error{err, checkSelection(s.Match, "spec.match"), checkNamespaces(s.Match), checkReads(s)}
	if s.Exclude != nil {
		errs = append(errs, checkSelection(*s.Exclude, "spec.exclude"))
	}
	d.selection, err = match.CompileSelection(s.Match, s.Exclude, "spec", out.Namespace)
	errs = append(errs, err)
	if err == nil {
		errs = append(errs, d.kinds(out))
	}
	options := c.options.Context
	options.Namespace = out.Namespace
	options = options.Reading(s.Context)
	d.entries, err = rulecontext.Compile(options, s.Context, "spec.context", "target")
	errs = append(errs, err)
	if _, isBlock := s.Conditions.(map[string]any); s.Conditions != nil && !isBlock {
		return nil, errors.Join(append(errs, field.Fail("spec.conditions", "want any, all or both"))...)
	}
	d.conditions, err = rule.Preconditions(condition.CompileExempting, options, s.Conditions, "spec.conditions", append(d.entries.Names(), "target")...)
	return d, errors.Join(append(errs, err)...)
}

// kinds computes the targets, and refuses those of which there are no single objects.
func (d *deletion) kinds(out *policy.Policy) error {
	const path = "spec.match"
	var errs []error
	for _, t := range d.selection.Match.TargetsAt(nil) {
		added := t.Subresource == builtin.Ephemeral && !d.selection.Match.NamesSubresource(builtin.Ephemeral)
		_, isStored := unsent.Why(t.Group, t.Kind)
		switch {
		case added: // follows from a rule about pods
			continue
		case wildcard.Contains(t.Kind):
			errs = append(errs, field.Fail(path, "a policy that deletes objects names their kinds one by one, in each entry of any and in one of all; found %s", t.Kind))
		case t.Subresource != "":
			errs = append(errs, field.Fail(path, "%s/%s: a subresource cannot be deleted: name the kind", t.Kind, t.Subresource))
		case !isStored:
			errs = append(errs, field.Fail(path, "there are no stored objects of the kind %s", t.Kind))
		}
		t.Operations = nil
		if group, known := groupOf(t); known {
			t.Group = group
		} else if wildcard.Contains(t.Group) {
			out.Warnings = append(out.Warnings, path+" names the kind "+t.Kind+" without its group, and deletes objects of every group that has one: write GROUP/VERSION/"+t.Kind)
		}
		if d.namespace != "" {
			t.Namespaces = []string{d.namespace}
		}
		d.targets = append(d.targets, t)
	}
	return errors.Join(errs...)
}

// groupOf returns Kubernetes' group for a kind without one. Events are in two groups, and the same
// objects.
func groupOf(t policy.Target) (group string, known bool) {
	if t.Group != "*" {
		return "", false
	}
	resources := builtin.Resources()
	i := slices.IndexFunc(resources, func(r builtin.Resource) bool { return r.Kind == t.Kind })
	if i < 0 {
		return "", false
	}
	return resources[i].Group, true
}
