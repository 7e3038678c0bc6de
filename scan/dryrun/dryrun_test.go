package dryrun_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/scan/dryrun"
	"github.com/quaymaster/quaymaster/workload"
)

// labelled wants objects to have a label.
func labelled(name, label string) string {
	return `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: ` + name + `}
spec:
  validationFailureAction: Enforce
  rules:
  - name: label
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: want the label ` + label + `
      pattern: {metadata: {labels: {` + label + `: "?*"}}}
`
}

// object is a pod, or with more text another state of it.
func object(t testing.TB, name, labels, more string) workload.Object {
	t.Helper()
	made, err := workload.Parse([]byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":%q,"labels":{%s}%s},"spec":{"containers":[{"name":"c","image":"registry.example/a:1"}]}`, name, labels, ``) + more + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// ofDeployment is a pod of a ReplicaSet of a Deployment.
func ofDeployment(t testing.TB, name string) workload.Object {
	t.Helper()
	made, err := workload.Parse([]byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"shop","name":%q,"labels":{"pod-template-hash":"5d4"},
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-5d4","uid":"u","controller":true}]},"spec":{"containers":[{"name":"c","image":"registry.example/a:1"}]}}`, name)))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

type namespaces struct{}

func (namespaces) Labels(context.Context, string) (map[string]string, error) {
	return map[string]string{}, nil
}

// room is where policies are tried: a gate over objects of files.
type room struct {
	env   *gatetest.Env
	state gate.Fixed
	trier *dryrun.Runner
}

// newRoom refuses nothing; wrap may stand before the gate.
func newRoom(t testing.TB, objects []workload.Object, wrap func(scan.Decider) scan.Decider) *room {
	t.Helper()
	env, err := gatetest.NewEnv()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(env.Close)
	empty, err := set.New()
	if err != nil {
		t.Fatal(err)
	}
	r := &room{env: env, state: gate.Fixed{Policies: empty, Prover: env.Prover}}
	r.trier, err = dryrun.New(dryrun.Options{
		Cluster: scan.NewFiles(objects, constraint.Known()), Namespaces: namespaces{}, State: r.state, Excluded: []string{"kube-*"},
		Decider: func(state gate.State) (scan.Decider, func(), error) {
			made, err := gate.New(gate.Config{Registries: env, State: state})
			if err != nil || wrap == nil {
				return made, func() {}, err
			}
			return wrap(made), func() {}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *room) policy(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := r.env.Policy(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (r *room) try(t testing.TB, p *policy.Policy, before ...*policy.Policy) dryrun.Result {
	t.Helper()
	found, err := r.trier.Run(t.Context(), []*policy.Policy{p}, before, 0)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func names(list []dryrun.Found) string {
	var out []string
	for _, f := range list {
		out = append(out, f.Kind+"/"+f.Name)
	}
	return strings.Join(out, " ")
}

// TestTry: objects that a policy would stop are reported by workload; ended and excluded ones, and
// those that the previous version stops as well, are not.
func TestTry(t *testing.T) {
	other, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"kube-system","name":"dns"},"spec":{"containers":[{"name":"c","image":"a"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	r := newRoom(t, []workload.Object{
		object(t, "good", `"team":"a","tier":"b"`, ""), object(t, "half", `"tier":"b"`, ""), object(t, "bare", ``, ""),
		ofDeployment(t, "web-5d4-x"), ofDeployment(t, "web-5d4-y"), object(t, "over", ``, `,"status":{"phase":"Succeeded"}`), other,
	}, nil)
	team, tier := r.policy(t, labelled("labels", "team")), r.policy(t, labelled("labels", "tier"))
	audited := policy.Audited(team, "somebody")
	for _, c := range []struct {
		reason string
		p      *policy.Policy
		before []*policy.Policy
		want   string
		of     int
	}{
		{"a new policy", team, nil, "Deployment/web Pod/bare Pod/half", 4},
		{"a version before that stops the same", team, []*policy.Policy{team}, "", 4},
		{"one before that stops others", team, []*policy.Policy{tier}, "Pod/half", 4},
		{"one before that only audited", team, []*policy.Policy{audited}, "Deployment/web Pod/bare Pod/half", 4},
		{"it only audits", audited, nil, "", 4},
	} {
		found := r.try(t, c.p, c.before...)
		if names(found.Stopped) != c.want || found.StoppedCount != len(found.Stopped) || found.Workloads != c.of || !found.Whole || found.Certain() != (c.want == "") {
			t.Errorf("%s: %s, %+v", c.reason, names(found.Stopped), found)
		}
	}
	found := r.try(t, team)
	if line := found.Stopped[0].String(); !strings.HasPrefix(line, "Deployment shop/web: [") || !strings.Contains(line, "want the label team") {
		t.Errorf("the line is %q", line)
	}
	if found.Summary() != "it would stop 3 of 4 workloads" {
		t.Errorf("the summary is %q", found.Summary())
	}
}

// TestTryBroken: a broken policy stops all objects that it matches, and is not retried.
func TestTryBroken(t *testing.T) {
	r := newRoom(t, []workload.Object{object(t, "a", `"team":"a"`, "")}, nil)
	p := *r.policy(t, labelled("labels", "team"))
	p.Broken, p.Validations = errors.New("a typo"), []policy.Validation{cannot{p.Validations[0]}}
	if found := r.try(t, &p); found.StoppedCount != 1 || found.UnlookedCount != 0 {
		t.Errorf("%+v", found)
	}
}

// cannot is a rule that cannot be evaluated.
type cannot struct{ policy.Validation }

func (cannot) Validate(context.Context, policy.Case) policy.Validated {
	return policy.Validated{Result: policy.Indeterminate, Reasons: []policy.Reason{{Code: policy.PolicyError, Message: "a typo"}}}
}

// TestTryUnscanned: a policy that depends on the requester has no result.
func TestTryUnscanned(t *testing.T) {
	r := newRoom(t, []workload.Object{object(t, "a", "", "")}, nil)
	p := *r.policy(t, labelled("labels", "team"))
	p.Unscanned = "it asks for the requester"
	if found := r.try(t, &p); !found.Whole || found.StoppedCount != 0 || !strings.Contains(found.Summary(), "it asks for the requester") {
		t.Errorf("%+v", found)
	}
}

// saying is a decider that derives each object's result from its name.
type saying struct {
	scan.Decider
	after func() // each page
}

func (s saying) DecideAll(ctx context.Context, requests []gate.Request, _ func(int, int)) []gate.Outcome {
	outcomes := s.Decider.DecideAll(ctx, requests, nil)
	for i, r := range requests {
		switch name := r.Object.Name(); {
		case strings.HasPrefix(name, "silent"):
			outcomes[i].Result, outcomes[i].Reasons = gate.Error, []policy.Reason{{Code: policy.Unavailable, Message: "no response"}}
		case strings.HasPrefix(name, "denied"):
			outcomes[i].Result, outcomes[i].Reasons = gate.Deny, []policy.Reason{{Code: policy.Unsigned, Message: "no signature"}}
		}
	}
	if s.after != nil {
		s.after()
	}
	return outcomes
}

// TestTryUnlooked: objects that could not be verified are reported apart; they do not prevent the
// policy from being in force, but make the result uncertain.
func TestTryUnlooked(t *testing.T) {
	r := newRoom(t, []workload.Object{object(t, "silent", `"team":"a"`, ""), object(t, "good", `"team":"a"`, "")}, func(d scan.Decider) scan.Decider { return saying{Decider: d} })
	found := r.try(t, r.policy(t, labelled("labels", "team")))
	if found.StoppedCount != 0 || names(found.Unlooked) != "Pod/silent" || found.Certain() || !found.Whole ||
		found.Summary() != "it would stop 0 of 2 workloads; 1 could not be verified" {
		t.Errorf("%+v: %s", found, found.Summary())
	}
}

// TestTryWithin: the result of a policy of a namespace reveals no objects of other namespaces, nor
// their number, nor those that could not be verified.
func TestTryWithin(t *testing.T) {
	elsewhere := func(name string) workload.Object {
		made, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"bank","name":"` + name + `"},"spec":{"containers":[{"name":"c","image":"registry.example/secret:1"}]}}`))
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	r := newRoom(t, []workload.Object{object(t, "bare", ``, ""), object(t, "silent", `"team":"a"`, ""), elsewhere("silent"), elsewhere("vault")},
		func(d scan.Decider) scan.Decider { return saying{Decider: d} })
	everywhere := labelled("labels", "team")
	own := strings.NewReplacer("ClusterPolicy", "Policy", "{name: labels}", "{name: labels, namespace: shop}").Replace(everywhere)
	for _, c := range []struct{ reason, text, stopped, unlooked, summary string }{
		{"of the cluster", everywhere, "Pod/vault Pod/bare", "Pod/silent Pod/silent", "it would stop 2 of 4 workloads; 2 could not be verified"},
		{"of a namespace", own, "Pod/bare", "Pod/silent", "it would stop 1 of 2 workloads; 1 could not be verified"},
	} {
		found := r.try(t, r.policy(t, c.text))
		if names(found.Stopped) != c.stopped || names(found.Unlooked) != c.unlooked || found.Summary() != c.summary {
			t.Errorf("%s: %s, %s: %s", c.reason, names(found.Stopped), names(found.Unlooked), found.Summary())
		}
		for _, f := range found.Unlooked {
			if c.text == own && f.Namespace != "shop" {
				t.Errorf("%s: %s", c.reason, f)
			}
		}
	}
}

// TestTryIsBounded: a trial ends with its objects and its time, reports its findings until then,
// and is not marked as complete.
func TestTryIsBounded(t *testing.T) {
	var objects []workload.Object
	for i := range 3 * scan.PageSize {
		objects = append(objects, object(t, fmt.Sprintf("p%04d", i), "", ""))
	}
	p := func(r *room) []*policy.Policy { return []*policy.Policy{r.policy(t, labelled("labels", "team"))} }
	r := newRoom(t, objects, nil)
	found, err := r.trier.Run(t.Context(), p(r), nil, 300)
	if err != nil || found.Whole || found.StoppedCount != 2*scan.PageSize || len(found.Stopped) != dryrun.MaxFound || !strings.Contains(found.Summary(), "at least 500 of the 500") {
		t.Errorf("objects: %v, %s", err, found.Summary())
	}
	ctx, cancel := context.WithCancel(t.Context())
	r = newRoom(t, objects, func(d scan.Decider) scan.Decider { return saying{d, cancel} })
	found, err = r.trier.Run(ctx, p(r), nil, 0)
	if err != nil || found.Whole || found.Certain() || found.Workloads > scan.PageSize {
		t.Errorf("time: %v, %+v", err, found.Summary())
	}
	over, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	found, err = r.trier.Run(over, p(r), nil, 0)
	if err != nil || found.Whole || found.Certain() {
		t.Errorf("no time at all: %v, %+v", err, found)
	}
}

func TestNewRefuses(t *testing.T) {
	r := newRoom(t, nil, nil)
	good := dryrun.Options{Cluster: scan.NewFiles(nil, nil), Namespaces: namespaces{}, State: r.state, Decider: func(gate.State) (scan.Decider, func(), error) { return nil, nil, nil }}
	if _, err := dryrun.New(good); err != nil {
		t.Fatal(err)
	}
	for _, without := range []func(*dryrun.Options){
		func(o *dryrun.Options) { o.Cluster = nil }, func(o *dryrun.Options) { o.Namespaces = nil },
		func(o *dryrun.Options) { o.State = nil }, func(o *dryrun.Options) { o.Decider = nil },
	} {
		o := good
		without(&o)
		if func() bool { _, err := dryrun.New(o); return err == nil }() {
			t.Error("accepted")
		}
	}
	failed := errors.New("no gate")
	good.Decider = func(gate.State) (scan.Decider, func(), error) { return nil, nil, failed }
	made, err := dryrun.New(good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := made.Run(t.Context(), nil, nil, 0); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}
