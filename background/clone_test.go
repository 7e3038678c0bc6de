package background_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
)

const (
	cloneRule = `
name: pull
match: {any: [{resources: {kinds: [Namespace], names: [team*]}}]}
generate: {apiVersion: v1, kind: Secret, name: regcred, namespace: "{{request.object.metadata.name}}", synchronize: true, clone: {name: regcred, namespace: platform}}
`
	cloneListRule = `
name: pull
match: {any: [{resources: {kinds: [Namespace], names: [team*]}}]}
generate: {namespace: "{{request.object.metadata.name}}", synchronize: true, cloneList: {namespace: platform, kinds: [v1/Secret, v1/ConfigMap], selector: {matchLabels: {copied: "yes"}}}}
`
	from = "secrets/platform/regcred"
	into = "secrets/team/regcred"
)

// secret makes a Secret of the namespace platform.
func (b *bench) secret(name, data string) {
	b.t.Helper()
	b.server.userPuts(b.object(`{apiVersion: v1, kind: Secret, metadata: {name: ` + name + `, namespace: platform, labels: {copied: "yes"}}, data: {a: ` + data + `}}`))
}

// wantData wants a Secret with some data.
func (b *bench) wantData(key, want string) map[string]any {
	b.t.Helper()
	object := b.wantThere(key)
	data, _ := object["data"].(map[string]any)
	if data["a"] != want {
		b.t.Errorf("%s has %v, want %q", key, data, want)
	}
	return object
}

// failuresWith counts the reported failures of watches that contain a text.
func (b *bench) failuresWith(text string) (count int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, err := range b.failures {
		if strings.Contains(err.Error(), text) {
			count++
		}
	}
	return count
}

// TestCloneFollowsItsSource: a changed source reaches its clone within seconds, and nothing is written
// otherwise.
func TestCloneFollowsItsSource(t *testing.T) {
	in(t, func(b *bench) {
		b.secret("regcred", "one")
		b.policies(b.compile("pull", cloneRule, generate.Settings{}))
		b.lead()
		b.namespace("team", "")
		b.namespace("other", "")
		b.after(time.Second)
		clone := b.wantData(into, "one")
		b.wantGone("secrets/other/regcred")
		origin, err := b.keeper.ReadOrigin(clone)
		if err != nil || origin.Source != "Secret platform/regcred" {
			t.Errorf("origin %+v, %v", origin, err)
		}
		b.after(time.Hour)
		if times, _ := b.server.written(into); times != 1 {
			t.Errorf("written %d times", times)
		}
		b.secret("regcred", "two")
		b.after(3 * time.Second)
		b.wantData(into, "two")
		if times, _ := b.server.written(into); times != 2 {
			t.Errorf("written %d times", times)
		}
		b.server.userEdits(into, func(object map[string]any) { object["data"] = map[string]any{"a": "mine"} })
		b.after(3 * time.Second)
		b.wantData(into, "two")
		b.server.userDeletes(into)
		b.after(3 * time.Second)
		b.wantData(into, "two")
		if times, _ := b.server.written(from); times != 0 {
			t.Errorf("the source was written %d times", times)
		}
	})
}

// TestCloneGoesWithItsSource: a source that is deleted, and one that cannot be read.
func TestCloneGoesWithItsSource(t *testing.T) {
	in(t, func(b *bench) {
		b.secret("regcred", "one")
		b.policies(b.compile("pull", cloneRule, generate.Settings{}))
		b.lead()
		b.namespace("team", "")
		b.after(time.Second)
		b.wantData(into, "one")
		b.server.forbidSources("secrets", true)
		b.after(time.Hour)
		b.secret("regcred", "two") // the watch is open
		b.after(time.Minute)
		b.wantData(into, "one")
		if !b.failedWith("secrets is forbidden") {
			t.Error("nothing is reported")
		}
		b.server.forbidSources("secrets", false)
		b.after(5 * time.Minute)
		b.wantData(into, "two")
		b.server.userDeletes(from)
		b.after(3 * time.Second)
		b.wantGone(into)
		if !b.failedWith("source Secret platform/regcred: it does not exist") {
			t.Error("the missing source is not reported")
		}
		b.after(time.Hour)
		b.secret("regcred", "three")
		b.after(3 * time.Second)
		b.wantData(into, "three")
	})
}

// TestCloneOfALateSource: the source appears after the trigger.
func TestCloneOfALateSource(t *testing.T) {
	for name, rule := range map[string]string{"kept": cloneRule, "made once": strings.Replace(cloneRule, "synchronize: true", "synchronize: false", 1)} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.policies(b.compile("pull", rule, generate.Settings{}))
				b.lead()
				b.namespace("team", "")
				b.after(30 * time.Second)
				b.wantGone(into)
				b.secret("regcred", "one")
				b.after(time.Minute)
				b.wantData(into, "one")
				b.secret("regcred", "two")
				b.after(time.Minute)
				if name == "kept" {
					b.wantData(into, "two")
				} else {
					b.wantData(into, "one")
				}
				b.server.userDeletes(from)
				b.after(time.Minute)
				if name == "kept" {
					b.wantGone(into)
				} else {
					b.wantData(into, "one")
				}
			})
		})
	}
}

