package condition_test

import (
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/condition"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	source "github.com/quaymaster/quaymaster/policy/lang/condition"
)

// grammar makes conditions.
type grammar struct{ from *rand.Rand }

func (g grammar) one(of ...string) string { return of[g.from.IntN(len(of))] }

func (g grammar) any(of ...any) any { return of[g.from.IntN(len(of))] }

func (g grammar) condition() map[string]any {
	texts := []string{"request.object.spec.nodeName || ''", "request.object.spec.nodeName", "request.object.metadata.labels.app || ''", "request.operation",
		"request.object.spec.containers[0].image", `request.object.metadata.annotations."x.y/z" || ''`, "request.oldObject.spec.nodeName || ''", "request.oldObject.spec.nodeName",
		"to_upper(request.object.spec.containers[0].image)"}
	lists := []string{"request.object.spec.containers[].image", "request.object.spec.[initContainers, containers][].securityContext.capabilities.add[]",
		"request.object.spec.initContainers[].name", "request.object.spec.volumes[].keys(@)[] || ''", "request.object.spec.volumes[].name || `[]`",
		"request.object.metadata.keys(@)", "request.object.spec.containers[].securityContext.capabilities.drop[].to_upper(@)"}
	numbers := []string{"length(request.object.spec.containers)", "request.object.spec.priority || `0`", "request.object.spec.priority", "request.object.spec.volumes || `[]` | length(@)"}
	literal := func() any { return g.any("a", "b*", "*:1", "?*", "", "x", "CREATE", "node", "n?de", "ALL", "A:1") }
	list := func() any { return []any{literal(), g.any("a", "x", "", "NET_*", "name", "ALL")} }
	set := func() string { return g.one("In", "AnyIn", "AllIn", "NotIn", "AnyNotIn", "AllNotIn") }
	row := func(key, operator string, value any) map[string]any {
		return map[string]any{"key": key, "operator": operator, "value": value}
	}
	in := func(s string) string { return "{{ " + s + " }}" }
	switch g.from.IntN(9) {
	case 0, 1:
		return row(in(g.one(texts...)), g.one("Equals", "NotEquals"), literal())
	case 2:
		return row(in(g.one(texts...)), set(), list())
	case 3, 4:
		return row(in(g.one(lists...)), set(), list())
	case 5:
		return row(g.one("a", "x", "name", "ALL", "ownerReferences"), set(), in(g.one(lists...)))
	case 6:
		return row(in(g.one(numbers...)), g.one("GreaterThan", "LessThan", "GreaterThanOrEquals", "LessThanOrEquals", "Equals", "NotEquals"), g.any(0.0, 1.0, 2.0, "1"))
	case 7:
		return row(in("request.object.spec.containers[].ports[].hostPort"), set(), g.any("50-90", []any{80.0, 0.0}, []any{"80"}, 60.0))
	}
	return row(in("request.object.spec.hostNetwork || `false`"), g.one("Equals", "NotEquals"), g.any(true, false))
}

func (g grammar) conditions() any {
	some := func() []any {
		var all []any
		for range 1 + g.from.IntN(2) {
			all = append(all, g.condition())
		}
		return all
	}
	switch g.from.IntN(4) {
	case 0:
		return map[string]any{"any": some(), "all": some()}
	case 1:
		return map[string]any{"any": some()}
	case 2:
		return []any{map[string]any{"all": some()}, map[string]any{"any": some()}}
	}
	return map[string]any{"all": some()}
}

// podOf makes a pod of parts, as an API server has it; texts of the data have wildcards, too.
func podOf(t testing.TB, g grammar) map[string]any {
	container := func(name string) string {
		return "{name: " + name + ", image: " + g.one("a", "'a:1'", "b/c", "'*'", "'a*'", `'n^ode'`) +
			g.one("", ", securityContext: {capabilities: {add: [x, a]}}", ", securityContext: {capabilities: {add: ['NET_*'], drop: [ALL]}}", ", securityContext: {capabilities: {drop: [all, a]}}") +
			g.one("", ", ports: [{containerPort: 1}]", ", ports: [{containerPort: 1, hostPort: 80, name: a}, {containerPort: 2, hostPort: 60}]") + "}"
	}
	return decoded(t, "{metadata: {name: web"+g.one("", ", labels: {app: a}", ", labels: {app: ''}")+g.one("", ", ownerReferences: [{kind: Job}]")+
		g.one("", ", annotations: {'x.y/z': a}", ", annotations: {'x.y/z': 'n?de'}", ", annotations: {}")+"}, spec: {containers: ["+container("a")+g.one("", ", "+container("ab"))+"]"+
		g.one("", ", initContainers: ["+container("i")+"]")+g.one("", ", nodeName: node", ", nodeName: 'n*'")+g.one("", ", hostNetwork: true")+g.one("", ", priority: 1", ", priority: 5")+
		g.one("", ", volumes: [{name: v, secret: {secretName: s}}]", ", volumes: [{name: x}, {name: a}]")+"}}").(map[string]any)
}

// TestProperty compares the possible results of both sides of conditions. Where the source is indeterminate, a
// denial is one, an evaluation is demanded, and nothing is done.
func TestProperty(t *testing.T) {
	g := grammar{rand.New(rand.NewPCG(1, 2))} //nolint:gosec // a repeatable choice
	scope := scopeOf(t, schema.GroupVersionKind{Version: "v1", Kind: "Pod"})
	env, compared, refused := envOf(t), 0, 0
	for range 400 {
		conditions := g.conditions()
		for _, use := range []struct {
			name   string
			source source.Compiler
			result func(any, jmespath.Scope) (string, error)
			unsure []string // results for an indeterminate condition
		}{
			{"deny", source.CompileDeny, func(c any, s jmespath.Scope) (string, error) {
				made, _, err := condition.CompileDeny(c, s)
				return "!(" + made.Text + ")", err
			}, []string{holds, failed}},
			{"demand", source.CompileDemanding, func(c any, s jmespath.Scope) (string, error) {
				made, err := condition.CompileDemanding(c, s)
				return made.Text, err
			}, []string{holds, failed}},
			{"act", source.Compile, condition.Compile, []string{fails, failed}},
		} {
			text, err := use.result(conditions, scope)
			if err != nil {
				refused++
				continue
			}
			for range 3 {
				request := map[string]any{"operation": "CREATE", "object": podOf(t, g), "oldObject": nil}
				if g.from.IntN(2) == 0 {
					request["operation"], request["oldObject"] = "UPDATE", podOf(t, g)
				}
				compared++
				want, got := ofSource(t, use.source, conditions, request), ofResult(t, env, text, request)
				if want == failed && (use.name == "act" && got == fails || use.name == "deny" && got == holds) { // a condition before it is indeterminate
					continue
				}
				if want != got && (want != unsure || got != use.unsure[0] && got != use.unsure[1]) {
					t.Errorf("%s %v:\n%s\nof %v: %s, was %s", use.name, conditions, text, request, got, want)
				}
			}
		}
	}
	if refused > 600 {
		t.Errorf("%d conditions are refused", refused)
	}
	t.Logf("%d results compared, %d refused", compared, refused)
}
