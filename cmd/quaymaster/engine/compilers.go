package engine

import (
	"crypto/rand"
	"time"

	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/cel"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/imagevalidating"
	"github.com/quaymaster/quaymaster/policy/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/kyverno"
	"github.com/quaymaster/quaymaster/policy/override"
	"github.com/quaymaster/quaymaster/policy/sigstore"
	"github.com/quaymaster/quaymaster/policy/sigstore/trustroot"
)

// Compilers compile policies of every dialect.
type Compilers struct {
	Kyverno  *kyverno.Compiler
	Images   *imagevalidating.Compiler
	Sigstore *sigstore.Compiler
	// TrustRoots are those that ClusterImagePolicies name; whoever reads documents
	// fills them. Attestors are the TUF repositories of attestors; whoever may open
	// connections reads them.
	TrustRoots *trustroot.Roots
	Attestors  *attestor.Repositories
}

// CompilerOptions are what policies may look at.
type CompilerOptions struct {
	// ConfigMaps reads those that policies name; required.
	ConfigMaps kyverno.Lookup
	// Secrets reads those that ClusterImagePolicies name; required.
	Secrets sigstore.Secrets
	// Offline: no connection is opened for a policy that stands at an address.
	Offline bool
	// KyvernoSecrets and SigstoreSecrets are the namespaces of Secrets, and of
	// Sigstore's ConfigMaps, that policies name without one; empty means kyverno
	// and cosign-system.
	KyvernoSecrets, SigstoreSecrets string
	// Resources, HTTP and Kinds are what expressions may ask for, and which kinds a
	// policy may name beside those of Kubernetes; nil means none.
	Resources cel.Resources
	HTTP      cel.HTTP
	Kinds     constraint.Resources
	// OptIn confines ClusterImagePolicies to namespaces that are labelled for them.
	OptIn bool
}

// NewCompilers makes the compilers.
func NewCompilers(o CompilerOptions) (Compilers, error) {
	expressions, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		return Compilers{}, err
	}
	c := Compilers{TrustRoots: &trustroot.Roots{}, Attestors: attestor.NewRepositories()}
	c.Kyverno, err = kyverno.New(kyverno.Options{Engine: expressions, Lookup: o.ConfigMaps, SecretNamespace: o.KyvernoSecrets})
	if err != nil {
		return Compilers{}, err
	}
	c.Images = imagevalidating.New(imagevalidating.Options{
		Resources: o.Resources, HTTP: o.HTTP, Kinds: o.Kinds, Roots: c.Attestors,
		SecretNamespace: o.KyvernoSecrets, Now: time.Now, Random: rand.Reader,
	})
	sigstoreOptions := sigstore.Options{
		TrustRoots: c.TrustRoots, Lookup: o.ConfigMaps, Secrets: o.Secrets, Namespace: o.SigstoreSecrets, OptIn: o.OptIn, Now: time.Now,
	}
	if !o.Offline {
		if sigstoreOptions.Fetcher, err = newTexts(GuardedTransport()); err != nil {
			return Compilers{}, err
		}
	}
	c.Sigstore = sigstore.New(sigstoreOptions)
	return c, nil
}

// Dialects are the languages of policies.
func (c Compilers) Dialects() []catalog.Dialect {
	return []catalog.Dialect{
		kyverno.Policies{Compiler: c.Kyverno}, imagevalidating.Policies{Compiler: c.Images}, sigstore.Policies{Compiler: c.Sigstore},
	}
}

// Exceptions are the languages of exceptions.
func (c Compilers) Exceptions() []catalog.Exceptions {
	return []catalog.Exceptions{kyverno.Exceptions{Compiler: c.Kyverno}, imagevalidating.Exceptions{Compiler: c.Images}}
}

// Overrides is the language of overrides.
func (Compilers) Overrides() catalog.Overrides { return override.Overrides{} }
