// Package requirements compiles the requirements of the settings about images: they are added to those of
// policies, and never replace them. An image that a requirement names and no policy verifies has no
// evidence that could meet it, and so is indeterminate.
package requirements

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
	"github.com/quaymaster/quaymaster/policy/lang/reference"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/slsa"
)

const (
	// MaxAge bounds an age: no log or timestamp authority of images is ten years old.
	MaxAge = 10 * 365 * 24 * time.Hour
	// MaxList bounds the requirements, and the patterns of each: every image is compared with all.
	MaxList = 256
	// Name is the name of the policy that they become.
	Name = "requirements"
)

// Requirement is what images must meet in addition to their policies.
type Requirement struct {
	// Path names it in messages, as in requirements[0].
	Path string `json:"path"`
	// Images are patterns of references, as policies have them, at least one; Namespaces are patterns of
	// namespaces, none for all objects.
	Images     []string `json:"images"`
	Namespaces []string `json:"namespaces,omitempty"`
	// MinimumAge is how long ago the first signature or attestation was made at least; MaximumAge is how
	// long ago each one that counts was made at most. Zero: unbounded.
	MinimumAge time.Duration `json:"minimumAge,omitempty"`
	MaximumAge time.Duration `json:"maximumAge,omitempty"`
	// Provenance are the terms of SLSA provenance; Builders are declared in addition to the known ones.
	Provenance slsa.Terms     `json:"provenance,omitzero"`
	Builders   []slsa.Builder `json:"builders,omitempty"`
	// Sources are the repositories of provenance; none: the image's own.
	Sources []attest.Source `json:"sources,omitempty"`
}

