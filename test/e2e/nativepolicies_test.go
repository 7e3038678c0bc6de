package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// agreement is a policy of the API server, its bindings and parameters, and a request. NAME is replaced by
// a name of its own, which is also that of its namespace.
type agreement struct {
	reason string
	// policies are documents; an empty text is the policy and the binding of the next two members.
	policies string
	// spec are members of the policy's spec, binding those of its binding's; "none" is no binding.
	spec, binding string
	// beside are other objects, which exist in the cluster.
	beside string
	// object is the object of the request; a ConfigMap without one. Old exists before, so that the
	// request is an update, or with deletes a deletion.
	object, old string
	deletes     bool
	denies      bool
	// open is why quaymaster does not decide the request; it does not admit it then.
	open string
}

const (
	configMaps = "  matchConstraints:\n    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]\n" +
		"    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}\n"
	agreedObject = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: NAME, labels: {app: web}}, data: {count: '1', owner: shop}}"
)

// manifest returns the documents of the policies of an agreement.
func (a *agreement) manifest(kind string) string {
	if a.policies != "" {
		return a.policies
	}
	spec := a.spec
	if !strings.Contains(spec, "matchConstraints:") {
		spec = configMaps + spec
	}
	text := "apiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: NAME}\nspec:\n" + spec + "\n"
	if a.binding == "none" {
		return text
	}
	binding := a.binding
	if kind == "ValidatingAdmissionPolicy" && !strings.Contains(binding, "validationActions") {
		binding += "\n  validationActions: [Deny]"
	}
	return text + "---\napiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "Binding\nmetadata: {name: NAME-bound}\nspec:\n  policyName: NAME\n" + binding + "\n"
}

