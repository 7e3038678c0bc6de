// Package required compiles the settings about requirements of images (docs/requirements.md, docs/slsa.md).
package required

import (
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config/timespan"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/requirements"
	"github.com/quaymaster/quaymaster/policy/slsa"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// Requirement is an entry of requirements (docs/requirements.md). At least one of its terms is set.
type Requirement struct {
	// Patterns of images, as in policies: registry.example/shop/*, or * for every image.
	Images []string `json:"images"`
	// Patterns of namespaces. Default: all objects.
	Namespaces []string `json:"namespaces,omitempty"`
	// Deny an image until its first verified signature or attestation is this old (cool-down). The
	// time is a transparency log's or a timestamp authority's; an image with neither is denied, and so
	// is one that no policy verifies.
	MinimumAge timespan.Duration `json:"minimumAge,omitempty"`
	// Count no signature and no attestation that is older (freshness), by the same clocks.
	MaximumAge timespan.Duration `json:"maximumAge,omitempty"`
	// Require SLSA provenance of a builder of this build level or a higher one, 1 to 3 (docs/slsa.md). Of
	// one statement, slsaBuildLevel, builder and source must all hold.
	SLSABuildLevel int `json:"slsaBuildLevel,omitempty"`
	// Patterns of builders, of which one must match builder.id: * matches any run of characters but / and
	// @, and ** any run. Default: any known or declared builder.
	Builder []string `json:"builder,omitempty"`
	Source  Source   `json:"source,omitzero"`
}

// Source is the required source of a build.
type Source struct {
	// The repository, as github.com/org/app or git+https://github.com/org/app. Default: any.
	URI string `json:"uri,omitempty"`
	// The whole git reference, as refs/tags/v1.2.3. Default: any.
	Ref string `json:"ref,omitempty"`
}

// Builder is a builder of SLSA provenance in addition to the known ones, with its signer: either a key, or
// the issuer of an identity. docs/slsa.md has the known ones.
type Builder struct {
	// Pattern of builder.id: * matches any run of characters but / and @, and ** any run.
	ID string `json:"id"`
	// SLSA build level, 1 to 3. Default: that of the known builder with the id and the build type, else 1.
	Level int `json:"level,omitempty"`
	// Public key that signs: PEM, a KMS URI, or k8s://namespace/secret.
	Key string `json:"key,omitempty"`
	// Accept signatures by the key without an entry of a transparency log.
	IgnoreTlog bool `json:"ignoreTlog,omitempty"`
	// OpenID Connect issuer of the identity that signs.
	Issuer string `json:"issuer,omitempty"`
	// Pattern of the identity's subject. Default: the subject is builder.id, as for workflows of GitHub.
	Subject string `json:"subject,omitempty"`
	// Patterns of accepted build types. Default: any.
	BuildTypes []string `json:"buildTypes,omitempty"`
}

// Policy compiles requirements, with the declared builders, into a policy; nil for none.
func Policy(list []Requirement, builders []Builder) (*policy.Policy, error) {
	declared, err := declare(builders)
	var all []requirements.Requirement
	isUsed := false
	for i, r := range list {
		path := fmt.Sprintf("requirements[%d]", i)
		terms, wrong := r.terms()
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("%s.source: %w", path, wrong))
		}
		isUsed = isUsed || !terms.IsZero()
		all = append(all, requirements.Requirement{
			Path: path, Images: r.Images, Namespaces: r.Namespaces,
			MinimumAge: time.Duration(r.MinimumAge), MaximumAge: time.Duration(r.MaximumAge),
			Provenance: terms, Builders: declared,
		})
	}
	if err == nil && len(builders) > 0 && !isUsed {
		err = errors.New("trust.builders has no effect: no entry of requirements sets slsaBuildLevel, builder or source")
	}
	if err != nil {
		return nil, err
	}
	return requirements.Compile("Settings", "the setting requirements", all)
}

func (r Requirement) terms() (slsa.Terms, error) {
	terms := slsa.Terms{Level: r.SLSABuildLevel, Builders: r.Builder, Source: slsa.Source{Ref: r.Source.Ref}}
	if r.Source.URI == "" {
		return terms, nil
	}
	source, err := slsa.ParseSource(r.Source.URI)
	if err == nil && source.Ref != "" {
		err = fmt.Errorf("uri %q: name the reference in ref", r.Source.URI)
	}
	terms.Source.Repository = source.Repository
	return terms, err
}

func declare(builders []Builder) ([]slsa.Builder, error) {
	var errs []error
	list := make([]slsa.Builder, len(builders))
	for i, b := range builders {
		path := fmt.Sprintf("trust.builders[%d]", i)
		made := slsa.Builder{Name: path, ID: b.ID, Level: b.Level, Issuer: b.Issuer, Subject: b.Subject, BuildTypes: b.BuildTypes}
		if b.Key != "" {
			made.Authorities = []verify.Authority{{Name: path + ".key", Key: &verify.Key{Ref: b.Key}, Log: verify.Log{Ignore: b.IgnoreTlog}}}
			if !trust.IsLookup(b.Key) {
				if _, err := trust.ParsePublicKey([]byte(b.Key), ""); err != nil {
					errs = append(errs, fmt.Errorf("%s.key: %w", path, err))
				}
			}
		} else if b.IgnoreTlog {
			errs = append(errs, fmt.Errorf("%s.ignoreTlog has no effect without a key", path))
		}
		if err := made.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
		list[i] = made
	}
	return list, errors.Join(errs...)
}
