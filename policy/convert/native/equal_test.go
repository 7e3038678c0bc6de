package native_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/native"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
	"github.com/quaymaster/quaymaster/policy/policytest"
)

// compiled reads a policy of the gateway.
func compiled(t testing.TB, text []byte) *policy.Policy {
	t.Helper()
	p, err := validating.New(kyvernocel.Options{}).Compile(text, "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// readBack returns converted policies as policies of the gateway, which have the same fields, without rules for
// controllers. An API server evaluates the same expressions; TestStaticFiles asks one.
func readBack(t testing.TB, policies []native.Policy) []*policy.Policy {
	t.Helper()
	var list []*policy.Policy
	for i := range policies {
		spec, err := json.Marshal(policies[i].Validating.Policy.Spec)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(spec, &fields); err != nil {
			t.Fatal(err)
		}
		fields["autogen"] = map[string]any{"podControllers": map[string]any{"controllers": []string{}}}
		text, err := json.Marshal(map[string]any{
			"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy", "metadata": map[string]any{"name": "test"}, "spec": fields,
		})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, compiled(t, text))
	}
	return list
}

// subject returns the creation of an object.
func subject(t testing.TB, text string) *policy.Subject {
	t.Helper()
	s := policytest.Subject(policytest.Object(t, text))
	s.Namespace, s.Operation, s.Time, s.NamespaceKnown = "shop", "CREATE", time.Unix(1_800_000_000, 0), true
	return s
}

// verdict returns the gravest result of policies about an object, with the message.
func verdict(t testing.TB, s *policy.Subject, policies ...*policy.Policy) string {
	t.Helper()
	grave := map[policy.Result]int{policy.Fail: 3, policy.Indeterminate: 2, policy.Pass: 1}
	var found policy.Result
	said := ""
	for _, p := range policies {
		for _, v := range p.Validations {
			got := v.Validate(t.Context(), policy.Case{Subject: s})
			if grave[got.Result] <= grave[found] {
				continue
			}
			found, said = got.Result, string(got.Result)
			if got.Result == policy.Fail {
				said += ": " + got.Reasons[0].Message
			}
		}
	}
	return said
}

// TestEqual: for each pod, alone and within each kind of controller, the converted policies decide like their
// source, with the same message. Some objects have the fields that the expressions read, some lack them, and some
// have them in their own metadata but not in the template's.
func TestEqual(t *testing.T) {
	for _, expression := range []string{
		"object.spec.containers.all(c, c.image != 'bad')",
		"has(object.spec.hostNetwork) && object.spec.hostNetwork == false",
		"object.spec.?hostNetwork.orValue(false) == false",
		"object.?spec.?hostNetwork.orValue(false) == false",
		"object.metadata.labels.app == 'web'",
		"has(object.metadata.labels) && 'app' in object.metadata.labels",
		"object.metadata.?labels[?'app'].orValue('') == 'web'",
		"object.metadata.name == 'web'",
		"object.metadata.?name.orValue('') == 'web'",
		"!has(object.metadata.generateName) && object.metadata.namespace == 'shop'",
		"object.kind == 'Pod' && object.apiVersion == 'v1'",
		"object != null && oldObject == null",
		"(object).spec.containers.exists(c, has(c.image) && [object.spec.containers[0].image].exists(i, i == c.image))",
		"'äß→' != object . spec.containers[0].image && object.spec.containers.map(spec, spec.image).size() > 0",
		"oldObject == null || oldObject.spec.containers == object.spec.containers",
		"variables.names.size() == 1 && object.metadata.?annotations.orValue({}).size() == 0",
	} {
		text := vpol("pods", "  variables: [{name: names, expression: \"object.spec.containers.map(c, c.name)\"}]\n"+
			fmt.Sprintf("  validations: [{expression: %q, message: not so, messageExpression: %q}]\n", expression, "object.metadata.name + ' has ' + string(object.spec.containers.size())"))
		source := compiled(t, []byte(text))
		result := readBack(t, converted(t, text, native.Options{}))
		for _, spec := range []string{
			"{containers: [{name: a, image: good}]}", "{hostNetwork: false, containers: [{name: a, image: bad}]}", "{hostNetwork: true, containers: [{name: a, image: good}, {name: b, image: good}]}",
			"{containers: []}", "{}",
		} {
			for _, metadata := range []string{"{name: web, namespace: shop, labels: {app: web}}", "{name: other}", "{generateName: web-, namespace: shop, annotations: {a: b}}"} {
				for _, o := range objects(metadata, spec) {
					s := subject(t, o)
					want := verdict(t, s, source)
					if got := verdict(t, s, result...); got != want || want == "" {
						t.Errorf("%s about %s: %s, want %s", expression, o, got, want)
					}
				}
			}
		}
	}
}

// objects returns a pod and its controllers; their own labels differ from those of the pod.
func objects(metadata, spec string) []string {
	head := "{apiVersion: %s, kind: %s, metadata: {name: web, namespace: shop, labels: {own: label}}, spec: %s}"
	template := "{replicas: 1, template: {metadata: " + metadata + ", spec: " + spec + "}}"
	return []string{
		fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: %s, spec: %s}", metadata, spec),
		fmt.Sprintf(head, "apps/v1", "Deployment", template), fmt.Sprintf(head, "batch/v1", "Job", template),
		fmt.Sprintf(head, "batch/v1", "CronJob", "{jobTemplate: {spec: "+template+"}}"),
	}
}

// TestWholeObject: an expression that reads more than a part of the object has a problem.
func TestWholeObject(t *testing.T) {
	for _, expression := range []string{
		"size(object) > 0", "object['spec'] != null", "has(object.metadata) && object == oldObject", "[object].exists(o, o.spec != null)",
		"[1].all(object, object > 0)", "dyn(object).spec != null", "object.spec.containers.all(oldObject, oldObject != null)",
	} {
		_, problems, err := native.Convert(read(t, vpol("pods", fmt.Sprintf("  validations: [{expression: %q}]\n", expression))), native.Options{})
		if err != nil || len(problems) == 0 {
			t.Errorf("%s: %v, %v", expression, problems, err)
		}
	}
}
