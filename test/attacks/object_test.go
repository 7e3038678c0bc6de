package attacks

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy"
)

// objectPolicy is a ClusterPolicy with one rule about objects.
func objectPolicy(rule string) string {
	return "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: objects}, spec: {validationFailureAction: Enforce, background: false, rules: [{name: object, " + rule + "}]}}"
}

// scaling is a request to scale a resource of example.com, to no more than half as much.
func scaling(resource string) request {
	scale := object{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": object{"name": "web", "namespace": namespace}, "spec": object{"replicas": 4}}
	return request{
		operation: "UPDATE", subresource: "scale", resource: object{"group": "example.com", "version": "v1", "resource": resource},
		old: scale, now: with(scale, "spec", object{"replicas": 2}),
	}
}

// scales denies the scaling of resources.
func scales(resources string) string {
	return "{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {name: scales}, spec: {validationActions: [Deny], " +
		"matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [UPDATE], resources: [" + resources + "]}]}, validations: [{expression: 'false'}]}}"
}

// ofTeam is a pod of a team.
func ofTeam(team, image string) object {
	return with(pod(image), "metadata", object{"labels": object{"team": team}})
}

func objectAttacks() []attack {
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, only(admitting), play}
	}
	const pods = "match: {any: [{resources: {kinds: [Pod]}}]}, "
	const image = "registry.example/app:1"
	return []attack{
		row("another-version-than-the-rule-names", "A rule reads a field of one version of a kind, and the object comes in another version, without a conversion. The rule cannot be evaluated, and the object is denied.", "equivalent versions", func(s *scene) {
			of := func(version string) object {
				return object{"apiVersion": "autoscaling/" + version, "kind": "HorizontalPodAutoscaler", "metadata": object{"name": "web", "namespace": namespace}, "spec": object{"maxReplicas": 3}}
			}
			for _, text := range []string{
				objectPolicy("match: {any: [{resources: {kinds: [autoscaling/v1/HorizontalPodAutoscaler]}}]}, validate: {pattern: {spec: {X(targetCPUUtilizationPercentage): null}}}"),
				"{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {name: p}, spec: {validationActions: [Deny], matchConstraints: {resourceRules: [{apiGroups: [autoscaling], apiVersions: [v1], operations: [CREATE], resources: [horizontalpodautoscalers]}]}, " +
					"validations: [{expression: '!has(object.spec.targetCPUUtilizationPercentage)'}]}}",
			} {
				s.policies(text)
				s.admitted(request{now: of("v1")})
				s.refused(request{now: of("v2")}, policy.PolicyError)
				s.again(ample)
			}
		}),
		row("controller-in-a-selected-namespace", "A ValidatingPolicy about pods selects namespaces by their labels, and a Deployment in one of them brings a template that it denies. The Deployment is denied, too.", "kyverno 1.19: autogen with a namespaceSelector", func(s *scene) {
			s.policies("{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {name: p}, spec: {validationActions: [Deny], matchConstraints: {namespaceSelector: {matchExpressions: [{key: exempt, operator: DoesNotExist}]}, resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, " +
				"validations: [{expression: 'object.spec.containers.all(c, c.image == \"registry.example/app:1\")'}]}}")
			s.admitted(request{now: deployment(image)})
			s.refused(request{now: deployment("registry.example/other:1")}, policy.Violated)
		}),
		row("controller-at-the-operation-of-a-rule", "A ValidatingPolicy about the updates of pods denies an image, and the update of a Deployment brings a template with it. The generated rule has the operations of the policy, and the update is denied.", "kyverno 1.19: autogen keeps operations", func(s *scene) {
			s.policies("{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {name: p}, spec: {validationActions: [Deny], matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [pods]}]}, " +
				"validations: [{expression: 'object.spec.containers.all(c, c.image == \"registry.example/app:1\")'}]}}")
			s.admitted(request{operation: "UPDATE", old: deployment("registry.example/app:0"), now: deployment(image)})
			s.refused(request{operation: "UPDATE", old: deployment(image), now: deployment("registry.example/other:1")}, policy.Violated)
		}),
		row("namespace-that-writes-its-own-labels", "An expression reads the labels of a Namespace's namespaceObject, and the update of the Namespace brings the label that it wants. The stored Namespace is read, and the update denied.", "namespaceObject of the new object", func(s *scene) {
			of := func(labels object) object {
				return object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": namespace, "labels": labels}}
			}
			s.policies("{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {name: p}, spec: {validationActions: [Deny], matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [namespaces]}]}, " +
				"validations: [{expression: \"namespaceObject.metadata.?labels.unlocked.orValue('') == 'yes'\"}]}}")
			s.admitted(request{operation: "UPDATE", old: of(object{"unlocked": "yes"}), now: of(object{"team": "a"})})
			s.refused(request{operation: "UPDATE", old: of(object{"team": "a"}), now: of(object{"unlocked": "yes"})}, policy.Violated)
		}),
		row("lost-integer-in-a-list", "An expression compares a list with an integer past 2^53, and the object brings its neighbour. It could not be verified, and is denied; a small integer is admitted.", "integers that a float64 rounds", func(s *scene) {
			s.policies("{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {name: p}, spec: {validationActions: [Deny], matchConstraints: {resourceRules: [{apiGroups: ['example.com'], apiVersions: [v1], operations: [CREATE], resources: [quotas]}]}, " +
				"validations: [{expression: 'object.spec.denied.indexOf(9007199254740993) == -1'}]}}")
			of := func(n int64) request {
				return request{now: object{"apiVersion": "example.com/v1", "kind": "Quota", "metadata": object{"name": "web", "namespace": namespace}, "spec": object{"denied": []any{n}}}, resource: object{"group": "example.com", "version": "v1", "resource": "quotas"}}
			}
			s.admitted(of(7))
			s.refused(of(9007199254740993), policy.PolicyError)
		}),
		row("foreign-kind-of-a-known-resource", "A rule names a resource in every group, and a custom kind has a resource of the same name. It is denied.", "kinds by their resources", func(s *scene) {
			s.policies("{apiVersion: policies.kyverno.io/v1, kind: ValidatingPolicy, metadata: {name: p}, spec: {validationActions: [Deny], matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: [v1], operations: [CREATE], resources: [services]}]}, " +
				"validations: [{expression: 'false'}]}}")
			of := func(kind, resource string) request {
				return request{now: object{"apiVersion": "serving.example/v1", "kind": kind, "metadata": object{"name": "web", "namespace": namespace}}, resource: object{"group": "serving.example", "version": "v1", "resource": resource}}
			}
			s.admitted(of("Route", "routes"))
			s.refused(of("Service", "services"), policy.Violated)
			s.refused(of("Listener", "services"), policy.Violated)
		}),
		row("deletion-under-a-broken-policy", "A policy that denies deletions does not compile. A deletion could not be verified, and is denied; a creation, which it does not name, is not.", "broken policies", func(s *scene) {
			s.broken = true
			s.policies(objectPolicy("match: {any: [{resources: {kinds: [ConfigMap], operations: [DELETE]}}]}, validate: {deny: {x: y}}"))
			config := object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "web", "namespace": namespace}}
			s.admitted(request{now: config})
			s.refused(request{operation: "DELETE", old: config, unmutated: true}, policy.PolicyError)
		}),
		row("misspelt-name-behind-a-default", "A rule reads a name that nothing defines, with a default for an absent one. The policy is broken, and the objects that it names could not be verified.", "policies without effect", func(s *scene) {
			s.broken = true
			s.policies(objectPolicy(pods + "validate: {deny: {conditions: {any: [{key: \"{{ requst.object.metadata.labels.team || 'a' }}\", operator: NotEquals, value: a}]}}}"))
			s.admitted(request{now: object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "web", "namespace": namespace}}})
			s.refused(request{now: ofTeam("b", image), unmutated: true}, policy.PolicyError)
		}),
		row("context-entry-named-as-a-path", "A context entry is named as a path into an earlier one, which it would override. The policy is broken, and the objects that it names could not be verified.", "policies without effect", func(s *scene) {
			s.broken = true
			s.policies(objectPolicy(pods + "context: [{name: a, variable: {value: {team: a}}}, {name: a.team, variable: {value: b}}], validate: {deny: {conditions: {any: [{key: '{{ a.team }}', operator: Equals, value: '{{ request.object.metadata.labels.team }}'}]}}}"))
			s.admitted(request{now: object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "web", "namespace": namespace}}})
			s.refused(request{now: ofTeam("b", image), unmutated: true}, policy.PolicyError)
		}),
		row("request-options-behind-a-default", "A rule reads the options of the request, with a default for none. The options that came count, and the pod is denied.", "a request that is rebuilt", func(s *scene) {
			s.policies(objectPolicy(pods + "validate: {deny: {conditions: {any: [{key: \"{{ request.options.fieldManager || 'ci' }}\", operator: NotEquals, value: ci}]}}}"))
			s.admitted(request{now: pod(image), options: object{"fieldManager": "ci"}})
			s.refused(request{now: pod(image), options: object{"fieldManager": "kubectl-edit"}}, policy.Violated)
		}),
		row("roles-behind-a-default", "A rule reads roles that were not looked up, with a default for none. Their absence is not certain, and the pod is denied.", "a request that is rebuilt", func(s *scene) {
			rule := objectPolicy(pods + "validate: {deny: {conditions: {any: [{key: view, operator: AnyIn, value: '{{ request.FIELD || `[]` }}'}]}}}")
			s.policies(strings.Replace(rule, "FIELD", "userInfo.groups", 1))
			s.admitted(pod(image))
			s.again(ample)
			s.policies(strings.Replace(rule, "FIELD", "clusterRoles", 1))
			s.refused(pod(image), policy.PolicyError)
		}),
		row("official-image-by-another-spelling", "A rule denies the official images of Docker Hub, and one is named without registry and library/. It is denied by every spelling.", "spellings of Docker Hub", func(s *scene) {
			s.policies(objectPolicy(pods + "validate: {foreach: [{list: 'images.containers.*', deny: {conditions: {any: [{key: '{{ element.reference }}', operator: AnyIn, value: ['docker.io/library/*']}]}}}]}"))
			s.admitted(pod(image))
			for _, spelling := range []string{"busybox:1", "docker.io/busybox:1", "library/busybox:1", "index.docker.io/library/busybox:1"} {
				s.refused(pod(spelling), policy.Violated)
			}
		}),
		row("image-that-a-rule-cannot-read", "A rule about objects allows one registry, and an image cannot be read. It is not left out, and the pod is denied.", "images that are left out", func(s *scene) {
			s.policies(objectPolicy(pods + "validate: {foreach: [{list: 'images.containers.*', deny: {conditions: {any: [{key: '{{ element.registry }}', operator: NotEquals, value: registry.example}]}}}]}"))
			s.admitted(pod(image))
			s.refused(pod(" evil.example/app:1"))
		}),
		row("existing-violation-of-a-subresource", "A rule denies debugging containers, and the pod is there before. The excuse for existing violations is about the pod, not about a subresource, and it is denied.", "an excuse that is too wide", func(s *scene) {
			s.policies(objectPolicy("match: {any: [{resources: {kinds: [Pod/ephemeralcontainers]}}]}, validate: {deny: {}}"))
			s.admitted(request{operation: "UPDATE", old: ofTeam("a", image), now: ofTeam("b", image)})
			s.refused(request{operation: "UPDATE", subresource: "ephemeralcontainers", old: ofTeam("a", image), now: ofTeam("b", image)}, policy.Violated)
		}),
		row("scale-of-a-custom-resource", "A rule denies to scale a custom resource, and the request brings a Scale, which is of another kind. It is denied; the scale of another resource is admitted.", "a subresource with a body of another kind", func(s *scene) {
			for _, rule := range []string{objectPolicy("match: {any: [{resources: {kinds: [Widget/scale]}}]}, validate: {deny: {}}"), scales("widgets/scale")} {
				s.policies(strings.NewReplacer("Widget", "Gadget", "widgets", "gadgets").Replace(rule))
				s.admitted(scaling("widgets"))
				s.again(ample)
				s.policies(rule)
				s.refused(scaling("widgets"), policy.Violated)
				s.again(ample)
			}
		}),
		row("scale-of-a-resource-that-is-not-known", "As before, and the definition is not known yet. A rule that names the resource holds; one that names a kind could not be verified, and the request is denied.", "a subresource with a body of another kind", func(s *scene) {
			s.policies(scales("gadgets/scale"))
			s.admitted(scaling("widgets"))
			s.refused(scaling("gadgets"), policy.Violated)
			s.again(ample)
			s.policies(objectPolicy("match: {any: [{resources: {kinds: [Widget/scale]}}]}, validate: {deny: {}}"))
			s.refused(scaling("gadgets"))
		}),
		row("existing-violation-of-an-expression", "An object violates an expression of CEL, and an update leaves it so. Expressions know no excuse, and it is denied.", "an excuse that is too wide", func(s *scene) {
			s.policies(objectPolicy(pods + "validate: {cel: {expressions: [{expression: \"object.metadata.labels.team in ['a', 'b']\"}]}}"))
			s.admitted(request{operation: "UPDATE", old: ofTeam("a", image), now: ofTeam("b", image)})
			s.refused(request{operation: "UPDATE", old: ofTeam("c", image), now: ofTeam("d", image)}, policy.Violated)
		}),
	}
}
