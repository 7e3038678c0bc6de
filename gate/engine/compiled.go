package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/manifests"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/attestor"
	"github.com/quaymaster/quaymaster/policy/dialect/native"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/workload"
)

// Documents are compiled policies, exceptions, overrides and TrustRoots.
type Documents struct {
	Compilers  Compilers
	Policies   []*policy.Policy
	Exceptions []*policy.Exception
	Overrides  []*policy.Override
	Roots      []*trustroot.TrustRoot
	// Images reads image data for rules, once its registries are set.
	Images *RuleImages
	// Answers are the known contents of TUF repositories, by rootName and attestorName; newly
	// read contents are added.
	Answers map[string][]byte
	// Warnings are about documents that have no effect.
	Warnings []string
}

// CompileDocuments compiles the documents of files. Policies may look up TrustRoots, ConfigMaps,
// Secrets and Namespaces of the same files, which are added to the known resources, as the kinds of
// CustomResourceDefinitions are.
func CompileDocuments(objects []workload.Object, known *Resources, offline bool, clock func() time.Time) (Documents, error) {
	var faults []error
	policies := slices.DeleteFunc(slices.Clone(objects), func(object workload.Object) bool {
		_, defines := constraint.Defined(object)
		if !defines && !IsResource(object) {
			return false
		}
		faults = append(faults, known.Add(object))
		return true
	})
	images := &RuleImages{}
	compilers, err := NewCompilers(CompilerOptions{
		ConfigMaps: known, Secrets: FileSecrets{Resources: known}, Resources: FileObjects{ConfigMaps: known}, Kinds: known,
		Images: images, Manifests: manifests.Options{Signatures: images}, Offline: offline, Now: clock,
	})
	if err != nil {
		return Documents{}, err
	}
	d := Documents{Compilers: compilers, Images: images}
	policies, d.Warnings, err = native.Join(policies)
	faults = append(faults, err)
	for _, object := range policies {
		faults = append(faults, d.Add(object))
	}
	return d, errors.Join(faults...)
}

// Add compiles one document in the language that recognises it. Any other document is an error,
// because a policy with a misspelt kind would protect nothing.
func (d *Documents) Add(object workload.Object) error {
	version, kind, source := object.APIVersion(), object.Kind(), object.Source()
	text, err := json.Marshal(object.Content())
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	for _, dialect := range d.Compilers.Dialects() {
		if dialect.Recognises(version, kind) {
			return add(&d.Policies, dialect.Compile, text, source)
		}
	}
	if d.Compilers.Native.Recognises(version, kind) {
		return add(&d.Policies, d.Compilers.Native.Compile, text, source)
	}
	for _, exceptions := range d.Compilers.Exceptions() {
		if exceptions.Recognises(version, kind) {
			return add(&d.Exceptions, exceptions.Compile, text, source)
		}
	}
	switch overrides := d.Compilers.Overrides(); {
	case overrides.Recognises(version, kind):
		return add(&d.Overrides, overrides.Compile, text, source)
	case trustroot.Recognises(version, kind):
		return add(&d.Roots, trustroot.Parse, text, source)
	}
	return UnsupportedKind(object)
}

// add compiles a document into a list.
func add[T any](list *[]T, compile func(document []byte, source string) (T, error), text []byte, source string) error {
	compiled, err := compile(text, source)
	if err == nil {
		*list = append(*list, compiled)
	}
	return err
}

// Set joins the policies, exceptions and overrides.
func (d *Documents) Set() (*set.Set, error) { return set.Join(d.Policies, d.Exceptions, d.Overrides) }

// ReadRoots reads the TUF repositories that policies and TrustRoots name. Offline it reads only
// those that TrustRoots embed. A repository that cannot be read is unknown, and signatures that
// depend on it could not be verified; failed receives the cause.
func (d *Documents) ReadRoots(ctx context.Context, offline bool, failed func(what string, err error)) {
	fetch := NewFetcher()
	if d.Answers == nil {
		d.Answers = map[string][]byte{}
	}
	read := func(name string, fetch func() ([]byte, error)) ([]byte, error) {
		if text, ok := d.Answers[name]; ok {
			return text, nil
		}
		text, err := fetch()
		if err == nil {
			d.Answers[name] = text
		}
		return text, err
	}
	for _, root := range d.Roots {
		d.Compilers.TrustRoots.Put(root)
		if root.TUF == nil || offline && root.TUF.Files == nil && d.Answers[rootName(root)] == nil {
			continue
		}
		text, err := read(rootName(root), func() ([]byte, error) { return fetch.TrustRoot(root.TUF, "")(ctx) })
		if err == nil {
			err = d.Compilers.TrustRoots.Answer(root.Name, root.Hash, text)
		}
		if err != nil {
			failed("TrustRoot "+root.Name, err)
		}
	}
	for _, wanted := range d.Compilers.Attestors.Wanted() {
		repository := wanted.TUF
		text, err := read(attestorName(repository), func() ([]byte, error) {
			if offline {
				return nil, errors.New("no connection is to be opened (--offline)")
			}
			return fetch.Attestor(repository, "")(ctx)
		})
		if err == nil {
			err = d.Compilers.Attestors.Answer(repository, text)
		} else {
			d.Compilers.Attestors.Fail(repository, err)
		}
		if err != nil && !offline {
			failed(repository.String(), err)
		}
	}
}

// rootName and attestorName are unique names of TUF repositories, made of the fields that
// identify them in policies.
func rootName(root *trustroot.TrustRoot) string { return "trustroot/" + root.Name + "/" + root.Hash }

func attestorName(repository attestor.TUF) string { return "attestor/" + repository.Key }
