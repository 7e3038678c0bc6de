package kyverno_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// TestATemplatesNamespaceIsNotBelieved has a controller whose template claims
// another namespace than its own: pods run where their controller is.
func TestATemplatesNamespaceIsNotBelieved(t *testing.T) {
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
				Namespace: "team", NamespaceKnown: true, Operation: "CREATE",
			}
			if got := applies(t, ruleOf(t, p, k.rule), s); got != c.want {
				t.Errorf("%s: %s: %s, want %s", k.kind, c.reason, got, c.want)
			}
		}
	}
}

// TestPinsNamed: a rule about controllers themselves pins in them; one that follows from
// pods does not, unless its match leaves out the pods that a controller makes.
func TestPinsNamed(t *testing.T) {
	const match, pods = "match:\n      any:\n      - resources:\n          kinds: [Pod]", "resources: {kinds: [Pod]}"
	for _, c := range []struct {
		reason, now string
		want        string // kinds in whose objects images are pinned
	}{
		{"pods, whose controllers follow", pods, ""},
		{"a controller", "resources: {kinds: [Deployment]}", "Deployment"},
		{"controllers by their group", "resources: {kinds: [apps/v1/StatefulSet, batch/*/CronJob]}", "StatefulSet CronJob"},
		{"pods and a controller", "resources: {kinds: [Pod, Deployment]}", "Deployment"},
		{"pods by a label, which no controller follows from", "resources: {kinds: [Pod], selector: {matchLabels: {a: b}}}", ""},
		{"pods of a user, who makes no pods of controllers", pods + ", subjects: [{kind: User, name: jane}]", "DaemonSet Deployment Job StatefulSet ReplicaSet ReplicationController CronJob"},
		{"pods that are updated", "resources: {kinds: [Pod], operations: [UPDATE]}", "DaemonSet Deployment Job StatefulSet ReplicaSet ReplicationController CronJob"},
		{"pods that are created, too", "resources: {kinds: [Pod], operations: [CREATE, UPDATE]}", ""},
	} {
		p := compile(t, nil, match, "match: {any: [{"+c.now+"}]}")
		if got := strings.Join(p.NamedKinds(), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
	const all = "DaemonSet Deployment Job StatefulSet ReplicaSet ReplicationController CronJob"
	for exclude, want := range map[string]string{
		"subjects: [{kind: User, name: jane}]":                                                      "",
		"subjects: [{kind: ServiceAccount, namespace: ci, name: deployer}]":                         "",
		"clusterRoles: [cluster-admin]":                                                             "",
		"subjects: [{kind: ServiceAccount, namespace: kube-system, name: replicaset-controller}]":   all,
		"subjects: [{kind: ServiceAccount, namespace: kube-system, name: 'job-*'}]":                 all,
		"subjects: [{kind: Group, name: 'system:serviceaccounts:kube-system'}]":                     all,
		"subjects: [{kind: User, name: 'system:serviceaccount:kube-system:daemon-set-controller'}]": all,
		"clusterRoles: ['system:controller:*']":                                                     all,
	} {
		p := compile(t, nil, match, "exclude: {any: [{"+exclude+"}]}\n    "+match)
		if got := strings.Join(p.NamedKinds(), " "); got != want {
			t.Errorf("without %s: %q, want %q", exclude, got, want)
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
