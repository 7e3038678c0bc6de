package kyverno

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/internal/yamlline"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/action"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/autogen"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/validate"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

const (
	// maxDocument bounds a policy; the API server accepts 3 MiB of JSON.
	maxDocument = 3 << 20
	// maxRules and maxEntries bound the evaluations for each object.
	maxRules   = 500
	maxEntries = 200
	// platformsAnnotation on a policy selects the manifests of a multi-platform image that must
	// be verified: index (the default), each or any. Kyverno has no field for it.
	platformsAnnotation = "quaymaster.dev/platforms"
)

// Lookup reads cluster resources for a rule's context.
type Lookup = rulecontext.Lookup

// Options are the dependencies of a Compiler.
type Options struct {
	// Engine evaluates expressions; required.
	Engine *jmespath.Engine
	// Lookup, Caller, Images and Globals supply the entries of rules' contexts; a rule that needs
	// a nil one cannot be evaluated.
	Lookup  Lookup
	Caller  rulecontext.Caller
	Images  rulecontext.Images
	Globals rulecontext.Globals
	// Manifests serve rules about signed manifests; its Namespace is not read.
	Manifests manifests.Options
	// Params reads the parameters of rules in CEL, as Lookup does.
	Params cel.Resources
	// Now and Random are the clock and the randomness of rules in CEL; without them a rule that
	// reads them cannot be evaluated.
	Now    func() time.Time
	Random io.Reader
	// SecretNamespace is where registry secrets are that a ClusterPolicy names
	// without a namespace; empty means "kyverno", as in Kyverno.
	SecretNamespace string
}

// Compiler compiles policies. It is immutable and safe for concurrent use.
type Compiler struct {
	options  Options
	language *validate.Language
}

// New makes a Compiler; it refuses options without an engine.
func New(options Options) (*Compiler, error) {
	if options.Engine == nil {
		return nil, errors.New("kyverno policies: an engine for expressions is required")
	}
	if options.SecretNamespace == "" {
		options.SecretNamespace = "kyverno"
	}
	language := validate.NewLanguage(validate.LanguageOptions{Params: options.Params, Now: options.Now, Random: options.Random})
	return &Compiler{options: options, language: language}, nil
}

// FieldError is a fault of a policy with its path in the document.
type FieldError = field.Error

// Recognises reports whether a document of this apiVersion and kind is a policy
// of this dialect.
func Recognises(apiVersion, kind string) bool {
	return slices.Contains([]string{"kyverno.io/v1", "kyverno.io/v2beta1"}, apiVersion) && (kind == "ClusterPolicy" || kind == "Policy")
}

// Compile compiles one document, YAML or JSON. Source is where it was read. Errors refer to
// fields (*FieldError), all of them joined; a policy with an error never becomes active in part.
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
		return nil, fmt.Errorf("YAML: %w", yamlline.Readable(err))
	}
	return data, document.Decode(data, into, "")
}

func readMetadata(raw json.RawMessage) (metadata, error) {
	var meta metadata
	if err := json.Unmarshal(raw, &meta); err != nil {
		return meta, field.Fail("metadata", "%w", field.Readable(err))
	}
	return meta, nil
}

func (c *Compiler) compile(text []byte, source string) (*policy.Policy, error) {
	var d policyDocument
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
	doc         policyDocument
	out         *policy.Policy
	actions     action.Actions
	platforms   policy.Platforms
	controllers []string
	// asks: some rule is evaluated for objects or images, and enforces: one of them denies.
	asks, enforces bool
	// autogen: rules about objects follow from those about pods.
	autogen   bool
	generated []func() error // adds the rules that follow
	gate      rule.Gate      // nil for none
}

func newPolicyCompiler(c *Compiler, d policyDocument, meta metadata) (*policyCompiler, error) {
	p := &policyCompiler{Compiler: c, doc: d, out: &policy.Policy{
		Kind: d.Kind, Name: meta.Name,
		Metadata: policy.Metadata{
			Title:    meta.Annotations["policies.kyverno.io/title"],
			Category: meta.Annotations["policies.kyverno.io/category"],
			Severity: meta.Annotations["policies.kyverno.io/severity"],
			Unscored: meta.Annotations["policies.kyverno.io/scored"] == "false", Unreported: document.IsUnreported(meta.Labels),
		},
	}}
	if meta.Created != nil {
		p.out.Created = *meta.Created
	}
	var errs []error
	if meta.Name == "" {
		errs = append(errs, field.Fail("metadata.name", "is empty"))
	}
	if d.Kind == "Policy" {
		p.out.Namespace = meta.Namespace
		if meta.Namespace == "" {
			p.out.Namespace = "default"
		}
	}
	var err error
	p.out.StaleIfError, err = policy.StaleFrom(meta.Annotations)
	errs = append(errs, err)
	p.controllers, err = autogen.Controllers(meta.Annotations)
	errs = append(errs, err)
	switch wanted := meta.Annotations[platformsAnnotation]; wanted {
	case "", "index":
	case "each", "any":
		p.platforms = policy.Platforms(wanted)
	default:
		errs = append(errs, field.Fail("metadata.annotations["+platformsAnnotation+"]", "unknown value %q: want index, each or any", wanted))
	}
	errs = append(errs, document.UnknownAnnotations(meta.Annotations, platformsAnnotation, policy.StaleAnnotation), p.settings())
	return p, errors.Join(errs...)
}

