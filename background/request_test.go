package background_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate"
)

// loggedRule writes the last request for a subresource into a ConfigMap.
const loggedRule = `
name: logged
match: {any: [{resources: {kinds: [SELECTED], namespaces: [shop], operations: [CREATE, UPDATE, DELETE]}}]}
mutate:
  targets: [{apiVersion: v1, kind: ConfigMap, namespace: shop, name: log}]
  patchStrategicMerge:
    data:
      last: "{{request.operation}} {{request.kind.kind}} {{request.subResource}} {{request.name}} {{request.object.metadata.name}}"
      seen: "{{SEEN}}"
`

// logging leads with a rule about a subresource.
func (b *bench) logging(kind, seen string) *policy.Policy {
	b.t.Helper()
	b.settings("log", "none")
	rule := b.compile("logged", strings.NewReplacer("SELECTED", kind, "SEEN", seen).Replace(loggedRule), generate.Settings{})
	b.policies(rule)
	b.lead()
	return rule
}

// wantLog compares the last request, and clears it.
func (b *bench) wantLog(reason, want string) {
	b.t.Helper()
	synctest.Wait()
	data := b.server.object("configmaps/shop/log")["data"].(map[string]any)
	got := ""
	if data["last"] != nil {
		got = fmt.Sprint(data["last"], ": ", data["seen"])
	}
	if got != want {
		b.t.Errorf("%s: %q, want %q", reason, got, want)
	}
	b.settings("log", "none")
	synctest.Wait()
	b.after(time.Minute)
}

func (b *bench) workload(text string) {
	b.t.Helper()
	b.server.userPuts(b.object(text))
	b.after(2 * time.Minute)
}

const (
	onePod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {containers: [{name: main, image: app, resources: {limits: {cpu: "1"}}}]}
`
	oneDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 1, selector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: Exists}]}}
status: {replicas: 1}
`
)

func setting(value any, path ...string) func(map[string]any) {
	return func(object map[string]any) {
		for _, name := range path[:len(path)-1] {
			below, _ := object[name].(map[string]any)
			if below == nil {
				below = map[string]any{}
				object[name] = below
			}
			object = below
		}
		object[path[len(path)-1]] = value
	}
}

func bound(object map[string]any) {
	setting("node-1", "spec", "nodeName")(object)
	at := time.Now().UTC().Format(time.RFC3339)
	setting([]any{map[string]any{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}}, "status", "conditions")(object)
}

