package cel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/generating"
	"github.com/quaymaster/quaymaster/policy/policytest"
	"github.com/quaymaster/quaymaster/policy/source"
)

// originals are objects that a policy may copy.
type originals []map[string]any

func (o originals) EachSource(_ context.Context, of source.Ref, do func(map[string]any) error) error {
	by, err := labels.Parse(of.Labels)
	if err != nil {
		return err
	}
	for _, object := range o {
		metadata, _ := object["metadata"].(map[string]any)
		set := labels.Set{}
		written, _ := metadata["labels"].(map[string]any)
		for key, value := range written {
			set[key], _ = value.(string)
		}
		kind, _ := object["kind"].(string)
		same := kind == of.Kind || strings.ToLower(kind)+"s" == of.Resource
		if same && (of.Namespace == "" || metadata["namespace"] == of.Namespace) && (of.Name == "" || metadata["name"] == of.Name) && by.Matches(set) {
			if err := do(maps.Clone(object)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o originals) Source(ctx context.Context, of source.Ref) (map[string]any, error) {
	var found map[string]any
	err := o.EachSource(ctx, of, func(object map[string]any) error { found = object; return nil })
	if err == nil && found == nil {
		err = source.ErrMissing
	}
	return found, err
}

// generated are the objects that policies make of a trigger, as JSON, or the first error; and the terms.
func generated(t testing.TB, s *policy.Subject, from originals, policies ...*policy.Policy) (made []string, terms []policy.Terms) {
	t.Helper()
	for _, p := range policies {
		for _, g := range p.Generations {
			terms = append(terms, g.Terms())
			out := g.Generate(t.Context(), policy.Case{Subject: s, Sources: from})
			if out.Result == policy.Indeterminate {
				return []string{"error: " + out.Reasons[0].Message}, terms
			}
			for _, one := range out.Objects {
				text, err := json.Marshal(one.Object)
				if err != nil {
					t.Fatal(err)
				}
				made = append(made, fmt.Sprintf("%s synchronized: %t", text, one.Synchronize))
			}
		}
	}
	slices.Sort(made)
	return made, terms
}

// TestGenerate: source and result make the same objects of each trigger.
func TestGenerate(t *testing.T) {
	from := originals{
		policytest.Object(t, `{apiVersion: v1, kind: Secret, metadata: {name: regcred, namespace: platform, uid: u, labels: {copied: "yes"}, finalizers: [a/b]}, data: {a: Yg==}}`),
		policytest.Object(t, `{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: platform}, data: {a: Yg==}}`),
		policytest.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: platform, labels: {copied: "yes"}}, data: {n: "3"}}`),
	}
	const space, deployment = "Namespace", "Deployment"
	for _, c := range []struct{ reason, kind, generate, written string }{
		{"an object without variables", space, "apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: all, data: {rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}", "- template:\n        value: |\n          apiVersion: rbac.authorization.k8s.io/v1\n          kind: ClusterRole\n"},
		{"a namespace", space, "apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, name: deny, namespace: '{{request.object.metadata.name}}', synchronize: true, data: {spec: {podSelector: {}, policyTypes: [Ingress]}}", "namespace: (( object.metadata.name ))"},
		{"a name", deployment, "apiVersion: policy/v1, kind: PodDisruptionBudget, name: '{{request.object.metadata.name}}-pdb', namespace: '{{request.object.metadata.namespace}}', data: {spec: {minAvailable: 1, selector: '{{request.object.spec.selector}}'}}", "selector: (( object.spec.selector ))"},
		{"numbers as texts", space, "apiVersion: v1, kind: ConfigMap, name: a, namespace: '{{request.object.metadata.name}}', data: {data: {num: 1, b: true, s: '1'}, metadata: {labels: {num: 1}}}", "num: \"1\""},
		{"numbers and booleans", space, "apiVersion: v1, kind: LimitRange, name: a, namespace: x, data: {spec: {a: 1, b: 1.5, c: true, d: [1, x], e: null}}", "b: 1.5"},
		{"brackets of an expression", space, "apiVersion: v1, kind: ConfigMap, name: a, namespace: '{{request.object.metadata.name}}', data: {data: {num: '((a))'}}", `\((a))`},
		{"brackets without an expression", space, "apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {data: {num: '((a))'}}", "num: ((a))"},
		{"lines", space, "apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {data: {num: \"a\\nb\\n\"}}", "num: |\n"},
		{"nothing but a name", space, "apiVersion: v1, kind: ServiceAccount, name: a, namespace: '{{request.object.metadata.name}}'", "kind: ServiceAccount"},
		{"the user", space, "apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {data: {user: '{{request.userInfo.username}}'}}", "(( request.userInfo.username ))"},
		{"until the policy is deleted", space, "apiVersion: v1, kind: ConfigMap, name: a, namespace: b, synchronize: true, orphanDownstreamOnPolicyDelete: true, generateExisting: true, data: {data: {a: b}}", "generateExisting:\n      enabled: true\n    synchronize:\n      enabled: true\n    orphanDownstreamOnPolicyDelete:\n      enabled: true\n"},
		{"an entry of the context", space, "apiVersion: v1, kind: ConfigMap, name: '{{ own }}-x', namespace: b, data: {data: {a: '{{ own }}'}}}, context: [{name: own, variable: {jmesPath: request.object.metadata.name}}], preconditions: {all: [{key: '{{ own }}', operator: NotEquals, value: platform}]", "(( variables.own + '-x' ))"},
		{"an object for each container", deployment, "synchronize: true, foreach: [{list: request.object.spec.template.spec.containers, apiVersion: v1, kind: ConfigMap, name: '{{ request.object.metadata.name }}-{{ element.name }}', namespace: '{{ request.object.metadata.namespace }}', data: {metadata: {labels: {num: 1, of: '{{ element.name }}'}}, data: {image: '{{ element.image }}', num: 2}}}]", ".all(container,"},
		{"objects for some containers", deployment, "foreach: [{list: 'request.object.spec.template.spec.containers[]', preconditions: {all: [{key: '{{ element.name }}', operator: NotEquals, value: b}]}, apiVersion: v1, kind: ServiceAccount, name: '{{ element.name }}', namespace: shop}]", "filter("},
		{"copies for each", deployment, "foreach: [{list: request.object.spec.template.spec.containers, apiVersion: v1, kind: Secret, name: regcred, namespace: '{{ element.name }}', clone: {name: regcred, namespace: platform}}]", "resource.Get("},
		{"an object of the cluster for each", deployment, "foreach: [{list: request.object.spec.template.spec.containers, apiVersion: v1, kind: Namespace, name: '{{ element.name }}', data: {metadata: {labels: {a: b}}}}]", "'kind': 'Namespace',"},
		{"a copy", space, "apiVersion: v1, kind: Secret, name: regcred, namespace: '{{request.object.metadata.name}}', synchronize: true, clone: {name: regcred, namespace: platform}", "generator.Apply(object.metadata.name, [resource.Get('v1', 'secrets', 'platform', 'regcred')])"},
		{"a copy of nothing", space, "apiVersion: v1, kind: Secret, name: none, namespace: '{{request.object.metadata.name}}', clone: {name: none, namespace: platform}", ""},
		{"copies", space, "namespace: '{{request.object.metadata.name}}', cloneList: {namespace: platform, kinds: [v1/Secret, v1/ConfigMap], selector: {matchLabels: {copied: \"yes\"}}}", "resource.List('v1', 'secrets', 'platform', {'copied': 'yes'})"},
		{"all copies", space, "namespace: '{{request.object.metadata.name}}', cloneList: {namespace: platform, kinds: [v1/Secret]}", "resource.List('v1', 'secrets', 'platform')"},
	} {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: [%s]}}]}, generate: {%s}}]}}`, c.kind, c.generate)
		compareGenerations(t, c.reason, text, c.written, from)
	}
}

