package attacks

import (
	"encoding/json"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
)

// excepting is an exception of the policy, in a namespace, of images.
func excepting(from, expression string) string {
	return "apiVersion: policies.kyverno.io/v1\nkind: PolicyException\nmetadata: {name: leave-out, namespace: " + from + "}\nspec:\n" +
		"  policyRefs: [{name: images, kind: ImageValidatingPolicy}]\n  images: ['" + expression + "']\n"
}

// validating is an ImageValidatingPolicy.
func validating(body string) string {
	return "apiVersion: policies.kyverno.io/v1\nkind: ImageValidatingPolicy\nmetadata: {name: images}\nspec:\n  validationActions: [Deny]\n" +
		"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}\n" +
		"  matchImageReferences: [{glob: HOST/shop/*}]\n" +
		"  attestors: [{name: key, cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true}}}]\n" + body
}

const (
	proves = "  validations: [{expression: 'images.containers.all(i, verifyImageSignatures(i, [attestors.key]) > 0)'}]\n"
	aScan  = "  attestations: [{name: scan, intoto: {type: SCAN}}]\n"
	reads  = "images.containers.all(i, extractPayload(i, attestations.scan).predicate.verdict == \"clean\")"
)

// noDebugging denies containers that are added to pods.
const noDebugging = "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: no-debugging}\nspec:\n  validationActions: [Deny]\n" +
	"  matchConstraints:\n    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: ['pods/*']}]\n" +
	"    excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [EXCLUDED]}]\n" +
	"  validations: [{expression: '!has(object.spec.ephemeralContainers)'}]\n"

// objects is a ClusterPolicy with a rule about pods.
func objects(validate string) string {
	return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: objects}\nspec:\n  validationFailureAction: Enforce\n" +
		"  rules:\n  - name: objects\n    match: {any: [{resources: {kinds: [Pod]}}]}\n    validate:\n      message: nay\n      " + validate + "\n"
}

// concerns is a rule by which one object is admitted and others, which differ in one value, are
// refused.
func concerns(validate string, honest func(object) object, forged ...func(object) object) func(*scene) {
	return func(s *scene) {
		base := pod(s.built("app").ByDigest())
		s.policies(objects(validate))
		s.admitted(honest(base))
		for _, change := range forged {
			s.refused(change(base))
		}
	}
}

// annotatedWith sets annotations, and named the service account of a pod.
func annotatedWith(annotations object) func(object) object {
	return func(of object) object { return with(of, "metadata", object{"annotations": annotations}) }
}

func owned(team, account string) func(object) object {
	return func(of object) object {
		return annotatedWith(object{"team": team})(with(of, "spec", object{"serviceAccountName": account}))
	}
}

// tolerating sets the operator keys of tolerations, a list of texts that every user may
// write.
func tolerating(keys ...string) func(object) object {
	return func(of object) object {
		list := make([]any, len(keys))
		for i, key := range keys {
			list[i] = object{"key": key, "operator": "Exists"}
		}
		return with(of, "spec", object{"tolerations": list})
	}
}

// mistaken replaces a policy that works by one that does not compile: nothing is admitted
// by it.
func mistaken(good, bad string) func(*scene) {
	return func(s *scene) {
		image := s.signed("signed")
		s.policies(good)
		s.runs(image.Name, image)
		s.again(ample)
		s.broken = true
		s.policies(bad)
		s.refused(s.built("unsigned").Name)
	}
}

// asks is a policy with an expression that calls a host that is not allowed.
func asks(expression string) func(*scene) {
	return func(s *scene) {
		image := s.signed("signed")
		s.policies(validating(proves))
		s.runs(image.Name, image)
		s.again(ample)
		s.broken = true // that it does not compile is an answer, too
		s.policies(validating(strings.Replace(proves, "}]", "}, {expression: '"+expression+"'}]", 1)))
		s.refused(image.Name)
	}
}

