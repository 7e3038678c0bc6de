package attestor

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/verify"
)

// Options are the environments and dependencies of attestors.
type Options struct {
	// Scope compiles the expressions of the document; nil refuses them.
	Scope *cel.Scope
	// Images compiles expressions over the verified image, as the text image; nil refuses them.
	// Only subjectExpression may read it.
	Images *cel.Scope
	// Roots supplies the trusted roots of TUF repositories; nil means that none is read, so that
	// an attestor which needs one cannot be evaluated.
	Roots Roots
	// Namespace of a namespaced policy, in which its k8s:// keys must be; empty for
	// a policy of the whole cluster.
	Namespace string
}

// Activations are the values for expressions.
type Activations struct {
	// Object is of Options.Scope; it may be nil for an attestor that is Static.
	Object *cel.Activation
	// Image is of Options.Images; it may be nil unless the attestor is PerImage.
	Image *cel.Activation
}

// Attestor is a compiled attestor of a policy. It is safe for concurrent use.
type Attestor struct {
	// Name is its name in expressions: attestors.<name>.
	Name string
	// Notary: it proves notation's signatures and signed referrers; else it proves
	// cosign's signatures and in-toto statements, in either format.
	Notary bool
	// Sources are its evidence repositories; none means the image's own.
	Sources []attest.Source
	// TUF is the repository that its trusted root is in; nil for none.
	TUF *TUF

	secrets []string
	path    string
	options Options
	doc     *v1alpha1.Attestor
	slots   []slot
	// static holds the attestor's authorities if they never change; else nil.
	static []*verify.Authority
	last   atomic.Pointer[variant]

	mu       sync.Mutex
	variants map[[sha256.Size]byte]*variant
	bytes    int
}

// variant holds the attestor's authorities for one set of expression results and one trusted root
// of the TUF repository.
type variant struct {
	values      []string
	authorities []*verify.Authority
}

