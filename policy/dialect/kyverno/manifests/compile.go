package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/verifyimages/imageverification"
	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/signedmanifest"
)

// dryRunNamespace is Kyverno's default for dryRun.namespace.
const dryRunNamespace = "kyverno-dryrun"

// Options are the dependencies of rules.
type Options struct {
	// Signatures verifies signatures; without it, every object is one that could not be verified.
	Signatures Signatures
	// DryRuns makes dry runs; nil outside of a cluster.
	DryRuns DryRuns
	// Namespace is a Policy's, which may use no other's Secrets; empty for a ClusterPolicy.
	Namespace string
}

// Rule is validate.manifests, compiled. It is immutable and safe for concurrent use.
type Rule struct {
	options Options
	path    string
	check   policy.Check
	entries map[string]entry // by the path of an attestor
	domain  signedmanifest.Domain
	bundle  image.Ref // zero: none is named
	ignored []ignoredFields
	dryRun  dryRun
}

// entry has the terms of an attestor that are not about its signature.
type entry struct {
	// annotations must be in the manifest and in the object.
	annotations map[string]string
	// bundle is the image with the manifests, in place of the rule's; zero: none is named.
	bundle image.Ref
}

// Compile compiles the document at a path. Errors are about fields.
func Compile(options Options, doc *Document, path string) (*Rule, error) {
	r := &Rule{
		options: options, path: path, entries: map[string]entry{},
		domain: signedmanifest.Domain(doc.AnnotationDomain), ignored: doc.IgnoreFields, dryRun: doc.DryRun,
	}
	if len(doc.Attestors) == 0 {
		return nil, field.Fail(path+".attestors", "is empty, so that no signer would be accepted")
	}
	if text, err := json.Marshal(doc); err != nil || strings.Contains(string(text), "{{") {
		return nil, errors.Join(err, field.Fail(path, "has a variable, and Kyverno resolves none here: write the value"))
	}
	errs := []error{checkIgnored(doc.IgnoreFields, path+".ignoreFields")}
	if doc.AnnotationDomain != "" {
		if faults := validation.IsDNS1123Subdomain(doc.AnnotationDomain); len(faults) > 0 {
			errs = append(errs, field.Fail(path+".annotationDomain", "%s", strings.Join(faults, "; ")))
		}
	}
	if n := doc.DryRun.Namespace; n != "" {
		if faults := validation.IsDNS1123Label(n); len(faults) > 0 {
			errs = append(errs, field.Fail(path+".dryRun.namespace", "%s", strings.Join(faults, "; ")))
		}
		if options.Namespace != "" && n != options.Namespace {
			errs = append(errs, field.Fail(path+".dryRun.namespace", "a Policy in namespace %s cannot use namespace %s: use a ClusterPolicy", options.Namespace, n))
		}
	} else {
		r.dryRun.Namespace = dryRunNamespace
	}
	var err error
	r.bundle, err = reference(doc.Repository, path+".repository")
	errs = append(errs, err)
	sets, err := r.sets(doc.Attestors, "attestors")
	errs = append(errs, err)
	requirements, err := verifyimages.Attestors(options.Namespace, sets, path, "attestors")
	errs = append(errs, err)
	r.check = policy.Check{Entry: "manifests", Claims: policy.Claims{Requirements: requirements}}
	return r, errors.Join(errs...)
}

// reference is an image with manifests; empty for none.
func reference(text, path string) (image.Ref, error) {
	if text == "" {
		return image.Ref{}, nil
	}
	ref, err := image.Parse(text)
	return ref, field.Below(path, err)
}

// sets returns the sets with the terms of signatures alone, and records the others.
func (r *Rule) sets(list []imageverification.AttestorSet, name string) ([]imageverification.AttestorSet, error) {
	var out []imageverification.AttestorSet
	var errs []error
	for i, set := range list {
		set, err := r.set(set, fmt.Sprintf("%s[%d]", name, i), 0)
		out, errs = append(out, set), append(errs, err)
	}
	return out, errors.Join(errs...)
}

func (r *Rule) set(set imageverification.AttestorSet, name string, depth int) (imageverification.AttestorSet, error) {
	out := imageverification.AttestorSet{Count: set.Count}
	var errs []error
	for i, one := range set.Entries {
		place := fmt.Sprintf("%s.entries[%d]", name, i)
		switch {
		case one.Attestor != nil && depth <= verifyimages.MaxSets: // a deeper one is refused with the rest
			nested, err := r.set(*one.Attestor, place+".attestor", depth+1)
			one.Attestor, errs = &nested, append(errs, err)
		case one.Attestor == nil:
			bundle, err := reference(one.Repository, r.path+"."+place+".repository")
			errs = append(errs, err)
			r.entries[place] = entry{annotations: one.Annotations, bundle: bundle}
			one.Repository, one.Annotations = "", nil
		}
		if one.Keys != nil && one.Keys.Rekor == nil {
			keys := *one.Keys // as in Kyverno, a signature by a key needs no log entry
			keys.Rekor, one.Keys = &imageverification.Rekor{IgnoreTlog: true}, &keys
		}
		out.Entries = append(out.Entries, one)
	}
	return out, errors.Join(errs...)
}

// entryOf returns the terms of the attestor that an authority is of, by its name.
func (r *Rule) entryOf(authority string) entry {
	for at := len(authority); at > 0; at = strings.LastIndex(authority[:at], ".") {
		if found, ok := r.entries[authority[:at]]; ok {
			return found
		}
	}
	return entry{}
}
