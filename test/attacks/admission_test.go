package attacks

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// claimed gives a pod metadata that claims that it need not be looked at.
func claimed(metadata object) func(*scene) {
	return func(s *scene) {
		s.policies(signedBy(ofKey))
		s.admitted(with(pod(s.signed("signed").Name), "metadata", metadata))
		s.refused(with(pod(s.built("unsigned").Name), "metadata", metadata), policy.Unsigned)
	}
}

// deployment is a Deployment of the pod's containers.
func deployment(images ...string) object {
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "web", "namespace": namespace},
		"spec": object{"template": object{"spec": pod(images...)["spec"]}},
	}
}

// updated changes the one container of a pod; the control leaves the unsigned image as
// it was.
func updated(metadata object) func(*scene) {
	return func(s *scene) {
		old, next := with(pod(s.built("old").ByDigest()), "metadata", metadata), with(pod(s.built("next").ByDigest()), "metadata", metadata)
		s.policies(signedBy(ofKey))
		relabelled := with(old, "metadata", object{"labels": object{"a": "b"}})
		s.admitted(request{operation: "UPDATE", old: old, now: relabelled})
		s.refused(request{operation: "UPDATE", old: old, now: next}, policy.Unsigned)
	}
}

// broken panics, as a library may on bytes that an attacker chose.
type broken struct{ gate.Prover }

// Verify implements verify.Verifier.
func (broken) Verify(context.Context, image.Pinned, attest.Evidence, verify.Authority) (verify.Fact, error) {
	panic("an index out of range")
}