// Compile compiles requirements into a policy of a kind; nil for none. source is their origin.
func Compile(kind, source string, list []Requirement) (*policy.Policy, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if len(list) > MaxList {
		return nil, fmt.Errorf("%s: %d requirements exceed the bound of %d", source, len(list), MaxList)
	}
	made := &policy.Policy{Kind: kind, Name: Name, Source: source, Targets: targets(list)}
	var errs []error
	for _, r := range list {
		errs = append(errs, r.Validate())
		r.Images = normal(r.Images)
		if r.MinimumAge != 0 || r.MaximumAge != 0 {
			made.Rules = append(made.Rules, &rule{r})
		}
		if r.Provenance.IsZero() {
			continue
		}
		build, err := newBuildRule(r)
		errs = append(errs, err)
		made.Rules = append(made.Rules, build)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	content, err := json.Marshal([]any{list, keysOf(list)})
	if err != nil {
		return nil, fmt.Errorf("hash of the requirements: %w", err)
	}
	sum := sha256.Sum256(content)
	made.Hash = hex.EncodeToString(sum[:])
	return made, nil
}

// targets are pods and the workloads that create pods, in the namespaces of the requirements.
func targets(list []Requirement) (all []policy.Target) {
	var namespaces []string
	for _, r := range list {
		if len(r.Namespaces) == 0 {
			namespaces = nil
			break
		}
		namespaces = append(namespaces, r.Namespaces...)
	}
	for group, kinds := range map[string][]string{
		"": {"Pod", "PodTemplate", "ReplicationController"}, "apps": {"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"}, "batch": {"CronJob", "Job"},
	} {
		for _, kind := range kinds {
			all = append(all, policy.Target{Group: group, Version: "*", Kind: kind, Namespaces: namespaces})
		}
	}
	all = append(all, policy.Target{Version: "*", Kind: "Pod", Subresource: "ephemeralcontainers", Namespaces: namespaces})
	slices.SortFunc(all, func(a, b policy.Target) int {
		return strings.Compare(a.Group+"/"+a.Kind+"/"+a.Subresource, b.Group+"/"+b.Kind+"/"+b.Subresource)
	})
	return all
}

func normal(patterns []string) []string {
	list := make([]string, len(patterns))
	for i, p := range patterns {
		list[i] = reference.Normal(p)
	}
	return list
}

// Validate refuses a requirement that bounds nothing, or that names no image.
func (r Requirement) Validate() error {
	var errs []error
	fail := func(field, format string, arguments ...any) {
		errs = append(errs, fmt.Errorf("%s%s: "+format, append([]any{r.Path, field}, arguments...)...))
	}
	if len(r.Images) == 0 {
		fail(".images", "is empty: write patterns of images, or * for every image")
	}
	if len(r.Images)+len(r.Namespaces) > MaxList {
		fail("", "%d patterns exceed the bound of %d", len(r.Images)+len(r.Namespaces), MaxList)
	}
	for i, pattern := range r.Images {
		if why := reference.Unmatchable(pattern); pattern == "" || why != "" {
			fail(fmt.Sprintf(".images[%d]", i), "%q matches no image: %s", pattern, why)
		}
	}
	for i, pattern := range r.Namespaces {
		if pattern == "" {
			fail(fmt.Sprintf(".namespaces[%d]", i), "is empty")
		}
	}
	for field, bound := range map[string]time.Duration{".minimumAge": r.MinimumAge, ".maximumAge": r.MaximumAge} {
		if bound < 0 || bound > MaxAge {
			fail(field, "%s: want a time from 0s to %s", bound, age.Text(MaxAge))
		}
	}
	if r.MinimumAge == 0 && r.MaximumAge == 0 && r.Provenance.IsZero() {
		fail("", "requires nothing: set minimumAge, maximumAge, slsaBuildLevel, builder or source")
	}
	return errors.Join(errs...)
}

// rule is a requirement as a rule.
type rule struct{ of Requirement }

// Name implements policy.Rule.
func (r *rule) Name() string { return r.of.Path }

// Extractors implements policy.Rule.
func (*rule) Extractors(*policy.Subject) []policy.Extractor { return nil }

// MayRematch implements policy.Rematching: it reads images and the namespace alone.
func (*rule) MayRematch() bool { return false }

// ReadsUpdate implements policy.Rematching.
func (*rule) ReadsUpdate(*policy.Subject) bool { return false }

// Plan implements policy.Rule.
func (r *rule) Plan(_ context.Context, subject *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	return r.of.plan(subject, images, policy.Check{
		Entry: r.of.Path, Action: policy.Enforce,
		Age: age.Bounds{By: r.of.Path, Minimum: r.of.MinimumAge, Maximum: r.of.MaximumAge, At: subject.Time, Whole: true},
	})
}

// plan plans a check of each image that the requirement names.
func (r *Requirement) plan(subject *policy.Subject, images []policy.Image, check policy.Check) (plan policy.RulePlan, err error) {
	if len(r.Namespaces) > 0 {
		if subject.Bare && subject.Namespace == "" {
			return policy.RulePlan{}, fmt.Errorf("%s.namespaces: the namespace of the image is not known", r.Path)
		}
		if !wildcard.Any(r.Namespaces, subject.Namespace) || subject.Namespace == "" {
			return policy.RulePlan{Skip: "its namespaces do not match"}, nil
		}
	}
	for _, found := range images {
		if reference.Concerns(r.Images, found.Ref) {
			check.Image = found
			plan.Checks = append(plan.Checks, check)
		}
	}
	return plan, nil
}

// Is reports whether a rule is a requirement. It is planned after the rules of policies, since it
// concerns the images that they find.
func Is(r policy.Rule) bool {
	switch r.(type) {
	case *rule, *buildRule:
		return true
	}
	return false
}

// Finder adds the images for which policies have checks to those of an object.
func Finder(find policy.Finder, checks []policy.Check) policy.Finder {
	return func(extractors []policy.Extractor) ([]policy.Image, error) {
		images, err := find(extractors)
		if err != nil {
			return nil, err
		}
		images = slices.Clone(images)
		for i := range checks {
			found := checks[i].Image
			if !slices.ContainsFunc(images, func(have policy.Image) bool { return have.Pointer == found.Pointer && have.Ref == found.Ref }) {
				images = append(images, found)
			}
		}
		return images, nil
	}
}

// Bound sets the bounds of requirements in the other checks of the same images.
func Bound(checks []policy.Check) {
	for i := range checks {
		if !checks[i].Age.Whole {
			continue
		}
		for j := range checks {
			if !checks[j].Age.Whole && checks[j].Image.Is(checks[i].Image) {
				checks[j].Age = checks[j].Age.Stricter(checks[i].Age)
			}
		}
	}
}
