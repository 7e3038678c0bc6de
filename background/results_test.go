package background_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate"
)

// reported has the last result of each rule for each object, as reports have it.
type reported struct {
	mu    sync.Mutex
	lines map[string]policy.RuleResult
}

func (r *reported) Report(_ context.Context, about *policy.Subject, results []policy.RuleResult) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lines == nil {
		r.lines = map[string]policy.RuleResult{}
	}
	for _, one := range results {
		r.lines[about.Kind+" "+about.Name+" "+one.Rule] = one
	}
}

// all are the results in order, as "kind name rule: result".
func (r *reported) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for line, one := range r.lines {
		status := string(one.Ruling.Result)
		switch {
		case one.Err != nil:
			status = "error"
		case one.Skip != "":
			status = "skip"
		}
		list = append(list, line+": "+status)
	}
	slices.Sort(list)
	return list
}

func (r *reported) of(line string) policy.RuleResult {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines[line]
}

func (b *bench) want(reason string, want ...string) {
	b.t.Helper()
	if got := b.reports.all(); !slices.Equal(got, want) {
		b.t.Errorf("%s: reported %q, want %q", reason, got, want)
	}
}

// TestResultsOfGenerate: the results of a generate rule are about its trigger.
func TestResultsOfGenerate(t *testing.T) {
	const line = "Namespace team deny"
	conditional := strings.Replace(denyRule, "generate:", "preconditions: {all: [{key: '{{request.object.metadata.name}}', operator: NotEquals, value: team}]}\ngenerate:", 1)
	unresolved := strings.Replace(denyRule, "{podSelector: {}}", "{podSelector: '{{request.object.spec.nowhere}}'}", 1)
	for name, test := range map[string]struct {
		rule string
		do   func(b *bench)
		want []string
	}{
		"its objects were made":              {denyRule, func(b *bench) { b.namespace("team", "") }, []string{line + ": pass"}},
		"its conditions exclude the trigger": {conditional, func(b *bench) { b.namespace("team", "") }, []string{line + ": skip"}},
		"it cannot be evaluated":             {unresolved, func(b *bench) { b.namespace("team", "") }, []string{line + ": error"}},
		"the requester is unknown":           {ownerRule, func(b *bench) { b.namespace("team", "") }, []string{"Namespace team owner: error"}},
		"it does not match":                  {strings.Replace(denyRule, "[Namespace]", "[ConfigMap]", 1), func(b *bench) { b.namespace("team", "") }, nil},
		"the namespace is excluded":          {denyRule, func(b *bench) { b.namespace("kube-system", "") }, nil},
		"its objects cannot be made":         {denyRule, func(b *bench) { b.server.forbid("networkpolicies", true); b.namespace("team", "") }, []string{line + ": error"}},
		"a user edits an object: it is restored": {denyRule, func(b *bench) {
			b.namespace("team", "")
			b.after(time.Second)
			b.server.userEdits(deny, func(o map[string]any) { o["spec"].(map[string]any)["ingress"] = []any{map[string]any{}} })
		}, []string{line + ": pass"}},
		"a user edits an object that cannot be restored": {denyRule, func(b *bench) {
			b.namespace("team", "")
			b.after(time.Second)
			b.server.forbid("networkpolicies", true)
			b.server.userEdits(deny, func(o map[string]any) { o["spec"].(map[string]any)["ingress"] = []any{map[string]any{}} })
		}, []string{line + ": error"}},
		"they can be made later": {denyRule, func(b *bench) {
			b.server.forbid("networkpolicies", true)
			b.namespace("team", "")
			b.after(time.Minute)
			b.server.forbid("networkpolicies", false)
			b.after(10 * time.Minute)
		}, []string{line + ": pass"}},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.policies(b.compile("p", test.rule, generate.Settings{}))
				b.lead()
				test.do(b)
				b.after(time.Minute)
				b.want(name, test.want...)
			})
		})
	}
	in(t, func(b *bench) {
		b.namespace("before", "")
		b.after(time.Hour)
		b.policies(b.compile("deny", denyRule, generate.Settings{}))
		b.lead()
		b.after(time.Minute)
		b.want("a trigger that is older than the rule")
		b.namespace("team", "")
		b.after(time.Minute)
		made := b.reports.of(line)
		if got, want := made.Properties["generated-resources"], "networking.k8s.io/v1, Kind=NetworkPolicy Name=default-deny Namespace=team"; got != want {
			t.Errorf("made are %q, want %q", got, want)
		}
		b.resign()
		b.lead()
		b.after(time.Minute)
		if again := b.reports.of(line); fmt.Sprint(again.Properties, again.Ruling) != fmt.Sprint(made.Properties, made.Ruling) {
			t.Errorf("after a restart: %+v, want the same as before: %+v", again, made)
		}
	})
}

// TestResultsOfAlter: the results of a mutate-existing rule are about its targets, and about the
// trigger, which has those that are of no target.
func TestResultsOfAlter(t *testing.T) {
	const scaled = `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: %s, namespace: shop, annotations: {central: "%s"}}, spec: {triggers: [{type: prometheus, metadata: {serverAddress: old}}]}}`
	const own, asks, other = "ConfigMap metrics-address address", "ScaledObject asks address", "ScaledObject does-not address"
	unresolved := strings.Replace(addressRule, "request.object.data.main", "request.object.data.nowhere", 1)
	for name, test := range map[string]struct {
		rule string
		do   func(b *bench)
		want []string
	}{
		"targets are changed, or excluded": {addressRule, func(*bench) {}, []string{own + ": pass", asks + ": pass", other + ": skip"}},
		"a target cannot be changed": {addressRule, func(b *bench) { b.server.forbid("scaledobjects", true) },
			[]string{own + ": error", asks + ": error", other + ": skip"}},
		"the rule cannot be evaluated for a target": {unresolved, func(*bench) {}, []string{own + ": error", asks + ": error", other + ": skip"}},
		"a target changes meanwhile":                {addressRule, func(b *bench) { b.server.conflicts = 5 }, []string{own + ": pass", asks + ": pass", other + ": skip"}},
		"it does not match":                         {strings.ReplaceAll(addressRule, "metrics-address", "another"), func(*bench) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.server.userPuts(b.object(fmt.Sprintf(scaled, "asks", "true")))
				b.server.userPuts(b.object(fmt.Sprintf(scaled, "does-not", "false")))
				b.policies(b.compile("address", test.rule, generate.Settings{}))
				b.lead()
				test.do(b)
				b.server.userPuts(b.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: metrics-address, namespace: observability}, data: {main: one}}"))
				b.after(time.Minute)
				b.want(name, test.want...)
			})
		})
	}
}
