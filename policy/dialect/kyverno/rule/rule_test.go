package rule_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func newEngine(tb testing.TB) *jmespath.Engine {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		tb.Fatal(err)
	}
	return engine
}

func compile(tb testing.TB, o rule.Options, text string) (*rule.Head, error) {
	tb.Helper()
	var doc rule.Document
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	o.Context.Engine = newEngine(tb)
	return rule.Compile(o, doc, "rule")
}

// gate is a policy's own condition.
type gate struct {
	open bool
	err  error
}

func (g gate) Opens(context.Context, *policy.Subject) (bool, error) { return g.open, g.err }

func (gate) BeyondObject() bool { return false }

func TestAsk(t *testing.T) {
	const pods = "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}"
	pod := func(change func(*policy.Subject)) *policy.Subject {
		s := &policy.Subject{
			Version: "v1", Kind: "Pod", Name: "web", Operation: "CREATE", User: policy.User{Name: "ann"},
			Object: policy.ContentOf(map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}}),
		}
		if change != nil {
			change(s)
		}
		return s
	}
	for _, c := range []struct {
		options rule.Options
		text    string
		change  func(*policy.Subject)
		want    policy.Result // "applies" for none
		says    string
		reason  string
	}{
		{rule.Options{}, pods + "}", nil, "applies", "", "it matches"},
		{rule.Options{}, strings.Replace(pods, "Pod", "Service", 1) + "}", nil, "", "", "it does not"},
		{rule.Options{}, pods + ", exclude: {any: [{resources: {names: [web]}}]}}", nil, "", "", "it is excluded"},
		{rule.Options{}, pods + ", exclude: {any: [{resources: {names: [api]}}]}}", nil, "applies", "", "another is excluded"},
		{rule.Options{}, pods + ", preconditions: {all: [{key: '{{request.name}}', operator: Equals, value: web}]}}", nil, "applies", "", "preconditions are met"},
		{rule.Options{}, pods + ", preconditions: {all: [{key: '{{request.name}}', operator: Equals, value: api}]}}", nil, policy.Skipped, "preconditions not met: expected", "they are not"},
		{rule.Options{}, pods + ", preconditions: {all: [{key: '{{request.none}}', operator: Equals, value: api}]}}", nil, policy.Indeterminate, "rule.preconditions: ", "they cannot be evaluated"},
		{rule.Options{}, pods + ", preconditions: {}}", nil, "applies", "", "there are none"},
		{rule.Options{}, pods + "}", func(s *policy.Subject) { s.Document = true }, "", "", "no object of Kubernetes'"},
		{rule.Options{}, pods + "}", func(s *policy.Subject) { s.Bare = true }, policy.Indeterminate, "the object", "an object of which only images are known"},
		{rule.Options{}, "{name: r, match: {any: [{resources: {kinds: [Pod], namespaceSelector: {matchLabels: {a: b}}}}]}}", func(s *policy.Subject) { s.Namespace = "x" }, "indeterminate", "the rule selects by labels", "labels that are not known"},
		{rule.Options{Background: true}, pods + "}", nil, "", "", "a rule for scans, with a requester"},
		{rule.Options{Background: true}, pods + "}", func(s *policy.Subject) { s.User = policy.User{} }, "applies", "", "a rule for scans, without a requester"},
		{rule.Options{Gate: gate{open: true}}, pods + "}", nil, "applies", "", "the policy is asked"},
		{rule.Options{Gate: gate{}}, pods + "}", nil, "", "", "the policy is not asked"},
		{rule.Options{Gate: gate{err: errors.New("no clue")}}, pods + "}", nil, "indeterminate", "no clue", "the condition is indeterminate"},
		{rule.Options{Kinds: []string{"Deployment"}}, pods + "}", nil, "", "", "a rule that follows"},
	} {
		head, err := compile(t, c.options, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		data, answer, doubt := head.Ask(t.Context(), policy.Case{Subject: pod(c.change)})
		got, said := policy.Result("applies"), ""
		if doubt != nil {
			got, said = "indeterminate", doubt.Error()
		}
		if answer != nil {
			got = answer.Result
			if len(answer.Reasons) > 0 {
				said = answer.Reasons[0].Message
			}
		} else if data == nil {
			t.Errorf("%s: no context", c.reason)
		}
		if got != c.want || !strings.Contains(said, c.says) {
			t.Errorf("%s: %q %q", c.reason, got, said)
		}
	}
}

func TestCompileErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{name: r}", "rule.match: is empty"},
		{"{name: r, match: {resources: {kinds: [Pod]}}}", "rule.match: the old form"},
		{"{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, exclude: {any: [{resources: {names: ['']}}]}}", "rule.exclude.any[0].resources.names[0]: is empty"},
		{"{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, context: [{name: a}]}", "rule.context[0]: "},
		{"{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, preconditions: {some: []}}", "rule.preconditions: "},
		{"{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, imageExtractors: {Pod: [{path: spec}]}}", "rule.imageExtractors.Pod[0].path: "},
	} {
		if _, err := compile(t, rule.Options{}, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestExtractedKinds: extractors for a kind that match does not select would find nothing.
func TestExtractedKinds(t *testing.T) {
	for _, c := range []struct{ reason, kinds, extractors, want string }{
		{"the kind", "[Task]", "{Task: [{path: /spec/image}]}", ""},
		{"the kind of a group", "[tekton.dev/v1/Task]", "{Task: [{path: /spec/image}]}", ""},
		{"kinds by a pattern", "['Task*']", "{TaskRun: [{path: /spec/image}]}", ""},
		{"a controller, in a rule about pods", "[Pod]", "{Deployment: [{path: /spec/image}]}", ""},
		{"no kind named", "[], names: [a]", "{Task: [{path: /spec/image}]}", ""},
		{"escaped characters", "[Task]", "{Task: [{path: /metadata/annotations/a~1b~0}]}", ""},
		{"another case", "[Task]", "{task: [{path: /spec/image}]}", "rule.imageExtractors.task: match selects no task"},
		{"the plural", "[Task]", "{Tasks: [{path: /spec/image}]}", "match selects no Tasks"},
		{"a group", "[Task]", "{tekton.dev/v1/Task: [{path: /spec/image}]}", "want the kind alone, such as Task"},
		{"one of two kinds", "[Task]", "{Task: [{path: /spec/image}], Run: [{path: /spec/image}]}", "rule.imageExtractors.Run"},
		{"a kind of pods that no rule follows for", "[Pod]", "{Task: [{path: /spec/image}]}", "match selects no Task"},
		{"an empty list", "[Task]", "{Task: []}", "rule.imageExtractors.Task: is empty"},
		{"a character that is not escaped", "[Task]", "{Task: [{path: /spec/a~b}]}", "rule.imageExtractors.Task[0].path: "},
	} {
		_, err := compile(t, rule.Options{}, "{name: r, match: {any: [{resources: {kinds: "+c.kinds+"}}]}, imageExtractors: "+c.extractors+"}")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
}

// TestImages: images are found in the fields that the rule names, and only if it reads
// them.
func TestImages(t *testing.T) {
	head, err := compile(t, rule.Options{}, "{name: r, match: {any: [{resources: {kinds: [Task]}}]}, imageExtractors: {Task: [{name: steps, path: /spec/steps/*, value: image, jmesPath: 'to_lower(@)'}]}}")
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	data, answer, _ := head.Ask(t.Context(), policy.Case{
		Subject: &policy.Subject{Kind: "Task", Operation: "CREATE", Object: policy.ContentOf(map[string]any{})},
		Find: func(extractors []policy.Extractor) ([]policy.Image, error) {
			looked++
			if len(extractors) != 1 || extractors[0].Path != "/spec/steps/*" {
				t.Errorf("looked at %+v", extractors)
			}
			if text, err := extractors[0].Transform("ABC"); text != "abc" || err != nil {
				t.Error(text, err)
			}
			return nil, errors.New("unreadable")
		},
	})
	if answer != nil || looked != 0 {
		t.Fatalf("%+v, looked %d times", answer, looked)
	}
	read, err := variable.Compile(newEngine(t), "{{ images.steps }}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := read.Execute(data); err == nil || !strings.Contains(err.Error(), "the images: unreadable") || looked != 1 {
		t.Errorf("%v, looked %d times", err, looked)
	}
}

func Example() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		fmt.Println(err)
		return
	}
	var doc rule.Document
	if err := yaml.Unmarshal([]byte("{name: r, match: {any: [{resources: {kinds: [Pod], operations: [UPDATE]}}]}}"), &doc); err != nil {
		fmt.Println(err)
		return
	}
	head, err := rule.Compile(rule.Options{Context: rulecontext.Options{Engine: engine}}, doc, "spec.rules[0]")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(head.Applies(&policy.Subject{Kind: "Pod", Version: "v1", Operation: "CREATE"}))
	// Output: false <nil>
}