// unprivileged is a policy about signed images that run as one user.
func unprivileged() string {
	return validating(strings.Replace(proves, "}]", "}, {expression: 'images.containers.all(i, getImageData(i).config.config.User == \"1000\")'}]", 1))
}

// configured makes an image that is signed by the key, with a configuration.
func (s *scene) configured(name, config string) gatetest.Image {
	s.t.Helper()
	repository := "shop/" + name
	body := testkit.Must(json.Marshal(object{
		"schemaVersion": 2, "mediaType": ocispec.MediaTypeImageManifest,
		"config": s.Registry.PutBlob(repository, ocispec.MediaTypeImageConfig, []byte(config)), "layers": []any{},
	}))(s.t)
	image := gatetest.Image{
		Name: s.Registry.Host() + "/" + repository + ":1", Repository: repository,
		Manifest: s.Registry.PutManifest(repository, "1", ocispec.MediaTypeImageManifest, body),
	}
	s.check(s.SignLegacy(image, by(s.key), nil))
	return image
}

// impossible returns a policy that works, with selectors that match nothing in its place.
func impossible() map[string]string {
	const rule, rules = "operations: [CREATE, UPDATE], resources: [pods]}", "matchConstraints: {"
	good := validating(proves)
	bad := map[string]string{
		"everything excluded":     strings.Replace(good, rules, rules+"excludeResourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*']}], ", 1),
		"labels that contradict":  strings.Replace(good, rules, rules+"objectSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: DoesNotExist}]}, ", 1),
		"a namespace of no name":  strings.Replace(good, rules, rules+"namespaceSelector: {matchExpressions: [{key: a, operator: In, values: [b]}, {key: a, operator: In, values: [c]}]}, ", 1),
		"a version in upper case": strings.Replace(good, "apiVersions: [v1]", "apiVersions: [V1]", 1),
		"an empty name":           strings.Replace(good, rule, "resourceNames: [''], "+rule, 1),
		"a scope of nothing":      strings.Replace(good, rule, "scope: Cluster, "+rule, 1),
	}
	for reason, text := range map[string]string{
		"a kind that is misspelt": "kinds: [pods]",
		"names of another filter": "kinds: [Pod], names: ['']",
		"labels of two values":    "kinds: [Pod], selector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: In, values: [c]}]}",
	} {
		bad[reason] = strings.Replace(signedBy(ofKey), "kinds: [Pod]", text, 1)
	}
	return bad
}

