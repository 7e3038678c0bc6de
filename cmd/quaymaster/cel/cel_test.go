package cel

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: REPLICAS, template: {spec: {containers: [{name: web, image: "registry.example/web:v1\e"}]}}}
`

// evaluate runs the command with two states of an object, new.yaml and old.yaml, in its arguments.
func evaluate(t *testing.T, args ...string) (string, error) {
	t.Helper()
	folder := t.TempDir()
	for name, replicas := range map[string]string{"new.yaml": "3", "old.yaml": "2"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(strings.Replace(deployment, "REPLICAS", replicas, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "odd.yaml"), []byte("apiVersion: a/b/c\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	var out, errs bytes.Buffer
	cmd := New(command.Terminal{In: strings.NewReader("[1]"), Out: &out, Err: &errs, Env: func(string) string { return "" }})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String() + errs.String(), err
}

func TestEvaluate(t *testing.T) {
	for _, c := range []struct {
		reason string
		args   []string
		want   string
	}{
		{"a condition", []string{"object.spec.replicas > 2", "-f", "new.yaml"}, "true\n\nbool, cost 2\n"},
		{"one that does not hold", []string{"object.spec.replicas > 2", "-f", "old.yaml"}, "false\n\nbool, cost 2\n"},
		{"a creation", []string{"request.operation + string(oldObject == null)", "-f", "new.yaml"}, "CREATEtrue\n\nstring, cost 2\n"},
		{"an update", []string{"request.operation + string(object.spec.replicas - oldObject.spec.replicas)", "-f", "new.yaml", "--old-object", "old.yaml"}, "UPDATE1\n"},
		{"a deletion", []string{"request.operation + request.name + string(object == null)", "--old-object", "old.yaml"}, "DELETEwebtrue\n"},
		{"the kind of the request", []string{"request.kind.group + '/' + request.kind.version + '/' + request.kind.kind", "-f", "new.yaml"}, "apps/v1/Deployment\n"},
		{"variables that read another", []string{"variables.b", "-f", "new.yaml", "--variable", "a=object.spec.replicas", "--variable", "b=variables.a == 3"}, "true\n"},
		{"a text without what would change the terminal", []string{"object.spec.template.spec.containers[0].image", "-f", "new.yaml"}, "registry.example/web:v1\\x1b\n"},
		{"JSON", []string{"{'a': [1.5, 2.5]}", "-o", "json"}, "{\n  \"value\": {\n    \"a\": [\n      1.5,\n      2.5\n    ]\n  },\n  \"type\": \"map\",\n  \"cost\": "},
		{"YAML", []string{"'a'", "-o", "yaml"}, "cost: 1\ntype: string\nvalue: a\n"},
	} {
		if got, err := evaluate(t, c.args...); err != nil || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.reason, got, err, c.want)
		}
	}
}

// TestNoValue: what is unknown, absent or too expensive is no value, and wrong use is not taken for it.
func TestNoValue(t *testing.T) {
	for _, c := range []struct {
		reason string
		args   []string
		want   string // of wrong use, the error
		status bool
	}{
		{"an absent field", []string{"object.spec.foo", "-f", "new.yaml"}, "no such key: foo", true},
		{"the user", []string{"request.userInfo.username", "-f", "new.yaml"}, "request.userInfo.username is not known here", true},
		{"other objects", []string{"resource.Get('v1', 'pods', 'shop', 'web')"}, "resource is not available here", true},
		{"the authorizer", []string{"authorizer.group('').resource('pods').check('get').allowed()", "-f", "new.yaml"}, "not known here", true},
		{"a cost over the bound", []string{"lists.range(5000).all(a, lists.range(5000).all(b, lists.range(5000).all(c, a+b+c >= 0)))"}, "cost", true},
		{"a message that quotes the object", []string{"timestamp('9'.replace('9', variables.s))", "--variable", "s=lists.range(3000).map(i, '9').join('')"}, "999...", true},
		{"a value without JSON", []string{"optional.none()"}, "no JSON", true},
		{"syntax", []string{"a +"}, "Syntax error", false},
		{"an undeclared variable", []string{"variables.x"}, "undefined field 'x'", false},
		{"a variable without an expression", []string{"variables.x", "--variable", "x"}, "want NAME=EXPRESSION", false},
		{"a variable twice", []string{"1", "--variable", "x=1", "--variable", "x=2"}, "declared twice", false},
		{"no API version", []string{"object", "-f", "odd.yaml"}, "want VERSION or GROUP/VERSION", false},
		{"no object", []string{"object", "-f", "-"}, "want an object", false},
		{"standard input twice", []string{"object", "-f", "-", "--old-object", "-"}, "once", false},
		{"no file", []string{"object", "-f", "nothing.yaml"}, "nothing.yaml", false},
		{"no time", []string{"1", "--timeout", "0s"}, "must be positive", false},
	} {
		got, err := evaluate(t, c.args...)
		if c.status {
			if !errors.Is(err, command.Status(command.ExitError)) || !strings.Contains(got, c.want) {
				t.Errorf("%s: %v, want %q\n%s", c.reason, err, c.want, got)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q\n%s", c.reason, err, c.want, got)
		}
	}
}
