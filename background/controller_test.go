package background_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/set"
)

// bench is a cluster with policies, and its leader.
type bench struct {
	t        *testing.T
	engine   *jmespath.Engine
	server   *server
	keeper   *record.Keeper
	mu       sync.Mutex
	set      *set.Set
	gone     map[string]bool
	changed  chan struct{}
	saved    background.Progress
	told     []background.Work
	failures []error
	reports  reported
	stop     func()
}

func newBench(t *testing.T) *bench {
	t.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := record.New(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, engine: engine, server: newServer(engine), keeper: keeper, gone: map[string]bool{}, changed: make(chan struct{})}
}

func (b *bench) Policies() *set.Set {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.set
}

func (b *bench) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func (b *bench) Gone(_ context.Context, id string) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if gone, known := b.gone[id]; known {
		return gone, nil
	}
	return false, errors.New("the API server does not answer")
}

// Labels has a namespace be labelled with its name.
func (b *bench) Labels(_ context.Context, name string) (map[string]string, error) {
	return map[string]string{"called": name}, nil
}

func (b *bench) Load(context.Context) (background.Progress, error) { return b.saved, nil }

func (b *bench) Save(_ context.Context, p background.Progress) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved = p
	return nil
}

func (b *bench) Worked(w background.Work) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = append(b.told, w)
}

func (b *bench) Failed(err error) {
	b.t.Logf("failed: %v", err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = append(b.failures, err)
}

// missed reports whether deletions were reported as missed.
func (b *bench) missed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.failures, func(err error) bool { return strings.Contains(err.Error(), "may have been missed") })
}

// policies makes these the policies in force.
func (b *bench) policies(list ...*policy.Policy) {
	b.t.Helper()
	set, err := set.New(list...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set = set
	close(b.changed)
	b.changed = make(chan struct{})
}

// lead begins to lead; resign ends that.
func (b *bench) lead() {
	b.t.Helper()
	c, err := background.New(background.Options{
		Cluster: b.server, Sources: b.server, Policies: b, Namespaces: b, Records: b.keeper, Memory: b, Observer: b, Reports: &b.reports, Excluded: []string{"kube-system"},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	b.stop = func() { cancel(); <-done }
	synctest.Wait()
}

func (b *bench) resign() { b.stop() }

// after lets time go by, and waits for the resulting work.
func (b *bench) after(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // of the bubble: no time goes by
	synctest.Wait()
}

// failedWith reports whether a reported error contains a text.
func (b *bench) failedWith(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.told {
		if w.Err != nil && strings.Contains(w.Err.Error(), text) {
			return true
		}
	}
	return false
}

func (b *bench) tellings() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.told)
}

// compile makes a policy of a rule.
func (b *bench) compile(name, text string, s generate.Settings) *policy.Policy {
	b.t.Helper()
	var w struct {
		Name     string          `json:"name"`
		Match    match.Document  `json:"match"`
		Exclude  *match.Document `json:"exclude"`
		Generate any             `json:"generate"`
		Mutate   any             `json:"mutate"`
		Conds    any             `json:"preconditions"`
		Skip     bool            `json:"skipBackgroundRequests"`
	}
	if err := yaml.UnmarshalStrict([]byte(text), &w); err != nil {
		b.t.Fatal(err)
	}
	p := &policy.Policy{Kind: "ClusterPolicy", Name: name, Source: "test", Hash: fmt.Sprintf("%x", text), Created: time.Now()}
	r := generate.Rule{Name: w.Name, Path: "spec.rules[0]", Match: w.Match, Exclude: w.Exclude, Preconditions: w.Conds, SkipGenerated: w.Skip}
	o := rulecontext.Options{Engine: b.engine}
	if w.Mutate != nil {
		a, err := generate.CompileTargets(o, s, r, w.Mutate)
		if err != nil {
			b.t.Fatal(err)
		}
		p.Alterations = append(p.Alterations, a)
		return p
	}
	g, err := generate.CompileGenerate(o, s, r, w.Generate)
	if err != nil {
		b.t.Fatal(err)
	}
	p.Generations = append(p.Generations, g)
	return p
}

func (b *bench) object(text string) map[string]any {
	b.t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		b.t.Fatal(err)
	}
	return copied(object)
}

// namespace makes a Namespace, as the mutating endpoint lets one in that a user makes;
// without a user there is no record.
func (b *bench) namespace(name, user string) {
	b.t.Helper()
	object := b.object("{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}")
	if user != "" {
		value, err := b.keeper.Requester(object, policy.User{Name: user, RolesKnown: true}, time.Now())
		if err != nil {
			b.t.Fatal(err)
		}
		metadata(object)["annotations"] = map[string]any{record.RequesterAnnotation: value}
	}
	b.server.userPuts(object)
}

const denyRule = `
name: deny
match: {any: [{resources: {kinds: [Namespace]}}]}
generate:
  apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  name: default-deny
  namespace: "{{request.object.metadata.name}}"
  synchronize: true
  data: {spec: {podSelector: {}}}
`

const (
	deny  = "networkpolicies/team/default-deny"
	owner = "rolebindings/team/alice-owns"
)

