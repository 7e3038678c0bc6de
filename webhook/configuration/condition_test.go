package configuration

import (
	"context"
	"slices"
	"testing"

	"github.com/google/cel-go/cel"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
)

// TestSpecUnchanged evaluates the condition as the API server does: with the
// objects as untyped values, and null where there is none.
func TestSpecUnchanged(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(specUnchanged)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	if ast.OutputType() != cel.BoolType {
		t.Fatalf("the condition is a %s", ast.OutputType())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	pod := func(image, label string, more ...any) map[string]any {
		containers := append([]any{map[string]any{"name": "web", "image": image, "ports": []any{map[string]any{"containerPort": int64(80)}}}}, more...)
		return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": label}}, "spec": map[string]any{"containers": containers}}
	}
	written := func(o map[string]any, annotations map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": o["spec"]}
	}
	says := func(text string) map[string]any { return map[string]any{writtenAnnotation: text, "other": "o"} }
	debugger := map[string]any{"name": "debugger", "image": "busybox"}
	bare := map[string]any{"metadata": map[string]any{}}
	tests := []struct {
		reason, operation string
		object, old       any
		required          bool
	}{
		{"a new object has no former state", "CREATE", pod("a", "x"), nil, true},
		{"another image", "UPDATE", pod("b", "x"), pod("a", "x"), true},
		{"one more container", "UPDATE", pod("a", "x", debugger), pod("a", "x"), true},
		{"one container less", "UPDATE", pod("a", "x"), pod("a", "x", debugger), true},
		{"another label", "UPDATE", pod("a", "y"), pod("a", "x"), false},
		{"nothing", "UPDATE", pod("a", "x"), pod("a", "x"), false},
		{"another annotation", "UPDATE", written(pod("a", "x"), map[string]any{"other": "p"}), written(pod("a", "x"), map[string]any{"other": "o"}), false},
		{"a record that stays", "UPDATE", written(pod("a", "x"), says(`{"web":"a"}`)), written(pod("a", "x"), says(`{"web":"a"}`)), false},
		{"a record that is forged", "UPDATE", written(pod("a", "x"), says(`{"web":"b"}`)), written(pod("a", "x"), says(`{"web":"a"}`)), true},
		{"a record that is taken away", "UPDATE", written(pod("a", "x"), map[string]any{"other": "o"}), written(pod("a", "x"), says(`{"web":"a"}`)), true},
		{"and the last annotation with it", "UPDATE", pod("a", "x"), written(pod("a", "x"), says(`{"web":"a"}`)), true},
		{"a record where there was none", "UPDATE", written(pod("a", "x"), says(`{"web":"a"}`)), pod("a", "x"), true},
		{"no spec now", "UPDATE", bare, pod("a", "x"), true},
		{"no spec before", "UPDATE", pod("a", "x"), bare, true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			got, _, err := program.Eval(map[string]any{"object": test.object, "oldObject": test.old, "request": map[string]any{"operation": test.operation}})
			if err != nil {
				t.Fatalf("an error would fail the request without asking: %v", err)
			}
			if got.Value() != test.required {
				t.Errorf("asked is %v, want %v", got.Value(), test.required)
			}
		})
	}
}

// selecting is a rule about images of pods that selects them by labels, or does not.
type selecting bool

func (selecting) Name() string                                  { return "selecting" }
func (selecting) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (r selecting) MayRematch() bool                            { return bool(r) }
func (selecting) ReadsUpdate(*policy.Subject) bool              { return false }
func (selecting) Targets() []policy.Target                      { return podTargets() }
func (selecting) ImagePatterns() ([]string, bool)               { return nil, false }
func (selecting) Plan(context.Context, *policy.Subject, []policy.Image) (policy.RulePlan, error) {
	return policy.RulePlan{}, nil
}

func podTargets() []policy.Target { return []policy.Target{{Version: "v1", Kind: "Pod"}} }

// someScope covers some objects, by what an update may change.
type someScope struct{}

func (someScope) Covers(context.Context, *policy.Subject) (bool, error) { return false, nil }

// TestUpdatesOfMetadata reach the gateway where they may bring an object under a rule, or out of
// an exception.
func TestUpdatesOfMetadata(t *testing.T) {
	excepting := func(name string) *policy.Exception {
		return &policy.Exception{Namespace: "n", Name: "e", Rules: []policy.ExceptedRule{{Policy: name, Rules: []string{"*"}}}, Scope: someScope{}}
	}
	for _, c := range []struct {
		reason     string
		rule       selecting
		exceptions []*policy.Exception
		left       bool
	}{
		{"a rule for every pod", false, nil, true},
		{"a rule by labels", true, nil, false},
		{"an exception to the rule", false, []*policy.Exception{excepting("p")}, false},
		{"an exception to another one", false, []*policy.Exception{excepting("q")}, true},
	} {
		in := whole(t)
		in.Policies = []*policy.Policy{{Kind: "ClusterPolicy", Name: "p", Rules: []policy.Rule{c.rule}, Targets: podTargets()}}
		in.Exceptions, in.Mirrors, in.Shadow = c.exceptions, NoMirrors, false
		made, err := Build(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range append(validating(made.Mutating.Webhooks), made.Validating.Webhooks...) {
			for _, rule := range w.Rules {
				if !slices.Contains(rule.Resources, "pods") || !slices.Contains(rule.Operations, admission.Update) {
					continue
				}
				if left := slices.ContainsFunc(w.MatchConditions, func(m admission.MatchCondition) bool { return m.Expression == specUnchanged }); left != c.left {
					t.Errorf("%s: %s leaves out updates of metadata %t, want %t", c.reason, w.Name, left, c.left)
				}
			}
		}
	}
}