func policyAttacks() []attack {
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, everywhere(), play}
	}
	gated := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, remembering(), play}
	}
	return []attack{
		row("misspelt-field", "A field of a policy is misspelt, so that a lenient parser drops its requirement. The policy is refused as a whole, and the images that it matches are not admitted.", "GHSA-46mp-8w32-6g94, CVE-2025-29778",
			mistaken(signedBy(ofKey), strings.Replace(signedBy(ofKey), "attestors:", "attestrs:", 1))),
		row("misspelt-identity", "An identity's field is misspelt, so that only the issuer would be left. The policy is refused as a whole.", "GHSA-46mp-8w32-6g94, CVE-2025-29778",
			mistaken(signedBy(ofKey), signedBy("{keyless: {issuer: ISSUER, subjectRegex: '.*'}}"))),
		row("identity-without-a-subject", "A policy names an issuer and no subject, so that every account there could sign. It is refused as a whole, or denies.", "kyverno 17125: any signer of the authority",
			mistaken(signedBy(ofKey), signedBy("{keyless: {}}"))),
		row("two-users-in-a-configuration", "An image's configuration names a user that the policy accepts, and root under the same key or one that differs by case, of which container runtimes read the last. No data of the image is read, and it is denied.", "bodies that lie", func(s *scene) {
			honest := s.configured("honest", `{"os":"linux","architecture":"amd64","config":{"User":"1000"}}`)
			s.policies(unprivileged())
			s.runs(honest.Name, honest)
			s.refused(s.configured("root", `{"os":"linux","architecture":"amd64","config":{"User":"0"}}`).Name)
			s.refused(s.configured("case", `{"os":"linux","architecture":"amd64","config":{"User":"1000","user":"0"}}`).Name, errored()...)
			s.refused(s.configured("repeated", `{"os":"linux","architecture":"amd64","config":{"User":"0","User":"1000"}}`).Name, errored()...)
		}),
		row("selector-that-matches-nothing", "The selector of a policy matches nothing by its text, so that the policy would be silent. It is refused as a whole, and the images of its kinds are not admitted.", "policies without effect", func(s *scene) {
			image := s.signed("signed")
			s.policies(validating(proves))
			s.runs(image.Name, image)
			s.again(ample)
			s.broken = true
			unsigned := s.built("unsigned").Name
			for reason, text := range impossible() {
				s.policies(text)
				s.refused(unsigned)
				if s.t.Failed() {
					s.t.Fatal(reason)
				}
			}
		}),
		{"cluster-scoped-object-in-a-namespace", "A rule leaves out a namespace, and an object of the cluster brings its name. The object is in none, and it is denied.", "a namespace that the object writes", []endpoint{library, commandLine}, func(s *scene) {
			s.policies("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: verbs}\nspec:\n  validationFailureAction: Enforce\n  rules:\n" +
				"  - name: verbs\n    match: {any: [{resources: {kinds: [ClusterRole]}}]}\n    exclude: {any: [{resources: {namespaces: [" + namespace + "]}}]}\n" +
				"    validate: {message: nay, deny: {conditions: {any: [{key: '{{ request.object.rules[].verbs[] }}', operator: AnyIn, value: [escalate]}]}}}\n")
			of := func(verb string, metadata object) object {
				return object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": []any{object{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{verb}}}}
			}
			s.admitted(of("get", object{"name": "web", "namespace": namespace}))
			s.refused(of("escalate", object{"name": "web", "namespace": namespace}))
			s.refused(of("escalate", object{"name": "web"}))
		}},
		{"forged-name-of-a-namespace", "A policy leaves out a namespace by the label of its name, and the file of another Namespace brings that label. The label is the name's, as in a cluster, and the pod is denied.", "a label that the API server writes", only(commandLine), func(s *scene) {
			text := strings.Replace(validating(proves), "matchConstraints: {", "matchConstraints: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}, ", 1)
			image := s.signed("signed")
			s.policies(text)
			s.labels = map[string]string{"kubernetes.io/metadata.name": "kube-system"}
			s.runs(image.Name, image)
			s.refused(s.built("unsigned").Name, policy.Unsigned)
		}},
		row("policy-that-says-true", "The policy's only expression is true, and it requires a verification. An unverified image is denied.", "kyverno 16809", func(s *scene) {
			s.policies(validating(proves))
			image := s.signed("signed")
			s.runs(image.Name, image)
			s.again(ample)
			s.policies(validating("  validationConfigurations: {required: true, mutateDigest: true, verifyDigest: true}\n  validations: [{expression: 'true'}]\n"))
			s.refused(s.built("unsigned").Name)
		}),
		row("payload-of-an-unverified-signer", "The policy reads an attestation without verifying its signer, and an attestation by another key has the required content. It is denied.", "kyverno 17130, 17164", func(s *scene) {
			honest, forged := s.built("honest"), s.built("forged")
			s.check(s.AttestBundle(honest, by(s.key), scanType, clean()), s.AttestBundle(forged, by(s.stranger), scanType, clean()))
			s.policies(validating(aScan + "  validations: [{expression: 'images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.key]) > 0)'}, {expression: '" + reads + "'}]\n"))
			s.admitted(honest.ByDigest())
			s.again(ample)
			s.policies(validating(aScan + "  validations: [{expression: '" + reads + "'}]\n"))
			s.refused(forged.ByDigest())
		}),
		{"exclusion-of-pods", "A policy for the subresources of pods excludes pods, and a container is added to a running pod. The exclusion does not cover it, and it is denied; an exclusion of added containers does.", "a widening of matches that widens exclusions", only(admitting), func(s *scene) {
			base := pod(s.signed("base").ByDigest())
			now := with(base, "spec", object{"ephemeralContainers": []any{object{"name": "debug", "image": s.signed("tool").ByDigest()}}})
			s.policies(strings.Replace(noDebugging, "EXCLUDED", "pods/ephemeralcontainers", 1))
			s.admitted(request{operation: "UPDATE", subresource: "ephemeralcontainers", old: base, now: now})
			s.again(ample)
			s.policies(strings.Replace(noDebugging, "EXCLUDED", "pods", 1))
			s.admitted(base)
			s.refused(request{operation: "UPDATE", subresource: "ephemeralcontainers", old: base, now: now}, policy.Violated)
		}},
		row("wildcard-in-data", "A rule denies some values, and an object brings a wildcard that covers them. It is denied, as the values are; others are admitted.", "Kyverno: a wildcard in a deny key covers",
			concerns("deny: {conditions: {any: [{key: '{{ request.object.spec.tolerations[].key || `[]` }}', operator: AnyIn, value: [dedicated, control-plane]}]}}",
				tolerating("spot"), tolerating("dedicated"), tolerating("*"), tolerating("spot", "dedic*"), tolerating("control?plane"))),
		row("wildcard-in-data-that-is-allowed", "A rule denies all but some values, and an object brings a wildcard that is more than these. It is denied; the values are admitted.", "Kyverno: a wildcard in a key is in every set",
			concerns("deny: {conditions: {any: [{key: '{{ request.object.spec.tolerations[].key || `[]` }}', operator: AnyNotIn, value: [spot]}]}}",
				tolerating("spot"), tolerating("dedicated"), tolerating("*"), tolerating("s*"))),
		row("operator-in-data", "A pattern has a variable, and an object brings an operator, an alternative or a wildcard by it. It is denied; a plain text is admitted.", "Kyverno: a variable's value is read as a pattern",
			concerns("pattern: {spec: {serviceAccountName: '{{ request.object.metadata.annotations.team }}-*'}}",
				owned("shop", "shop-a"), owned("shop", "admin-a"), owned("!x", "admin-a"), owned("admin-a | shop", "admin-a"), owned("*", "admin-a"), owned("?dmin", "admin-a"))),
		row("text-in-place-of-a-boolean", "A rule denies the value true, and an object has it as text. It is denied; false is admitted, and so is an object without it.", "Kyverno: values of two kinds are never equal",
			concerns("deny: {conditions: {any: [{key: '{{ request.object.metadata.annotations.debug || `false` }}', operator: Equals, value: true}]}}",
				annotatedWith(object{"other": "x"}), annotatedWith(object{"debug": "true"}), annotatedWith(object{"debug": " True"}))),
		row("order-without-an-order", "A rule denies a value that is too large, and an object brings a text that has no order. It is denied; a small number is admitted.", "Kyverno: what has no order is not held",
			concerns("deny: {conditions: {any: [{key: '{{ request.object.metadata.annotations.size }}', operator: GreaterThan, value: 5}]}}",
				annotatedWith(object{"size": "3"}), annotatedWith(object{"size": "9"}), annotatedWith(object{"size": "many"}), annotatedWith(object{"size": ""}))),
		row("default-in-place-of-an-error", "A variable of a rule has a default, and an object brings a value on which its function fails. The default does not replace it, and the object is denied, as any other value is; the wanted value is admitted.", "Kyverno: a default replaces every error", func(s *scene) {
			of := func(team string) object { return annotatedWith(object{"team": team})(pod(s.built("app").ByDigest())) }
			s.policies(strings.Replace(objects("deny: {conditions: {any: [{key: '{{ team }}', operator: NotEquals, value: shop}]}}"), "    validate:\n",
				"    context: [{name: team, variable: {jmesPath: 'base64_decode(request.object.metadata.annotations.team)', default: shop}}]\n    validate:\n", 1))
			s.admitted(of("c2hvcA=="))
			s.refused(of("YWRtaW4="))
			s.refused(of("shop!"))
		}),
		row("user-that-is-not-known", "An expression allows one group an action that it denies others, and the requester's groups are none, or unknown. An object without the action is admitted, and one with it is denied.", "a member of the request that is unknown, not absent", func(s *scene) {
			s.policies("apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: groups}\nspec:\n  validationActions: [Deny]\n" +
				"  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}\n" +
				"  validations: [{expression: \"!has(object.spec.hostNetwork) || has(request.userInfo.groups) && request.userInfo.groups.exists(g, g == 'trusted')\"}]\n")
			base := pod(s.built("app").ByDigest())
			s.admitted(base)
			s.refused(with(base, "spec", object{"hostNetwork": true}))
		}),
		row("expression-that-calls-the-metadata-service", "An expression calls the cloud's metadata service. No request is sent, and the image is denied.", "CVE-2026-4789, GHSA-rggm-jjmc-3394; GHSA-qr4g-8hrp-c4rw", asks(`http.Get("http://169.254.169.254/latest/meta-data") != null`)),
		row("expression-that-calls-this-machine", "An expression calls a service on loopback, with the gateway's token attached. No request is sent, and the image is denied.", "CVE-2026-41323, GHSA-f9g8-6ppc-pqq4", asks(`http.Get("http://127.0.0.1:8001/api/v1/secrets") != null`)),
		row("expression-that-reads-secrets", "An expression reads a Secret of another namespace with the gateway's permissions. No request is sent, and the image is denied.", "CVE-2026-22039, GHSA-8p9x-46gm-qfx2", asks(`resource.Get("v1", "secrets", "kube-system", "token").data.token != ""`)),
		gated("exception-of-a-tenant", "A tenant writes an exception for the policy in a namespace of its own. It does not count, and the image is denied; in the operators' namespace it does.", "GHSA-qjvc-p88j-j9rm, CVE-2024-48921", func(s *scene) {
			image := s.built("unsigned").Name
			s.exceptionsFrom = []string{"operators"}
			s.policies(validating(proves), excepting("operators", "HOST/shop/unsigned*"))
			s.admitted(image)
			s.again(ample)
			s.broken = true // it is left alone
			s.policies(validating(proves), excepting("shop", "HOST/shop/unsigned*"))
			s.refused(image, policy.Unsigned)
		}),
		gated("exception-for-another-image", "An exception is for one image, and the pod runs another one beside it. The other one is denied.", "CVE-2026-100704", func(s *scene) {
			s.exceptionsFrom = []string{"operators"}
			excepted, evil := s.built("excepted").Name, s.built("evil").Name
			s.policies(validating(proves), excepting("operators", "HOST/shop/excepted*"))
			s.admitted(pod(excepted))
			s.refused(pod(excepted, evil), policy.Unsigned)
		}),
		gated("two-exceptions", "Two exceptions overlap: one for an image, one for others. Neither stretches to what none of them names.", "GHSA-gg4x-fgg2-h9w9", func(s *scene) {
			s.exceptionsFrom = []string{"operators"}
			a, b, evil := s.built("excepted-a").Name, s.built("excepted-b").Name, s.built("evil").Name
			s.policies(validating(proves), excepting("operators", "HOST/shop/excepted*"), strings.Replace(excepting("operators", "HOST/shop/excepted-b*"), "leave-out", "too", 1))
			s.admitted(pod(a, b))
			s.refused(pod(a, b, evil), policy.Unsigned)
		}),
	}
}
