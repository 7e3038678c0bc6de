package autogen_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/autogen"
)

func raw(tb testing.TB, text string) json.RawMessage {
	tb.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func object(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return out
}

func TestControllers(t *testing.T) {
	const name = "pod-policies.kyverno.io/autogen-controllers"
	for _, c := range []struct {
		annotations map[string]string
		want        string
	}{
		{nil, "DaemonSet Deployment Job StatefulSet ReplicaSet ReplicationController CronJob"},
		{map[string]string{name: "all"}, "DaemonSet Deployment Job StatefulSet ReplicaSet ReplicationController CronJob"},
		{map[string]string{name: "none"}, ""},
		{map[string]string{name: "Deployment, CronJob,"}, "Deployment CronJob"},
		{map[string]string{name: "deployments,cronjobs"}, "Deployment CronJob"},
		{map[string]string{name: "Deployments,DaemonSet"}, "Deployment DaemonSet"},
	} {
		if got, err := autogen.Controllers(c.annotations); strings.Join(got, " ") != c.want || err != nil {
			t.Errorf("%v: %v, %v", c.annotations, got, err)
		}
	}
	for _, unknown := range []string{"Rollout", "rollouts", "Deployment,pods", "deployment"} {
		if _, err := autogen.Controllers(map[string]string{name: unknown}); err == nil || !strings.Contains(err.Error(), "unknown pod controller") {
			t.Error(unknown, err)
		}
	}
}

func TestFollowers(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, c := range []struct {
		name  string
		kinds []string
		want  string
	}{
		{"r", []string{"Deployment", "CronJob"}, "autogen-r [Deployment] [spec template]; autogen-cronjob-r [CronJob] [spec jobTemplate spec template]"},
		{"r", []string{"Job"}, "autogen-r [Job] [spec template]"},
		{"r", []string{"CronJob"}, "autogen-cronjob-r [CronJob] [spec jobTemplate spec template]"},
		{"r", nil, ""},
		{long, []string{"Job"}, "autogen-" + long[:55] + " [Job] [spec template]"},
		{long[:54] + ".", []string{"Job"}, "autogen-" + long[:54] + ". [Job] [spec template]"},
		{long[:54] + ".b", []string{"Job"}, "autogen-" + long[:54] + " [Job] [spec template]"},
	} {
		var got []string
		for _, f := range autogen.Followers(c.name, c.kinds) {
			got = append(got, fmt.Sprintf("%s %v %v", f.Name, f.Kinds, f.Template))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%v: %v", c.kinds, got)
		}
	}
}

// TestRewrite compares rewritten rules with rules that were written by hand.
func TestRewrite(t *testing.T) {
	template := autogen.Followers("r", []string{"Deployment"})[0]
	for _, c := range []struct{ rule, want, reason string }{
		{"validate: {message: m, pattern: {spec: {a: b}}}", "validate: {message: m, pattern: {spec: {template: {spec: {a: b}}}}}", "a pattern"},
		{"validate: {anyPattern: [{spec: {a: b}}, {metadata: {c: d}}]}", "validate: {anyPattern: [{spec: {template: {spec: {a: b}}}}, {spec: {template: {metadata: {c: d}}}}]}", "patterns"},
		{"validate: {deny: {conditions: {any: [{key: '{{request.object.spec.x}}', operator: In, value: '{{request.oldObject.metadata.y}}'}]}}}",
			"validate: {deny: {conditions: {any: [{key: '{{request.object.spec.template.spec.x}}', operator: In, value: '{{request.oldObject.spec.template.metadata.y}}'}]}}}", "conditions"},
		{"validate: {foreach: [{list: 'request.object.spec.containers', pattern: {image: '{{request.object.metadata.name}}'}}]}",
			"validate: {foreach: [{list: 'request.object.spec.template.spec.containers', pattern: {image: '{{request.object.spec.template.metadata.name}}'}}]}", "a loop: its pattern is for the element"},
		{"preconditions: {all: [{key: '{{request.object.metadata.namespace}}', operator: Equals, value: a}]}, validate: {deny: {}}",
			"preconditions: {all: [{key: '{{request.object.metadata.namespace}}', operator: Equals, value: a}]}, validate: {deny: {}}", "the namespace is the object's"},
		{"context: [{name: a, variable: {jmesPath: request.object.spec}}], validate: {podSecurity: {level: baseline}}",
			"context: [{name: a, variable: {jmesPath: request.object.spec.template.spec}}], validate: {podSecurity: {level: baseline}}", "a context"},
		{"mutate: {patchStrategicMerge: {spec: {'{{request.object.spec.a}}': b}}}", "mutate: {patchStrategicMerge: {spec: {template: {spec: {'{{request.object.spec.template.spec.a}}': b}}}}}", "a merge, with a variable in a name"},
		{"mutate: {foreach: [{list: a, order: Descending, patchStrategicMerge: {spec: {a: b}}}]}", "mutate: {foreach: [{list: a, order: Descending, patchStrategicMerge: {spec: {template: {spec: {a: b}}}}}]}", "a merge in a loop"},
		{"mutate: {foreach: [{list: a, foreach: [{list: b, patchStrategicMerge: {spec: {a: b}}}]}]}", "mutate: {foreach: [{list: a, foreach: [{list: b, patchStrategicMerge: {spec: {template: {spec: {a: b}}}}}]}]}", "a merge in a loop in a loop"},
		{"validate: {cel: {expressions: [{expression: object.spec.a}]}}", "validate: {cel: {expressions: [{expression: object.spec.a}]}}", "CEL is shown the template"},
		{"context: [{name: a, variable: {jmesPath: request.object.spec}}], validate: {cel: {expressions: [{expression: object.spec.a}]}}",
			"context: [{name: a, variable: {jmesPath: request.object.spec}}], validate: {cel: {expressions: [{expression: object.spec.a}]}}", "and so is its context"},
		{"validate: {pattern: null, anyPattern: 7, deny: {}}", "validate: {pattern: null, anyPattern: 7, deny: {}}", "no pattern"},
		{"mutate: {patchStrategicMerge: null, foreach: [7]}", "mutate: {patchStrategicMerge: null, foreach: [7]}", "no merge, and a loop that is none"},
		{"validate: {foreach: [{list: a, anyPattern: [{spec: {a: b}}]}]}", "validate: {foreach: [{list: a, anyPattern: [{spec: {a: b}}]}]}", "patterns in a loop are the element's"},
		{"validate: 7, mutate: 7, context: null", "validate: 7, mutate: 7, context: null", "a value that is no object stays"},
	} {
		rule := object(t, "{name: r, "+c.rule+"}")
		before := object(t, "{name: r, "+c.rule+"}")
		if got, want := autogen.Rewrite(rule, template), object(t, "{name: autogen-r, "+c.want+"}"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\nwant %v", c.reason, got, want)
		}
		if !reflect.DeepEqual(rule, before) {
			t.Errorf("%s: the rule itself is changed", c.reason)
		}
	}
}

func TestOfObjects(t *testing.T) {
	const pods = "match: {any: [{resources: {kinds: [Pod]}}]}"
	for _, c := range []struct {
		rules []string
		want  bool
	}{
		{[]string{"{" + pods + "}"}, true},
		{[]string{"{" + pods + "}", "{match: {any: [{resources: {kinds: [Service]}}]}}"}, true},
		{[]string{"{" + pods + "}", "{match: {any: [{resources: {kinds: [Pod], names: [a]}}]}}"}, false},
		{[]string{"{" + pods + "}", "{" + pods + ", generate: {}}"}, false},
		{[]string{"{" + pods + ", mutate: {patchesJson6902: '[]'}}"}, false},
		{[]string{"{" + pods + ", mutate: {foreach: [{patchesJson6902: '[]'}]}}"}, false},
		{[]string{"{match: 7}"}, false},
		{[]string{"{" + pods + ", exclude: 7}"}, false},
		{[]string{"{" + pods + ", exclude: {any: [{resources: {kinds: [Service]}}]}}"}, true},
		{[]string{"{" + pods + ", exclude: {any: [{resources: {kinds: [Pod], names: [a]}}]}}"}, false},
		{[]string{"{" + pods + ", mutate: {foreach: [{list: a}]}}"}, true},
	} {
		var rules []json.RawMessage
		for _, text := range c.rules {
			rules = append(rules, raw(t, text))
		}
		if got := autogen.OfObjects(rules); got != c.want {
			t.Errorf("%v: %t", c.rules, got)
		}
	}
	for text, want := range map[string]bool{
		"{" + pods + "}": true, "{match: {any: [{resources: {kinds: [Service]}}]}}": false,
		"{" + pods + ", exclude: {any: [{resources: {kinds: [Service]}}]}}":   false,
		"{" + pods + ", exclude: {any: [{resources: {namespaces: [prod]}}]}}": true,
		"{" + pods + ", exclude: {any: [{resources: {kinds: [Pod]}}]}}":       true,
	} {
		if got, err := autogen.AboutPods(raw(t, text)); got != want || err != nil {
			t.Errorf("%s: %t, %v", text, got, err)
		}
	}
	if got, err := autogen.AboutPods(raw(t, "{"+pods+", exclude: 7}")); got || err == nil {
		t.Errorf("an exclude that cannot be read: %t, %v", got, err)
	}
}

func Example() {
	for _, f := range autogen.Followers("signed", []string{"Deployment", "CronJob"}) {
		fmt.Println(f.Name, strings.Join(f.Template, "."))
	}
	// Output:
	// autogen-signed spec.template
	// autogen-cronjob-signed spec.jobTemplate.spec.template
}
