package gate_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/workload"
)

// renaming is a mutation that writes other images into a pod, by their prefix.
type renaming struct{ from, to string }

func (renaming) Name() string             { return "rename" }
func (renaming) Targets() []policy.Target { return nil }

func (r renaming) Mutate(_ context.Context, about policy.Case) policy.Mutated {
	found, err := about.Find(nil)
	if err != nil {
		return policy.Mutated{Result: policy.Indeterminate, Reasons: []policy.Reason{policy.LookReason(err, "")}}
	}
	object := about.Subject.Object.Map()
	for _, i := range found {
		object = policy.WithText(object, i.Pointer, func(text string) string { return strings.Replace(text, r.from, r.to, 1) })
	}
	return policy.Mutated{Result: policy.Pass, Object: object}
}

// requiring is a validation that requires a text in all images.
type requiring struct {
	text   string
	action policy.Action
	result policy.Result // of a failure
	seen   *[]string
}

func (requiring) Name() string             { return "want" }
func (requiring) Targets() []policy.Target { return nil }

func (w requiring) Validate(_ context.Context, about policy.Case) policy.Validated {
	found, err := about.Find(nil)
	if err != nil {
		return policy.Validated{Result: policy.Indeterminate, Reasons: []policy.Reason{policy.LookReason(err, "")}}
	}
	v := policy.Validated{Result: policy.Pass, Action: w.action}
	for _, i := range found {
		*w.seen = append(*w.seen, i.Ref.Written())
		if !strings.Contains(i.Ref.Written(), w.text) {
			v.Result = w.result
			v.Reasons = []policy.Reason{{Code: policy.Violated, Message: "want " + w.text}}
		}
	}
	return v
}

// TestOrder: mutation rules come before the images, which are proved by the names
// that will run, and validation rules see what will run.
func TestOrder(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app, bad := h.Build("copies/app", "v1", "app"), h.Build("copies/bad", "v1", "bad")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	elsewhere := func(name string) string { return strings.Replace(name, "copies/", "origin/", 1) }
	pinned := app.Name + "@" + app.Manifest.Digest
	for _, row := range []struct {
		reason   string
		stage    gate.Stage
		image    string
		want     string // of each image
		action   policy.Action
		failure  policy.Result
		answer   gate.Result
		final    string // what stands in the object at the end; empty for no patch
		seen     []string
		warnings int
	}{
		{"everything", gate.StageAll, elsewhere(app.Name), "@sha256", policy.Enforce, policy.Fail, gate.Allow, pinned, []string{pinned}, 0},
		{"the new name is verified", gate.StageAll, elsewhere(bad.Name), "", policy.Enforce, policy.Fail, gate.Deny, "", []string{bad.Name}, 0},
		{"a validation denies", gate.StageAll, elsewhere(app.Name), "nothing", policy.Enforce, policy.Fail, gate.Deny, "", []string{pinned}, 0},
		{"a validation could not be evaluated", gate.StageAll, elsewhere(app.Name), "nothing", policy.Enforce, policy.Indeterminate, gate.Error, "", []string{pinned}, 0},
		{"a validation audits", gate.StageAll, elsewhere(app.Name), "nothing", policy.Audit, policy.Fail, gate.Allow, pinned, []string{pinned}, 1},
		{"an unknown action denies", gate.StageAll, elsewhere(app.Name), "nothing", "Perhaps", policy.Fail, gate.Deny, "", []string{pinned}, 0},
		{"the mutating endpoint validates nothing", gate.StageMutate, elsewhere(app.Name), "nothing", policy.Enforce, policy.Fail, gate.Allow, pinned, nil, 0},
		{"and proves", gate.StageMutate, elsewhere(bad.Name), "", policy.Enforce, policy.Fail, gate.Deny, "", nil, 0},
		{"it leaves images alone where others pin", gate.StageMutateObject, elsewhere(bad.Name), "nothing", policy.Enforce, policy.Fail, gate.Allow, bad.Name, nil, 0},
		{"the validating endpoint changes nothing", gate.StageValidate, pinned, "@sha256", policy.Enforce, policy.Fail, gate.Allow, "", []string{pinned}, 0},
		{"and validates", gate.StageValidate, pinned, "nothing", policy.Enforce, policy.Fail, gate.Deny, "", []string{pinned}, 0},
	} {
		var seen []string
		g := h.gateWith(t, &policy.Policy{
			Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{signedBy(h.key)},
			ObjectRules: policy.ObjectRules{Mutations: []policy.Mutation{renaming{"origin/", "copies/"}}, Validations: []policy.Validation{requiring{row.want, row.action, row.failure, &seen}}},
		})
		request := pod(t, row.image)
		request.Stage = row.stage
		out := g.Decide(t.Context(), request)
		if out.Result != row.answer || !slices.Equal(seen, row.seen) || len(out.Warnings) != row.warnings {
			t.Errorf("%s: %s %v, validated %v, %d warnings", row.reason, out.Result, out.Reasons, seen, len(out.Warnings))
		}
		if final := lastValue(out.Patch); final != row.final {
			t.Errorf("%s: it became %q, want %q", row.reason, final, row.final)
		}
	}
}

