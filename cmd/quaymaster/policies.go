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
	var policies []*policy.Policy
	var faults []error
	for _, name := range names {
		objects, err := readManifests(name, nil)
		if err != nil {
			return nil, fmt.Errorf("--policy: %w", err)
		}
		for _, object := range objects {
			compiled, err := compilePolicy(compiler, object, known)
			if err != nil {
				faults = append(faults, err)
			} else if compiled != nil {
				policies = append(policies, compiled)
			}
		}
	}
	return policies, errors.Join(faults...)
}

// compilePolicy compiles one document, or keeps it as a resource and returns
// nil.
func compilePolicy(compiler *kyverno.Compiler, object workload.Object, known *engine.Resources) (*policy.Policy, error) {
	apiVersion := object.Version()
	if object.Group() != "" {
		apiVersion = object.Group() + "/" + apiVersion
	}
	switch {
	case kyverno.Recognises(apiVersion, object.Kind()):
		content, err := json.Marshal(object.Content())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", object.Source(), err)
		}
		return compiler.Compile(content, object.Source())
	case engine.IsResource(object):
		return nil, known.Add(object)
	}
	return nil, fmt.Errorf("%s: %s %s is not a policy that this version reads: it takes ClusterPolicy and Policy of kyverno.io/v1 and v2beta1", object.Source(), apiVersion, object.Kind())
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
