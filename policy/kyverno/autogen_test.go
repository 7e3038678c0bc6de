package kyverno_test

import (
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
