package native

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	admission "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

const (
	noLatest = `{"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": {"name": "no-latest", "uid": "u2"}, "spec": {
  "rules": [{"name": "tag", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]}, "validate": {"failureAction": "Enforce",
    "cel": {"generate": true, "expressions": [{"expression": "object.spec.containers.all(c, !c.image.endsWith(':latest'))"}]}}}]}}`
	addLabel = `{"apiVersion": "policies.kyverno.io/v1", "kind": "MutatingPolicy", "metadata": {"name": "add-label", "uid": "u3"}, "spec": {
  "autogen": {"mutatingAdmissionPolicy": {"enabled": true}, "podControllers": {"controllers": []}},
  "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}]},
  "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{metadata: Object.metadata{labels: {'team': 'a'}}}"}}]}}`
	addLabelByPatch = `"mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'team': 'a'}}]"}}]}}`
)

// in is a policy with a replaced part.
func in(t *testing.T, text, old, with string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("no %s in %s", old, text)
	}
	return strings.Replace(text, old, with, 1)
}

// TestReasons: a policy that is native, and each reason for which one is not.
func TestReasons(t *testing.T) {
	patched, _, _ := strings.Cut(addLabel, `"mutations"`)
	for _, row := range []struct {
		reason, text string
		mode         record.Mode
		change       func(*cluster)
		want         string
	}{
		{"rules in CEL", noLatest, record.Auto, nil, ""},
		{"a mutation that can be repeated", addLabel, record.Auto, nil, ""},
		{"one that asks", noLatest, record.Requested, nil, ""},
		{"a mutation that asks", addLabel, record.Requested, nil, ""},
		{"one that does not ask", noHostNetwork, record.Requested, nil, "does not ask"},
		{"a rule that does not ask", in(t, noLatest, `"generate": true, `, ""), record.Requested, nil, "does not ask"},
		{"off", noLatest, record.Off, nil, "policies.nativePolicies is off"},
		{"a rule that is not in CEL", in(t, noLatest, `"cel": {"generate": true, "expressions": [{"expression": "object.spec.containers.all(c, !c.image.endsWith(':latest'))"}]}`, `"pattern": {"metadata": {"name": "a"}}`), record.Auto, nil, "is no validation in CEL"},
		{"actions of namespaces", in(t, noLatest, `"rules"`, `"validationFailureActionOverrides": [{"action": "Audit", "namespaces": ["a"]}], "rules"`), record.Auto, nil, "actions of their own"},
		{"a JSON patch", patched + addLabelByPatch, record.Auto, nil, "a JSON patch may change an object again"},
		{"a look-up", in(t, noHostNetwork, "!has(object.spec.hostNetwork)", "resource.Get('v1', 'configmaps', 'a', 'b').data.on == 'x'"), record.Auto, nil, "spec.validations[0].expression"},
		{"the namespace in a validation", in(t, noHostNetwork, "!has(object.spec.hostNetwork)", "namespaceObject.metadata.labels.env != 'prod'"), record.Auto, nil, ""},
		{"in a condition", in(t, noHostNetwork, `"validations"`, `"matchConditions": [{"name": "prod", "expression": "namespaceObject != null && namespaceObject.metadata.labels.env == 'prod'"}], "validations"`), record.Auto, nil, "spec.matchConditions[0].expression"},
		{"in a condition of a ClusterPolicy", in(t, noLatest, `"validate": {`, `"celPreconditions": [{"name": "prod", "expression": "namespaceObject != null"}], "validate": {`), record.Auto, nil, "celPreconditions[0].expression"},
		{"in a condition of a mutation", in(t, addLabel, `"mutations"`, `"matchConditions": [{"name": "prod", "expression": "namespaceObject != null"}], "mutations"`), record.Auto, nil, "spec.matchConditions[0].expression"},
		{"errors admit", in(t, noHostNetwork, `"validations"`, `"failurePolicy": "Ignore", "validations"`), record.Auto, nil, "failurePolicy Ignore"},
		{"errors deny", in(t, noHostNetwork, `"validations"`, `"failurePolicy": "Fail", "validations"`), record.Auto, nil, ""},
		{"errors of a mutation admit", in(t, addLabel, `"mutations"`, `"failurePolicy": "Ignore", "mutations"`), record.Auto, nil, "failurePolicy Ignore"},
		{"names of objects", in(t, noHostNetwork, `["CREATE"]}`, `["CREATE", "UPDATE"], "resourceNames": ["web"]}`), record.Auto, nil, "no name in the deletion of a collection"},
		{"names that are excluded", in(t, noHostNetwork, `"operations": ["CREATE"]}]`, `"operations": ["CREATE"]}], "excludeResourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["*"], "resourceNames": ["web"]}]`), record.Auto, nil, "no name in the deletion of a collection"},
		{"labels of pods", in(t, noHostNetwork, `"operations": ["CREATE"]}]`, `"operations": ["CREATE"]}], "objectSelector": {"matchLabels": {"a": "b"}}`), record.Auto, nil, ""},
		{"labels of evictions", in(t, in(t, noHostNetwork, `"operations": ["CREATE"]}]`, `"operations": ["CREATE"]}], "objectSelector": {"matchLabels": {"a": "b"}}`), `["pods"]`, `["pods/eviction"]`), record.Auto, nil, "body of a subresource"},
		{"the greatest of a list", in(t, noHostNetwork, "!has(object.spec.hostNetwork)", "object.spec.containers.map(c, size(c.name)).max() < 9"), record.Auto, nil, "max, min or isSorted"},
		{"an audit annotation", in(t, noHostNetwork, `"validations"`, `"auditAnnotations": [{"key": "team", "valueExpression": "string(object.metadata.labels.team)"}], "validations"`), record.Auto, nil, "it has audit annotations"},
		{"bindings", in(t, in(t, noHostNetwork, `["pods"]`, `["pods/binding"]`), "object.spec.hostNetwork", "object.metadata.labels"), record.Auto, nil, "limits that keep the cluster repairable"},
		{"overrides of any group", in(t, in(t, in(t, noHostNetwork, `[""]`, `["*"]`), `["pods"]`, `["imageoverrides"]`), "object.spec.hostNetwork", "object.metadata.labels"), record.Auto, nil, "limits that keep the cluster repairable"},
		{"every resource", in(t, noHostNetwork, `["pods"]`, `["*"]`), record.Auto, nil, "by a pattern"},
		{"a kind of any group", in(t, in(t, noHostNetwork, `[""]`, `["*"]`), "object.spec.hostNetwork", "object.metadata.labels"), record.Auto, nil, ""},
		{"NetworkPolicies of any group", in(t, noLatest, `"Pod"`, `"NetworkPolicy"`), record.Auto, nil, ""},
		{"Leases of any group", in(t, noLatest, `"Pod"`, `"Lease"`), record.Auto, nil, "limits that keep the cluster repairable"},
		{"definitions of any group", in(t, noLatest, `"Pod"`, `"CustomResourceDefinition"`), record.Auto, nil, "limits that keep the cluster repairable"},
		{"Namespaces", in(t, in(t, noHostNetwork, `["pods"]`, `["namespaces"]`), "object.spec.hostNetwork", "object.metadata.labels"), record.Auto, nil, "limits that keep the cluster repairable"},
		{"Nodes, by a subresource", in(t, in(t, in(t, noHostNetwork, `["pods"]`, `["nodes/status"]`), "object.spec.hostNetwork", "object.metadata.labels"), `["CREATE"]`, `["UPDATE"]`), record.Auto, nil, "limits that keep the cluster repairable"},
		{"Leases", in(t, in(t, in(t, noHostNetwork, `["pods"]`, `["leases"]`), "object.spec.hostNetwork", "object.metadata.labels"), `[""]`, `["coordination.k8s.io"]`), record.Auto, nil, "limits that keep the cluster repairable"},
		{"an exception for it", noLatest, record.Auto, func(c *cluster) { except(c, "", "no-latest") }, "the PolicyException n/e is about it"},
		{"an exception for a policy of a namespace", noLatest, record.Auto, func(c *cluster) { except(c, "", "a/no-latest") }, ""},
		{"an exception for another kind", noLatest, record.Auto, func(c *cluster) { except(c, "ValidatingPolicy", "no-latest") }, ""},
		{"one of a folder", noLatest, record.Auto, func(c *cluster) { c.documents[0].entry.Key = "folder/policy.yaml" }, "in a folder"},
		{"a broken one", noLatest, record.Auto, func(c *cluster) { c.documents[0].entry.State = catalog.Broken }, "cannot be evaluated"},
		{"an earlier version is in force", noLatest, record.Auto, func(c *cluster) {
			earlier := *c.documents[0].entry.Policy
			earlier.Hash = "earlier"
			c.earlier = &earlier
		}, "another version of it is in force"},
		{"no MutatingAdmissionPolicy", addLabel, record.Auto, func(c *cluster) { c.serve("v1", validatingPolicies) }, "serves no MutatingAdmissionPolicy"},
		{"no policies", noLatest, record.Auto, func(c *cluster) { c.serve("v1") }, "serves no ValidatingAdmissionPolicy"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				c.put(row.text)
				if row.change != nil {
					row.change(c)
				}
				by := c.start(row.mode)
				c.rounds(by)
				id := c.documents[0].entry.Policy.ID()
				if got := c.state(id); got.Native != (row.want == "") || !strings.Contains(got.Reason, row.want) {
					t.Errorf("%s: %+v, want %q", id, got, row.want)
				}
			})
		})
	}
}