// failing is a mutation that cannot be evaluated.
type failing struct{ setting }

func (failing) Mutate(context.Context, policy.Case) policy.Mutated {
	return policy.Mutated{Result: policy.Indeterminate, Reasons: []policy.Reason{{Code: policy.PolicyError, Message: "no requester"}}}
}

// TestResultsOfMutations: on request, a stage without mutations has their results. They change and
// decide nothing.
func TestResultsOfMutations(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"}}`
	h := newEnv(t, registrytest.Options{})
	for _, row := range []struct {
		reason  string
		rule    policy.Mutation
		wanted  bool
		results int
	}{
		{"not requested", setting{"/metadata/generateName", "x"}, false, 0},
		{"requested", setting{"/metadata/generateName", "x"}, true, 1},
		{"another object, which is not made", setting{"/kind", "Secret"}, true, 1},
		{"a rule that cannot be evaluated", failing{}, true, 0},
	} {
		g := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Hash: "1", ObjectRules: policy.ObjectRules{Mutations: []policy.Mutation{row.rule}}})
		request := gate.Request{Object: must(workload.Parse([]byte(object)))(t), Stage: gate.StageValidate, Mutations: row.wanted}
		out := g.Decide(t.Context(), request)
		if len(out.Rules) != row.results || !out.Result.Admits() || len(out.Patch) > 0 || !out.Changed.IsZero() || len(out.Reasons) > 0 {
			t.Errorf("%s: %s %+v %v", row.reason, out.Result, out.Rules, out.Reasons)
		}
	}
}

// annotating is a validation with an audit annotation.
type annotating struct{ requiring }

func (annotating) Validate(context.Context, policy.Case) policy.Validated {
	return policy.Validated{Result: policy.Pass, AuditAnnotations: map[string]string{"team": "payments"}}
}

