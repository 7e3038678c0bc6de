package kyverno

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/jmespath"
)

const (
	// maxDocument bounds a policy; the API server takes 3 MiB of JSON.
	maxDocument = 3 << 20
	// maxRules and maxEntries bound what is evaluated for each object.
	maxRules   = 500
	maxEntries = 200
	// platformsAnnotation on a policy says which manifests of a multi-platform
	// image must be proved: index (the default), each or any. Kyverno has no
	// field for it.
	platformsAnnotation = "quaymaster.dev/platforms"
)

// Lookup reads what a rule's context names from the cluster.
type Lookup interface {
	// ConfigMap returns the object as JSON. A ConfigMap that is not there is an
	// error.
	ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error)
}

// Options are what a Compiler needs.
type Options struct {
	// Engine evaluates expressions; required.
	Engine *jmespath.Engine
	// Lookup reads ConfigMaps; without it a rule that needs one cannot be asked.
	Lookup Lookup
	// SecretNamespace is where registry secrets are that a ClusterPolicy names
	// without a namespace; empty means "kyverno", as in Kyverno.
	SecretNamespace string
}

// Compiler compiles policies. It is immutable and safe for concurrent use.
type Compiler struct{ options Options }

// New makes a Compiler; it refuses options without an engine.
func New(options Options) (*Compiler, error) {
	if options.Engine == nil {
		return nil, errors.New("kyverno policies: an engine for expressions is required")
	}
	if options.SecretNamespace == "" {
		options.SecretNamespace = "kyverno"
	}
	return &Compiler{options: options}, nil
}

// Recognises reports whether a document of this apiVersion and kind is a policy
// of this dialect.
func Recognises(apiVersion, kind string) bool {
	return slices.Contains([]string{"kyverno.io/v1", "kyverno.io/v2beta1"}, apiVersion) && (kind == "ClusterPolicy" || kind == "Policy")
}

// Compile compiles one document, YAML or JSON. Source says where it was read.
// Errors are about fields (*FieldError), all that were found joined; a policy
// with an error never becomes active in part.
func (c *Compiler) Compile(text []byte, source string) (*policy.Policy, error) {
	compiled, err := c.compile(text, source)
	if err != nil {
		return nil, fmt.Errorf("policy in %s: %w", source, err)
	}
	return compiled, nil
}

// read decodes a document strictly, and returns it as JSON.
func read(text []byte, into any) ([]byte, error) {
	if len(text) > maxDocument {
		return nil, fmt.Errorf("the document of %d bytes %w of %d", len(text), jmespath.ErrTooLarge, maxDocument)
	}
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	return data, decode(data, into, "")
}

func readMetadata(raw json.RawMessage) (metadata, error) {
	var meta metadata
	if err := json.Unmarshal(raw, &meta); err != nil {
		return meta, fail("metadata", "%w", readable(err))
	}
	return meta, nil
}

func (c *Compiler) compile(text []byte, source string) (*policy.Policy, error) {
	var d document
	data, err := read(text, &d)
	if err != nil {
		return nil, err
	}
	if !Recognises(d.APIVersion, d.Kind) {
		return nil, fmt.Errorf("%s %s is no Kyverno policy: want ClusterPolicy or Policy of kyverno.io/v1 or v2beta1", d.APIVersion, d.Kind)
	}
	meta, err := readMetadata(d.Metadata)
	if err != nil {
		return nil, err
	}
	p, err := newPolicyCompiler(c, d, meta)
	if err != nil {
		return nil, err
	}
	if err := p.rules(); err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.Kind, meta.Name, err)
	}
	sum := sha256.Sum256(data)
	p.out.Source, p.out.Hash = source, hex.EncodeToString(sum[:])
	return p.out, nil
}

// policyCompiler compiles one policy.
type policyCompiler struct {
	*Compiler
	doc         document
	out         *policy.Policy
	actions     actions
	platforms   policy.Platforms
	controllers []string
	enforces    bool
}

func newPolicyCompiler(c *Compiler, d document, meta metadata) (*policyCompiler, error) {
	p := &policyCompiler{Compiler: c, doc: d, out: &policy.Policy{
		Kind: d.Kind, Name: meta.Name,
		Title:    meta.Annotations["policies.kyverno.io/title"],
		Category: meta.Annotations["policies.kyverno.io/category"],
		Severity: meta.Annotations["policies.kyverno.io/severity"],
	}}
	var errs []error
	if meta.Name == "" {
		errs = append(errs, fail("metadata.name", "is empty"))
	}
	if d.Kind == "Policy" {
		if p.out.Namespace = meta.Namespace; meta.Namespace == "" {
			p.out.Namespace = "default"
		}
	}
	var err error
	p.controllers, err = controllers(meta.Annotations)
	errs = append(errs, err)
	switch wanted := meta.Annotations[platformsAnnotation]; wanted {
	case "", "index":
	case "each", "any":
		p.platforms = policy.Platforms(wanted)
	default:
		errs = append(errs, fail("metadata.annotations["+platformsAnnotation+"]", "unknown value %q: want index, each or any", wanted))
	}
	errs = append(errs, p.settings())
	return p, errors.Join(errs...)
}

