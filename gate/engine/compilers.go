package engine

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/components"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/cleanup"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/deleting"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/generating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
	"github.com/quaymaster/quaymaster/policy/dialect/native"
	"github.com/quaymaster/quaymaster/policy/dialect/override"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// Compilers compile policies of every dialect.
type Compilers struct {
	Kyverno    *kyverno.Compiler
	Images     *imagevalidating.Compiler
	Validating *validating.Compiler
	Mutating   *mutating.Compiler
	Deleting   *deleting.Compiler
	Cleanup    *cleanup.Compiler
	Generating *generating.Compiler
	Sigstore   *sigstore.Compiler
	// Native compiles the API server's own policies. It is none of the Dialects, because the API server
	// evaluates them at admission; native.Join prepares their documents.
	Native *native.Compiler
	// TrustRoots are those that ClusterImagePolicies name; the reader of documents adds them.
	// Attestors are the TUF repositories of attestors; the owner of a network client reads them.
	TrustRoots *trustroot.Roots
	Attestors  *attestor.Repositories
}

// CompilerOptions are the data sources and settings of policies.
type CompilerOptions struct {
	// ConfigMaps reads the ConfigMaps that policies name; required.
	ConfigMaps kyverno.Lookup
	// RuleConfigMaps reads the ConfigMaps of rule contexts; nil means ConfigMaps.
	RuleConfigMaps kyverno.Lookup
	// Secrets reads the Secrets that ClusterImagePolicies name; required.
	Secrets sigstore.Secrets
	// Offline: no connection is opened for a policy that is stored at a URL.
	Offline bool
	// KyvernoSecrets and SigstoreSecrets are the namespaces of Secrets, and of Sigstore's
	// ConfigMaps, for names without one; empty means kyverno and cosign-system.
	KyvernoSecrets, SigstoreSecrets string
	// Resources, HTTP and Kinds serve expressions, and define the kinds that a policy may name
	// in addition to those of Kubernetes; nil means none.
	Resources cel.Resources
	HTTP      cel.HTTP
	Kinds     constraint.Resources
	// Caller, Images and Globals serve the contexts of rules, and expressions. A rule that needs
	// one that is nil cannot be evaluated.
	Caller  rulecontext.Caller
	Images  ImageReader
	Globals GlobalReader
	// Manifests serve rules about signed manifests; its Namespace is not read.
	Manifests manifests.Options
	// OptIn confines ClusterImagePolicies to namespaces with the opt-in label.
	OptIn bool
	// Now is the time for rules and expressions; nil means time.Now.
	Now func() time.Time
}

// NewCompilers makes the compilers.
func NewCompilers(o CompilerOptions) (Compilers, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	expressions, err := jmespath.New(jmespath.Options{Now: o.Now, Random: rand.Reader})
	if err != nil {
		return Compilers{}, err
	}
	c := Compilers{TrustRoots: &trustroot.Roots{}, Attestors: attestor.NewRepositories()}
	rules, outside := o.contexts()
	rules.Engine, rules.Params, rules.Now, rules.Random, rules.SecretNamespace = expressions, o.Resources, o.Now, rand.Reader, o.KyvernoSecrets
	c.Kyverno, err = kyverno.New(rules)
	if err != nil {
		return Compilers{}, err
	}
	c.Cleanup, err = cleanup.New(cleanup.Options{Now: o.Now, Context: rulecontext.Options{
		Engine: expressions, Lookup: rules.Lookup, Caller: rules.Caller, Images: rules.Images, Globals: rules.Globals,
	}})
	if err != nil {
		return Compilers{}, err
	}
	shared := kyvernocel.Options{Outside: outside, Kinds: o.Kinds, Now: o.Now, Random: rand.Reader}
	images := imagevalidating.Options{
		Options: shared, Roots: c.Attestors, SecretNamespace: o.KyvernoSecrets,
	}
	images.Bills, err = components.NewCache()
	if err != nil {
		return Compilers{}, err
	}
	if o.Images != nil {
		images.Images = metadata{o.Images}
	}
	c.Images = imagevalidating.New(images)
	c.Validating = validating.New(shared)
	c.Mutating = mutating.New(shared)
	c.Deleting = deleting.New(shared)
	c.Native = native.New(native.Options{Options: shared})
	c.Generating = generating.New(shared)
	sigstoreOptions := sigstore.Options{
		TrustRoots: c.TrustRoots, Lookup: o.ConfigMaps, Secrets: o.Secrets, Namespace: o.SigstoreSecrets, OptIn: o.OptIn, Now: o.Now,
	}
	if !o.Offline {
		sigstoreOptions.Fetcher, err = newTexts(GuardedTransport())
		if err != nil {
			return Compilers{}, err
		}
	}
	c.Sigstore = sigstore.New(sigstoreOptions)
	return c, nil
}

// ImageReader reads image data from registries for rules; RuleImages implements it.
type ImageReader interface {
	rulecontext.Images
	cel.ImageData
}

// metadata is the result of image.GetMetadata: the data of a context, with the additional names
// of expressions.
type metadata struct{ rulecontext.Images }

// ImageData implements imagevalidating.Images.
func (m metadata) ImageData(ctx context.Context, reference string, credentials policy.Credentials) (map[string]any, error) {
	data, err := m.Images.ImageData(ctx, reference, credentials)
	if err != nil {
		return nil, err
	}
	return WithNames(data), nil
}

// contexts returns the sources for contexts of rules, and for expressions. A missing source
// stays nil, and does not become an interface with a nil value.
func (o CompilerOptions) contexts() (kyverno.Options, cel.Outside) {
	rules := kyverno.Options{Lookup: o.ConfigMaps, Caller: o.Caller, Manifests: o.Manifests}
	if o.RuleConfigMaps != nil {
		rules.Lookup = o.RuleConfigMaps
	}
	outside := cel.Outside{Resources: o.Resources, HTTP: o.HTTP}
	if o.Images != nil {
		rules.Images, outside.Images = o.Images, o.Images
	}
	if o.Globals != nil {
		rules.Globals, outside.GlobalContext = o.Globals, o.Globals
	}
	return rules, outside
}

// GlobalReader reads GlobalContextEntries, for rules and for expressions; Globals implements it.
type GlobalReader interface {
	rulecontext.Globals
	cel.GlobalContext
}

// Globals reads from a store.
type Globals struct{ globalcontext.Expressions }

// Global implements rulecontext.Globals.
func (g Globals) Global(_ context.Context, name string) (any, error) {
	return g.Store.Get(g.Store.Reference(name))
}

// Dialects are the languages of policies.
func (c Compilers) Dialects() []catalog.Dialect {
	return []catalog.Dialect{
		kyverno.Policies{Compiler: c.Kyverno}, c.Images, c.Validating, c.Mutating, c.Generating, c.Deleting, c.Cleanup,
		sigstore.Policies{Compiler: c.Sigstore},
	}
}

// Exceptions are the languages of exceptions.
func (c Compilers) Exceptions() []catalog.Exceptions {
	return []catalog.Exceptions{kyverno.Exceptions{Compiler: c.Kyverno}, imagevalidating.Exceptions{Compiler: c.Images}}
}

// Overrides is the language of overrides.
func (Compilers) Overrides() catalog.Overrides { return override.Overrides{} }
