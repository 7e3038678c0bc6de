package background_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate"
)

const removedRule = `
name: removed
match: {any: [{resources: {kinds: [ConfigMap], namespaces: [shop], operations: [DELETE]}}]}
generate:
  apiVersion: v1
  kind: Secret
  name: "was-{{request.object.metadata.name}}"
  namespace: shop
  data: {stringData: {main: "{{request.oldObject.data.main}}"}}
`

func (b *bench) settings(name, main string) {
	b.t.Helper()
	b.server.userPuts(b.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: shop}, data: {main: " + main + "}}"))
}

func (b *bench) removes(name string) {
	b.t.Helper()
	b.server.userDeletes("configmaps/shop/" + name)
	synctest.Wait()
}

// main returns what a Secret of the rule holds.
func (b *bench) main(name string) any {
	b.t.Helper()
	return b.wantThere("secrets/shop/was-" + name)["stringData"].(map[string]any)["main"]
}

// TestDeletedTriggers: rules with the operation DELETE apply to deleted objects in their last state, and
// nothing else is such a trigger.
func TestDeletedTriggers(t *testing.T) {
	t.Run("a deletion", func(t *testing.T) {
		in(t, func(b *bench) {
			b.settings("before", "zero")
			b.policies(b.compile("removed", removedRule, generate.Settings{Existing: true}))
			b.lead()
			b.settings("one", "first")
			b.settings("one", "last")
			b.after(time.Minute)
			b.wantGone("secrets/shop/was-one")
			b.wantGone("secrets/shop/was-before")
			b.removes("one")
			b.removes("before")
			if b.main("one") != "last" || b.main("before") != "zero" {
				t.Error(b.main("one"), b.main("before"))
			}
			for _, one := range b.reports.all() {
				t.Errorf("a report: %s", one)
			}
			b.settings("one", "again") // another object of the name, created before the work for the deletion is done
			b.server.userDeletes("secrets/shop/was-one")
			b.after(time.Hour)
			b.wantGone("secrets/shop/was-one") // it is created once for each deletion
		})
	})
	t.Run("a rule without the operation", func(t *testing.T) {
		in(t, func(b *bench) {
			b.policies(b.compile("removed", strings.Replace(removedRule, "[DELETE]", "[UPDATE]", 1), generate.Settings{}))
			b.lead()
			b.settings("one", "first")
			b.removes("one")
			b.after(time.Hour)
			b.wantGone("secrets/shop/was-one")
		})
	})
	t.Run("another namespace, and an excluded one", func(t *testing.T) {
		in(t, func(b *bench) {
			b.policies(b.compile("removed", strings.Replace(removedRule, "namespaces: [shop]", "namespaces: [shop, kube-system]", 1), generate.Settings{}))
			b.lead()
			for _, namespace := range []string{"bank", "kube-system"} {
				b.server.userPuts(b.object("{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: " + namespace + "}, data: {main: a}}"))
				synctest.Wait()
				b.server.userDeletes("configmaps/" + namespace + "/one")
			}
			b.after(time.Hour)
			b.wantGone("secrets/shop/was-one")
		})
	})
	t.Run("the object is recreated at once", func(t *testing.T) {
		in(t, func(b *bench) {
			b.policies(b.compile("removed", removedRule, generate.Settings{}))
			b.lead()
			b.settings("one", "first")
			synctest.Wait()
			b.server.forbid("secrets", true)
			b.removes("one")
			b.settings("one", "second")
			b.after(time.Minute)
			b.server.forbid("secrets", false)
			b.after(5 * time.Minute)
			if b.main("one") != "first" {
				t.Error(b.main("one"))
			}
		})
	})
	t.Run("targets", func(t *testing.T) {
		in(t, func(b *bench) {
			b.settings("other", "untouched")
			b.policies(b.compile("removed", `
name: removed
match: {any: [{resources: {kinds: [ConfigMap], names: [one], operations: [DELETE]}}]}
mutate:
  targets: [{apiVersion: v1, kind: ConfigMap, namespace: shop, name: other}]
  patchStrategicMerge: {data: {main: "{{request.object.data.main}} is gone"}}
`, generate.Settings{}))
			b.lead()
			b.settings("one", "first")
			b.after(time.Minute)
			main := func() any { return b.server.object("configmaps/shop/other")["data"].(map[string]any)["main"] }
			if main() != "untouched" {
				t.Error(main())
			}
			b.removes("one")
			if main() != "first is gone" {
				t.Error(main())
			}
		})
	})
}