const ownerRule = `
name: owner
match: {any: [{resources: {kinds: [Namespace]}}]}
exclude: {any: [{clusterRoles: [cluster-admin]}]}
generate:
  apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  name: "{{request.userInfo.username}}-owns"
  namespace: "{{request.object.metadata.name}}"
  synchronize: true
  data:
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
    subjects: [{kind: User, name: "{{request.userInfo.username}}"}]
`

// in runs a test in a bubble, where time goes by only when nothing is to be done.
func in(t *testing.T, test func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		test(b)
		if b.stop != nil {
			b.stop()
		}
		synctest.Wait()
	})
}

func (b *bench) wantThere(key string) map[string]any {
	b.t.Helper()
	object := b.server.object(key)
	if object == nil {
		b.t.Fatalf("%s is not there", key)
	}
	return object
}

func (b *bench) wantGone(key string) {
	b.t.Helper()
	if b.server.object(key) != nil {
		b.t.Fatalf("%s is there", key)
	}
}

func TestMadeWhenTheTriggerComes(t *testing.T) {
	in(t, func(b *bench) {
		b.policies(b.compile("deny", denyRule, generate.Settings{}))
		b.lead()
		b.namespace("team", "")
		synctest.Wait()
		made := b.wantThere(deny)
		labels := metadata(made)["labels"].(map[string]any)
		for name, want := range map[string]string{
			"app.kubernetes.io/managed-by": "quaymaster", "quaymaster.dev/generated": "true",
			"generate.kyverno.io/policy-name": "deny", "generate.kyverno.io/policy-namespace": "", "generate.kyverno.io/rule-name": "deny",
			"generate.kyverno.io/trigger-kind": "Namespace", "generate.kyverno.io/trigger-version": "v1", "generate.kyverno.io/trigger-uid": "uid-1",
		} {
			if labels[name] != want {
				t.Errorf("label %s is %v, want %q", name, labels[name], want)
			}
		}
		if times, _ := b.server.written(deny); times != 1 {
			t.Errorf("written %d times", times)
		}
	})
}

func TestTriggersBeforeTheirRule(t *testing.T) {
	for name, test := range map[string]struct {
		existing bool
		want     bool
	}{
		"do not count":            {false, false},
		"count with the setting ": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.namespace("team", "")
				b.after(time.Hour)
				b.policies(b.compile("deny", denyRule, generate.Settings{Existing: test.existing}))
				b.lead()
				b.after(time.Minute)
				if got := b.server.object(deny) != nil; got != test.want {
					t.Errorf("there: %v", got)
				}
			})
		})
	}
}

func TestKeptAsTheRuleRequires(t *testing.T) {
	for name, test := range map[string]struct {
		rule string
		do   func(b *bench)
		want bool // that it is as the rule requires afterwards
	}{
		"an edit is put back": {denyRule, func(b *bench) {
			b.server.userEdits(deny, func(o map[string]any) { o["spec"].(map[string]any)["ingress"] = []any{map[string]any{}} })
		}, true},
		"a deletion is put back": {denyRule, func(b *bench) { b.server.userDeletes(deny) }, true},
		"a label that goes is put back": {denyRule, func(b *bench) {
			b.server.userEdits(deny, func(o map[string]any) { delete(metadata(o), "labels"); o["spec"] = map[string]any{} })
		}, true},
		"a record that goes is put back": {denyRule, func(b *bench) {
			b.server.userEdits(deny, func(o map[string]any) { delete(metadata(o), "annotations"); o["spec"] = map[string]any{} })
		}, true},
		"an edit stays, without the word":  {strings.ReplaceAll(denyRule, "synchronize: true", "synchronize: false"), func(b *bench) { b.server.userEdits(deny, func(o map[string]any) { o["spec"] = map[string]any{} }) }, false},
		"a deletion stays, without it":     {strings.ReplaceAll(denyRule, "synchronize: true", "synchronize: false"), func(b *bench) { b.server.userDeletes(deny) }, false},
		"a deletion is put back, if asked": {strings.ReplaceAll(denyRule, "synchronize: true", "synchronize: true\n  orphanDownstreamOnPolicyDelete: true"), func(b *bench) { b.server.userDeletes(deny) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.policies(b.compile("deny", test.rule, generate.Settings{}))
				b.lead()
				b.namespace("team", "")
				synctest.Wait()
				want := fmt.Sprint(b.wantThere(deny)["spec"])
				test.do(b)
				b.after(time.Second)
				if got := b.server.object(deny); (got != nil && fmt.Sprint(got["spec"]) == want) != test.want {
					t.Errorf("it is %v", got)
				}
			})
		})
	}
}

