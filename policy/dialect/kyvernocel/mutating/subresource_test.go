package mutating_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/subresource"
)

// TestSubresourceTriggers: requests for the subresources that a policy names change others, and no other requests.
func TestSubresourceTriggers(t *testing.T) {
	const node = "apiVersion: v1\nkind: Node\nmetadata: {name: web}\nstatus: {phase: Ready}\n"
	custom := "apiVersion: example.com/v1\nkind: Fleet\nmetadata: {name: web}\nstatus: {phase: Ready}\n"
	for _, c := range []struct{ reason, groups, resources, text, name, expression, want string }{
		{"a binding", "''", "pods/binding", pod("{nodeName: one}"), "binding", "request.object.kind + request.kind.kind + request.object.target.name", "BindingBindingone"},
		{"the pod, not its binding", "''", "pods/binding", pod("{nodeName: one}"), "", "", ""},
		{"another subresource", "''", "pods/binding", pod("{nodeName: one}"), "status", "", ""},
		{"a status", "''", "nodes/status", node, "status", "request.subResource + request.object.status.phase + request.operation", "statusReadyUPDATE"},
		{"the node, not its status", "''", "nodes/status", node, "", "", ""},
		{"a scale", "apps", "deployments/scale", deployment(onePod), "scale", "request.object.kind + request.resource.resource + string(request.object.spec.replicas)", "Scaledeployments2"},
		{"another kind", "apps", "statefulsets/scale", deployment(onePod), "scale", "", ""},
		{"added containers by name", "''", "pods, pods/ephemeralcontainers", pod(onePod), "ephemeralcontainers", "request.subResource", "ephemeralcontainers"},
		{"added containers of a policy for pods", "''", "pods", pod(onePod), "ephemeralcontainers", "", ""},
		{"a custom kind", "example.com", "fleets/status", custom, "status", "request.subResource + request.object.status.phase", "statusReady"},
	} {
		if c.expression == "" {
			c.expression = "request.name"
		}
		text := strings.NewReplacer("[configmaps]", "["+c.resources+"]", `apiGroups: [""], apiVersions: [v1], operations`, "apiGroups: ["+c.groups+"], apiVersions: [v1], operations",
			"object.metadata.name + ' by ' + request.name", c.expression).Replace(existing(targets))
		p, s := compile(t, text), subject(t, c.text)
		if c.name != "" {
			*s = subresource.Subject(s, c.name)
		}
		results := alter(t, p, s)
		if (len(results) == 1) != (c.want != "") || p.Alterations[0].Selects(s) != (c.want != "") || len(p.Mutations) > 0 {
			t.Errorf("%s: %+v, selected %t", c.reason, results, p.Alterations[0].Selects(s))
			continue
		}
		if c.want == "" {
			continue
		}
		if len(results[0].Selections) != 1 {
			t.Errorf("%s: %+v", c.reason, results[0])
			continue
		}
		made := results[0].Alter(t.Context(), results[0].Selections[0], subject(t, deployment(onePod)).Object.Map())
		if made.Result != policy.Pass || !strings.Contains(written(made.Object), `"of":"`+c.want+`"`) {
			t.Errorf("%s: %+v", c.reason, made)
		}
		s.Object = policy.Content{}
		if results := alter(t, p, s); len(results) != 0 {
			t.Errorf("%s, without the object: %+v", c.reason, results)
		}
	}
}