// TestAuditAnnotationsOfObjects: the audit annotations of rules about objects are in the outcome, as those
// of rules about images are.
func TestAuditAnnotationsOfObjects(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	for _, row := range []struct {
		reason string
		rule   policy.Validation
		want   map[string]string
	}{
		{"an annotation", annotating{}, map[string]string{"Test/test/team": "payments"}},
		{"none", requiring{seen: new([]string)}, nil},
	} {
		g := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Hash: "1", ObjectRules: policy.ObjectRules{Validations: []policy.Validation{row.rule}}})
		request := gate.Request{Object: must(workload.Parse([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"}}`)))(t), Stage: gate.StageValidate}
		if out := g.Decide(t.Context(), request); !maps.Equal(out.AuditAnnotations, row.want) {
			t.Errorf("%s: %v, want %v", row.reason, out.AuditAnnotations, row.want)
		}
	}
}

func lastValue(operations []workload.Operation) string {
	if len(operations) == 0 {
		return ""
	}
	text, _ := operations[len(operations)-1].Value.(string)
	return text
}

// setting is a mutation that writes a text at a place.
type setting struct{ pointer, text string }

func (setting) Name() string             { return "set" }
func (setting) Targets() []policy.Target { return nil }

func (s setting) Mutate(_ context.Context, about policy.Case) policy.Mutated {
	object := about.Subject.Object.Map()
	meta, _ := object["metadata"].(map[string]any)
	changed := maps.Clone(object)
	if key, ok := strings.CutPrefix(s.pointer, "/metadata/"); ok {
		meta = maps.Clone(meta)
		meta[key] = s.text
		changed["metadata"] = meta
	} else {
		changed[strings.TrimPrefix(s.pointer, "/")] = s.text
	}
	return policy.Mutated{Result: policy.Pass, Object: changed}
}

// TestAnotherObject: a mutation rule that makes another object of it denies it, for rules were
// matched for the original object.
func TestAnotherObject(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"}}`
	const unnamed = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"settings-"}}`
	h := newEnv(t, registrytest.Options{})
	for _, row := range []struct {
		reason, object string
		rule           setting
		answer         gate.Result
	}{
		{"another kind", object, setting{"/kind", "Secret"}, gate.Deny},
		{"another version", object, setting{"/apiVersion", "v2"}, gate.Deny},
		{"another name", object, setting{"/metadata/name", "other"}, gate.Deny},
		{"another namespace", object, setting{"/metadata/namespace", "bank"}, gate.Deny},
		{"another namespace than the request's", unnamed, setting{"/metadata/namespace", "bank"}, gate.Deny},
		{"the request's namespace", unnamed, setting{"/metadata/namespace", "shop"}, gate.Allow},
		{"a name where there is none", unnamed, setting{"/metadata/name", "settings-a"}, gate.Allow},
		{"anything else", object, setting{"/metadata/generateName", "x"}, gate.Allow},
	} {
		g := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Hash: "1", ObjectRules: policy.ObjectRules{Mutations: []policy.Mutation{row.rule}}})
		request := gate.Request{Object: must(workload.Parse([]byte(row.object)))(t), Stage: gate.StageMutateObject, Subject: policy.Subject{Namespace: "shop"}}
		if out := g.Decide(t.Context(), request); out.Result != row.answer || (len(out.Patch) > 0) != (row.answer == gate.Allow) {
			t.Errorf("%s: %s %v %v", row.reason, out.Result, out.Reasons, out.Patch)
		}
	}
}

// TestOnlyImages: rules about objects are not asked where the object was made up.
func TestOnlyImages(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	for _, row := range []struct {
		reason  string
		request gate.Request
		answer  gate.Result
	}{
		{"an image", must(gate.ForImage(app.Name, "default"))(t), gate.Allow},
		{"images of an endpoint", must(gate.ForImages("default", "", []string{app.Name}))(t), gate.Allow},
		{"a pod", pod(t, app.Name), gate.Deny},
	} {
		var seen []string
		g := h.gateWith(t, &policy.Policy{
			Kind: "Test", Name: "test", Hash: "1", Rules: []policy.Rule{signedBy(h.key)},
			ObjectRules: policy.ObjectRules{Validations: []policy.Validation{requiring{"nothing", policy.Enforce, policy.Fail, &seen}}},
		})
		if out := g.Decide(t.Context(), row.request); out.Result != row.answer {
			t.Errorf("%s: %s %v", row.reason, out.Result, out.Reasons)
		}
	}
}

// forbidding is a validation that forbids deletions.
type forbidding struct{}

func (forbidding) Name() string             { return "stay" }
func (forbidding) Targets() []policy.Target { return nil }

func (forbidding) Validate(_ context.Context, about policy.Case) policy.Validated {
	labels, _ := about.Subject.OldObject.Map()["metadata"].(map[string]any)["labels"].(map[string]any)
	if about.Subject.Operation != "DELETE" || !about.Subject.Object.IsZero() || about.Subject.Kind != "ConfigMap" || !slices.Contains(slices.Collect(maps.Keys(labels)), "stay") {
		return policy.Validated{}
	}
	return policy.Validated{Result: policy.Fail, Action: policy.Enforce, Reasons: []policy.Reason{{Code: policy.Violated, Message: "it stays"}}}
}

// TestDeletion: a deletion has no object but the old one, and a rule may forbid it.
func TestDeletion(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	g := h.gateWith(t, &policy.Policy{Kind: "Test", Name: "test", Hash: "1", ObjectRules: policy.ObjectRules{Validations: []policy.Validation{forbidding{}}}})
	for label, answer := range map[string]gate.Result{"stay": gate.Deny, "go": gate.Unchecked} {
		old := must(workload.Parse([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b","labels":{"` + label + `":""}}}`)))(t)
		out := g.Decide(t.Context(), gate.Request{Old: old, Stage: gate.StageValidate, Subject: policy.Subject{
			Version: "v1", Kind: "ConfigMap", Namespace: "b", Name: "a", Operation: "DELETE",
		}})
		if out.Result != answer {
			t.Errorf("%s: %s %v", label, out.Result, out.Reasons)
		}
	}
}