// The next leader reverts changes of users that were made without a leader.
func TestPutRightAfterARestart(t *testing.T) {
	for name, test := range map[string]struct {
		while func(b *bench)
		want  bool
	}{
		"a trigger that came": {func(b *bench) {
			b.server.userDeletes("namespaces//team")
			b.server.userDeletes(deny)
			b.namespace("team", "")
		}, true},
		"an edit": {func(b *bench) {
			b.server.userEdits(deny, func(o map[string]any) { o["spec"] = map[string]any{"podSelector": "other"} })
		}, true},
		"a deletion":                   {func(b *bench) { b.server.userDeletes(deny) }, true},
		"a trigger that went":          {func(b *bench) { b.server.userDeletes("namespaces//team") }, false},
		"a policy that went":           {func(b *bench) { b.policies(); b.gone["ClusterPolicy/deny"] = true }, false},
		"a policy that may be there":   {func(b *bench) { b.policies() }, true},
		"a policy that is there still": {func(b *bench) { b.policies(); b.gone["ClusterPolicy/deny"] = false }, true},
		"nothing":                      {func(*bench) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.policies(b.compile("deny", denyRule, generate.Settings{}))
				b.lead()
				b.namespace("team", "")
				b.after(time.Hour)
				b.wantThere(deny)
				b.resign()
				before, _ := b.server.written(deny)
				test.while(b)
				b.lead()
				b.after(time.Minute)
				got := b.server.object(deny)
				if right := got != nil && strings.Contains(fmt.Sprint(got["spec"]), "podSelector:map[]"); right != test.want {
					t.Errorf("it is %v", got)
				}
				if after, _ := b.server.written(deny); name == "nothing" && after != before {
					t.Errorf("written %d times more, though nothing had changed", after-before)
				}
			})
		})
	}
}

func TestGoesWithTriggerAndPolicy(t *testing.T) {
	orphan := strings.ReplaceAll(denyRule, "synchronize: true", "synchronize: true\n  orphanDownstreamOnPolicyDelete: true")
	once := strings.ReplaceAll(denyRule, "synchronize: true", "synchronize: false")
	labelled := strings.ReplaceAll(denyRule, "kinds: [Namespace]", "kinds: [Namespace], selector: {matchExpressions: [{key: open, operator: DoesNotExist}]}")
	for name, test := range map[string]struct {
		rule string
		do   func(b *bench)
		want bool // that it stays
	}{
		"the trigger goes":                               {denyRule, func(b *bench) { b.server.userDeletes("namespaces//team") }, false},
		"the trigger goes, of an orphaning rule":         {orphan, func(b *bench) { b.server.userDeletes("namespaces//team") }, false},
		"the trigger goes, of a rule that makes it once": {once, func(b *bench) { b.server.userDeletes("namespaces//team") }, true},
		"the policy goes":                                {denyRule, func(b *bench) { b.gone["ClusterPolicy/deny"] = true; b.policies() }, false},
		"the policy goes, of an orphaning rule":          {orphan, func(b *bench) { b.gone["ClusterPolicy/deny"] = true; b.policies() }, true},
		"the policy goes, of a rule that makes it once":  {once, func(b *bench) { b.gone["ClusterPolicy/deny"] = true; b.policies() }, true},
		"the policy goes, as far as is known":            {denyRule, func(b *bench) { b.policies() }, true},
		"the policy breaks": {denyRule, func(b *bench) {
			b.policies(&policy.Policy{Kind: "ClusterPolicy", Name: "deny", Source: "test", Problems: policy.Problems{Broken: errors.New("a field is unknown")}})
		}, true},
		"the rule goes": {denyRule, func(b *bench) {
			b.policies(&policy.Policy{Kind: "ClusterPolicy", Name: "deny", Source: "test", Hash: "other"})
		}, false},
		"the trigger does not match any more": {labelled, func(b *bench) {
			b.server.userEdits("namespaces//team", func(o map[string]any) { metadata(o)["labels"] = map[string]any{"open": "yes"} })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.policies(b.compile("deny", test.rule, generate.Settings{}))
				b.lead()
				b.namespace("team", "")
				b.after(time.Minute)
				b.wantThere(deny)
				test.do(b)
				b.after(time.Minute)
				if got := b.server.object(deny) != nil; got != test.want {
					t.Errorf("there: %v", got)
				}
			})
		})
	}
}

func TestAChangedPolicyUpdatesObjects(t *testing.T) {
	in(t, func(b *bench) {
		p := b.compile("deny", denyRule, generate.Settings{})
		b.policies(p)
		b.lead()
		b.namespace("team", "")
		b.after(time.Minute)
		changed := b.compile("deny", strings.ReplaceAll(denyRule, "podSelector: {}", "podSelector: {}, policyTypes: [Egress]"), generate.Settings{})
		changed.Created = p.Created
		b.policies(changed)
		b.after(time.Minute)
		if got := fmt.Sprint(b.wantThere(deny)["spec"]); !strings.Contains(got, "Egress") {
			t.Errorf("it is %s", got)
		}
	})
}

func TestTheRequester(t *testing.T) {
	for name, test := range map[string]struct {
		user   string
		forged bool
		want   bool
	}{
		"gets their object":       {"alice", false, true},
		"is not guessed":          {"", false, false},
		"is not taken from users": {"alice", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.policies(b.compile("owner", ownerRule, generate.Settings{}))
				b.lead()
				if test.forged {
					b.server.userPuts(b.object(`{apiVersion: v1, kind: Namespace, metadata: {name: team, annotations: {quaymaster.dev/requester: '{"username":"alice","bound":{}}'}}}`))
				} else {
					b.namespace("team", test.user)
				}
				b.after(time.Minute)
				if got := b.server.object(owner) != nil; got != test.want {
					t.Errorf("there: %v", got)
				}
				if !test.want && !b.failedWith("which is not recorded") {
					t.Error("the reason is not reported")
				}
				told := b.tellings()
				b.after(time.Hour)
				if again := b.tellings(); again != told {
					t.Errorf("it was tried %d times more", again-told)
				}
			})
		})
	}
}