func admissionAttacks() []attack {
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, only(admitting), play}
	}
	return []attack{
		row("annotation-of-a-verdict", "The pod comes with the annotations in which other tools record that images were verified. They are not read, and it is denied.", "kyverno 11529, 11544, 16336", func(s *scene) {
			digest := s.built("unsigned")
			claimed(object{"annotations": object{
				"kyverno.io/verify-images": `{"` + digest.ByDigest() + `":"pass"}`, "kyverno.io/image-verification-outcomes": `{"images":{"status":"pass"}}`,
			}})(s)
		}),
		row("annotation-of-what-was-written", "The pod has our own annotation of the written image, naming a signed image. It has no effect, and the pod is denied.", "kyverno 16336: annotations that are trusted", func(s *scene) {
			claimed(object{"annotations": object{"quaymaster.dev/written": `{"c0":"` + s.signed("good").Name + `"}`}})(s)
		}),
		row("forged-owner", "The pod has an owner reference to a ReplicaSet, which some verifiers take for an earlier verification. It is denied.", "Portieris: owner references are trusted", claimed(object{"ownerReferences": []any{
			object{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": true},
		}})),
		row("forged-mirror-pod", "A user's pod has the annotation of a static pod's mirror. It is denied: only a node may set it.", "static pods", claimed(object{"annotations": object{"kubernetes.io/config.mirror": "abc"}})),
		row("break-glass-on-the-pod", "The pod itself carries the labels that open a namespace, or leave it out elsewhere. They have no effect on a pod, and it is denied.", "break glass without permission", claimed(object{"labels": object{
			"quaymaster.dev/break-glass": "true", "policy.sigstore.dev/exclude": "true", "admission.gatekeeper.sh/ignore": "true",
		}})),
		row("pod-that-is-being-deleted", "A pod with a deletion time and a finalizer is given another image. It is denied; what changes no image is admitted.", "GHSA-hq4m-4948-64cc, CVE-2023-34091", updated(object{"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []any{"example.com/keep"}})),
		row("rule-about-what-is-being-deleted", "A pod with a deletion time and a finalizer is given a label that a rule about objects forbids. It is denied; that its finalizer goes is admitted.", "GHSA-hq4m-4948-64cc, CVE-2023-34091", func(s *scene) {
			s.policies("{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: labels}, spec: {validationFailureAction: Enforce, rules: [" +
				"{name: team, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {pattern: {metadata: {labels: {team: a}}}}}]}}")
			metadata := object{"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []any{"example.com/keep"}, "labels": object{"team": "a"}}
			old := with(pod(s.built("old").ByDigest()), "metadata", metadata)
			other := with(old, "metadata", object{"labels": object{"team": "b"}})
			s.admitted(request{operation: "UPDATE", old: other, now: with(other, "metadata", object{"finalizers": []any{}})})
			s.refused(request{operation: "UPDATE", old: old, now: other}, policy.Violated)
		}),
		row("update-of-the-image", "An update changes the image of a pod that runs. It is denied; an update that changes no image is admitted.", "connaisseur 2053", updated(nil)),
		row("created-with-a-deletion-time", "A new pod comes with a deletion time. It is denied all the same.", "GHSA-hq4m-4948-64cc, CVE-2023-34091", claimed(object{"deletionTimestamp": "2026-01-01T00:00:00Z"})),
		row("debugging-container", "An ephemeral container with an unsigned image is added to a pod that runs. It is denied, and a signed one is admitted.", "policy-controller 299, kyverno 16275", func(s *scene) {
			base := pod(s.signed("base").ByDigest())
			added := func(image string) request {
				now := with(base, "spec", object{"ephemeralContainers": []any{object{"name": "debug", "image": image}}})
				return request{operation: "UPDATE", subresource: "ephemeralcontainers", old: base, now: now}
			}
			s.policies(signedBy(ofKey))
			s.admitted(added(s.signed("tool").ByDigest()))
			s.refused(added(s.built("evil").ByDigest()), policy.Unsigned)
		}),
		row("mutating-webhook-passed-by", "The mutating webhook never ran, and the unsigned image comes with forged annotations. The validating one denies it by itself.", "kyverno 16336", func(s *scene) {
			s.policies(signedBy(ofKey))
			s.admitted(request{unmutated: true, now: pod(s.signed("signed").ByDigest())})
			evil := with(pod(s.built("unsigned").ByDigest()), "metadata", object{"annotations": object{"kyverno.io/image-verification-outcomes": `{"images":{"status":"pass"}}`}})
			s.refused(request{unmutated: true, now: evil}, policy.Unsigned)
		}),
		row("tag-behind-the-mutating-webhook", "The mutating webhook never ran, so that a signed image is named by its tag alone, which may move before the node pulls. It is denied.", "kyverno: required trusts an annotation", func(s *scene) {
			image := s.signed("signed")
			s.policies(signedBy(ofKey))
			s.admitted(request{unmutated: true, now: pod(image.ByDigest())})
			s.refused(request{unmutated: true, now: pod(image.Name)})
		}),
		row("tag-in-a-controller", "A policy names Deployments themselves, and no rule covers the pods that follow, which would run a later digest of the tag. The Deployment is pinned, and a tag that bypassed the mutating webhook is denied.", "kyverno: images of controllers are pinned", func(s *scene) {
			image := s.signed("signed")
			s.policies(strings.Replace(signedBy(ofKey), "kinds: [Pod]", "kinds: [Deployment]", 1))
			s.runs(request{now: deployment(image.Name)}, image)
			s.refused(request{unmutated: true, now: deployment(image.Name)}, policy.MissingDigest)
			s.refused(request{now: deployment(s.built("unsigned").Name)}, policy.Unsigned)
		}),
		row("label-after-the-image", "A policy selects pods by a label. A pod with an unsigned image is created without the label, and an update adds it, or ends an exclusion. It is denied, though the image did not change.", "policies that select by labels, and images that count as unchanged", func(s *scene) {
			good, evil := s.signed("signed").ByDigest(), s.built("unsigned").ByDigest()
			of := func(image string, labels object) object {
				return with(pod(image), "metadata", object{"labels": labels})
			}
			update := func(image string, old, now object) request {
				return request{operation: "UPDATE", old: of(image, old), now: of(image, now)}
			}
			prod, none, free := object{"env": "prod"}, object{"app": "web"}, object{"app": "web", "free": "yes"}
			cluster := strings.Replace(signedBy(ofKey), "kinds: [Pod]", "kinds: [Pod], selector: {matchLabels: {env: prod}}", 1)
			valid := strings.Replace(validating("  validations: [{expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.key]) > 0)'}]\n"),
				"  matchConstraints: {", "  matchConstraints: {objectSelector: {matchLabels: {env: prod}}, ", 1)
			for _, selecting := range []string{cluster, valid} {
				s.policies(selecting)
				s.admitted(of(evil, none))
				s.admitted(update(good, none, prod))
				s.admitted(update(evil, none, free))
				s.refused(update(evil, none, prod), policy.Unsigned)
			}
			s.policies(strings.Replace(signedBy(ofKey), "    verifyImages:", "    exclude: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {free: 'yes'}}}}]}\n    verifyImages:", 1))
			s.admitted(of(evil, free))
			s.admitted(update(good, free, none))
			s.refused(update(evil, free, none), policy.Unsigned)
		}),
		row("value-that-becomes-an-image", "An expression names images by the names of parameters. An unsigned image comes in under another name, and an update renames it. It is denied, though the text did not change.", "kyverno 16260: typed parameters", func(s *scene) {
			s.policies(strings.Replace(validating("  validations: [{expression: 'images.bundle.all(i, verifyImageSignatures(i, [attestors.key]) > 0)'}]\n"), "spec:\n",
				"spec:\n  validationConfigurations: {required: false}\n  images: [{name: bundle, expression: \"object.spec.securityContext.sysctls.filter(p, p.name == 'bundle').map(p, p.value)\"}]\n", 1))
			of := func(name, value string) object {
				return with(pod(), "spec", object{"securityContext": object{"sysctls": []any{object{"name": name, "value": value}}}})
			}
			good, evil := s.signed("signed").ByDigest(), s.built("unsigned").ByDigest()
			s.admitted(of("base", evil))
			s.admitted(request{operation: "UPDATE", old: of("base", good), now: of("bundle", good)})
			s.refused(request{operation: "UPDATE", old: of("base", evil), now: of("bundle", evil)}, policy.Unsigned)
		}),
		row("tag-that-moves-between-webhooks", "The tag moves to an unsigned image after the mutating webhook and before the validating one. The pinned image runs; a new request is denied.", "GHSA-m3cq-xcx9-3gvm, CVE-2022-47633", func(s *scene) {
			evil, image := s.Build("shop/web", "1", "evil"), s.Build("shop/web", "1", "good")
			s.check(s.SignLegacy(image, by(s.key), nil))
			s.policies(signedBy(ofKey))
			s.runs(request{now: pod(image.Name), change: func() { s.Registry.Retag("shop/web", "1", evil.Manifest.Digest) }}, image)
			s.refused(image.Name, policy.Unsigned)
		}),
		row("containers-that-are-repeated", "The object has its containers twice, signed ones and then others, so that two parsers see two pods. It is denied.", "parsers that differ", func(s *scene) {
			signed, evil := pod(s.signed("signed").ByDigest()), pod(s.built("evil").ByDigest())
			list := func(of object) string {
				return string(testkit.Must(json.Marshal(of["spec"].(object)["containers"]))(s.t))
			}
			text := func(containers ...string) request {
				return request{now: signed, unmutated: true, raw: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"shop"},"spec":{"containers":` + strings.Join(containers, `,"containers":`) + `}}`}
			}
			s.policies(signedBy(ofKey))
			s.admitted(text(list(signed)))
			s.refused(text(list(evil), list(signed)))
			s.refused(text(list(signed), list(evil)))
		}),
		row("containers-in-capitals", "The object has a member called Containers beside the right one, which lenient parsers take for it. The verified image runs.", "parsers that differ", func(s *scene) {
			signed, evil := pod(s.signed("signed").ByDigest()), pod(s.built("evil").ByDigest())
			s.policies(signedBy(ofKey))
			s.admitted(signed)
			s.refused(with(evil, "spec", object{"Containers": signed["spec"].(object)["containers"]}), policy.Unsigned)
		}),
		row("dry-run", "An unsigned image comes as a dry run. It is denied as any other, and nothing is cached in its favour.", "dry runs with side effects", func(s *scene) {
			image := s.built("unsigned")
			s.policies(signedBy(ofKey))
			s.admitted(request{now: pod(s.signed("signed").Name), dryRun: true})
			s.refused(request{now: pod(image.Name), dryRun: true}, policy.Unsigned)
			s.refused(image.Name, policy.Unsigned)
		}),
		row("labels-that-cannot-be-read", "A policy is for namespaces by their labels, and the labels cannot be read. The policy must not be skipped, and the pod is denied.", "GHSA-jrr2-x33p-6hvc, CVE-2025-46342", func(s *scene) {
			s.policies(strings.Replace(signedBy(ofKey), "{kinds: [Pod]}", "{kinds: [Pod], namespaceSelector: {matchLabels: {verify: 'yes'}}}", 1))
			image := s.built("unsigned").ByDigest()
			s.admitted(image)
			s.noLabels = errors.New("the API server does not answer")
			s.refused(image)
		}),
		row("panic", "A library panics on bytes from an attacker. The image is denied, and the next one is served.", "GHSA-7c37-gx6w-8vc5, CVE-2026-44310; kyverno 16435", func(s *scene) {
			image := s.signed("signed")
			s.policies(signedBy(ofKey))
			s.prover = func(p gate.Prover) gate.Prover { return broken{p} }
			s.refused(image.Name)
			s.prover = nil
			s.again(ample)
			s.runs(image.Name, image)
		}),
	}
}