// spending is a rule that takes all the time there is: in a wait for others, or for itself.
type spending struct {
	waits  bool
	reason policy.Reason
}

func (spending) Name() string                                  { return "spend" }
func (spending) Targets() []policy.Target                      { return nil }
func (spending) Extractors(*policy.Subject) []policy.Extractor { return nil }

func (s spending) spend(ctx context.Context) {
	if s.waits {
		defer waittime.Begin(ctx)()
	}
	<-ctx.Done()
}

func (s spending) Validate(ctx context.Context, _ policy.Case) policy.Validated {
	s.spend(ctx)
	return policy.Validated{Result: policy.Indeterminate, Action: policy.Enforce, Reasons: []policy.Reason{s.reason}}
}

func (s spending) Mutate(ctx context.Context, _ policy.Case) policy.Mutated {
	s.spend(ctx)
	return policy.Mutated{Result: policy.Indeterminate, Reasons: []policy.Reason{s.reason}}
}

func (s spending) Plan(ctx context.Context, _ *policy.Subject, _ []policy.Image) (policy.RulePlan, error) {
	s.spend(ctx)
	return policy.RulePlan{}, fmt.Errorf("the rule: %w", ctx.Err())
}

// TestTimeThatTheObjectTakesIsNoSilence: the cost of an object is chosen by its author, and a
// timeout because of it is no failure that failurePolicy Ignore admits.
func TestTimeThatTheObjectTakesIsNoSilence(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	late := policy.Reason{Code: policy.TimedOut, Message: "context deadline exceeded"}
	failed := policy.Reason{Code: policy.PolicyError, Message: "the client gave up"}
	for _, c := range []struct {
		reason string
		rule   spending
		want   gate.Result
		code   policy.Code
	}{
		{"others did not answer", spending{true, late}, gate.Allow, policy.TimedOut},
		{"others did not answer, in other words", spending{true, failed}, gate.Allow, policy.TimedOut},
		{"its own work took the time", spending{false, late}, gate.Error, policy.TooMuch},
		{"a fault after its own work", spending{false, failed}, gate.Error, policy.PolicyError},
		{"a bound after a wait", spending{true, policy.Reason{Code: policy.TooMuch, Message: "more than 20000 elements"}}, gate.Error, policy.TooMuch},
		{"a defect after a wait", spending{true, policy.Reason{Code: policy.Internal, Message: "a panic"}}, gate.Error, policy.Internal},
	} {
		for where, p := range map[string]*policy.Policy{
			"validation": {ObjectRules: policy.ObjectRules{Validations: []policy.Validation{c.rule}}},
			"mutation":   {ObjectRules: policy.ObjectRules{Mutations: []policy.Mutation{c.rule}}},
		} {
			p.Kind, p.Name, p.Hash, p.FailOpen = "Test", "test", "1", true
			out := h.gateWith(t, p, gate.WithTimeout(50*time.Millisecond)).Decide(t.Context(), pod(t))
			said := append(slices.Clone(out.Reasons), out.Warnings...)
			if out.Result != c.want || len(said) != 1 || said[0].Code != c.code {
				t.Errorf("%s, %s: %s %+v", c.reason, where, out.Result, said)
			}
		}
	}
	for waits, want := range map[bool]gate.Result{true: gate.Allow, false: gate.Error} {
		p := &policy.Policy{Kind: "Test", Name: "test", Hash: "1", Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{spending{waits: waits}}}
		if out := h.gateWith(t, p, gate.WithTimeout(50*time.Millisecond)).Decide(t.Context(), pod(t, h.Registry.Host()+"/app:1")); out.Result != want {
			t.Errorf("a rule about images that waits (%t): %s %+v", waits, out.Result, out.Reasons)
		}
	}
}
