package sigstore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/clusterimagepolicy"
	"github.com/quaymaster/quaymaster/policy/internal/document"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// maxEntries bounds the globs, authorities and matches of a policy: all are evaluated for
// each object.
const maxEntries = 200

// TrustRoots answers for TrustRoots by name.
type TrustRoots interface {
	// TrustedRoot returns the current trusted_root.json of a TrustRoot. After an error,
	// requirements that need it are undecided. It is called within requests, and so must
	// answer from memory.
	TrustedRoot(name string) ([]byte, error)
}

// FieldError reports an invalid field of a document with its path.
type FieldError = field.Error

// Lookup reads objects that a policy names from the cluster.
type Lookup interface {
	// ConfigMap returns the object as JSON. A ConfigMap that is not there is an
	// error.
	ConfigMap(ctx context.Context, namespace, name string) (map[string]any, error)
}

// Secrets reads Secrets of the cluster.
type Secrets interface {
	// Secret returns the type and the entries of a Secret. A missing one is an error. It is
	// called within requests, and so should answer from a cache.
	Secret(ctx context.Context, namespace, name string) (kind string, data map[string][]byte, err error)
}

// Options are the dependencies and settings of a Compiler.
type Options struct {
	// TrustRoots answers for trustRootRef; without it a policy that has one cannot
	// be asked.
	TrustRoots TrustRoots
	// Lookup reads ConfigMaps; without it a policy that needs one cannot be evaluated.
	Lookup Lookup
	// Secrets reads the Secrets of keys and certificates, each with one entry of any name.
	// Without it a key in a Secret is named k8s://namespace/name for the resolver of
	// authorities, and a certificate in a Secret is refused.
	Secrets Secrets
	// Fetcher gets policies from their addresses; without it a policy that has one is
	// refused.
	Fetcher Fetcher
	// Namespace is where the Secrets of keys are, and ConfigMaps that are named
	// without a namespace; empty means "cosign-system", as in policy-controller.
	Namespace string
	// OptIn confines all policies to namespaces with the label
	// policy.sigstore.dev/include: "true", as policy-controller's webhooks are. The
	// default is every namespace.
	OptIn bool
	// Now is the clock of policies in Rego; nil means that they have none, and one
	// that reads it is refused.
	Now func() time.Time
}

// Compiler compiles policies. It is immutable and safe for concurrent use.
type Compiler struct{ options Options }

// New makes a Compiler.
func New(options Options) *Compiler {
	options.Namespace = cmp.Or(options.Namespace, "cosign-system")
	return &Compiler{options: options}
}

// Compile compiles one document, YAML or JSON. Source is its origin. The error joins all
// field errors (*FieldError); a policy with an error never becomes active in part.
func (c *Compiler) Compile(text []byte, source string) (*policy.Policy, error) {
	compiled, err := c.compile(text)
	if err != nil {
		return nil, fmt.Errorf("policy in %s: %w", source, err)
	}
	compiled.Source = source
	return compiled, nil
}

func (c *Compiler) compile(text []byte) (*policy.Policy, error) {
	var d clusterimagepolicy.Document
	data, err := field.Read(text, &d)
	if err != nil {
		return nil, err
	}
	if !Recognises(d.APIVersion, d.Kind) {
		return nil, fmt.Errorf("%s %s is no ClusterImagePolicy of policy.sigstore.dev/v1beta1 or v1alpha1", d.APIVersion, d.Kind)
	}
	name, err := field.ReadName(d.Metadata)
	if err != nil {
		return nil, err
	}
	r, err := c.rule(d.Spec)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.Kind, name, err)
	}
	stale, err := staleOf(d.Metadata)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", d.Kind, name, err)
	}
	sum := sha256.Sum256(data)
	return &policy.Policy{
		Kind: d.Kind, Name: name, Hash: hex.EncodeToString(sum[:]), Settings: policy.Settings{StaleIfError: stale, AuditOnly: r.action != policy.Enforce},
		Rules: []policy.Rule{r}, Targets: r.targets,
	}, nil
}

// staleOf reads the maximum age of stale entries for an unresponsive registry.
func staleOf(metadata json.RawMessage) (*time.Duration, error) {
	var meta struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(metadata, &meta); err != nil {
		return nil, field.Fail("metadata.annotations", "%w", field.Readable(err))
	}
	if err := document.UnknownAnnotations(meta.Annotations, policy.StaleAnnotation); err != nil {
		return nil, err
	}
	return policy.StaleFrom(meta.Annotations)
}

func (c *Compiler) rule(s clusterimagepolicy.Spec) (*rule, error) {
	r := &rule{compiler: c, action: policy.Enforce}
	var errs []error
	switch s.Mode {
	case "", "enforce":
	case "warn":
		r.action = policy.Warn
	default:
		errs = append(errs, field.Fail("spec.mode", "unknown mode %q: want enforce or warn", s.Mode))
	}
	if s.Policy != nil {
		var err error
		r.overall, err = c.overall(*s.Policy, s.Authorities)
		errs = append(errs, err)
	}
	for _, list := range []struct {
		name      string
		n, fewest int
	}{{"images", len(s.Images), 1}, {"authorities", len(s.Authorities), 1}, {"match", len(s.Match), 0}} {
		if list.n < list.fewest || list.n > maxEntries {
			errs = append(errs, field.Fail("spec."+list.name, "want %d to %d entries, found %d", list.fewest, maxEntries, list.n))
		}
	}
	for i, pattern := range s.Images {
		g, err := parseGlob(pattern.Glob, "spec.images["+strconv.Itoa(i)+"].glob")
		errs = append(errs, err)
		r.globs = append(r.globs, g)
	}
	var err error
	r.match, err = compileMatch(s.Match)
	errs = append(errs, err)
	r.targets = targets(r.match)
	if err := errors.Join(append(errs, c.signers(r, s.Authorities))...); err != nil {
		return nil, err
	}
	r.shape()
	return r, nil
}

func (c *Compiler) signers(r *rule, list []clusterimagepolicy.Authority) error {
	var errs []error
	names := map[string]bool{}
	for i, doc := range list {
		made, err := c.signer(doc, i)
		errs = append(errs, err)
		if names[made.name] {
			errs = append(errs, field.Fail(made.path+".name", "%q is the name of an earlier authority", made.name))
		}
		names[made.name] = true
		r.signers = append(r.signers, made)
	}
	return errors.Join(errs...)
}
