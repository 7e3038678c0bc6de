package attacks

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify"
)

// tenants have a client each.
type tenants map[string]*registry.Client

// Open implements gate.Registries.
func (t tenants) Open(_ context.Context, access gate.Access, _ image.Repository) (gate.Session, error) {
	return engine.NewTenantSession(t[access.Workload.Namespace], access.Workload.Namespace, access.Workload.Namespace), nil
}

// remembered plays at a gate that caches verified facts for an hour.
func remembered(play func(s *scene)) func(*scene) {
	return func(s *scene) {
		s.ages.Fact = time.Hour
		play(s)
	}
}

func memoryAttacks() []attack {
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, remembering(), remembered(play)}
	}
	return []attack{
		row("tag-that-moves-after-verification", "A tag is verified, moves to an unsigned digest, and is requested again while the verified claim is cached. It is denied: claims are cached by digest, and not by tag.", "GHSA-2r43-6962-xcw5", func(s *scene) {
			evil, good := s.Build("shop/web", "1", "evil"), s.Build("shop/web", "1", "good")
			s.check(s.SignLegacy(good, by(s.key), nil))
			s.policies(signedBy(ofKey))
			s.runs(good.Name, good)
			s.Registry.Retag("shop/web", "1", evil.Manifest.Digest)
			s.refused(good.Name, policy.Unsigned)
		}),
		row("signature-in-another-repository", "An image is signed in the repository of one environment, and the verified claim is cached. A policy with the same key names the repository of another one. The image is denied there.", "a fact of one repository for another", func(s *scene) {
			image := s.built("signed")
			apart := image
			apart.Repository = "signatures/dev"
			s.check(s.SignLegacy(apart, by(s.key), nil))
			s.policies(images("repository: HOST/signatures/dev, attestors: [{entries: [" + ofKey + "]}]"))
			s.runs(image.Name, image)
			s.policies(images("repository: HOST/signatures/prod, attestors: [{entries: [" + ofKey + "]}]"))
			s.refused(image.Name, policy.Unsigned)
		}),
		row("policy-that-changes", "The policy's key is replaced while a claim verified by the old one is cached. The image is denied.", "cached verdict after a policy change", func(s *scene) {
			image := s.signed("signed")
			s.policies(signedBy(ofKey))
			s.runs(image.Name, image)
			s.policies(signedBy(ofSecond))
			s.refused(image.Name, code(verify.WrongKey))
		}),
		row("trust-that-changes", "The certificate authority is distrusted while a claim verified by it is cached. The image is denied.", "cached verdict after a change of the trust root", func(s *scene) {
			image := s.built("signed")
			s.check(s.SignLegacy(image, released(s), nil))
			s.policies(signedBy(ofPeople))
			s.runs(image.Name, image)
			s.trust(s.foreign.TrustedRoot())
			s.refused(image.Name)
		}),
		row("condition-that-changes", "The condition on the content of an attestation changes while its verification is cached. The image is denied: conditions are evaluated each time.", "kyverno 17173", func(s *scene) {
			image := s.built("signed")
			s.check(s.AttestBundle(image, by(s.key), scanType, clean()))
			s.policies(scanned(ofKey))
			s.runs(image.Name, image)
			s.policies(images("attestations: [{type: SCAN, attestors: [{entries: [" + ofKey + "]}], conditions: [{all: [{key: '{{ verdict }}', operator: Equals, value: spotless}]}]}]"))
			s.refused(image.Name, policy.ConditionFailed)
		}),
		{"private-image-of-another-tenant", "One tenant's Secret opens a private image, which is verified and cached. Another tenant without the Secret requests it by its tag, and is denied.", "cache shared across credentials", only(library), remembered(func(s *scene) {
			s.ages.Tag = time.Hour
			image := private(s, registrytest.Auth{Scheme: registrytest.Basic})
			with, without := testkit.Must(registry.New(s.config))(s.t), testkit.Must(registry.New(registry.Config{}))(s.t)
			s.t.Cleanup(with.Close)
			s.t.Cleanup(without.Close)
			s.registries = tenants{namespace: with, "other": without}
			mine, theirs := pod(image.Name), pod(image.Name)
			theirs["metadata"] = object{"name": "web", "namespace": "other"}
			s.admitted(mine)
			s.refused(theirs, policy.AccessRefused)
			s.admitted(mine)
		})},
	}
}
