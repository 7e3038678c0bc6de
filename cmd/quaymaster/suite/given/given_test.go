package given_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/suite/given"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/workload"
)

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func load(t testing.TB, text string) (*given.Values, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return given.LoadValues(path)
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	const head = "metadata: {name: p}\nspec: {rules: [{name: r, context: ["
	for _, c := range []struct{ reason, values, entries, want string }{
		{"nothing is said", "{}", "{name: a, configMap: {name: c}}", `[{"configMap":{"name":"c"},"name":"a"}]`},
		{"a look-up is replaced", "globalValues: {a.data.k: v}", "{name: a, configMap: {name: c}}", `[{"name":"a","variable":{"value":{"data":{"k":"v"}}}}]`},
		{"a key with dots", `globalValues: {'a.data."k.l"': v}`, "{name: a, configMap: {name: c}}", `[{"name":"a","variable":{"value":{"data":{"k.l":"v"}}}}]`},
		{"a variable in a value is text", "globalValues: {a: '{{ x }}'}", "{name: a, apiCall: {urlPath: /api}}", `[{"name":"a","variable":{"value":"\\{{ x }}"}}]`},
		{"a variable falls back", "globalValues: {a: 1}", "{name: a, variable: {jmesPath: b}}", `[{"name":"a","variable":{"default":1,"jmesPath":"b"}}]`},
		{"a variable keeps its default", "globalValues: {a: 1}", "{name: a, variable: {jmesPath: b, default: 2}}", `[{"name":"a","variable":{"default":2,"jmesPath":"b"}}]`},
		{"what no entry names comes first", "globalValues: {b: 1}", "{name: a, variable: {jmesPath: b}}", `[{"name":"b","variable":{"value":1}},{"name":"a","variable":{"jmesPath":"b"}}]`},
		{"the rule's before the object's before all", "{globalValues: {a: 1, b: 1, c: 1}, policies: [{name: p, resources: [{name: o, values: {b: 2, c: 2}}], rules: [{name: r, values: {c: 3}}]}]}", "",
			`[{"name":"a","variable":{"value":1}},{"name":"b","variable":{"value":2}},{"name":"c","variable":{"value":3}}]`},
		{"another policy's", "policies: [{name: q, rules: [{name: r, values: {a: 1}}]}]", "{name: a, configMap: {name: c}}", `[{"configMap":{"name":"c"},"name":"a"}]`},
		{"the request is no entry", "globalValues: {request.operation: DELETE}", "", `[]`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			values, err := load(t, c.values)
			if err != nil {
				t.Fatal(err)
			}
			document := object(t, head+c.entries+"]}]}")
			before := fmt.Sprint(document)
			changed, err := values.Policy(document, "o")
			if err != nil {
				t.Fatal(err)
			}
			rules := changed["spec"].(map[string]any)["rules"].([]any)
			got, err := json.Marshal(rules[0].(map[string]any)["context"])
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if fmt.Sprint(document) != before {
				t.Error("the document itself was changed")
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for reason, text := range map[string]string{
		"an unknown field":         "globalValue: {a: 1}",
		"a key that is no path":    "globalValues: {a..b: 1}",
		"another kind":             "{apiVersion: v1, kind: Pod}",
		"foreach values no list":   "policies: [{name: p, rules: [{name: r, foreachValues: {a: 1}}]}]",
		"an unknown field of spec": "{apiVersion: cli.kyverno.io/v1alpha1, kind: Values, spec: {values: 1}}",
	} {
		if values, err := load(t, text); err == nil {
			t.Errorf("%s is taken: %+v", reason, values)
		}
	}
	values, err := load(t, "globalValues: {images.containers.a.tag: v1}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := values.Policy(object(t, "metadata: {name: p}\nspec: {rules: [{name: r}]}"), "o"); err == nil {
		t.Error("a value for images is taken")
	}
	if err := values.Set("nothing"); err == nil {
		t.Error("--set without = is taken")
	}
}

func TestApply(t *testing.T) {
	t.Parallel()
	pod, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"n"},"spec":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason string
		said   map[string]any
		want   string
	}{
		{"nothing", nil, "|Pod a|"},
		{"a deletion", map[string]any{"operation": "DELETE"}, "DELETE||Pod n/a Pod a n"},
		{"an update", map[string]any{"operation": "UPDATE", "oldObject.spec.old": true}, "UPDATE|Pod a|Pod n/a"},
		{"who asks", map[string]any{"userInfo.username": "u", "userInfo.groups": []any{"g"}, "roles": "n:r"}, "|Pod a|u [g] [n:r]"},
		{"a service account", map[string]any{"serviceAccountName": "s", "serviceAccountNamespace": "m"}, "|Pod a|system:serviceaccount:m:s"},
	} {
		got, err := given.Apply(gate.Request{Object: pod}, c.said)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		s := got.Subject
		if c.said["operation"] != nil && s.Operation != c.said["operation"] {
			t.Errorf("%s: the operation is %q", c.reason, s.Operation)
		}
		if deleted := c.said["operation"] == "DELETE"; got.Object.IsZero() != deleted || deleted && (got.Old.IsZero() || s.Kind != "Pod" || s.Name != "a" || s.Namespace != "n") {
			t.Errorf("%s: object %s, old %s, subject %+v", c.reason, got.Object, got.Old, s)
		}
		if old := c.said["oldObject.spec.old"]; old != nil && got.Old.Content()["spec"].(map[string]any)["old"] != true {
			t.Errorf("%s: the old object is %v", c.reason, got.Old.Content())
		}
		if name := c.said["userInfo.username"]; name != nil && (s.User.Name != name || len(s.User.Groups) != 1 || !s.User.RolesKnown) {
			t.Errorf("%s: %+v", c.reason, s.User)
		}
		if c.said["serviceAccountName"] != nil && s.User.Name != "system:serviceaccount:m:s" {
			t.Errorf("%s: %s", c.reason, s.User.Name)
		}
	}
	if _, err := given.Apply(gate.Request{Object: pod}, map[string]any{"requestResources.resource": "pods"}); err == nil || !strings.Contains(err.Error(), "request.requestResources.resource") {
		t.Errorf("a value that means nothing: %v", err)
	}
	if got := pod.Content()["spec"].(map[string]any); len(got) > 0 {
		t.Errorf("the object itself was changed: %v", got)
	}
}

func TestWithoutUsers(t *testing.T) {
	t.Parallel()
	document := object(t, `spec: {rules: [{match: {any: [{resources: {kinds: [Pod]}, subjects: [{kind: User, name: u}]}, {roles: ["n:r"]}]}, exclude: {any: [{resources: {kinds: [Pod]}, roles: [x]}]}}]}`)
	got, err := json.Marshal(given.WithoutUsers(document))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"spec":{"rules":[{"exclude":{"any":[{"resources":{"kinds":["Pod"]},"roles":["x"]}]},"match":{"any":[{"resources":{"kinds":["Pod"]}},{"roles":["n:r"]}]}}]}}`
	if string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func ExampleValues_Policy() {
	var values given.Values
	if err := values.Set("settings.data.stage=test"); err != nil {
		fmt.Println(err)
		return
	}
	policy := map[string]any{"spec": map[string]any{"rules": []any{map[string]any{
		"name": "r", "context": []any{map[string]any{"name": "settings", "configMap": map[string]any{"name": "settings"}}},
	}}}}
	changed, err := values.Policy(policy, "")
	fmt.Println(changed["spec"], err)
	// Output: map[rules:[map[context:[map[name:settings variable:map[value:map[data:map[stage:test]]]]] name:r]]] <nil>
}

// TestOperations: rules match none but the operations of an AdmissionRequest, so that a
// misspelt one would have each object admitted.
func TestOperations(t *testing.T) {
	pod, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, operation := range []any{"CREATE", "UPDATE", "DELETE", "CONNECT"} {
		if _, err := given.Apply(gate.Request{Object: pod}, map[string]any{"operation": operation}); err != nil {
			t.Errorf("%v: %v", operation, err)
		}
	}
	for _, operation := range []any{"create", "Delete", "FOO", "*", "CREATE ", "", nil, 1, true, []any{"CREATE"}} {
		_, err := given.Apply(gate.Request{Object: pod}, map[string]any{"operation": operation})
		if err == nil || !strings.Contains(err.Error(), "request.operation: ") || !strings.Contains(err.Error(), "want CREATE, UPDATE, DELETE, CONNECT") {
			t.Errorf("%v: %v", operation, err)
		}
	}
}