// TestCloneAfterARestart: what happened to a source while nothing was running.
func TestCloneAfterARestart(t *testing.T) {
	for name, test := range map[string]struct {
		does      func(*bench)
		want      string // empty: none
		forbidden bool
	}{
		"changed":            {does: func(b *bench) { b.secret("regcred", "two") }, want: "two"},
		"deleted":            {does: func(b *bench) { b.server.userDeletes(from) }},
		"unchanged":          {does: func(*bench) {}, want: "one"},
		"no longer readable": {does: func(b *bench) { b.server.userDeletes(from) }, want: "one", forbidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.secret("regcred", "one")
				b.policies(b.compile("pull", cloneRule, generate.Settings{}))
				b.lead()
				b.namespace("team", "")
				b.after(2 * time.Minute)
				b.wantData(into, "one")
				b.resign()
				test.does(b)
				b.server.forbidSources("secrets", test.forbidden)
				b.after(time.Hour)
				b.lead()
				b.after(time.Minute)
				if test.want == "" {
					b.wantGone(into)
				} else {
					b.wantData(into, test.want)
				}
				if name == "unchanged" {
					if times, _ := b.server.written(into); times != 1 {
						t.Errorf("written %d times", times)
					}
					b.secret("regcred", "two")
					b.after(3 * time.Second)
					b.wantData(into, "two")
				}
			})
		})
	}
}

// TestCloneGoesWithTriggerAndPolicy: as other generated objects.
func TestCloneGoesWithTriggerAndPolicy(t *testing.T) {
	orphan := strings.Replace(cloneRule, "synchronize: true", "synchronize: true, orphanDownstreamOnPolicyDelete: true", 1)
	for name, test := range map[string]struct {
		rule  string
		does  func(*bench)
		stays bool
	}{
		"the trigger is deleted":       {cloneRule, func(b *bench) { b.server.userDeletes("namespaces//team") }, false},
		"the policy is deleted":        {cloneRule, func(b *bench) { b.gone["ClusterPolicy/pull"] = true; b.policies() }, false},
		"the policy may be there":      {cloneRule, func(b *bench) { b.policies() }, true},
		"the policy leaves its clones": {orphan, func(b *bench) { b.gone["ClusterPolicy/pull"] = true; b.policies() }, true},
		"the rule copies another": {cloneRule, func(b *bench) {
			b.policies(b.compile("pull", strings.Replace(cloneRule, "name: regcred, namespace: \"{{", "name: another, namespace: \"{{", 1), generate.Settings{}))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(b *bench) {
				b.secret("regcred", "one")
				b.policies(b.compile("pull", test.rule, generate.Settings{}))
				b.lead()
				b.namespace("team", "")
				b.after(time.Second)
				b.wantThere(into)
				test.does(b)
				b.after(2 * time.Minute)
				if test.stays {
					b.wantThere(into)
				} else {
					b.wantGone(into)
				}
				before := b.server.looked()
				b.secret("regcred", "two")
				b.after(3 * time.Second)
				if name == "the trigger is deleted" && b.server.looked() != before {
					t.Error("the source is still followed")
				}
			})
		})
	}
}