func TestForbiddenThenAllowed(t *testing.T) {
	in(t, func(b *bench) {
		b.server.forbid("networkpolicies", true)
		b.policies(b.compile("deny", denyRule, generate.Settings{}))
		b.lead()
		b.namespace("team", "")
		b.after(time.Hour)
		b.wantGone(deny)
		if !b.failedWith("forbidden") {
			t.Error("the failure is not reported")
		}
		if _, requests := b.server.written(deny); requests < 3 || requests > 30 {
			t.Errorf("%d tries in an hour", requests)
		}
		b.server.forbid("networkpolicies", false)
		b.after(6 * time.Minute)
		b.wantThere(deny)
	})
}

// Work that failed before a restart is done after it.
func TestForbiddenUntilARestart(t *testing.T) {
	in(t, func(b *bench) {
		once := b.compile("deny", strings.ReplaceAll(denyRule, "synchronize: true", "synchronize: false"), generate.Settings{})
		b.server.forbid("networkpolicies", true)
		b.policies(once)
		b.lead()
		b.namespace("team", "")
		b.after(time.Hour)
		b.resign()
		b.server.forbid("networkpolicies", false)
		b.lead()
		b.after(time.Minute)
		b.wantThere(deny)
		b.after(time.Hour)
		b.resign()
		b.server.userDeletes(deny)
		b.lead()
		b.after(time.Hour)
		b.wantGone(deny) // it was made once
	})
}

func TestAKindThatIsServedLater(t *testing.T) {
	in(t, func(b *bench) {
		served := b.server.kinds
		b.server.kinds = served[:3]
		b.policies(b.compile("deny", denyRule, generate.Settings{}))
		b.lead()
		b.namespace("team", "")
		b.after(time.Minute)
		if !b.failedWith("serves no such kind") {
			t.Error("the failure is not reported")
		}
		b.server.mu.Lock()
		b.server.kinds = served
		b.server.mu.Unlock()
		b.after(10 * time.Minute)
		b.wantThere(deny)
	})
}

// A rule with objects that are its own triggers ends.
func TestAChainEnds(t *testing.T) {
	in(t, func(b *bench) {
		b.policies(b.compile("chain", `
name: chain
match: {any: [{resources: {kinds: [ConfigMap]}}]}
generate: {apiVersion: v1, kind: ConfigMap, name: "{{request.object.metadata.name}}x", namespace: team, synchronize: true, data: {data: {a: b}}}
`, generate.Settings{}))
		b.lead()
		b.server.userPuts(b.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team}}"))
		b.after(time.Hour)
		b.wantThere("configmaps/team/axxxxx")
		b.wantGone("configmaps/team/axxxxxx")
		if !b.failedWith("in a row") {
			t.Error("the failure is not reported")
		}
		b.server.userDeletes("configmaps/team/a")
		b.after(time.Hour)
		b.wantGone("configmaps/team/axxxxx")
	})
}

// An object that a rule made is a trigger only of rules that ask for that, and one that a
// user made of all.
func TestGeneratedTriggers(t *testing.T) {
	for _, skips := range []bool{true, false} {
		in(t, func(b *bench) {
			skip := "skipBackgroundRequests: " + strconv.FormatBool(skips)
			first := b.compile("first", `
name: first
match: {any: [{resources: {kinds: [Namespace]}}]}
generate: {apiVersion: v1, kind: ConfigMap, name: made, namespace: "{{request.object.metadata.name}}", synchronize: true, data: {data: {a: b}}}
`, generate.Settings{})
			second := b.compile("second", `
name: second
match: {any: [{resources: {kinds: [ConfigMap]}}]}
`+skip+`
generate: {apiVersion: v1, kind: Secret, name: "{{request.object.metadata.name}}", namespace: team, synchronize: true, data: {stringData: {a: b}}}
`, generate.Settings{})
			changes := b.compile("changes", `
name: changes
match: {any: [{resources: {kinds: [ConfigMap]}}]}
`+skip+`
mutate: {targets: [{apiVersion: v1, kind: Secret, name: "of-{{request.object.metadata.name}}", namespace: team}], patchStrategicMerge: {metadata: {labels: {seen: 'yes'}}}}
`, generate.Settings{})
			for _, name := range []string{"of-made", "of-users"} {
				b.server.userPuts(b.object("{apiVersion: v1, kind: Secret, metadata: {name: " + name + ", namespace: team}}"))
			}
			b.policies(first, second, changes)
			b.lead()
			b.namespace("team", "")
			b.server.userPuts(b.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: users, namespace: team}}"))
			b.after(time.Hour)
			b.wantThere("configmaps/team/made")
			b.wantThere("secrets/team/users")
			seen := func(name string) bool {
				labels, _ := metadata(b.wantThere("secrets/team/" + name))["labels"].(map[string]any)
				return labels["seen"] == "yes"
			}
			if made := b.server.object("secrets/team/made") != nil; made == skips || seen("of-made") == skips || !seen("of-users") {
				t.Errorf("skipped %t: made %t, changed %t, of the user's %t", skips, made, seen("of-made"), seen("of-users"))
			}
		})
	}
}