func compareGenerations(t *testing.T, reason, text, wanted string, from originals) {
	t.Helper()
	result := convertText(t, text, cel.Options{})
	if len(result.Problems) > 0 {
		t.Errorf("%s: %v", reason, result.Problems)
		return
	}
	var made []*policy.Policy
	written, err := cel.YAML(result.Policies)
	if err != nil {
		t.Fatal(err)
	}
	compiler := generating.New(kyvernocel.Options{})
	for i := range result.Policies {
		yaml, err := result.Policies[i].YAML()
		if err != nil {
			t.Fatal(err)
		}
		p, err := compiler.Compile(yaml, "test.yaml")
		if err != nil {
			t.Fatalf("%s: %v\n%s", reason, err, yaml)
		}
		made = append(made, p)
	}
	if !strings.Contains(strings.ReplaceAll(string(written), "''", "'"), wanted) {
		t.Errorf("%s:\n%s\nlacks %s", reason, written, wanted)
	}
	source := sourcePolicy(t, []byte(text))
	some := false
	for _, object := range []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: u}}", "{apiVersion: v1, kind: Namespace, metadata: {name: platform, uid: u, labels: {a: b}}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {selector: {matchLabels: {app: web}}, template: {spec: {containers: [{name: a, image: a}, {name: b, image: b}]}}}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: shop}}",
	} {
		for _, operation := range []string{"CREATE", "UPDATE"} {
			s := creation(policytest.Object(t, object))
			s.Operation, s.User = operation, policy.User{Name: "ann", Groups: []string{"dev"}, RolesKnown: true, Whole: true}
			if s.Kind == "Namespace" {
				s.Namespace = s.Name
			}
			want, terms := generated(t, s, from, source)
			got, others := generated(t, s, from, made...)
			some = some || len(want) > 0
			if !slices.Equal(want, got) {
				t.Errorf("%s: of %s\n got %s\nwant %s\n%s", reason, object, got, want, written)
			}
			a, b := terms[0], others[0]
			a.Kinds, b.Kinds = nil, nil
			if fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("%s: the terms are %+v, were %+v", reason, b, a)
			}
		}
	}
	if !some && !strings.Contains(reason, "nothing") {
		t.Errorf("%s: nothing is generated", reason)
	}
}