// TestCloneList: objects come to be selected, and are no longer.
func TestCloneList(t *testing.T) {
	in(t, func(b *bench) {
		b.secret("regcred", "one")
		b.policies(b.compile("pull", cloneListRule, generate.Settings{}))
		b.lead()
		b.namespace("team", "")
		b.after(time.Second)
		b.wantData(into, "one")
		b.secret("second", "two")
		b.server.userPuts(b.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: platform, labels: {copied: "yes"}}, data: {a: b}}`))
		b.server.userPuts(b.object(`{apiVersion: v1, kind: ConfigMap, metadata: {name: internal, namespace: platform}, data: {a: b}}`))
		b.after(3 * time.Second)
		b.wantData("secrets/team/second", "two")
		b.wantThere("configmaps/team/settings")
		b.wantGone("configmaps/team/internal")
		b.server.userEdits("configmaps/platform/settings", func(object map[string]any) { delete(metadata(object), "labels") })
		b.server.userDeletes("secrets/platform/second")
		b.after(3 * time.Second)
		b.wantGone("configmaps/team/settings")
		b.wantGone("secrets/team/second")
		b.wantData(into, "one")
		b.resign()
		b.secret("second", "again")
		b.lead()
		b.after(3 * time.Second)
		b.wantData("secrets/team/second", "again")
	})
}

// TestCloneOfOldTriggers: a changed source is no reason to make objects for triggers that do not count.
func TestCloneOfOldTriggers(t *testing.T) {
	in(t, func(b *bench) {
		b.namespace("team", "")
		b.secret("regcred", "one")
		b.after(time.Hour)
		b.policies(b.compile("pull", cloneRule, generate.Settings{}))
		b.lead()
		b.after(time.Minute)
		b.secret("regcred", "two")
		b.after(time.Minute)
		b.wantGone(into)
		b.policies(b.compile("pull", strings.Replace(cloneRule, "synchronize: true", "synchronize: true, generateExisting: true", 1), generate.Settings{}))
		b.after(time.Minute)
		b.wantData(into, "two")
	})
}

// TestCloneInALoop: one of the sources is missing, and the objects of the others stay.
func TestCloneInALoop(t *testing.T) {
	const rule = `
name: pull
match: {any: [{resources: {kinds: [Namespace], names: [team*]}}]}
generate: {synchronize: true, foreach: [{list: "['first', 'second', 'third']", apiVersion: v1, kind: Secret, name: "{{element}}", namespace: "{{request.object.metadata.name}}", clone: {name: "{{element}}", namespace: platform}}]}
`
	in(t, func(b *bench) {
		b.secret("first", "one")
		b.secret("second", "one")
		b.policies(b.compile("pull", rule, generate.Settings{}))
		b.lead()
		b.namespace("team", "")
		b.after(time.Second)
		b.wantData("secrets/team/first", "one")
		b.wantData("secrets/team/second", "one")
		b.server.userDeletes("secrets/platform/first")
		b.after(3 * time.Second)
		b.wantGone("secrets/team/first")
		b.wantData("secrets/team/second", "one")
		b.secret("third", "one")
		b.secret("second", "two")
		b.after(3 * time.Second)
		b.wantData("secrets/team/second", "two")
		b.wantData("secrets/team/third", "one")
	})
}

// TestCloneSources: the sources of all triggers are one watch, and beyond the bound they are read at
// intervals.
func TestCloneSources(t *testing.T) {
	in(t, func(b *bench) {
		var policies []*policy.Policy
		for i := range 110 {
			name := fmt.Sprintf("s%03d", i)
			b.secret(name, "one")
			rule := strings.ReplaceAll(strings.Replace(cloneRule, "[team*]", "[team-"+name+"]", 1), "name: regcred", "name: "+name)
			policies = append(policies, b.compile(name, rule, generate.Settings{}))
		}
		b.policies(policies...)
		b.lead()
		for i := range 110 {
			b.namespace(fmt.Sprintf("team-s%03d", i), "")
		}
		b.after(time.Second)
		if watches := b.server.watching(); watches > 103 { // 100, and those of triggers and of generated objects
			t.Errorf("%d watches", watches)
		}
		for i := range 110 {
			b.secret(fmt.Sprintf("s%03d", i), "two")
		}
		b.after(3 * time.Second)
		followed := 0
		for i := range 110 {
			key := fmt.Sprintf("secrets/team-s%03d/s%03d", i, i)
			if b.wantThere(key)["data"].(map[string]any)["a"] == "two" {
				followed++
			}
		}
		if followed != 100 {
			t.Errorf("%d sources are followed", followed)
		}
		b.after(2 * time.Minute)
		for i := range 110 {
			b.wantData(fmt.Sprintf("secrets/team-s%03d/s%03d", i, i), "two")
		}
		if b.failuresWith("more than 100 sources") == 0 {
			t.Error("the bound is not reported")
		}
		b.policies()
		b.after(time.Minute)
		if watches := b.server.watching(); watches > 2 {
			t.Errorf("%d watches remain", watches)
		}
	})
}

// TestSharedSource: many triggers follow one source by one watch.
func TestSharedSource(t *testing.T) {
	in(t, func(b *bench) {
		b.secret("regcred", "one")
		b.policies(b.compile("pull", cloneRule, generate.Settings{}))
		b.lead()
		for i := range 50 {
			b.namespace(fmt.Sprintf("team-%d", i), "")
		}
		b.after(time.Second)
		if watches := b.server.watching(); watches != 3 {
			t.Errorf("%d watches", watches)
		}
		b.secret("regcred", "two")
		b.after(3 * time.Second)
		for i := range 50 {
			b.wantData(fmt.Sprintf("secrets/team-%d/regcred", i), "two")
		}
	})
}

// TestCloneRecord: a record of a copy does not name another source when it is changed.
func TestCloneRecord(t *testing.T) {
	in(t, func(b *bench) {
		b.secret("regcred", "one")
		b.policies(b.compile("pull", cloneRule, generate.Settings{}))
		b.lead()
		b.namespace("team", "")
		synctest.Wait()
		clone := b.wantThere(into)
		annotations := metadata(clone)["annotations"].(map[string]any)
		text := annotations[record.OriginAnnotation].(string)
		annotations[record.OriginAnnotation] = strings.Replace(text, "platform/regcred", "platform/another", 1)
		if _, err := b.keeper.ReadOrigin(clone); err == nil {
			t.Error("a changed record is valid")
		}
	})
}
