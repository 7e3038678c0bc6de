package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/engine"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/kyverno"
	"github.com/quaymaster/quaymaster/policy/sigstore"
	"github.com/quaymaster/quaymaster/policy/sigstore/trustroot"
	"github.com/quaymaster/quaymaster/workload"
)

// loadPolicies compiles the policies in files and folders. ConfigMaps, Secrets
// and Namespaces beside them are resources; any other document is an error,
// because a policy that is silently not one protects nobody.
func loadPolicies(names []string, known *engine.Resources) ([]*policy.Policy, error) {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		return nil, err
	}
	compiler, err := kyverno.New(kyverno.Options{Engine: engine, Lookup: known})
	if err != nil {
		return nil, err
	}
	roots := &trustroot.Roots{}
	reads := dialects{kyverno: compiler, roots: roots, sigstore: sigstore.New(sigstore.Options{TrustRoots: roots, Lookup: known, Now: time.Now})}
	var policies []*policy.Policy
	var faults []error
	for _, name := range names {
		objects, err := readManifests(name, nil)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		for _, object := range objects {
			compiled, err := reads.compile(object, known)
			if err != nil {
				faults = append(faults, err)
			} else if compiled != nil {
				policies = append(policies, compiled)
			}
		}
	}
	return policies, errors.Join(faults...)
}

// dialects are those that policies are written in.
type dialects struct {
	kyverno  *kyverno.Compiler
	sigstore *sigstore.Compiler
	roots    *trustroot.Roots // of ClusterImagePolicies, which ask for them by name
}

// compile compiles one document, or keeps it for the others and returns nil.
func (d dialects) compile(object workload.Object, known *engine.Resources) (*policy.Policy, error) {
	version, kind := object.APIVersion(), object.Kind()
	if engine.IsResource(object) {
		return nil, known.Add(object)
	}
	content, err := json.Marshal(object.Content())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", object.Source(), err)
	}
	switch {
	case kyverno.Recognises(version, kind):
		return d.kyverno.Compile(content, object.Source())
	case sigstore.Recognises(version, kind):
		return d.sigstore.Compile(content, object.Source())
	case trustroot.Recognises(version, kind):
		root, err := trustroot.Parse(content, object.Source())
		if err == nil {
			d.roots.Put(root)
		}
		return nil, err
	}
	return nil, fmt.Errorf("%s: %s %s is not a policy that this version reads: it takes ClusterPolicy and Policy of kyverno.io/v1 and v2beta1, and ClusterImagePolicy and TrustRoot of policy.sigstore.dev",
		object.Source(), version, kind)
}

// loadResources reads ConfigMaps, Secrets and Namespaces.
func loadResources(names []string) (*engine.Resources, error) {
	known := engine.NewResources()
	for _, name := range names {
		objects, err := readManifests(name, nil)
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