// limits are two parameters.
const limits = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: low, namespace: NAME-params, labels: {limits: 'yes'}}, data: {most: '0'}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: high, namespace: NAME-params, labels: {limits: 'yes', high: 'yes'}}, data: {most: '9'}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: own, namespace: NAME}, data: {most: '0'}}`

const ofConfigMaps = "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: 'int(object.data.count) <= int(params.data.most)', messageExpression: \"'more than ' + params.data.most + ' of ' + params.metadata.name\"}]"

func validatingAgreements() []agreement {
	const never = "  validations: [{expression: 'false', message: no good}]"
	return []agreement{
		{reason: "a message", spec: never, denies: true},
		{reason: "a validation that holds", spec: "  validations: [{expression: \"object.data.owner == 'shop'\"}]"},
		{reason: "no message", spec: "  validations: [{expression: \" object.data.owner == 'blog' \"}]", denies: true},
		{reason: "a message of an expression", spec: "  validations: [{expression: 'false', message: plain, messageExpression: \"'owner is ' + object.data.owner\"}]", denies: true},
		{reason: "one with a line break", spec: "  validations: [{expression: 'false', message: plain, messageExpression: \"'a\\\\nb'\"}]", denies: true},
		{reason: "one that fails", spec: "  validations: [{expression: 'false', message: plain, messageExpression: string(object.data.gone)}]", denies: true},
		{reason: "a reason", spec: "  validations: [{expression: 'false', message: plain, reason: Forbidden}]", denies: true},
		{reason: "the second validation", spec: "  validations: [{expression: 'true', message: first}, {expression: 'false', message: second}]", denies: true},
		{reason: "of two, the first", spec: "  validations: [{expression: 'false', message: first}, {expression: 'false', message: second}]", denies: true},
		{reason: "a warning", spec: never, binding: "  validationActions: [Warn]"},
		{reason: "an audit", spec: never, binding: "  validationActions: [Audit]"},
		{reason: "a warning and an audit", spec: never, binding: "  validationActions: [Audit, Warn]"},
		{reason: "a denial and an audit", spec: never, binding: "  validationActions: [Audit, Deny]", denies: true},
		{reason: "no binding", spec: never, binding: "none"},
		{reason: "variables", spec: "  variables: [{name: count, expression: 'int(object.data.count)'}, {name: more, expression: variables.count + 1}]\n  validations: [{expression: variables.more < 2, messageExpression: \"'more is ' + string(variables.more)\"}]", denies: true},
		{reason: "a variable that holds", spec: "  variables: [{name: count, expression: 'int(object.data.count)'}]\n  validations: [{expression: variables.count == 1}]"},
		{reason: "an expression fails", spec: "  validations: [{expression: \"object.data.gone == 'a'\"}]", denies: true},
		{reason: "and is ignored", spec: "  failurePolicy: Ignore\n  validations: [{expression: \"object.data.gone == 'a'\"}]"},
		{reason: "a violation is not ignored", spec: "  failurePolicy: Ignore\n  validations: [{expression: \"object.data.gone == 'a'\"}, {expression: 'false', message: second}]", denies: true},
		{reason: "an error before a violation", spec: "  validations: [{expression: \"object.data.gone == 'a'\"}, {expression: 'false', message: second}]", denies: true},
		{reason: "an error under audit", spec: "  validations: [{expression: \"object.data.gone == 'a'\"}]", binding: "  validationActions: [Audit]"},
		{reason: "an error under a warning", spec: "  validations: [{expression: \"object.data.gone == 'a'\"}]", binding: "  validationActions: [Warn]"},
		{reason: "a variable fails", spec: "  variables: [{name: gone, expression: object.data.gone}]\n  validations: [{expression: \"variables.gone == 'a'\"}]", denies: true},
		{reason: "types that do not fit", spec: "  validations: [{expression: object.data.count < 2}]", denies: true},
		{reason: "more than an expression may cost", spec: "  validations: [{expression: \"[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f < 100))))))\"}]", denies: true},
		{reason: "a condition holds", spec: "  matchConditions: [{name: web, expression: \"object.metadata.labels.app == 'web'\"}]\n" + never, denies: true},
		{reason: "a condition does not", spec: "  matchConditions: [{name: db, expression: \"object.metadata.labels.app == 'db'\"}]\n" + never},
		{reason: "a condition fails", spec: "  matchConditions: [{name: db, expression: \"object.data.gone == 'db'\"}]\n  validations: [{expression: 'true'}]", denies: true},
		{reason: "and is ignored", spec: "  failurePolicy: Ignore\n  matchConditions: [{name: db, expression: \"object.data.gone == 'db'\"}]\n" + never},
		{reason: "a condition fails, another does not hold", spec: "  matchConditions: [{name: a, expression: \"object.data.gone == 'db'\"}, {name: b, expression: 'false'}]\n" + never},
		{reason: "a condition has no namespace", spec: "  matchConditions: [{name: a, expression: namespaceObject == null}]\n" + never, denies: true},
		{reason: "a condition with a parameter", spec: "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  matchConditions: [{name: a, expression: \"params.data.most == '9'\"}]\n" + never, binding: "  paramRef: {name: high, namespace: NAME-params, parameterNotFoundAction: Deny}", beside: limits, denies: true},
		{reason: "a binding for other objects", spec: never, binding: "  matchResources: {objectSelector: {matchLabels: {app: db}}}"},
		{reason: "a binding for the object", spec: never, binding: "  matchResources: {objectSelector: {matchLabels: {app: web}}}", denies: true},
		{reason: "a binding for other namespaces", spec: never, binding: "  matchResources: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [NAME]}]}}"},
		{reason: "a binding for the namespace", spec: never, binding: "  matchResources: {namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [NAME]}]}}", denies: true},
		{reason: "a binding excludes the name", spec: never, binding: "  matchResources: {excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps], resourceNames: [one]}]}"},
		{reason: "a binding excludes another name", spec: never, binding: "  matchResources: {excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps], resourceNames: [two]}]}", denies: true},
		{reason: "a binding for another kind", spec: never, binding: "  matchResources: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [secrets]}]}"},
		{reason: "a binding for another operation", spec: never, binding: "  matchResources: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [configmaps]}]}"},
		{reason: "a binding for the name", spec: never, binding: "  matchResources: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'], resourceNames: [one]}]}", denies: true},
		{reason: "the scope of the cluster", spec: strings.Replace(configMaps, "resources: [configmaps]", "resources: ['*'], scope: Cluster", 1) + never},
		{reason: "the scope of namespaces", spec: strings.Replace(configMaps, "resources: [configmaps]", "resources: ['*'], scope: Namespaced", 1) + never, denies: true},
		{reason: "a parameter by its name", spec: ofConfigMaps, binding: "  paramRef: {name: low, namespace: NAME-params, parameterNotFoundAction: Deny}", beside: limits, denies: true},
		{reason: "one that allows", spec: ofConfigMaps, binding: "  paramRef: {name: high, namespace: NAME-params, parameterNotFoundAction: Deny}", beside: limits},
		{reason: "one of the object's namespace", spec: ofConfigMaps, binding: "  paramRef: {name: own, parameterNotFoundAction: Deny}", beside: limits, denies: true},
		{reason: "parameters by labels, one of which denies", spec: ofConfigMaps, binding: "  paramRef: {selector: {matchLabels: {limits: 'yes'}}, namespace: NAME-params, parameterNotFoundAction: Deny}", beside: limits, denies: true},
		{reason: "parameters by expressions", spec: ofConfigMaps, binding: "  paramRef: {selector: {matchExpressions: [{key: high, operator: Exists}]}, namespace: NAME-params, parameterNotFoundAction: Deny}", beside: limits},
		{reason: "no parameter", spec: ofConfigMaps, binding: "  paramRef: {selector: {matchLabels: {limits: 'no'}}, namespace: NAME-params, parameterNotFoundAction: Deny}", beside: limits, denies: true},
		{reason: "no parameter under audit", spec: ofConfigMaps, binding: "  paramRef: {selector: {matchLabels: {limits: 'no'}}, namespace: NAME-params, parameterNotFoundAction: Deny}\n  validationActions: [Audit]", beside: limits, denies: true},
		{reason: "no parameter, which is ignored", spec: "  failurePolicy: Ignore\n" + ofConfigMaps, binding: "  paramRef: {selector: {matchLabels: {limits: 'no'}}, namespace: NAME-params, parameterNotFoundAction: Deny}", beside: limits},
		{reason: "no parameter, which is allowed", spec: ofConfigMaps, binding: "  paramRef: {selector: {matchLabels: {limits: 'no'}}, namespace: NAME-params, parameterNotFoundAction: Allow}", beside: limits},
		{reason: "no parameter of the name", spec: ofConfigMaps, binding: "  paramRef: {name: gone, namespace: NAME-params, parameterNotFoundAction: Allow}", beside: limits, open: "files do not show that an object is not there"},
		{reason: "a binding without parameters", spec: "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: params != null, message: no parameter}]", denies: true},
		{reason: "parameters of no kind", spec: never, binding: "  paramRef: {name: gone, namespace: NAME-params, parameterNotFoundAction: Deny}", denies: true},
		{reason: "a namespace for parameters of the cluster", spec: "  paramKind: {apiVersion: v1, kind: Namespace}\n  validations: [{expression: 'true'}]", binding: "  paramRef: {name: NAME, namespace: NAME, parameterNotFoundAction: Deny}", denies: true},
		{reason: "the user", spec: "  validations: [{expression: \"request.userInfo.username == 'carol'\", messageExpression: \"'not for ' + request.userInfo.username\"}]", denies: true},
		{reason: "the groups", spec: "  validations: [{expression: \"'system:masters' in request.userInfo.groups\"}]"},
		{reason: "the request", spec: "  validations: [{expression: \"request.operation == 'CREATE' && request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps' && request.name == 'one' && request.namespace == 'NAME' && oldObject == null\"}]"},
		{reason: "the namespace", spec: "  validations: [{expression: \"namespaceObject.metadata.labels['team'] == 'a'\", messageExpression: \"'in ' + namespaceObject.metadata.name\"}]", denies: true},
		{reason: "the namespace's labels", spec: "  validations: [{expression: \"namespaceObject.metadata.labels['stage'] == 'test'\"}]"},
		{reason: "an update", spec: "  validations: [{expression: object.data.owner == oldObject.data.owner, messageExpression: \"'it was of ' + oldObject.data.owner\"}]", old: strings.Replace(agreedObject, "owner: shop", "owner: blog", 1), denies: true},
		{reason: "an update that is none", spec: "  validations: [{expression: object.data.owner == oldObject.data.owner}]", old: agreedObject},
		{reason: "the labels of the old object", spec: strings.Replace(configMaps, "operations: [CREATE, UPDATE]", "operations: [UPDATE]", 1) + "    objectSelector: {matchLabels: {app: db}}\n" + never, old: strings.Replace(agreedObject, "app: web", "app: db", 1), denies: true},
		{reason: "a deletion", spec: strings.Replace(configMaps, "operations: [CREATE, UPDATE]", "operations: [DELETE]", 1) + "  validations: [{expression: \"oldObject.data.owner != 'shop'\", message: stays}]", old: agreedObject, deletes: true, denies: true},
		{reason: "a deletion of another", spec: strings.Replace(configMaps, "operations: [CREATE, UPDATE]", "operations: [DELETE]", 1) + "  validations: [{expression: \"oldObject.data.owner != 'blog' && object == null\"}]", old: agreedObject, deletes: true},
		{reason: "audit annotations", spec: "  auditAnnotations: [{key: owner, valueExpression: string(object.data.owner)}]"},
		{reason: "an audit annotation fails", spec: "  auditAnnotations: [{key: owner, valueExpression: string(object.data.gone)}]", binding: "  validationActions: [Audit]", denies: true},
		{reason: "and is ignored", spec: "  failurePolicy: Ignore\n  auditAnnotations: [{key: owner, valueExpression: string(object.data.gone)}]"},
		{
			reason: "a Namespace has no namespaceObject", object: "{apiVersion: v1, kind: Namespace, metadata: {name: NAME-new, labels: {team: a}}}",
			spec: "  matchConstraints:\n    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [namespaces]}]\n    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME-new, team: a}}\n" +
				"  validations: [{expression: namespaceObject != null, message: of itself}]", denies: true,
		},
		{
			reason: "a Namespace by other labels", object: "{apiVersion: v1, kind: Namespace, metadata: {name: NAME-new, labels: {team: b}}}",
			spec: "  matchConstraints:\n    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [namespaces]}]\n    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME-new, team: a}}\n" + never,
		},
		{
			reason: "the exact version", object: autoscaler,
			spec: strings.Replace(strings.Replace(configMaps, "apiGroups: [''], apiVersions: [v1]", "apiGroups: [autoscaling], apiVersions: [v1]", 1), "configmaps]}]", "horizontalpodautoscalers]}]\n    matchPolicy: Exact", 1) + never,
		},
		{
			reason: "an equivalent version", object: autoscaler, open: "objects are not converted",
			spec: strings.Replace(strings.Replace(configMaps, "apiGroups: [''], apiVersions: [v1]", "apiGroups: [autoscaling], apiVersions: [v1]", 1), "configmaps]}]", "horizontalpodautoscalers]}]\n    matchPolicy: Equivalent", 1) + never, denies: true,
		},
		{
			reason: "a resource that is not there", spec: strings.Replace(configMaps, "resources: [configmaps]", "resources: [gadgets]", 1) + never,
		},
		{
			reason: "two policies", denies: true, policies: strings.Join([]string{
				(&agreement{spec: "  validations: [{expression: 'true'}]"}).manifest("ValidatingAdmissionPolicy"),
				strings.NewReplacer("metadata: {name: NAME}", "metadata: {name: NAME-2}", "policyName: NAME", "policyName: NAME-2", "NAME-bound", "NAME-bound-2").Replace((&agreement{spec: never}).manifest("ValidatingAdmissionPolicy")),
			}, "---\n"),
		},
	}
}

const autoscaler = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: one, namespace: NAME}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 2, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}}"

func mutatingAgreements() []agreement {
	label := func(name, value string) string {
		return fmt.Sprintf("{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {\"%s\": %s}}}'}}", name, value)
	}
	const reinvoked, once = "  reinvocationPolicy: IfNeeded\n", "  reinvocationPolicy: Never\n"
	const count = "  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"replace\", path: \"/data/count\", value: string(int(object.data.count) + 1)}]'}}]"
	const broken = "{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"remove\", path: \"/data/gone\"}]'}}"
	const pods = "{apiVersion: v1, kind: Pod, metadata: {name: one, namespace: NAME}, spec: {containers: [{name: web, image: nginx}, {name: side, image: side}]}}"
	ofPods := strings.Replace(configMaps, "[configmaps]", "[pods]", 1)
	return []agreement{
		{reason: "a label", spec: once + "  mutations: [" + label("made", `"yes"`) + "]"},
		{reason: "a label of the object", spec: once + "  mutations: [" + label("made", "object.data.owner") + "]"},
		{reason: "two mutations", spec: once + "  mutations: [" + label("a", `"b"`) + ", " + label("c", "object.metadata.labels.a") + "]"},
		{reason: "variables", spec: once + "  variables: [{name: count, expression: 'int(object.data.count) + 1'}]\n  mutations: [" + label("n", "string(variables.count)") + "]"},
		{reason: "a condition does not hold", spec: once + "  matchConditions: [{name: a, expression: \"object.data.owner == 'blog'\"}]\n  mutations: [" + label("made", `"yes"`) + "]"},
		{reason: "a patch", spec: once + count},
		{reason: "a patch that is evaluated again", spec: reinvoked + count},
		{reason: "a test that fails", spec: once + "  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"test\", path: \"/data/count\", value: \"2\"}, JSONPatch{op: \"remove\", path: \"/data/owner\"}]'}}]"},
		{reason: "a test that holds", spec: once + "  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"test\", path: \"/data/count\", value: \"1\"}, JSONPatch{op: \"remove\", path: \"/data/owner\"}]'}}]"},
		{reason: "a patch fails", spec: once + "  mutations: [" + broken + "]", denies: true},
		{reason: "nothing to replace", spec: once + "  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"replace\", path: \"/data/gone\", value: \"a\"}]'}}]"},
		{reason: "and is ignored", spec: once + "  failurePolicy: Ignore\n  mutations: [" + label("a", `"b"`) + ", " + broken + ", " + label("c", `"d"`) + "]"},
		{reason: "an expression fails", spec: once + "  mutations: [" + label("made", "object.data.gone") + "]", denies: true},
		{reason: "a condition fails", spec: once + "  matchConditions: [{name: a, expression: \"object.data.gone == 'a'\"}]\n  mutations: [" + label("made", `"yes"`) + "]", denies: true},
		{reason: "a parameter", spec: once + "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  mutations: [" + label("most", "params.data.most") + "]", binding: "  paramRef: {name: high, namespace: NAME-params, parameterNotFoundAction: Deny}", beside: limits},
		{reason: "no parameter", spec: once + "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  mutations: [" + label("most", "params.data.most") + "]", binding: "  paramRef: {selector: {matchLabels: {limits: 'no'}}, namespace: NAME-params, parameterNotFoundAction: Deny}", beside: limits, denies: true},
		{reason: "no binding", spec: once + "  mutations: [" + label("made", `"yes"`) + "]", binding: "none"},
		{reason: "a binding for other objects", spec: once + "  mutations: [" + label("made", `"yes"`) + "]", binding: "  matchResources: {objectSelector: {matchLabels: {app: db}}}"},
		{reason: "a binding for the object", spec: once + "  mutations: [" + label("made", `"yes"`) + "]", binding: "  matchResources: {objectSelector: {matchLabels: {app: web}}}"},
		{reason: "a container by its name", object: pods, spec: ofPods + once + "  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{containers: [Object.spec.containers{name: \"side\", image: \"other\"}, Object.spec.containers{name: \"more\", image: \"more\"}]}}'}}]"},
		{reason: "a list without keys", object: pods, spec: ofPods + once + "  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{containers: [Object.spec.containers{name: \"side\", command: [\"a\"]}]}}'}}]", denies: true},
		{reason: "a field that no pod has", object: pods, spec: ofPods + once + "  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{wrong: 1}}'}}]", denies: true},
		{reason: "a type of another field", object: pods, spec: ofPods + once + "  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.wrong{nodeName: \"a\"}}'}}]", denies: true},
		{
			reason: "a policy that another one gives a reason", policies: strings.Join([]string{
				(&agreement{spec: reinvoked + "  matchConditions: [{name: a, expression: \"has(object.metadata.labels.later)\"}]\n  mutations: [" + label("found", "object.metadata.labels.later") + "]"}).manifest("MutatingAdmissionPolicy"),
				strings.NewReplacer("metadata: {name: NAME}", "metadata: {name: NAME-2}", "policyName: NAME", "policyName: NAME-2", "NAME-bound", "NAME-bound-2").Replace(
					(&agreement{spec: once + "  mutations: [" + label("own", `"yes"`) + "]"}).manifest("MutatingAdmissionPolicy")),
			}, "---\n"),
		},
	}
}

// TestNativePolicies compares the results of `quaymaster apply` with those of the API server: the same
// policies, the same request, the same verdict, message and object.
func TestNativePolicies(t *testing.T) {
	p := plane(t)
	user, err := p.User("agreeing", "system:masters")
	must(t, err)
	watchParameters(t, p)
	kinds := []string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"}
	if os.Getenv(oldestVariable) != "" {
		kinds = kinds[:1] // the other has come since
	}
	for _, kind := range kinds {
		rows := validatingAgreements()
		if kind == "MutatingAdmissionPolicy" {
			rows = mutatingAgreements()
		}
		t.Run(kind, func(t *testing.T) {
			c := newComparison(t, p, user)
			var cases []agreed
			for i := range rows {
				cases = append(cases, c.prepare(t, kind, &rows[i], fmt.Sprintf("agree-%s-%02d", strings.ToLower(kind[:3]), i)))
			}
			c.await(t, kind)
			for i := range rows {
				t.Run(rows[i].reason, func(t *testing.T) { c.compare(t, &rows[i], cases[i]) })
			}
		})
	}
}

// watchParameters makes a policy with a ConfigMap as parameter that stays: an API server stops its watch
// of a built-in kind with the last policy of the kind whose policy began it, and never begins it again, so
// that later policies would see the ConfigMaps of that moment.
func watchParameters(t *testing.T, p *controlplane.ControlPlane) {
	t.Helper()
	stays := agreement{spec: "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: 'true'}]", binding: "  paramRef: {name: none, namespace: default, parameterNotFoundAction: Allow}\n  matchResources: {objectSelector: {matchLabels: {parameters: stay}}}"}
	must(t, p.ApplyYAML(t.Context(), strings.ReplaceAll(stays.manifest("ValidatingAdmissionPolicy"), "NAME", "parameters-stay")))
}

// nativeComparison sends requests to an API server.
type nativeComparison struct {
	plane    *controlplane.ControlPlane
	client   dynamic.Interface
	mapper   meta.ResettableRESTMapper
	mu       sync.Mutex
	warnings []string
}

// agreed is a prepared agreement.
type agreed struct {
	name, folder string
	object, old  *unstructured.Unstructured
}

func newComparison(t *testing.T, p *controlplane.ControlPlane, user *rest.Config) *nativeComparison {
	t.Helper()
	c := &nativeComparison{plane: p}
	config := rest.CopyConfig(user)
	config.WarningHandler = c
	var err error
	c.client, err = dynamic.NewForConfig(config)
	must(t, err)
	found, err := discovery.NewDiscoveryClientForConfig(user)
	must(t, err)
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	return c
}

// HandleWarningHeader implements rest.WarningHandler.
func (c *nativeComparison) HandleWarningHeader(_ int, _, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warnings = append(c.warnings, text)
}

func (c *nativeComparison) of(t *testing.T, o *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	mapping, err := c.mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	must(t, err)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.client.Resource(mapping.Resource)
	}
	return c.client.Resource(mapping.Resource).Namespace(o.GetNamespace())
}

func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	o := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(text), &o.Object))
	return o
}

// prepare makes the namespaces and the objects of an agreement, then its policies, and writes the files
// for quaymaster.
func (c *nativeComparison) prepare(t *testing.T, kind string, a *agreement, name string) agreed {
	t.Helper()
	named := func(text string) string { return strings.ReplaceAll(text, "NAME", name) }
	object := a.object
	if object == "" {
		object = agreedObject
	}
	d := agreed{name: name, folder: t.TempDir(), object: parsed(t, named(object)), old: parsed(t, named(a.old))}
	must(t, c.plane.Namespace(t.Context(), name, "stage", "test", "team", "b"), c.plane.Namespace(t.Context(), name+"-params"))
	if a.beside != "" {
		must(t, c.plane.ApplyYAML(t.Context(), named(a.beside)))
	}
	if d.old != nil {
		made, err := c.of(t, d.old).Create(t.Context(), d.old.DeepCopy(), metav1.CreateOptions{})
		must(t, err)
		d.object.SetResourceVersion(made.GetResourceVersion())
		d.object.SetUID(made.GetUID())
	}
	manifest := named(a.manifest(kind))
	c.apply(t, manifest)
	namespaces := "---\n{apiVersion: v1, kind: Namespace, metadata: {name: " + name + ", labels: {stage: test, team: b}}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "-params}}\n"
	if a.beside != "" {
		namespaces += "---\n" + named(a.beside) + "\n"
	}
	values := map[string]any{}
	if d.old != nil {
		values["request.operation"], values["request.oldObject"] = "UPDATE", d.old.Object
	}
	if a.deletes {
		values = map[string]any{"request.operation": "DELETE"}
		d.object = d.old
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "cli.kyverno.io/v1alpha1", "kind": "Values", "globalValues": values})
	must(t, err)
	requested, err := yaml.Marshal(d.object.Object)
	must(t, err)
	for file, content := range map[string]string{
		"policies.yaml": manifest + namespaces, "values.yaml": string(text), "object.yaml": string(requested),
		"user.yaml": "apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nmetadata: {name: user}\nuserInfo: {username: agreeing, groups: ['system:masters', 'system:authenticated']}\n",
	} {
		must(t, os.WriteFile(filepath.Join(d.folder, file), []byte(content), 0o600))
	}
	return d
}

// apply makes policies until the end of the test.
func (c *nativeComparison) apply(t *testing.T, manifest string) {
	t.Helper()
	must(t, c.plane.ApplyYAML(t.Context(), manifest))
	objects, err := controlplane.ParseManifests([]byte(manifest))
	must(t, err)
	for _, o := range objects {
		t.Cleanup(func() {
			_ = c.of(t, o).Delete(context.WithoutCancel(t.Context()), o.GetName(), metav1.DeleteOptions{}) // the control plane ends soon
		})
	}
}

// await returns when the API server has the policies that were made before: it reads them in their
// order.
func (c *nativeComparison) await(t *testing.T, kind string) {
	t.Helper()
	name := "agree-last-" + strings.ToLower(kind[:3])
	must(t, c.plane.Namespace(t.Context(), name))
	last := agreement{spec: "  validations: [{expression: 'false', message: all there}]"}
	if kind == "MutatingAdmissionPolicy" {
		last = agreement{spec: "  reinvocationPolicy: Never\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"remove\", path: \"/data/gone\"}]'}}]"}
	}
	c.apply(t, strings.ReplaceAll(last.manifest(kind), "NAME", name))
	object := parsed(t, strings.ReplaceAll(agreedObject, "NAME", name))
	eventually(t, func(ctx context.Context) error {
		_, err := c.of(t, object).Create(ctx, object.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil && strings.Contains(err.Error(), "denied request") {
			return nil
		}
		return errors.New("the last policy is not enforced yet")
	})
}

// request sends the request of an agreement, as a dry run.
func (c *nativeComparison) request(t *testing.T, a *agreement, d agreed) (*unstructured.Unstructured, []string, error) {
	t.Helper()
	c.mu.Lock()
	c.warnings = nil
	c.mu.Unlock()
	all := []string{metav1.DryRunAll}
	var made *unstructured.Unstructured
	var err error
	switch at := c.of(t, d.object); {
	case a.deletes:
		err = at.Delete(t.Context(), d.object.GetName(), metav1.DeleteOptions{DryRun: all})
	case d.old != nil:
		made, err = at.Update(t.Context(), d.object.DeepCopy(), metav1.UpdateOptions{DryRun: all})
	default:
		made, err = at.Create(t.Context(), d.object.DeepCopy(), metav1.CreateOptions{DryRun: all})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return made, slices.Clone(c.warnings), err
}

// applyReport is the part of the report of apply that is compared.
type applyReport struct{ Objects []applied }

// applied is the report of one object.
type applied struct {
	Result  string
	Results []struct {
		Policy, Rule, Result, Message string
		Audit                         bool
	}
}

// compare repeats the request until the API server agrees: it follows policies, parameters and namespaces
// by a watch each, and knows one of them later than the others.
func (c *nativeComparison) compare(t *testing.T, a *agreement, d agreed) {
	t.Helper()
	report, mutated := c.ask(t, d)
	one := report.Objects[0]
	if admitted := one.Result == "allow" || one.Result == "unchecked"; a.open != "" && admitted {
		t.Errorf("quaymaster admits it, although %s: %+v", a.open, one)
	}
	ctx, cancel := context.WithTimeout(t.Context(), agreementTimeout)
	defer cancel()
	must(t, process.Eventually(ctx, func(context.Context) error {
		made, warnings, refused := c.request(t, a, d)
		if (refused != nil) != a.denies {
			return fmt.Errorf("the API server: %s, want denied: %t", fmt.Sprint(refused), a.denies)
		}
		if a.open != "" {
			return nil
		}
		return errors.Join(one.agrees(refused, warnings), sameObject(mutated, made))
	}))
}

// agreementTimeout bounds the wait for the API server to know what a comparison made.
const agreementTimeout = 30 * time.Second

// agrees compares the verdict and the messages.
func (one *applied) agrees(refused error, warnings []string) error {
	if admitted := one.Result == "allow" || one.Result == "unchecked"; admitted == (refused != nil) {
		return fmt.Errorf("quaymaster: %+v, the API server: %s", one, fmt.Sprint(refused))
	}
	var messages []string
	for _, r := range one.Results {
		if r.Result == "fail" || r.Result == "error" {
			messages = append(messages, r.Message)
		}
	}
	said := func(text string) func(string) bool {
		return func(message string) bool { return strings.HasSuffix(text, ": "+message) }
	}
	if refused != nil && !slices.ContainsFunc(messages, said(refused.Error())) {
		return fmt.Errorf("quaymaster's messages are\n%q, the API server's\n%w", messages, refused)
	}
	for _, warning := range warnings {
		if !slices.ContainsFunc(messages, said(warning)) {
			return fmt.Errorf("quaymaster's messages are\n%q, the warning\n%q", messages, warning)
		}
	}
	return nil
}

// sameObject compares what policies may change; nothing where the request was refused.
func sameObject(mutated map[string]any, made *unstructured.Unstructured) error {
	if made == nil {
		return nil
	}
	for _, path := range [][]string{{"data"}, {"metadata", "labels"}, {"metadata", "annotations"}, {"spec", "containers"}} {
		ours, _, err := unstructured.NestedFieldCopy(mutated, path...)
		theirs, _, wrong := unstructured.NestedFieldCopy(made.Object, path...)
		if failed := errors.Join(err, wrong); failed != nil {
			return failed
		}
		if got, want := compared(ours), compared(theirs); !reflect.DeepEqual(got, want) {
			return fmt.Errorf("%s is %v, of the API server %v", strings.Join(path, "."), got, want)
		}
	}
	return nil
}

// compared returns a value without the additions of the API server: of containers the names and images, and of
// a Namespace the label with its name.
func compared(value any) any {
	switch v := value.(type) {
	case []any:
		var list []string
		for _, item := range v {
			container, _ := item.(map[string]any)
			list = append(list, fmt.Sprint(container["name"], " ", container["image"]))
		}
		return list
	case map[string]any:
		delete(v, "kubernetes.io/metadata.name")
	}
	return value
}

// ask runs apply, and returns its report and the object as the policies leave it.
func (c *nativeComparison) ask(t *testing.T, d agreed) (report applyReport, mutated map[string]any) {
	t.Helper()
	binary, err := shared.binary()
	must(t, err)
	command := exec.CommandContext(t.Context(), binary, "apply", "policies.yaml", "-r", "object.yaml", "-f", "values.yaml", "-u", "user.yaml", "-o", "json", "--mutated", "mutated.yaml", "--offline")
	command.Dir, command.Env = d.folder, []string{"HOME=" + d.folder}
	var out, failed strings.Builder
	command.Stdout, command.Stderr = &out, &failed
	err = command.Run()
	if decoded := json.Unmarshal([]byte(out.String()), &report); decoded != nil || len(report.Objects) != 1 {
		t.Fatalf("%v: %s%s", err, out.String(), failed.String())
	}
	if text, err := os.ReadFile(filepath.Join(d.folder, "mutated.yaml")); err == nil {
		must(t, yaml.Unmarshal(text, &mutated))
	}
	return report, mutated
}