// Compile reads spec.attestors; path is the location of the list. Errors refer to fields, with
// their paths, all of them joined.
func Compile(path string, list []v1alpha1.Attestor, o Options) ([]*Attestor, error) {
	if len(list) > maxEntries {
		return nil, field.Fail(path, "%d are more than %d", len(list), maxEntries)
	}
	var out []*Attestor
	var errs []error
	names, repositories := map[string]bool{}, map[string]bool{}
	for i := range list {
		place := fmt.Sprintf("%s[%d]", path, i)
		switch name := list[i].Name; {
		case name == "":
			errs = append(errs, field.Fail(place+".name", "is empty"))
		case names[name]:
			errs = append(errs, field.Fail(place+".name", "%q is the name of an earlier attestor", name))
		}
		names[list[i].Name] = true
		a, err := compile(place, &list[i], o)
		errs = append(errs, err)
		out = append(out, a)
		if err == nil && a.TUF != nil {
			repositories[a.TUF.Key] = true
		}
	}
	if n := len(repositories); o.Namespace != "" && n > maxNamespaceRepositories {
		errs = append(errs, field.Fail(path, "%d TUF repositories are more than the %d that policies of a namespace have together", n, maxNamespaceRepositories))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

func compile(path string, doc *v1alpha1.Attestor, o Options) (*Attestor, error) {
	a := &Attestor{Name: doc.Name, Notary: doc.Notary != nil, path: path, options: o, doc: doc.DeepCopy()}
	b := &builder{options: o, name: "attestors." + doc.Name}
	authorities, err := b.build(a.doc, path)
	if err != nil {
		return nil, err
	}
	a.Sources, a.secrets, err = source(doc.Cosign, path+".cosign.source")
	if err != nil {
		return nil, err
	}
	a.slots, a.TUF = b.slots, b.tuf
	if len(a.slots) == 0 && a.TUF == nil {
		a.static, err = pointers(authorities)
		if err != nil {
			return nil, field.Below(path, err)
		}
	}
	if a.TUF != nil && o.Roots != nil {
		o.Roots.Want(*a.TUF)
	}
	return a, nil
}

// PerImage reports whether the attestor's authorities depend on the image, so that Authorities
// requires the activation of one.
func (a *Attestor) PerImage() bool {
	return slices.ContainsFunc(a.slots, func(s slot) bool { return s.perImage })
}

// Static reports whether the attestor has no expressions, so that Authorities needs
// no activation.
func (a *Attestor) Static() bool { return len(a.slots) == 0 }

// Expressions returns the attestor's expressions.
func (a *Attestor) Expressions() []*cel.Program {
	programs := make([]*cel.Program, len(a.slots))
	for i := range a.slots {
		programs[i] = a.slots[i].program
	}
	return programs
}

// Secrets returns the pull secrets of the attestor's source as namespace/name. They
// are in the namespace of the object; it is an error if that is not known.
func (a *Attestor) Secrets(namespace string) ([]string, error) {
	if len(a.secrets) > 0 && namespace == "" {
		return nil, fmt.Errorf("%s.cosign.source.PullSecrets are in the object's namespace, and it is not known", a.path)
	}
	var list []string
	for _, name := range a.secrets {
		list = append(list, namespace+"/"+name)
	}
	return list, nil
}

// Authorities returns the attestor's authorities, any of which suffices: several keys are several
// authorities, and yet one attestor. Equal values give equal pointers. An error is the reason why
// the attestor cannot be evaluated, with the path of the fault. It means an indeterminate result,
// and never a missing signature.
func (a *Attestor) Authorities(ctx context.Context, in Activations) ([]*verify.Authority, error) {
	if a.static != nil {
		return a.static, nil
	}
	values, err := a.evaluate(ctx, in)
	if err != nil {
		return nil, err
	}
	if last := a.last.Load(); last != nil && slices.Equal(last.values, values) {
		return last.authorities, nil
	}
	key := keyOf(values)
	v := a.known(key)
	if v == nil {
		b := &builder{options: a.options, name: "attestors." + a.Name, request: true, values: values}
		if a.TUF != nil {
			b.root, b.values = values[len(values)-1], values[:len(values)-1]
		}
		authorities, err := b.build(a.doc, a.path)
		if err != nil {
			return nil, err
		}
		list, err := pointers(authorities)
		if err != nil {
			return nil, field.Below(a.path, err)
		}
		v = a.remember(key, &variant{values: values, authorities: list})
	}
	a.last.Store(v)
	return v.authorities, nil
}

// evaluate returns the results of the expressions, in their order, and then the trusted root of
// the TUF repository.
func (a *Attestor) evaluate(ctx context.Context, in Activations) ([]string, error) {
	values := make([]string, 0, len(a.slots)+1)
	for _, s := range a.slots {
		text, err := s.evaluate(ctx, in)
		switch {
		case err != nil:
			return nil, err
		case text == "":
			return nil, field.Fail(s.path, "yields an empty text")
		case len(text) > maxRoot:
			return nil, field.Fail(s.path, "yields %d bytes, more than %d", len(text), maxRoot)
		}
		values = append(values, text)
	}
	if a.TUF == nil {
		return values, nil
	}
	if a.options.Roots == nil {
		return nil, field.Fail(a.path+".cosign.tuf", "no TUF repository is read here: give the trusted root itself, in trustedRoot")
	}
	root, err := a.options.Roots.TrustedRoot(*a.TUF)
	if err != nil {
		return nil, field.Below(a.path+".cosign.tuf", err)
	}
	return append(values, root), nil
}

func (a *Attestor) known(key [sha256.Size]byte) *variant {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.variants[key]
}

// remember caches a variant, unless one of its values is already cached, and returns the cached
// one.
func (a *Attestor) remember(key [sha256.Size]byte, v *variant) *variant {
	size := 0
	for _, value := range v.values {
		size += len(value)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if have, ok := a.variants[key]; ok {
		return have
	}
	if a.variants == nil || len(a.variants) >= maxVariants || a.bytes+size > maxVariantBytes {
		a.variants, a.bytes = map[[sha256.Size]byte]*variant{}, 0 // making them again is cheap
	}
	a.variants[key] = v
	a.bytes += size
	return v
}

func keyOf(values []string) (key [sha256.Size]byte) {
	h := sha256.New()
	for _, value := range values {
		h.Write(binary.AppendUvarint(nil, uint64(len(value)))) // a hash takes everything
		h.Write([]byte(value))
	}
	h.Sum(key[:0])
	return key
}

// pointers checks authorities for the last time.
func pointers(list []verify.Authority) ([]*verify.Authority, error) {
	out := make([]*verify.Authority, 0, len(list))
	for i := range list {
		if err := list[i].Validate(); err != nil {
			return nil, err
		}
		out = append(out, &list[i])
	}
	if len(out) == 0 {
		return nil, errors.New("the attestor has no keys or identities")
	}
	return out, nil
}