func resized(object map[string]any) {
	container := object["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	setting("2", "resources", "limits", "cpu")(container)
}

// TestSubresourcesOfPods: a rule applies to requests for its subresource, and to no other change of the pod.
func TestSubresourcesOfPods(t *testing.T) {
	debugger := setting([]any{map[string]any{"name": "debug", "image": "tools"}}, "spec", "ephemeralContainers")
	running := setting("Running", "status", "phase")
	labelled := setting("b", "metadata", "labels", "a")
	for _, c := range []struct{ kind, seen, want string }{
		{"Pod/binding", "request.object.target.kind}}/{{request.object.target.name", "CREATE Binding binding web web: Node/node-1"},
		{"Pod/status", "request.object.status.phase || 'none'", "UPDATE Pod status web web: Running"},
		{"Pod/ephemeralcontainers", "request.object.spec.ephemeralContainers[0].name", "UPDATE Pod ephemeralcontainers web web: debug"},
		{"Pod/resize", "request.object.spec.containers[0].resources.limits.cpu", "UPDATE Pod resize web web: 2"},
	} {
		in(t, func(b *bench) {
			b.logging(c.kind, c.seen)
			b.workload(onePod)
			b.wantLog(c.kind+", created", "")
			for _, request := range []struct {
				name   string
				change func(map[string]any)
			}{{"", labelled}, {"binding", bound}, {"status", running}, {"ephemeralcontainers", debugger}, {"resize", resized}} {
				want := ""
				if c.kind == "Pod/"+request.name {
					want = c.want
				}
				b.server.userRequests("pods/shop/web", request.name, request.change)
				b.wantLog(c.kind+" by "+request.name, want)
			}
			b.server.userEdits("pods/shop/web", setting("c", "metadata", "labels", "a"))
			b.wantLog(c.kind+", changed again", "")
			b.server.userDeletes("pods/shop/web")
			b.wantLog(c.kind+", deleted", "")
			again := b.object(onePod)
			bound(again)
			b.server.userPuts(again)
			b.wantLog(c.kind+", created on its node", "")
		})
	}
}

// TestScale: a rule for scale applies to requests for it, and not to replicas that an update of the object writes.
func TestScale(t *testing.T) {
	in(t, func(b *bench) {
		b.logging("apps/v1/Deployment/scale", "request.object.spec.replicas || `0`}} {{request.object.status.replicas}} {{request.object.status.selector}} {{request.object.kind")
		b.workload(oneDeployment)
		b.wantLog("created", "")
		b.server.userRequests("deployments/shop/web", "scale", setting(float64(3), "spec", "replicas"))
		b.wantLog("scaled", "UPDATE Scale scale web web: 3 1 app=web,tier Scale")
		b.server.userRequests("deployments/shop/web", "scale", setting(float64(0), "spec", "replicas"))
		b.wantLog("to zero", "UPDATE Scale scale web web: 0 1 app=web,tier Scale")
		b.server.userRequests("deployments/shop/web", "status", setting(float64(3), "status", "replicas"))
		b.wantLog("its status", "")
		b.server.userEdits("deployments/shop/web", setting(true, "spec", "paused"))
		b.wantLog("another field", "")
		b.server.userEdits("deployments/shop/web", setting(float64(5), "spec", "replicas"))
		b.wantLog("by an update of the object", "")
	})
	in(t, func(b *bench) {
		b.logging("Deployment/status", "request.object.status.replicas")
		b.workload(oneDeployment)
		b.server.userRequests("deployments/shop/web", "scale", setting(float64(3), "spec", "replicas"))
		b.wantLog("scaled", "")
		b.server.userRequests("deployments/shop/web", "status", setting(float64(3), "status", "replicas"))
		b.wantLog("its status", "UPDATE Deployment status web web: 3")
		b.server.userRequests("deployments/shop/web", "status", setting(float64(3), "status", "replicas"))
		b.wantLog("the same again", "")
	})
}

// TestSubresourcesOfOtherKinds: the status of a custom kind counts if requests for the subresource write it.
func TestSubresourcesOfOtherKinds(t *testing.T) {
	for by, want := range map[string]string{"status": "UPDATE ScaledObject status web web: true", "": ""} {
		in(t, func(b *bench) {
			b.logging("keda.sh/*/ScaledObject/status", "request.object.status.ready")
			b.workload("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web, namespace: shop}, status: {ready: false}}")
			b.wantLog("created", "")
			b.server.userRequests("scaledobjects/shop/web", by, setting(true, "status", "ready"))
			b.wantLog("by "+by, want)
		})
	}
}

// TestSubresourcesInTwoVersions: rules for two versions of a kind each apply to a request.
func TestSubresourcesInTwoVersions(t *testing.T) {
	in(t, func(b *bench) {
		b.server.kinds = append(b.server.kinds, background.Kind{Group: "keda.sh", Version: "v1", Kind: "ScaledObject", Resource: "scaledobjects", Namespaced: true})
		var list []*policy.Policy
		for _, version := range []string{"v1", "v1alpha1"} {
			list = append(list, b.compile("of-"+version, strings.NewReplacer("VERSION", version).Replace(`
name: made
match: {any: [{resources: {kinds: [keda.sh/VERSION/ScaledObject/status]}}]}
generate: {apiVersion: v1, kind: Secret, name: "{{request.object.status.ready}}-VERSION", namespace: shop, data: {}}
`), generate.Settings{}))
		}
		b.policies(list...)
		b.lead()
		b.workload("{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: web, namespace: shop}}")
		for _, ready := range []string{"no", "yes"} {
			b.server.userRequests("scaledobjects/shop/web", "status", setting(ready, "status", "ready"))
			b.after(time.Minute)
			for _, version := range []string{"v1", "v1alpha1"} {
				b.wantThere("secrets/shop/" + ready + "-" + version)
			}
		}
		b.server.userEdits("scaledobjects/shop/web", setting("a", "spec", "other"))
		if times, _ := b.server.written("secrets/shop/yes-v1"); times != 1 {
			t.Errorf("written %d times", times)
		}
	})
}

// TestSubresourcesWithoutALeader: requests while no replica led count if the object shows when they were made.
// Those before their rule, and those that an earlier leader applied, do not.
func TestSubresourcesWithoutALeader(t *testing.T) {
	for _, c := range []struct {
		kind, seen, want string
		request          func(*bench)
	}{
		{"Deployment/scale", "request.object.spec.replicas", "UPDATE Scale scale web web: 3", func(b *bench) {
			b.server.userRequests("deployments/shop/web", "scale", setting(float64(3), "spec", "replicas"))
		}},
		{"Pod/binding", "request.object.target.name", "CREATE Binding binding web web: node-1", func(b *bench) { b.server.userRequests("pods/shop/web", "binding", bound) }},
		{"Pod/resize", "request.object.spec.containers[0].resources.limits.cpu", "UPDATE Pod resize web web: 2", func(b *bench) { b.server.userRequests("pods/shop/web", "resize", resized) }},
		{"Pod/resize", "request.object.metadata.labels.a", "", func(b *bench) { b.server.userEdits("pods/shop/web", setting("b", "metadata", "labels", "a")) }},
	} {
		in(t, func(b *bench) {
			b.logging(c.kind, c.seen)
			b.workload(onePod)
			b.workload(oneDeployment)
			b.after(time.Hour) // saved
			b.resign()
			b.after(time.Minute)
			c.request(b)
			b.after(time.Minute)
			b.lead()
			b.wantLog(c.kind, c.want)
			b.after(time.Hour)
			b.resign()
			b.lead()
			if c.kind == "Deployment/scale" {
				b.wantLog("a second time, since its time is not known", c.want)
				return
			}
			b.wantLog(c.kind+", done before", "")
		})
		in(t, func(b *bench) {
			b.policies(b.compile("deny", denyRule, generate.Settings{}))
			b.lead()
			b.workload(onePod)
			b.workload(oneDeployment)
			c.request(b)
			b.after(time.Hour)
			b.resign()
			b.logging(c.kind, c.seen)
			b.wantLog(c.kind+", before its rule", "")
		})
	}
}

// TestSubresourcesWithAnotherRule: a rule that is added has no effect on the requests that others apply to, and none
// on earlier ones.
func TestSubresourcesWithAnotherRule(t *testing.T) {
	in(t, func(b *bench) {
		rule := b.logging("Deployment/scale", "request.object.spec.replicas")
		b.workload(oneDeployment)
		scale := func(replicas float64) {
			b.server.userRequests("deployments/shop/web", "scale", setting(replicas, "spec", "replicas"))
		}
		scale(3)
		b.wantLog("scaled", "UPDATE Scale scale web web: 3")
		added := b.compile("added", strings.NewReplacer("SELECTED", "Deployment/scale", "SEEN", "request.name", "logged", "added").Replace(loggedRule), generate.Settings{})
		b.after(time.Hour)
		if len(b.saved.Positions) != 0 {
			t.Errorf("positions of deletions: %v", b.saved.Positions)
		}
		b.policies(rule, added)
		b.after(time.Minute)
		b.wantLog("another rule", "")
		b.policies(added)
		b.after(time.Minute)
		scale(4)
		b.wantLog("of the other rule", "UPDATE Scale scale web web: web")
	})
}

// TestSubresourceRetries: a rule that fails is applied to the state of the object that it has by then.
func TestSubresourceRetries(t *testing.T) {
	in(t, func(b *bench) {
		b.logging("Pod/status", "request.object.status.phase")
		b.workload(onePod)
		b.server.forbid("configmaps", true)
		b.server.userRequests("pods/shop/web", "status", setting("Running", "status", "phase"))
		b.after(time.Second)
		b.server.userEdits("pods/shop/web", setting("b", "metadata", "labels", "a"))
		b.server.forbid("configmaps", false)
		b.after(time.Minute)
		b.wantLog("later", "UPDATE Pod status web web: Running")
		b.server.forbid("configmaps", true)
		b.server.userRequests("pods/shop/web", "status", setting("Failed", "status", "phase"))
		b.after(time.Second)
		b.server.userDeletes("pods/shop/web")
		b.server.userPuts(b.object(onePod + "status: {phase: Pending}")) // another pod of the name
		b.server.forbid("configmaps", false)
		b.after(time.Hour)
		b.wantLog("deleted since", "")
	})
}

// TestGenerateForSubresources: a request generates an object, without synchronize, and the pod's own rules do not
// apply to it a second time.
func TestGenerateForSubresources(t *testing.T) {
	const rule = `
name: made
match: {any: [{resources: {kinds: [KIND], namespaces: [shop]}}]}
generate: {apiVersion: v1, kind: Secret, name: "{{request.object.metadata.name}}-{{request.subResource || 'pod'}}", namespace: shop, data: {}}
`
	in(t, func(b *bench) {
		b.workload(onePod)
		var list []*policy.Policy
		for _, kind := range []string{"Pod", "Pod/binding"} {
			list = append(list, b.compile(strings.ReplaceAll(strings.ToLower(kind), "/", "-"), strings.Replace(rule, "KIND", kind, 1), generate.Settings{Existing: true}))
		}
		b.policies(list...)
		b.lead()
		b.after(time.Minute)
		b.wantThere("secrets/shop/web-pod")
		b.wantGone("secrets/shop/web-binding")
		b.server.userRequests("pods/shop/web", "binding", bound)
		b.after(time.Minute)
		b.wantThere("secrets/shop/web-binding")
		b.server.userDeletes("pods/shop/web")
		b.after(time.Hour)
		b.wantThere("secrets/shop/web-binding")
		b.workload(strings.Replace(onePod, "name: web", "name: later", 1))
		b.after(time.Hour)
		b.resign()
		b.server.userRequests("pods/shop/later", "binding", bound) // while no replica leads
		b.lead()
		b.after(time.Minute)
		b.wantThere("secrets/shop/later-binding")
		b.after(time.Hour)
		b.server.userDeletes("secrets/shop/later-binding")
		b.resign()
		b.lead()
		b.after(time.Minute)
		b.wantGone("secrets/shop/later-binding") // made for an earlier request
	})
}
