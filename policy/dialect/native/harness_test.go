package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/native"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/workload"
)

const (
	ofPods    = "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]}\n"
	ofChanges = "  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}\n"
)

// validating writes a policy with members of its spec, and a binding with members of its own.
func validating(spec, binding string) string {
	return document("ValidatingAdmissionPolicy", ofPods+spec) + bound("ValidatingAdmissionPolicy", "bound", binding)
}

func mutating(spec, binding string) string {
	return document("MutatingAdmissionPolicy", ofChanges+"  reinvocationPolicy: Never\n"+spec) + bound("MutatingAdmissionPolicy", "bound", binding)
}

func document(kind, spec string) string {
	return "apiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: test}\nspec:\n" + spec + "\n"
}

func bound(kind, name, spec string) string {
	if kind == "ValidatingAdmissionPolicy" && !strings.Contains(spec, "validationActions") {
		spec += "\n  validationActions: [Deny]"
	}
	return "---\napiVersion: admissionregistration.k8s.io/v1\nkind: " + kind + "Binding\nmetadata: {name: " + name + "}\nspec:\n  policyName: test\n" + spec + "\n"
}

// load joins documents, and compiles the policies among them.
func load(t testing.TB, text string, change ...func(*native.Options)) ([]*policy.Policy, []string, error) {
	t.Helper()
	objects, err := workload.Read(strings.NewReader(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	joined, warnings, err := native.Join(objects)
	if err != nil {
		return nil, nil, err
	}
	options := native.Options{Options: kyvernocel.Options{Outside: cel.Outside{Resources: known{}}}}
	for _, c := range change {
		c(&options)
	}
	compiler := native.New(options)
	var list []*policy.Policy
	var errs []error
	for _, o := range joined {
		text, err := json.Marshal(o.Content())
		if err != nil {
			t.Fatal(err)
		}
		p, err := compiler.Compile(text, o.Source())
		errs = append(errs, err)
		list = append(list, p)
	}
	return list, warnings, errors.Join(errs...)
}

func compile(t testing.TB, text string, change ...func(*native.Options)) *policy.Policy {
	t.Helper()
	list, _, err := load(t, text, change...)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return list[0]
}

// known are parameters: low and high in params, own in shop. There is no answer about Secrets.
type known struct{ cel.Resources }

func (known) Get(_ context.Context, of cel.ResourceRef) (map[string]any, error) {
	for _, o := range parameters() {
		metadata := o["metadata"].(map[string]any)
		if metadata["name"] == of.Name && metadata["namespace"] == of.Namespace {
			return o, nil
		}
	}
	if of.Resource == "secrets" {
		return nil, &cel.UnknownError{Gaps: []error{errors.New("no answer")}}
	}
	return nil, fmt.Errorf("%s: %w", of.Name, cel.ErrNotFound)
}

func (known) List(_ context.Context, of cel.ResourceRef, labels map[string]string) (map[string]any, error) {
	items := []any{}
	for _, o := range parameters() {
		metadata := o["metadata"].(map[string]any)
		has := metadata["labels"].(map[string]any)
		is := metadata["namespace"] == of.Namespace
		for key, value := range labels {
			is = is && has[key] == value
		}
		if is {
			items = append(items, o)
		}
	}
	return map[string]any{"items": items}, nil
}

func (known) Kind(_ context.Context, _, kind string) (group, version, resource string, err error) {
	return "", "v1", strings.ToLower(kind) + "s", nil
}

func (known) Namespaced(_ context.Context, _, kind string) (bool, error) { return kind != "Node", nil }

func parameters() []map[string]any {
	of := func(namespace, name, most string) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"most": most},
			"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"limits": "yes", "name": name}},
		}
	}
	return []map[string]any{of("params", "low", "1"), of("params", "high", "9"), of("shop", "own", "1")}
}

// pod is a pod with two containers in namespace shop, of which the labels are known.
func pod(change ...func(*policy.Subject)) *policy.Subject {
	s := &policy.Subject{
		Object:  content(`{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, labels: {app: web}}, spec: {containers: [{name: a, image: a}, {name: b, image: b}]}}`),
		Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web", Operation: "CREATE",
		NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true, NamespaceLabels: map[string]string{"kubernetes.io/metadata.name": "shop", "team": "a"}},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func content(text string) policy.Content {
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		panic(err)
	}
	return policy.ContentOf(object)
}

// validate returns the result of the only binding of a policy.
func validate(t testing.TB, p *policy.Policy, s *policy.Subject) policy.Validated {
	t.Helper()
	if len(p.Validations) != 1 {
		t.Fatalf("%d rules, want one", len(p.Validations))
	}
	return p.Validations[0].Validate(t.Context(), policy.Case{Subject: s})
}

// said is a result in short: the result, the action and the first message.
func said(v policy.Validated) string {
	message := ""
	if len(v.Reasons) > 0 {
		message = v.Reasons[0].Message
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", v.Result, v.Action, message))
}

// mutate returns the results of the mutations of policies for a subject, and the changed object as JSON.
func mutate(t testing.TB, s *policy.Subject, policies ...*policy.Policy) (results []policy.RuleResult, changed string) {
	t.Helper()
	of, err := set.New(policies...)
	if err != nil {
		t.Fatal(err)
	}
	object, results := of.Mutate(t.Context(), s, func(*policy.Subject) policy.Finder { return nil })
	if object == nil {
		return results, ""
	}
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return results, string(text)
}