// TestDeletionsAreRetried: while an object cannot be created, for a quarter of an hour.
func TestDeletionsAreRetried(t *testing.T) {
	for after, want := range map[time.Duration]bool{5 * time.Minute: true, time.Hour: false} {
		in(t, func(b *bench) {
			b.policies(b.compile("removed", removedRule, generate.Settings{}))
			b.lead()
			b.settings("one", "first")
			synctest.Wait()
			b.server.forbid("secrets", true)
			b.removes("one")
			b.after(after)
			b.server.forbid("secrets", false)
			b.after(time.Hour)
			if got := b.server.object("secrets/shop/was-one") != nil; got != want {
				t.Errorf("forbidden for %s: created %t", after, got)
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			if last := b.told[len(b.told)-1]; last.Final == want || (last.Err == nil) != want {
				t.Errorf("the last report: %+v", last)
			}
		})
	}
}

// TestDeletionsWithoutALeader: the next leader applies them, unless the API server has forgotten them, which
// is reported. Those before their rule never count.
func TestDeletionsWithoutALeader(t *testing.T) {
	for _, c := range []struct {
		reason        string
		expired, want bool
	}{{"known", false, true}, {"expired", true, false}} {
		in(t, func(b *bench) {
			b.policies(b.compile("removed", removedRule, generate.Settings{}))
			b.lead()
			b.settings("one", "first")
			b.settings("seen", "first")
			b.after(time.Minute)
			b.removes("seen")
			b.wantThere("secrets/shop/was-seen")
			b.after(time.Hour) // saved
			b.server.userDeletes("secrets/shop/was-seen")
			b.resign()
			b.server.userDeletes("configmaps/shop/one")
			if c.expired {
				b.server.expired = 1 << 30
			}
			b.lead()
			b.after(time.Minute)
			if got := b.server.object("secrets/shop/was-one") != nil; got != c.want {
				t.Errorf("%s: created %t", c.reason, got)
			}
			if b.missed() == c.want {
				t.Errorf("%s: reported as missed: %t", c.reason, b.missed())
			}
			b.wantGone("secrets/shop/was-seen") // done before
		})
	}
	in(t, func(b *bench) {
		rule := b.compile("removed", removedRule, generate.Settings{})
		b.policies(rule, b.compile("deny", denyRule, generate.Settings{}))
		b.lead()
		b.settings("one", "first")
		b.settings("two", "second")
		b.after(time.Hour)
		b.policies(b.compile("deny", denyRule, generate.Settings{}))
		b.after(time.Hour)
		b.removes("one")
		b.after(time.Hour)
		b.policies(b.compile("removed", removedRule, generate.Settings{}))
		b.after(time.Hour)
		b.wantGone("secrets/shop/was-one") // deleted while there was no rule
		b.removes("two")
		b.wantThere("secrets/shop/was-two")
	})
}

// TestSynchronizedAfterADeletion: an object that is generated because of a deletion stays without its
// trigger, and goes with its rule.
func TestSynchronizedAfterADeletion(t *testing.T) {
	in(t, func(b *bench) {
		rule := strings.Replace(removedRule, "  data:", "  synchronize: true\n  data:", 1)
		rule = strings.Replace(rule, "[DELETE]", "[CREATE, DELETE]", 1)
		b.policies(b.compile("removed", strings.Replace(rule, "oldObject", "object", 1), generate.Settings{}))
		b.lead()
		b.settings("one", "first")
		b.after(time.Minute)
		b.wantThere("secrets/shop/was-one")
		b.removes("one")
		b.after(time.Hour)
		b.wantThere("secrets/shop/was-one")
		b.resign()
		b.lead()
		b.after(time.Hour)
		b.wantThere("secrets/shop/was-one")
		b.gone["ClusterPolicy/removed"] = true
		b.policies()
		b.after(time.Hour)
		b.wantGone("secrets/shop/was-one")
	})
}

// TestManyDeletions: more content than is held at a time is waited for, and nothing is lost.
func TestManyDeletions(t *testing.T) {
	in(t, func(b *bench) {
		b.policies(b.compile("removed", removedRule, generate.Settings{}))
		b.lead()
		const number = 30
		for i := range number {
			b.settings("n"+strconv.Itoa(i), strings.Repeat("a", 1<<20))
		}
		b.after(time.Minute)
		b.server.mu.Lock()
		for i := range number {
			b.server.remove("configmaps/shop/n" + strconv.Itoa(i))
		}
		b.server.mu.Unlock()
		b.after(time.Minute)
		for i := range number {
			b.wantThere("secrets/shop/was-n" + strconv.Itoa(i))
		}
	})
}
