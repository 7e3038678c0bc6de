package attacks

import (
	"encoding/json"
	"maps"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/signedmanifest/manifesttest"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// manifestPolicy is a policy by which Deployments are what the key has signed. More are further fields.
func manifestPolicy(more string) string {
	return objectPolicy("match: {any: [{resources: {kinds: [Deployment]}}]}, validate: {manifests: {attestors: [{entries: [{keys: {publicKeys: KEY}}]}]" + more + "}}")
}

// carrying is an object with the signed manifest of another, or of itself, in its annotations.
func (s *scene) carrying(of, manifest object, signer *verifytest.Signer) object {
	s.t.Helper()
	content := testkit.Must(json.Marshal(manifest))(s.t)
	annotations := object{}
	for name, value := range testkit.Must(manifesttest.Annotations(s.sigstore, verifytest.Claim{Artifact: content, Signer: signer, NoLog: true}))(s.t) {
		annotations["cosign.sigstore.dev/"+name] = value
	}
	return with(of, "metadata", object{"annotations": annotations})
}

// carried is a case of one policy: an object is admitted as it was signed, and another refused, for
// one of the codes.
func carried(policyOf string, honest, forged func(s *scene, plain object) object, codes ...policy.Code) func(*scene) {
	return func(s *scene) {
		plain := with(deployment("registry.example/app:1"), "spec", object{"replicas": 2})
		s.policies(policyOf)
		s.admitted(honest(s, plain))
		s.refused(forged(s, plain), codes...)
	}
}

// hardened is an object with a security context in its template.
func hardened(of object) object {
	template := maps.Clone(pod("registry.example/app:1")["spec"].(object))
	template["securityContext"] = object{"runAsNonRoot": true}
	return with(of, "spec", object{"template": object{"spec": template}})
}

func manifestAttacks() []attack {
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, everywhere(), play}
	}
	own := func(s *scene, plain object) object { return s.carrying(plain, plain, s.key) }
	scaled := func(of object, replicas int) object { return with(of, "spec", object{"replicas": replicas}) }
	const fields = ", ignoreFields: [{objects: [{kind: Deployment}], fields: ["
	return []attack{
		row("signed-manifest-and-another-spec", "The object carries a signed manifest, and its spec was changed after that. It is denied.", "validate.manifests", carried(manifestPolicy(""), own,
			func(s *scene, plain object) object { return scaled(own(s, plain), 9) }, policy.Violated)),
		row("signed-manifest-and-another-image", "The object carries a signed manifest, and runs another image. It is denied.", "validate.manifests", carried(manifestPolicy(""), own,
			func(s *scene, plain object) object {
				return with(own(s, plain), "spec", object{"template": object{"spec": pod("registry.example/evil:1")["spec"]}})
			}, policy.Violated)),
		row("signed-manifest-of-another-object", "The object carries the signed manifest of another object of its kind. It is denied.", "validate.manifests", carried(manifestPolicy(""), own,
			func(s *scene, plain object) object {
				return s.carrying(plain, with(plain, "metadata", object{"name": "other"}), s.key)
			}, policy.Violated)),
		row("signed-manifest-of-another-namespace", "The object carries the signed manifest of one with its name in another namespace. It is denied.", "kyverno: the namespace is ignored", carried(manifestPolicy(""), own,
			func(s *scene, plain object) object {
				return s.carrying(plain, with(plain, "metadata", object{"namespace": "bank"}), s.key)
			}, policy.Violated)),
		row("signed-manifest-and-a-removed-field", "The object carries a signed manifest, and lacks a field of it: a security context that the signer required. It is denied.", "validate.manifests", carried(manifestPolicy(""),
			func(s *scene, plain object) object { return s.carrying(hardened(plain), hardened(plain), s.key) },
			func(s *scene, plain object) object { return s.carrying(plain, hardened(plain), s.key) }, policy.Violated)),
		row("signed-manifest-and-an-added-field", "The object carries a signed manifest, and has a field that the manifest does not have: the network of the host. It is denied.", "validate.manifests", carried(manifestPolicy(""), own,
			func(s *scene, plain object) object {
				template := maps.Clone(pod("registry.example/app:1")["spec"].(object))
				template["hostNetwork"] = true
				return with(own(s, plain), "spec", object{"template": object{"spec": template}})
			}, policy.Violated)),
		row("signed-manifest-by-another-key", "The object carries its manifest, signed with a key that the policy does not name. It is denied.", "validate.manifests", carried(manifestPolicy(""), own,
			func(s *scene, plain object) object { return s.carrying(plain, plain, s.stranger) }, code(verify.WrongKey))),
		row("signed-manifest-without-signature", "The object carries its manifest without a signature. It is denied.", "validate.manifests", carried(manifestPolicy(""), own,
			func(s *scene, plain object) object {
				signed := s.carrying(plain, plain, s.key)
				annotations := signed["metadata"].(object)["annotations"].(object)
				return with(signed, "metadata", object{"annotations": object{"cosign.sigstore.dev/message": annotations["cosign.sigstore.dev/message"]}})
			}, policy.Unsigned)),
		row("ignored-field-and-another", "A policy ignores the number of replicas, and the object differs in another field too. It is denied; one that differs in the ignored field alone is admitted.", "kyverno: a pattern matches any part of a path",
			carried(manifestPolicy(fields+"spec.replicas]}]"), func(s *scene, plain object) object { return scaled(own(s, plain), 9) },
				func(s *scene, plain object) object {
					return with(scaled(own(s, plain), 9), "spec", object{"paused": true})
				}, policy.Violated)),
		row("ignored-fields-that-cover-the-spec", "A policy ignores the whole spec, so that the signature covers nothing that matters. It is refused, and while it is there, so are the objects that it matches.", "kyverno: ignoreFields may leave nothing to be signed", func(s *scene) {
			plain := with(deployment("registry.example/app:1"), "spec", object{"replicas": 2})
			s.policies(manifestPolicy(fields + "spec.replicas]}]"))
			s.admitted(own(s, plain))
			for _, pattern := range []string{"spec", "spec.*", "spec.template", "'*'"} {
				s.again(ample)
				s.broken = true
				s.policies(manifestPolicy(fields + pattern + "]}]"))
				s.refused(scaled(own(s, plain), 9))
			}
		}),
	}
}