// A user that always reverts a rule's object at once does not keep the gateway busy.
func TestAFightIsSlow(t *testing.T) {
	in(t, func(b *bench) {
		b.policies(b.compile("deny", denyRule, generate.Settings{}))
		b.lead()
		b.namespace("team", "")
		synctest.Wait()
		for range 600 {
			b.server.userEdits(deny, func(o map[string]any) { o["spec"] = map[string]any{"podSelector": "mine"} })
			b.after(time.Second)
		}
		if times, _ := b.server.written(deny); times > 120 {
			t.Errorf("written %d times in ten minutes", times)
		}
		b.after(2 * time.Minute)
		if got := fmt.Sprint(b.wantThere(deny)["spec"]); strings.Contains(got, "mine") {
			t.Errorf("it is %s", got)
		}
	})
}

const sharedRule = `
name: certificate
match: {any: [{resources: {kinds: [Pod], operations: [CREATE], selector: {matchLabels: {app: "?*"}}}}]}
generate:
  apiVersion: v1
  kind: ConfigMap
  name: "{{request.object.metadata.labels.app}}"
  namespace: team
  synchronize: true
  data: {data: {secret: "{{request.object.metadata.labels.secret || 'x'}}"}}
`

// pod makes one that the rule above matches.
func (b *bench) pod(name, secret string) {
	b.t.Helper()
	b.server.userPuts(b.object("{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: team, labels: {app: web, secret: " + secret + "}}}"))
	b.after(time.Second)
}

// TestManyComeAndGo: triggers that shared an object and are gone are forgotten, and cost
// nothing when their object goes on to another; those that are there keep it.
func TestManyComeAndGo(t *testing.T) {
	in(t, func(b *bench) {
		b.policies(b.compile("certificate", sharedRule, generate.Settings{}))
		b.lead()
		b.pod("first", "x")
		for i := range 20 {
			b.pod("stays-"+strconv.Itoa(i), "x")
		}
		for i := range 1000 {
			name := "goes-" + strconv.Itoa(i)
			b.pod(name, "x")
			b.server.userDeletes("pods/team/" + name)
		}
		b.after(time.Minute)
		before := b.server.looked()
		b.server.userDeletes("pods/team/first")
		b.after(10 * time.Minute)
		b.wantThere("configmaps/team/web")
		// Each of the others is read, and its object, and some more for the first one.
		if reads := b.server.looked() - before; reads > 500 {
			t.Errorf("%d objects were looked for, for 20 triggers that are there", reads)
		}
		for i := range 20 {
			b.wantThere("configmaps/team/web")
			b.server.userDeletes("pods/team/stays-" + strconv.Itoa(i))
			b.after(10 * time.Minute)
		}
		b.wantGone("configmaps/team/web")
	})
}

// Two triggers that want the very same object share it: it goes with the last.
func TestTriggersShare(t *testing.T) {
	for name, test := range map[string]struct {
		second string
		differ bool
	}{
		"the same":  {"x", false},
		"otherwise": {"y", true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.policies(b.compile("certificate", sharedRule, generate.Settings{}))
				b.lead()
				b.pod("one", "x")
				b.pod("two", test.second)
				if times, _ := b.server.written("configmaps/team/web"); times != 1 {
					t.Errorf("written %d times", times)
				}
				if got := b.failedWith("differs from what this rule requires"); got != test.differ {
					t.Errorf("a difference is reported: %v", got)
				}
				b.server.userDeletes("pods/team/one")
				b.after(10 * time.Minute)
				b.wantThere("configmaps/team/web")
				b.server.userDeletes("pods/team/two")
				b.after(10 * time.Minute)
				b.wantGone("configmaps/team/web")
			})
		})
	}
}

const addressRule = `
name: address
match: {any: [{resources: {kinds: [ConfigMap], names: [metrics-address], namespaces: [observability], operations: [CREATE, UPDATE]}}]}
mutate:
  targets:
  - apiVersion: keda.sh/v1alpha1
    kind: ScaledObject
    preconditions: {all: [{key: '{{ target.metadata.annotations.central || '''' }}', operator: Equals, value: "true"}]}
  foreach:
  - list: target.spec.triggers[]
    preconditions: {all: [{key: "{{ element.type || '' }}", operator: Equals, value: prometheus}]}
    patchesJson6902: |-
      - path: /spec/triggers/{{elementIndex}}/metadata/serverAddress
        op: add
        value: "{{ request.object.data.main }}"
`

