package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/workload"
)

// Documents are the documents of --policy.
type Documents struct {
	Compilers  engine.Compilers
	policies   []*policy.Policy
	exceptions []*policy.Exception
	overrides  []*policy.Override
	roots      []*trustroot.TrustRoot
	// images reads image data for rules, once its registries are set.
	images *engine.RuleImages
	// answers are the known contents of TUF repositories, by rootName and attestorName; newly
	// read contents are added.
	answers map[string][]byte
}

// loadPolicies compiles policies, exceptions and overrides. The policies may look up TrustRoots,
// ConfigMaps, Secrets and Namespaces of the same files. Any other document is an error, because
// a policy with a misspelt kind would protect nothing.
func loadPolicies(objects []workload.Object, known *engine.Resources, offline bool, clock func() time.Time) (Documents, error) {
	images := &engine.RuleImages{}
	compilers, err := engine.NewCompilers(engine.CompilerOptions{
		ConfigMaps: known, Secrets: engine.FileSecrets{Resources: known}, Resources: engine.FileObjects{ConfigMaps: known},
		Images: images, Offline: offline, Now: clock,
	})
	if err != nil {
		return Documents{}, err
	}
	loaded := Documents{Compilers: compilers, images: images}
	var faults []error
	for _, object := range objects {
		if err := loaded.Add(object, known); err != nil {
			faults = append(faults, err)
		}
	}
	return loaded, errors.Join(faults...)
}

// PolicyObjects reads the documents of policies in files and folders.
func PolicyObjects(names []string) ([]workload.Object, error) {
	var all []workload.Object
	for _, name := range names {
		objects, err := manifest.ReadPolicies(name, nil)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

// Add compiles one document, or stores it for look-ups.
func (d *Documents) Add(object workload.Object, known *engine.Resources) error {
	version, kind := object.APIVersion(), object.Kind()
	if engine.IsResource(object) {
		return known.Add(object)
	}
	content, err := json.Marshal(object.Content())
	if err != nil {
		return fmt.Errorf("%s: %w", object.Source(), err)
	}
	is := func(o interface {
		Recognises(apiVersion, kind string) bool
	}) bool {
		return o.Recognises(version, kind)
	}
	for _, dialect := range d.Compilers.Dialects() {
		if is(dialect) {
			return keep(&d.policies, dialect.Compile, content, object.Source())
		}
	}
	for _, dialect := range d.Compilers.Exceptions() {
		if is(dialect) {
			return keep(&d.exceptions, dialect.Compile, content, object.Source())
		}
	}
	switch {
	case is(d.Compilers.Overrides()):
		return keep(&d.overrides, d.Compilers.Overrides().Compile, content, object.Source())
	case trustroot.Recognises(version, kind):
		return keep(&d.roots, trustroot.Parse, content, object.Source())
	}
	return fmt.Errorf("%s: %s %s is not a policy that this version reads: it takes ClusterPolicy, Policy and PolicyException of kyverno.io, ImageValidatingPolicy, NamespacedImageValidatingPolicy and PolicyException of policies.kyverno.io, ClusterImagePolicy and TrustRoot of policy.sigstore.dev, and ImageOverride of quaymaster.dev",
		object.Source(), version, kind)
}

// keep compiles a document into a list.
func keep[T any](list *[]T, compile func(document []byte, source string) (T, error), content []byte, source string) error {
	compiled, err := compile(content, source)
	if err == nil {
		*list = append(*list, compiled)
	}
	return err
}

// ReadRoots reads the TUF repositories that policies and TrustRoots name. Offline it reads only
// those that TrustRoots embed. A repository that cannot be read is unknown, and signatures that
// depend on it could not be verified.
func (d *Documents) ReadRoots(ctx context.Context, offline bool, t command.Terminal) {
	fetch := engine.NewFetcher()
	if d.answers == nil {
		d.answers = map[string][]byte{}
	}
	read := func(name string, fetch func() ([]byte, error)) ([]byte, error) {
		if text, ok := d.answers[name]; ok {
			return text, nil
		}
		text, err := fetch()
		if err == nil {
			d.answers[name] = text
		}
		return text, err
	}
	failed := func(what string, err error) {
		if err != nil {
			fmt.Fprintf(t.Err, "quaymaster: %s: %s\n", what, err)
		}
	}
	for _, root := range d.roots {
		d.Compilers.TrustRoots.Put(root)
		if root.TUF == nil || offline && root.TUF.Files == nil && d.answers[rootName(root)] == nil {
			continue
		}
		text, err := read(rootName(root), func() ([]byte, error) { return fetch.TrustRoot(ctx, root.TUF, "") })
		if err == nil {
			err = d.Compilers.TrustRoots.Answer(root.Name, root.Hash, text)
		}
		failed("TrustRoot "+root.Name, err)
	}
	for _, repository := range d.Compilers.Attestors.Wanted() {
		text, err := read(attestorName(repository), func() ([]byte, error) {
			if offline {
				return nil, errors.New("no connection is to be opened (--offline)")
			}
			return fetch.Attestor(ctx, repository, "")
		})
		if err == nil {
			err = d.Compilers.Attestors.Answer(repository, text)
		} else {
			d.Compilers.Attestors.Fail(repository, err)
		}
		if !offline {
			failed(repository.String(), err)
		}
	}
}

// rootName and attestorName are unique names of TUF repositories, made of the fields that
// identify them in policies.
func rootName(root *trustroot.TrustRoot) string { return "trustroot/" + root.Name + "/" + root.Hash }

func attestorName(repository attestor.TUF) string { return "attestor/" + repository.Key }

// LoadResources reads ConfigMaps, Secrets and Namespaces.
func LoadResources(names []string) (*engine.Resources, error) {
	known := engine.NewResources()
	for _, name := range names {
		objects, err := manifest.ReadPolicies(name, nil)
		if err != nil {
			return nil, fmt.Errorf("--resource: %w", err)
		}
		for _, object := range objects {
			if err := known.Add(object); err != nil {
				return nil, fmt.Errorf("--resource %s: %w", object.Source(), err)
			}
		}
	}
	return known, nil
}
