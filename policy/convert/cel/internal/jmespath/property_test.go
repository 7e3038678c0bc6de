package jmespath_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
)

// grammar makes expressions of the supported grammar.
type grammar struct{ from *rand.Rand }

func (g grammar) one(of ...string) string { return of[g.from.IntN(len(of))] }

func (g grammar) text() string {
	return g.one("request.object.spec.nodeName", "request.object.metadata.labels.app", `request.object.metadata.annotations."x.y/z"`, "request.object.metadata.name",
		"request.object.spec.containers[0].image", "request.object.spec.initContainers[0].name", "request.oldObject.spec.nodeName")
}

func (g grammar) list() string {
	return g.one("request.object.spec.containers", "request.object.spec.initContainers", "request.object.spec.volumes",
		"request.object.spec.[initContainers, containers][]", "request.object.spec.containers[]", "request.object.spec.containers[?"+g.inner()+"]")
}

// inner is a condition on an element.
func (g grammar) inner() string {
	simple := func() string {
		return g.one("name == 'a'", "name != image", "image == name", "resources.limits.memory == resources.requests.memory", "starts_with(image, 'a')",
			"securityContext.privileged", "securityContext.capabilities", "livenessProbe", "ports[0].hostPort", "securityContext.capabilities.add || ports", "ports[0].hostPort > `70`", "contains(name, 'a')", "length(name) >= `1`", "livenessProbe.periodSeconds != `3`")
	}
	switch g.from.IntN(5) {
	case 0:
		return simple() + " && " + simple()
	case 1:
		return simple() + " || " + simple()
	case 2:
		return "!(" + simple() + ")"
	}
	return simple()
}

func (g grammar) texts() string {
	return g.list() + g.one("[].name", "[*].name", "[].image", "[].securityContext.capabilities.add[]", "[].securityContext.capabilities.add",
		"[].keys(@)[]", "[].ports[].name", "[].to_upper(name)")
}

func (g grammar) truth() string {
	switch g.from.IntN(6) {
	case 0:
		return fmt.Sprintf("%s == '%s'", g.text(), g.one("a", "", "node"))
	case 1:
		return fmt.Sprintf("contains(%s, '%s')", g.texts(), g.one("a", "X", "name"))
	case 2:
		return fmt.Sprintf("starts_with(%s, '%s')", g.text(), g.one("a", "n"))
	case 3:
		return fmt.Sprintf("length(%s) %s `%d`", g.list(), g.one(">", "==", "!=", "<="), g.from.IntN(3))
	case 4:
		return fmt.Sprintf("regex_match('%s', %s)", g.one("^a", "[a-n]+$"), g.text())
	}
	return g.one("request.object.spec.hostNetwork || `false`", "request.object.spec.hostNetwork")
}

func (g grammar) expression() string {
	switch g.from.IntN(9) {
	case 0:
		return g.text()
	case 1:
		return g.text() + g.one("", " || request.object.spec.nodeName", " || request.object.spec.hostname") + " || '" + g.one("", "a", "none") + "'"
	case 2:
		return g.texts()
	case 3:
		return g.texts() + " || `[]`"
	case 4:
		return "length(" + g.list() + ")"
	case 5:
		return g.list() + " || `[]` | length(@)"
	case 6:
		return g.truth() + g.one(" && ", " || ") + g.truth()
	case 7:
		return "split(" + g.text() + ", '" + g.one("a", ":") + "')"
	}
	return g.truth()
}

// TestProperty compares both sides of expressions of the grammar for pods of parts. An expression that is refused
// is none; most are not.
func TestProperty(t *testing.T) {
	s, g := newSides(t), grammar{rand.New(rand.NewPCG(1, 2))} //nolint:gosec // a repeatable choice
	scope := scopeOf(t, pod())
	refused, compared := 0, 0
	for range 1500 {
		text := g.expression()
		made, err := jmespath.Compile(text, scope)
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
			if why := s.differ(t, text, made, request); why != "" {
				t.Errorf("%s\n%s\nof %v: %s", text, made.Text, request, why)
			}
		}
	}
	if refused > 500 {
		t.Errorf("%d expressions are refused", refused)
	}
	t.Logf("%d values compared, %d expressions refused", compared, refused)
}

// podOf makes a pod of parts, as an API server has it.
func podOf(t testing.TB, g grammar) map[string]any {
	container := func(name string) string {
		return "{name: " + name + ", image: " + g.one("a", "a:1", "registry/nginx") +
			g.one("", ", securityContext: {privileged: true}", ", securityContext: {capabilities: {add: [x, a]}}", ", securityContext: {capabilities: {drop: [a]}}") +
			g.one("", ", ports: [{containerPort: 1}]", ", ports: [{containerPort: 1, hostPort: 80, name: a}, {containerPort: 2, hostPort: 60}]") +
			g.one("", ", resources: {limits: {memory: 1Gi}}", ", resources: {limits: {memory: 1Gi}, requests: {memory: 1Gi}}") + g.one("", ", livenessProbe: {periodSeconds: 3}") + "}"
	}
	return object(t, "{apiVersion: v1, kind: Pod, metadata: {name: web"+g.one("", ", labels: {app: a}", ", labels: {app: ''}", ", labels: {b: c}")+
		g.one("", ", annotations: {'x.y/z': a}", ", annotations: {x: a}")+"}, spec: {containers: ["+container("a")+g.one("", ", "+container("ab"))+"]"+
		g.one("", ", initContainers: ["+container("i")+"]")+g.one("", ", nodeName: node")+g.one("", ", hostNetwork: true")+
		g.one("", ", volumes: [{name: v, secret: {secretName: s}}]", ", volumes: [{name: v, emptyDir: {}}, {name: w}]")+"}}")
}

// differ returns how the two sides differ. Where the source is null, the result may fail.
func (s sides) differ(t testing.TB, text string, made jmespath.Expression, request map[string]any) string {
	want, wantErr := s.source(t, "{{ "+text+" }}", request)
	got, gotErr := s.result(t, made.Text, request)
	switch {
	case wantErr != nil && gotErr != nil, wantErr == nil && want == nil && gotErr != nil && made.Optional:
		return ""
	case (wantErr == nil) != (gotErr == nil):
		return fmt.Sprintf("%v (%v), was %v (%v)", got, gotErr, want, wantErr)
	}
	if list, isList := want.([]any); isList && len(list) > 0 {
		want, got = sorted(want), sorted(got)
	}
	if !same(want, got) {
		return fmt.Sprintf("%v, was %v", got, want)
	}
	return ""
}

// FuzzCompile: any text is compiled or refused.
func FuzzCompile(f *testing.F) {
	for _, text := range []string{"request.object.spec.nodeName || ''", "a[?b == '{{ c }}'] | length(@)", "keys(@)[", "`{{ request.operation }}`", "{{ {{", "request.*"} {
		f.Add(text)
	}
	scope := scopeOf(f, pod())
	f.Fuzz(func(t *testing.T, text string) {
		made, err := jmespath.Compile(text, scope)
		if err == nil && made.Text == "" {
			t.Errorf("%q has no form and no error", text)
		}
		_, _ = jmespath.Template(text, scope)
	})
}