// rules compiles the rules that are ours and names the others.
func (p *policyCompiler) rules() error {
	var errs []error
	seen := map[string]bool{}
	ofImages := 0
	p.autogen = autogen.OfObjects(p.doc.Spec.Rules)
	for i, raw := range p.doc.Spec.Rules {
		path := "spec.rules[" + strconv.Itoa(i) + "]"
		head, err := headOf(raw, path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if head.name == "" {
			errs = append(errs, field.Fail(path+".name", "is empty"))
		} else if seen[head.name] {
			errs = append(errs, field.Fail(path+".name", "%q is the name of an earlier rule", head.name))
		}
		seen[head.name] = true
		switch head.kind {
		case "verifyImages":
			ofImages++
			err = p.rule(raw, path)
		case "validate":
			err = p.validation(raw, path)
		case "mutate":
			err = p.mutation(raw, path)
		case ofTargets:
			err = p.alteration(raw, path)
		case "generate":
			err = p.generation(raw, path)
		}
		errs = append(errs, err)
	}
	for _, add := range p.generated {
		errs = append(errs, add())
	}
	if ofImages > 0 {
		errs = append(errs, p.onlyForObjects(len(p.doc.Spec.Rules))...)
	}
	errs = append(errs, p.checkGate())
	p.out.AuditOnly = p.asks && !p.enforces
	return errors.Join(errs...)
}

// ruleHead is the part of a rule that is read before its type is known.
type ruleHead struct{ name, kind string }

// ofTargets is the kind of a rule with mutate that changes other objects.
const ofTargets = "mutate.targets"

// headOf refuses a rule of no type, and a misspelt verifyImages next to another type: the entry
// would be ignored, and the images would not be verified as its author intended.
func headOf(raw json.RawMessage, path string) (ruleHead, error) {
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return ruleHead{}, field.Fail(path, "%w", field.Readable(err))
	}
	name, isText := fields["name"].(string)
	if fields["name"] != nil && !isText {
		return ruleHead{}, field.Fail(path+".name", "want a string")
	}
	head := ruleHead{name: name}
	if _, is := fields["verifyImages"]; is {
		head.kind = "verifyImages"
		return head, nil
	}
	if fields["validate"] == nil && fields["mutate"] == nil && fields["generate"] == nil {
		return head, errors.Join(field.Fail(path, "has none of verifyImages, validate, mutate and generate, and so would do nothing"), document.Decode(raw, &imagesRule{}, path))
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if spelling.Nearest(name, []string{"verifyImages"}) != "" {
			return head, field.Fail(path+"."+name, "unknown field%s", spelling.DidYouMean("verifyImages"))
		}
	}
	kinds := 0
	for _, kind := range []string{"validate", "mutate", "generate"} {
		if fields[kind] != nil {
			head.kind = kind
			kinds++
		}
	}
	if kinds > 1 {
		return head, field.Fail(path, oneKind)
	}
	mutation, _ := fields["mutate"].(map[string]any)
	if targets, _ := mutation["targets"].([]any); len(targets) > 0 {
		head.kind = ofTargets
	}
	return head, nil
}

// rule compiles one rule, and those that follow from it for pod controllers.
func (p *policyCompiler) rule(raw json.RawMessage, path string) error {
	var doc imagesRule
	if err := document.Decode(raw, &doc, path); err != nil {
		return err
	}
	if doc.Mutate != nil || doc.Validate != nil || doc.Generate != nil {
		return field.Fail(path, oneKind)
	}
	compiled, err := p.compileRule(doc, path)
	if err != nil {
		return err
	}
	p.asks = true
	compiled.targets = compiled.selection.Match.Targets()
	compiled.selects = !compiled.coversPods(doc)
	if err := checkKinds(compiled.targets, path, true); err != nil {
		return err
	}
	addRule(p.out, compiled)
	if !match.OfPods(compiled.selection.Match, compiled.selection.Exclude) {
		return nil
	}
	for _, g := range autogen.Followers(doc.Name, p.controllers) {
		follower := *compiled
		follower.name, follower.template = g.Name, g.Template
		follower.selection = compiled.selection.ForKinds(g.Kinds)
		follower.targets = follower.selection.Match.Targets()
		addRule(p.out, &follower)
	}
	return nil
}

const oneKind = "a rule has one of verifyImages, validate, mutate and generate: make a rule of each"

// addRule adds a rule with its targets, in the policy's namespace alone if it has one.
func addRule(p *policy.Policy, r policy.Selective) {
	p.Rules = append(p.Rules, r)
	p.Targets = joinConfined(p.Targets, r.Targets(), p.Namespace)
}

// joinConfined adds targets, in a namespace alone if there is one.
func joinConfined(list, more []policy.Target, namespace string) []policy.Target {
	more = slices.Clone(more)
	for i := range more {
		if namespace != "" {
			more[i].Namespaces = []string{namespace}
		}
	}
	return match.JoinTargets(list, more)
}