// TestWithheld: a policy that a setting keeps from denying is not native.
func TestWithheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.put(noLatest)
		by := c.start(record.Auto)
		by.planner.withheld = func(e catalog.Entry) string { return "the impact of " + e.Policy.Name + " is not known" }
		c.rounds(by)
		if got := c.state("ClusterPolicy/no-latest"); got.Native || got.Reason != "the impact of no-latest is not known" {
			t.Errorf("%+v", got)
		}
	})
}

// TestNamespacedPolicy: a policy of a namespace is bound to that, and its objects have other names than those of its
// namesakes; nothing owns them, and so they are removed with the policy.
func TestNamespacedPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		namespaced := func(namespace, name string) string {
			return in(t, in(t, in(t, noHostNetwork, `"ValidatingPolicy"`, `"NamespacedValidatingPolicy"`), `"name": "no-host-network"`, `"name": "`+name+`", "namespace": "`+namespace+`"`), "u1", "uid-"+namespace+name)
		}
		c.put(namespaced("a-b", "c"))
		c.put(namespaced("a", "b-c"))
		c.put(in(t, noHostNetwork, `"name": "no-host-network"`, `"name": "a-b-c"`))
		by := c.start(record.Auto)
		c.rounds(by)
		for _, d := range c.documents {
			if got := c.state(d.entry.Policy.ID()); !got.Native {
				t.Errorf("%s: %+v", d.entry.Policy.ID(), got)
			}
		}
		if got := c.names(); len(got) != 6 {
			t.Errorf("there are %q", got)
		}
		rule := c.stored(validatingPolicies, "a-b-c.a-b.namespacedvalidatingpolicy.quaymaster.dev")
		binding := c.stored(validatingBindings, "a-b-c.a-b.namespacedvalidatingpolicy.quaymaster.dev")
		if rule == nil || binding == nil {
			t.Fatalf("there are %q", c.names())
		}
		if got := fmt.Sprint(rule.Object["spec"]); !strings.Contains(got, "namespaceSelector:map[matchExpressions:[map[key:kubernetes.io/metadata.name operator:In values:[a-b]] map[key:quaymaster.dev/break-glass operator:DoesNotExist]]") || !strings.Contains(got, "scope:Namespaced") {
			t.Errorf("the policy is not limited to its namespace: %s", got)
		}
		const want = "map[policyName:a-b-c.a-b.namespacedvalidatingpolicy.quaymaster.dev validationActions:[Deny]]"
		if got := fmt.Sprint(binding.Object["spec"]); got != want {
			t.Errorf("the binding is\n%s\nwant\n%s", got, want)
		}
		if len(rule.GetOwnerReferences()) > 0 || rule.GetLabels()["app.kubernetes.io/instance"] != "" {
			t.Errorf("the policy has owners %v and labels %v", rule.GetOwnerReferences(), rule.GetLabels())
		}
		c.drop("NamespacedValidatingPolicy/a-b/c")
		c.rounds(by)
		if got := c.names(); len(got) != 4 {
			t.Errorf("after the deletion there are %q", got)
		}
	})
}