// settings reads the fields of spec beside the rules.
func (p *policyCompiler) settings() error {
	s := p.doc.Spec
	var errs []error
	failurePolicy, path := s.FailurePolicy, "spec.failurePolicy"
	if w := s.WebhookConfiguration; w != nil {
		if w.FailurePolicy != "" {
			failurePolicy, path = w.FailurePolicy, "spec.webhookConfiguration.failurePolicy"
		}
		if len(w.MatchConditions) > 0 {
			errs = append(errs, unsupported("spec.webhookConfiguration.matchConditions", "a condition in CEL"))
		}
	}
	switch failurePolicy {
	case "", "Fail":
	case "Ignore":
		p.out.FailOpen = true
	default:
		errs = append(errs, fail(path, "unknown value %q: want Fail or Ignore", failurePolicy))
	}
	errs = append(errs, p.timeout())
	if s.Admission != nil && !*s.Admission {
		errs = append(errs, unsupported("spec.admission", "a policy for background scans alone"))
	}
	if s.ApplyRules != "" && s.ApplyRules != "All" && s.ApplyRules != "One" {
		errs = append(errs, fail("spec.applyRules", "unknown value %q: want All or One", s.ApplyRules))
	}
	var err error
	p.actions, err = compileActions(s)
	errs = append(errs, err)
	if len(s.Rules) == 0 {
		errs = append(errs, fail("spec.rules", "is empty"))
	}
	if len(s.Rules) > maxRules {
		errs = append(errs, fail("spec.rules", "the number of rules %w of %d", jmespath.ErrTooLarge, maxRules))
	}
	return errors.Join(errs...)
}

// The bounds of a webhook's timeout in Kubernetes, in seconds.
const minTimeout, maxTimeout = 1, 30

// timeout reads how long a decision may take; the newer field wins.
func (p *policyCompiler) timeout() error {
	seconds, path := p.doc.Spec.WebhookTimeoutSeconds, "spec.webhookTimeoutSeconds"
	if w := p.doc.Spec.WebhookConfiguration; w != nil && w.TimeoutSeconds != nil {
		seconds, path = w.TimeoutSeconds, "spec.webhookConfiguration.timeoutSeconds"
	}
	if seconds == nil {
		return nil
	}
	if *seconds < minTimeout || *seconds > maxTimeout {
		return fail(path, "want %d to %d seconds, found %d", minTimeout, maxTimeout, *seconds)
	}
	p.out.Timeout = time.Duration(*seconds) * time.Second
	return nil
}

// rules compiles the rules that are ours and names the others.
func (p *policyCompiler) rules() error {
	var errs []error
	seen := map[string]bool{}
	ours := 0
	for i, raw := range p.doc.Spec.Rules {
		path := "spec.rules[" + strconv.Itoa(i) + "]"
		head, err := headOf(raw, path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if head.name == "" {
			errs = append(errs, fail(path+".name", "is empty"))
		} else if seen[head.name] {
			errs = append(errs, fail(path+".name", "%q is the name of an earlier rule", head.name))
		}
		seen[head.name] = true
		if !head.ours {
			p.out.NotOurs = append(p.out.NotOurs, head.name)
			continue
		}
		ours++
		errs = append(errs, p.rule(raw, path))
	}
	if p.doc.Spec.ApplyRules == "One" && ours > 0 && len(p.doc.Spec.Rules) > 1 {
		errs = append(errs, unsupported("spec.applyRules", "One, in a policy of several rules,"))
	}
	p.out.AuditOnly = ours > 0 && !p.enforces
	return errors.Join(errs...)
}

// ruleHead is what is read of a rule before it is known whether it is ours.
type ruleHead struct {
	name string
	ours bool
}

// headOf refuses a rule of no kind, and a misspelt verifyImages beside another
// kind: it would be left alone, and who wrote it believes images verified.
func headOf(raw json.RawMessage, path string) (ruleHead, error) {
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return ruleHead{}, fail(path, "%w", readable(err))
	}
	name, isText := fields["name"].(string)
	if fields["name"] != nil && !isText {
		return ruleHead{}, fail(path+".name", "want a string")
	}
	head := ruleHead{name: name}
	if _, head.ours = fields["verifyImages"]; head.ours {
		return head, nil
	}
	if fields["validate"] == nil && fields["mutate"] == nil && fields["generate"] == nil {
		return head, errors.Join(fail(path, "has none of verifyImages, validate, mutate and generate, and so would do nothing"), decode(raw, &rule{}, path))
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		if nearest(field, []string{"verifyImages"}) != "" {
			return head, fail(path+"."+field, "unknown field: did you mean verifyImages?")
		}
	}
	return head, nil
}

// rule compiles one rule, and those that follow from it for pod controllers.
func (p *policyCompiler) rule(raw json.RawMessage, path string) error {
	var doc rule
	if err := decode(raw, &doc, path); err != nil {
		return err
	}
	if doc.Mutate != nil || doc.Validate != nil || doc.Generate != nil {
		return fail(path, "a rule has one of verifyImages, validate, mutate and generate: make a rule of each")
	}
	compiled, err := p.compileRule(doc, path)
	if err != nil {
		return err
	}
	compiled.targets = compiled.match.targets()
	addRule(p.out, compiled)
	if !canGenerate(compiled.match, compiled.exclude) {
		return nil
	}
	for _, g := range generate(doc.Name, p.controllers) {
		follower := *compiled
		follower.name, follower.template = g.name, g.template
		follower.match, follower.exclude = compiled.match.forKinds(g.kinds), compiled.exclude.forKinds(g.kinds)
		follower.targets = follower.match.targets()
		addRule(p.out, &follower)
	}
	return nil
}

// addRule adds a rule with what it may speak of, in the policy's namespace alone
// if it has one.
func addRule(p *policy.Policy, r policy.Selective) {
	p.Rules = append(p.Rules, r)
	targets := r.Targets()
	for i := range targets {
		if p.Namespace != "" {
			targets[i].Namespaces = []string{p.Namespace}
		}
	}
	p.Targets = joinTargets(p.Targets, targets)
}
