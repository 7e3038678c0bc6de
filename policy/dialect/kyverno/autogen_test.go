package kyverno_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// TestNamespaceOfTemplateIsIgnored has a controller with a template for another namespace
// than its own: pods run in the namespace of their controller.
func TestNamespaceOfTemplateIsIgnored(t *testing.T) {
	p := compile(t, nil, "    verifyImages:", `    preconditions:
      all:
      - {key: "{{ request.object.metadata.namespace || 'none' }}", operator: NotEquals, value: exempt}
      - {key: "{{ request.object.metadata.labels.tier }}", operator: Equals, value: front}
    verifyImages:`)
	for _, c := range []struct {
		own, claimed any
		want, reason string
	}{
		{"team", nil, "checks", "nothing is claimed"},
		{"team", "exempt", "checks", "the claim is another namespace"},
		{nil, "exempt", "checks", "the object has none yet"},
		{"exempt", "team", "skips", "the object's own holds"},
		{"exempt", nil, "skips", "the object's own, and no claim"},
	} {
		template := map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"tier": "front"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web"}}},
		}
		meta := map[string]any{"name": "d", "labels": map[string]any{"tier": "back"}}
		if c.claimed != nil {
			template["metadata"].(map[string]any)["namespace"] = c.claimed
		}
		if c.own != nil {
			meta["namespace"] = c.own
		}
		for _, k := range []struct {
			rule, group, kind string
			spec              map[string]any
		}{
			{"autogen-signed", "apps", "Deployment", map[string]any{"template": template}},
			{"autogen-cronjob-signed", "batch", "CronJob", map[string]any{"jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}},
		} {
			s := &policy.Subject{
				Object: policy.ContentOf(map[string]any{"metadata": meta, "spec": k.spec}), Group: k.group, Version: "v1", Kind: k.kind,
				Namespace: "team", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true}, Operation: "CREATE",
			}
			if got := applies(t, ruleOf(t, p, k.rule), s); got != c.want {
				t.Errorf("%s: %s: %s, want %s", k.kind, c.reason, got, c.want)
			}
		}
	}
}

// TestPinsNamed: a rule that names controllers pins in them; one that follows from pods does
// so only if it may leave out the pods that a controller creates.
func TestPinsNamed(t *testing.T) {
	const match, pods = "match:\n      any:\n      - resources:\n          kinds: [Pod]", "resources: {kinds: [Pod]}"
	for _, c := range []struct {
		reason, now string
		want        string // kinds of the objects in which images are pinned
	}{
		{"pods, and so their controllers", pods, ""},
		{"a controller", "resources: {kinds: [Deployment]}", "Deployment"},
		{"controllers by their group", "resources: {kinds: [apps/v1/StatefulSet, batch/*/CronJob]}", "StatefulSet CronJob"},
		{"pods and a controller", "resources: {kinds: [Pod, Deployment]}", "Deployment"},
		{"pods by a label, which no controller follows from", "resources: {kinds: [Pod], selector: {matchLabels: {a: b}}}", ""},
		{"pods of a user", pods + ", subjects: [{kind: User, name: jane}]", "DaemonSet Deployment Job StatefulSet ReplicaSet ReplicationController CronJob"},
		{"pods that are updated", "resources: {kinds: [Pod], operations: [UPDATE]}", "DaemonSet Deployment Job StatefulSet ReplicaSet ReplicationController CronJob"},
		{"pods that are created, too", "resources: {kinds: [Pod], operations: [CREATE, UPDATE]}", ""},
	} {
		p := compile(t, nil, match, "match: {any: [{"+c.now+"}]}")
		if got := strings.Join(p.NamedKinds(), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
	const all = "DaemonSet Deployment Job StatefulSet ReplicaSet ReplicationController CronJob"
	for _, c := range []struct{ reason, before, want string }{
		{"an exclusion of a namespace", "exclude: {any: [{resources: {namespaces: [dev]}}]}", ""},
		{"of a namespace's labels", "exclude: {any: [{resources: {namespaceSelector: {matchLabels: {a: b}}}}]}", ""},
		{"of creations", "exclude: {any: [{resources: {kinds: [Pod], operations: [CREATE]}}]}", all},
		{"of a user", "exclude: {any: [{subjects: [{kind: User, name: 'system:*'}]}]}", all},
		{"of an account", "exclude: {any: [{subjects: [{kind: ServiceAccount, namespace: kube-system, name: 'replica*'}]}]}", all},
		{"of a group", "exclude: {all: [{subjects: [{kind: Group, name: 'system:serviceaccounts:kube-system'}]}]}", all},
		{"of a cluster role, which any account may have", "exclude: {any: [{clusterRoles: [cluster-admin]}]}", all},
		{"of a role", "exclude: {any: [{roles: ['kube-system:a']}]}", all},
		{"in the old form", "exclude: {subjects: [{kind: User, name: 'system:kube-controller-manager'}]}", all},
		{"a precondition on the user", "preconditions: {all: [{key: '{{ request.userInfo.username }}', operator: NotEquals, value: 'system:serviceaccount:kube-system:replicaset-controller'}]}", all},
		{"on owners", "preconditions: {any: [{key: '{{ request.object.metadata.ownerReferences || `[]` | length(@) }}', operator: Equals, value: 0}]}", all},
		{"on the operation", "preconditions: {all: [{key: '{{ request.operation }}', operator: NotEquals, value: CREATE}]}", all},
		{"a variable of the object that nothing reads", "context: [{name: owner, variable: {jmesPath: request.object.metadata.name}}]", all},
		{"a variable of the namespace", "context: [{name: team, variable: {jmesPath: request.namespace}}]", ""},
	} {
		p := compile(t, nil, match, c.before+"\n    "+match)
		if got := strings.Join(p.NamedKinds(), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
	keeps := compile(t, nil, match, "match: {any: [{resources: {kinds: [Deployment]}}]}").Rules[0].(policy.Pinner)
	if !keeps.PinsNamed() {
		t.Error("an entry pins by default")
	}
	text := strings.NewReplacer(match, "match: {any: [{resources: {kinds: [Deployment]}}]}", "imageReferences:", "mutateDigest: false\n      imageReferences:").Replace(minimal)
	p, err := newCompiler(t, nil).Compile([]byte(text), "test.yaml")
	if err != nil || !strings.Contains(text, "mutateDigest: false") || len(p.NamedKinds()) != 0 {
		t.Errorf("an entry that pins nothing: %v, %v", p.NamedKinds(), err)
	}
}