func TestAlter(t *testing.T) {
	const scaled = `{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: %s, namespace: shop, annotations: {central: "%s"}}, spec: {triggers: [{type: prometheus, metadata: {serverAddress: old}}]}}`
	address := func(b *bench, value string) {
		b.server.userPuts(b.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: metrics-address, namespace: observability}, data: {main: " + value + "}}"))
	}
	at := func(b *bench, name string) string {
		spec := b.server.object("scaledobjects/shop/" + name)["spec"].(map[string]any)
		return spec["triggers"].([]any)[0].(map[string]any)["metadata"].(map[string]any)["serverAddress"].(string)
	}
	start := func(b *bench, s generate.Settings) {
		b.server.userPuts(b.object(fmt.Sprintf(scaled, "asks", "true")))
		b.server.userPuts(b.object(fmt.Sprintf(scaled, "does-not", "false")))
		b.policies(b.compile("address", addressRule, s))
	}
	t.Run("follows its trigger", func(t *testing.T) {
		in(t, func(b *bench) {
			start(b, generate.Settings{})
			b.lead()
			address(b, "one")
			b.after(time.Second)
			if at(b, "asks") != "one" || at(b, "does-not") != "old" {
				t.Fatalf("%s, %s", at(b, "asks"), at(b, "does-not"))
			}
			address(b, "two")
			b.after(time.Second)
			if at(b, "asks") != "two" {
				t.Fatal(at(b, "asks"))
			}
			b.server.userEdits("configmaps/observability/metrics-address", func(o map[string]any) { metadata(o)["labels"] = map[string]any{"a": "b"} })
			b.after(time.Second)
			if times, _ := b.server.written("scaledobjects/shop/asks"); times != 2 {
				t.Errorf("written %d times for two addresses", times)
			}
		})
	})
	t.Run("changes without a leader", func(t *testing.T) {
		in(t, func(b *bench) {
			start(b, generate.Settings{})
			b.lead()
			address(b, "one")
			b.after(time.Hour)
			b.resign()
			b.after(time.Hour)
			address(b, "two")
			b.after(time.Hour)
			b.lead()
			b.after(time.Minute)
			if at(b, "asks") != "two" {
				t.Fatal(at(b, "asks"))
			}
		})
	})
	t.Run("an unchanged trigger is left alone", func(t *testing.T) {
		in(t, func(b *bench) {
			start(b, generate.Settings{})
			b.lead()
			address(b, "one")
			b.after(time.Hour)
			b.resign()
			b.server.userPuts(b.object(fmt.Sprintf(scaled, "asks", "true"))) // the user's own address
			b.lead()
			b.after(time.Hour)
			if at(b, "asks") != "old" {
				t.Fatal(at(b, "asks"))
			}
		})
	})
	for _, existing := range []bool{false, true} {
		t.Run(fmt.Sprintf("a policy that comes later, existing %v", existing), func(t *testing.T) {
			in(t, func(b *bench) {
				b.policies()
				address(b, "one")
				b.lead()
				b.after(time.Hour)
				start(b, generate.Settings{OnPolicyUpdate: existing})
				b.after(time.Minute)
				if got := at(b, "asks") == "one"; got != existing {
					t.Errorf("it is %s", at(b, "asks"))
				}
			})
		})
	}
	t.Run("conflicts", func(t *testing.T) {
		in(t, func(b *bench) {
			start(b, generate.Settings{})
			b.server.conflicts = 5
			b.lead()
			address(b, "one")
			b.after(time.Minute)
			if at(b, "asks") != "one" {
				t.Fatal(at(b, "asks"))
			}
		})
	})
	t.Run("forbidden, then allowed", func(t *testing.T) {
		in(t, func(b *bench) {
			start(b, generate.Settings{})
			b.server.forbid("scaledobjects", true)
			b.lead()
			address(b, "one")
			b.after(time.Minute)
			if at(b, "asks") != "old" || !b.failedWith("forbidden") {
				t.Fatal(at(b, "asks"))
			}
			b.server.forbid("scaledobjects", false)
			b.after(6 * time.Minute)
			if at(b, "asks") != "one" {
				t.Fatal(at(b, "asks"))
			}
		})
	})
}

// called selects the namespaces of a name.
type called string

func (c called) Matches(labels map[string]string) bool { return labels["called"] == string(c) }

// confined is an alteration of targets in the namespaces of a name.
type confined struct {
	policy.Alteration
	to called
}

func (c confined) Existing(ctx context.Context, about policy.Case) policy.Selected {
	selected := c.Alteration.Existing(ctx, about)
	for i := range selected.Selections {
		selected.Selections[i].Namespaces = c.to
	}
	return selected
}

// TestAlterInNamespaces: only targets in namespaces of the selected labels are changed.
func TestAlterInNamespaces(t *testing.T) {
	for to, want := range map[called]string{"shop": "one", "bank": "old"} {
		in(t, func(b *bench) {
			p := b.compile("address", addressRule, generate.Settings{})
			p.Alterations[0] = confined{p.Alterations[0], to}
			b.server.userPuts(b.object(`{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: asks, namespace: shop, annotations: {central: "true"}}, spec: {triggers: [{type: prometheus, metadata: {serverAddress: old}}]}}`))
			b.policies(p)
			b.lead()
			b.server.userPuts(b.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: metrics-address, namespace: observability}, data: {main: one}}"))
			b.after(time.Second)
			spec := b.server.object("scaledobjects/shop/asks")["spec"].(map[string]any)
			if got := spec["triggers"].([]any)[0].(map[string]any)["metadata"].(map[string]any)["serverAddress"]; got != want {
				t.Errorf("namespaces called %s: %v, want %s", to, got, want)
			}
		})
	}
}