func except(c *cluster, kind, name string) {
	c.exceptions = append(c.exceptions, &policy.Exception{Group: "kyverno.io", Namespace: "n", Name: "e", Hash: "h",
		Rules: []policy.ExceptedRule{{Kind: kind, Policy: name, Rules: []string{"*"}}}})
}

// TestLimit: the last policies stay in the webhook, so that the objects can be listed.
func TestLimit(t *testing.T) {
	plans := map[string]plan{}
	for i := range 1_600 {
		plans[fmt.Sprintf("%04d", i)] = plan{hash: "h", objects: make([]object, 2)}
	}
	plans["0000"] = plan{hash: "h", reason: "an exception"}
	limit(plans)
	for id, native := range map[string]bool{"0000": false, "0001": true, "1500": true, "1501": false, "1599": false} {
		if p := plans[id]; (len(p.objects) > 0) != native || native == (p.reason != "") || p.hash != "h" {
			t.Errorf("%s: %d objects, %q", id, len(p.objects), p.reason)
		}
	}
}

// TestExclude: a policy leaves out exempt namespaces, and names none that its own selector leaves
// out already.
func TestExclude(t *testing.T) {
	in := func(o meta.LabelSelectorOperator, values ...string) meta.LabelSelectorRequirement {
		return meta.LabelSelectorRequirement{Key: core.LabelMetadataName, Operator: o, Values: values}
	}
	exclusion := in(meta.LabelSelectorOpNotIn, "kube-system", "quaymaster")
	for _, row := range []struct {
		reason string
		own    *meta.LabelSelector
		adds   bool
	}{
		{"a policy of all namespaces", nil, true},
		{"an empty selector", &meta.LabelSelector{}, true},
		{"another namespace", &meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{in(meta.LabelSelectorOpIn, "shop", "web")}}, false},
		{"another namespace by its label", &meta.LabelSelector{MatchLabels: map[string]string{core.LabelMetadataName: "shop"}}, false},
		{"one of them is exempt", &meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{in(meta.LabelSelectorOpIn, "shop", "kube-system")}}, true},
		{"an exempt one alone", &meta.LabelSelector{MatchLabels: map[string]string{core.LabelMetadataName: "quaymaster"}}, true},
		{"all but another namespace", &meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{in(meta.LabelSelectorOpNotIn, "shop")}}, true},
		{"any name", &meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{in(meta.LabelSelectorOpExists)}}, true},
		{"another label", &meta.LabelSelector{MatchLabels: map[string]string{"stage": "live"}}, true},
	} {
		for _, breakGlass := range []bool{false, true} {
			t.Run(fmt.Sprint(row.reason, ", break glass ", breakGlass), func(t *testing.T) {
				p := &planner{settings: Settings{BreakGlass: breakGlass}}
				binding := &admission.MatchResources{NamespaceSelector: &meta.LabelSelector{MatchExpressions: []meta.LabelSelectorRequirement{exclusion}}}
				made := &admission.MatchResources{NamespaceSelector: row.own.DeepCopy()}
				p.exclude(made, &binding)
				if binding != nil {
					t.Errorf("the binding keeps %v", binding)
				}
				if adds := slices.ContainsFunc(made.NamespaceSelector.MatchExpressions, func(r meta.LabelSelectorRequirement) bool {
					return slices.Equal(r.Values, exclusion.Values)
				}); adds != row.adds {
					t.Errorf("the selector is %v, want the exclusion in it: %v", made.NamespaceSelector, row.adds)
				}
				for _, name := range []string{"shop", "web", "else", "kube-system", "quaymaster"} {
					for _, extra := range []map[string]string{nil, {"stage": "live"}, {configuration.BreakGlass: "yes"}} {
						of := map[string]string{core.LabelMetadataName: name}
						maps.Copy(of, extra)
						want := selects(t, row.own, of) && name != "kube-system" && name != "quaymaster" && (!breakGlass || of[configuration.BreakGlass] == "")
						if got := selects(t, made.NamespaceSelector, of); got != want {
							t.Errorf("a namespace with %v is asked about: %v, want %v", of, got, want)
						}
					}
				}
			})
		}
	}
}

// selects reports whether a selector selects labels; none selects all.
func selects(t *testing.T, by *meta.LabelSelector, of map[string]string) bool {
	t.Helper()
	if by == nil {
		return true
	}
	s, err := meta.LabelSelectorAsSelector(by)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(labels.Set(of))
}