// A rule that changes its own trigger at every change ends in a slow pace.
func TestALoopIsSlow(t *testing.T) {
	in(t, func(b *bench) {
		b.policies(b.compile("count", `
name: count
match: {any: [{resources: {kinds: [ConfigMap]}}]}
mutate:
  targets: [{apiVersion: v1, kind: ConfigMap, namespace: team, name: count}]
  patchStrategicMerge: {data: {count: "{{ add(to_number(target.data.count), `+"`1`"+`) }}"}}
`, generate.Settings{}))
		b.lead()
		b.server.userPuts(b.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: count, namespace: team}, data: {count: "0"}}`))
		b.after(10 * time.Minute)
		if times, _ := b.server.written("configmaps/team/count"); times < 2 || times > 120 {
			t.Errorf("written %d times in ten minutes", times)
		}
		if !b.failedWith("another rule reverts the changes") {
			t.Error("the failure is not reported")
		}
	})
}

func TestServerSideApply(t *testing.T) {
	in(t, func(b *bench) {
		b.policies(b.compile("deny", denyRule, generate.Settings{Apply: true}))
		b.lead()
		b.namespace("team", "")
		b.after(time.Second)
		b.wantThere(deny)
		b.server.userEdits(deny, func(o map[string]any) { o["spec"] = map[string]any{"podSelector": "mine"} })
		b.after(time.Second)
		if got := fmt.Sprint(b.wantThere(deny)["spec"]); strings.Contains(got, "mine") {
			t.Errorf("it is %s", got)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	if _, err := background.New(background.Options{}); err == nil {
		t.Error("no error")
	}
}

// An object that a rule made once, and a user deleted since, is not made again because another
// replica leads.
func TestMadeOnceForTriggersBeforeTheRule(t *testing.T) {
	in(t, func(b *bench) {
		b.namespace("team", "")
		b.after(time.Hour)
		once := strings.ReplaceAll(denyRule, "synchronize: true", "synchronize: false")
		b.policies()
		b.lead()
		b.policies(b.compile("deny", once, generate.Settings{Existing: true}))
		b.after(time.Hour)
		b.wantThere(deny)
		b.server.userDeletes(deny)
		b.resign()
		b.lead()
		b.after(time.Hour)
		b.wantGone(deny)
	})
}

// A policy counts from the second of its creation on, although it is adopted later, for rules of every
// sort; earlier triggers do not, nor those before a policy that was held back, or a rule that was added.
func TestTriggersBeforeTheirPolicyIsAdopted(t *testing.T) {
	once := strings.ReplaceAll(denyRule, "synchronize: true", "synchronize: false")
	for name, test := range map[string]struct {
		rule                     string
		before, between, adopted time.Duration // since the whole second; of the trigger, the policy and its adoption
		want                     bool
	}{
		"the same second":                  {denyRule, 200 * time.Millisecond, 600 * time.Millisecond, 2 * time.Second, true},
		"the same second, once":            {once, 200 * time.Millisecond, 600 * time.Millisecond, 2 * time.Second, true},
		"before the adoption, once":        {once, 1500 * time.Millisecond, 600 * time.Millisecond, 3 * time.Second, true},
		"the second before":                {denyRule, 200 * time.Millisecond, 1100 * time.Millisecond, 2 * time.Second, false},
		"the second before, once":          {once, 200 * time.Millisecond, 1100 * time.Millisecond, 2 * time.Second, false},
		"before a policy that waits, once": {once, 1500 * time.Millisecond, 600 * time.Millisecond, time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.policies()
				b.lead()
				b.after(time.Hour)
				start := time.Now()
				var p *policy.Policy
				go func() { b.after(test.before); b.namespace("team", "") }()
				go func() { b.after(test.between); p = b.compile("deny", test.rule, generate.Settings{}) }()
				b.after(test.adopted)
				p.Created = p.Created.Truncate(time.Second)
				if start.Nanosecond() != 0 {
					t.Fatal("the test does not start at a whole second")
				}
				b.policies(p)
				b.after(time.Minute)
				if got := b.server.object(deny) != nil; got != test.want {
					t.Errorf("there: %v, want %v", got, test.want)
				}
			})
		})
	}
	for name, test := range map[string]struct {
		adopted time.Duration
		want    string
	}{
		"a target is changed":                    {2 * time.Second, "one"},
		"a target of a policy that waits is not": {time.Minute, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.policies()
				b.lead()
				b.after(time.Hour)
				b.server.userPuts(b.object(`{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: asks, namespace: shop, annotations: {central: "true"}}, spec: {triggers: [{type: prometheus, metadata: {serverAddress: old}}]}}`))
				p := b.compile("address", addressRule, generate.Settings{})
				b.server.userPuts(b.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: metrics-address, namespace: observability}, data: {main: one}}"))
				b.after(test.adopted)
				b.policies(p)
				b.after(time.Minute)
				spec := b.server.object("scaledobjects/shop/asks")["spec"].(map[string]any)
				if got := spec["triggers"].([]any)[0].(map[string]any)["metadata"].(map[string]any)["serverAddress"]; got != test.want {
					t.Errorf("it is %v, want %s", got, test.want)
				}
			})
		})
	}
}

// A rule that is added to a policy counts from then on, as its triggers before it do not.
func TestTriggersBeforeAnAddedRule(t *testing.T) {
	in(t, func(b *bench) {
		once := strings.ReplaceAll(denyRule, "synchronize: true", "synchronize: false")
		p := b.compile("deny", once, generate.Settings{})
		q := *p
		q.Generations = append(q.Generations[:1:1], b.compile("deny", strings.NewReplacer("name: deny", "name: added", "default-deny", "added").Replace(once), generate.Settings{}).Generations...)
		q.Hash = "another"
		b.policies(p)
		b.lead()
		b.namespace("team", "")
		b.after(5 * time.Second)
		b.policies(&q)
		b.after(time.Minute)
		b.wantThere(deny)
		b.wantGone("networkpolicies/team/added")
	})
}

// A rule that matches one version of a kind keeps its objects, in whichever version the trigger is
// read.
func TestVersionsOfATrigger(t *testing.T) {
	in(t, func(b *bench) {
		b.server.kinds = append(b.server.kinds, background.Kind{Version: "v2", Kind: "Namespace", Resource: "namespaces"})
		other := strings.NewReplacer("name: deny", "name: other", "kinds: [Namespace]", "kinds: [\"*/v2*/Namespace\"]", "default-deny", "other").Replace(denyRule)
		b.policies(b.compile("deny", strings.ReplaceAll(denyRule, "kinds: [Namespace]", "kinds: [v1/Namespace]"), generate.Settings{}), b.compile("other", other, generate.Settings{}))
		b.lead()
		b.namespace("team", "")
		b.after(time.Minute)
		for _, key := range []string{deny, "networkpolicies/team/other"} {
			b.wantThere(key)
			b.server.userEdits(key, func(o map[string]any) { o["spec"] = map[string]any{} })
		}
		b.after(time.Hour)
		b.resign()
		b.lead()
		b.after(time.Hour)
		for _, key := range []string{deny, "networkpolicies/team/other"} {
			if times, _ := b.server.written(key); times != 2 { // made, and put back
				t.Errorf("%s was written %d times", key, times)
			}
		}
	})
}

// What a trigger wants under another name is made under that, and goes under the
// former one.
func TestTheNameFollowsTheTrigger(t *testing.T) {
	in(t, func(b *bench) {
		b.policies(b.compile("named", `
name: named
match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {wants: "?*"}}}}]}
generate: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, name: "{{request.object.metadata.labels.wants}}", namespace: team, synchronize: true, data: {spec: {podSelector: {}}}}
`, generate.Settings{}))
		b.lead()
		b.server.userPuts(b.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: team, labels: {wants: one}}}"))
		b.after(time.Second)
		b.wantThere("networkpolicies/team/one")
		b.server.userEdits("configmaps/team/a", func(o map[string]any) { metadata(o)["labels"] = map[string]any{"wants": "two"} })
		b.after(time.Second)
		b.wantGone("networkpolicies/team/one")
		b.wantThere("networkpolicies/team/two")
	})
}

// An object that stood there before the rule is taken over by one that synchronizes,
// and left alone by one that does not.
func TestExistingTarget(t *testing.T) {
	for _, synchronize := range []bool{true, false} {
		t.Run(fmt.Sprintf("synchronize %v", synchronize), func(t *testing.T) {
			in(t, func(b *bench) {
				b.policies(b.compile("deny", strings.ReplaceAll(denyRule, "synchronize: true", fmt.Sprintf("synchronize: %v", synchronize)), generate.Settings{}))
				b.lead()
				b.server.userPuts(b.object("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: default-deny, namespace: team, labels: {mine: x}, finalizers: [a/b]}, spec: {podSelector: mine}}"))
				b.namespace("team", "")
				b.after(time.Minute)
				got := b.wantThere(deny)
				if taken := !strings.Contains(fmt.Sprint(got["spec"]), "mine"); taken != synchronize {
					t.Errorf("it is %v", got)
				}
				if fmt.Sprint(metadata(got)["finalizers"]) != "[a/b]" || metadata(got)["labels"].(map[string]any)["mine"] != "x" {
					t.Errorf("another owner's fields are gone: %v", metadata(got))
				}
			})
		})
	}
}

func TestExcludedNamespacesAreLeftAlone(t *testing.T) {
	in(t, func(b *bench) {
		b.policies(b.compile("deny", denyRule, generate.Settings{Existing: true}), b.compile("copy", `
name: copy
match: {any: [{resources: {kinds: [ConfigMap]}}]}
generate: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, name: "{{request.object.metadata.name}}", namespace: team, synchronize: true, data: {spec: {podSelector: {}}}}
`, generate.Settings{}))
		b.lead()
		b.namespace("kube-system", "")
		b.namespace("team", "")
		for _, namespace := range []string{"kube-system", "team"} {
			b.server.userPuts(b.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: of-" + namespace + ", namespace: " + namespace + "}}"))
		}
		b.after(time.Minute)
		b.wantThere(deny)
		b.wantThere("networkpolicies/team/of-team")
		b.wantGone("networkpolicies/kube-system/default-deny")
		b.wantGone("networkpolicies/team/of-kube-system")
	})
}
