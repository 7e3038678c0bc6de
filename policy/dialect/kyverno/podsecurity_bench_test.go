package kyverno_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// podRules are rules such as people write from the Pod Security Standards.
var podRules = []string{
	"pattern: {spec: {=(hostNetwork): 'false', =(hostPID): 'false', =(hostIPC): 'false'}}",
	containers("=(securityContext): {=(privileged): 'false'}"),
	containers("securityContext: {allowPrivilegeEscalation: 'false'}"),
	containers("=(ports): [{=(hostPort): 0}]"),
	containers("=(securityContext): {=(procMount): Default}"),
	containers("=(securityContext): {=(windowsOptions): {=(hostProcess): 'false'}}"),
	containers("=(securityContext): {=(seccompProfile): {=(type): 'RuntimeDefault | Localhost'}}"),
	containers("=(securityContext): {=(seLinuxOptions): {X(user): null, X(role): null}}"),
	containers("=(securityContext): {=(runAsUser): '>0'}"),
	containers("securityContext: {readOnlyRootFilesystem: true}"),
	containers("image: '!*:latest & *:*'"),
	containers("resources: {requests: {memory: '?*', cpu: '?*'}, limits: {memory: '?*'}}"),
	"pattern: {spec: {=(volumes): [{X(hostPath): null}]}}",
	"pattern: {spec: {=(securityContext): {=(sysctls): [{=(name): 'kernel.shm_rmid_forced | net.ipv4.ip_local_port_range'}]}}}",
	"pattern: {=(metadata): {=(annotations): {=(container.apparmor.security.beta.kubernetes.io/*): 'runtime/default | localhost/*'}}}",
	"anyPattern: [{spec: {securityContext: {runAsNonRoot: true}}}, {spec: {containers: [{securityContext: {runAsNonRoot: true}}]}}]",
	"deny: {conditions: {any: [{key: '{{ request.object.spec.[ephemeralContainers, initContainers, containers][].securityContext.capabilities.add[] || `[]` }}', operator: AnyNotIn, value: [NET_BIND_SERVICE, CHOWN]}]}}",
	"foreach: [{list: 'request.object.spec.[ephemeralContainers, initContainers, containers][]', deny: {conditions: {all: [{key: ALL, operator: AnyNotIn, value: '{{ element.securityContext.capabilities.drop[] || `[]` }}'}]}}}]",
}

func containers(pattern string) string {
	return "pattern: {spec: {=(ephemeralContainers): [{" + pattern + "}], =(initContainers): [{" + pattern + "}], containers: [{" + pattern + "}]}}"
}

func podPolicies(tb testing.TB) *set.Set {
	tb.Helper()
	var list []*policy.Policy
	for i, rule := range podRules {
		text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p%02d}, spec: {validationFailureAction: Enforce, rules: [
  {name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: not allowed, %s}}]}}`, i, rule)
		p, err := newCompiler(tb, nil).Compile([]byte(text), "bench")
		if err != nil {
			tb.Fatal(err)
		}
		list = append(list, p)
	}
	return setOf(tb, list...)
}

func setOf(tb testing.TB, list ...*policy.Policy) *set.Set {
	tb.Helper()
	set, err := set.New(list...)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// goodPod is a pod that meets podRules.
func goodPod() map[string]any {
	one := func(name string) map[string]any {
		return map[string]any{
			"name": name, "image": "ghcr.io/org/" + name + ":v1", "ports": []any{map[string]any{"containerPort": 8080.0}},
			"env":       []any{map[string]any{"name": "A", "value": "b"}, map[string]any{"name": "C", "value": "d"}},
			"resources": map[string]any{"requests": map[string]any{"memory": "64Mi", "cpu": "100m"}, "limits": map[string]any{"memory": "128Mi"}},
			"securityContext": map[string]any{
				"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true, "runAsUser": 1000.0,
				"capabilities": map[string]any{"drop": []any{"ALL"}}, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
			},
			"volumeMounts": []any{map[string]any{"name": "data", "mountPath": "/data"}},
		}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "web", "namespace": "prod", "labels": map[string]any{"app": "web"}, "annotations": map[string]any{"a": "b"}},
		"spec": map[string]any{
			"containers": []any{one("web"), one("sidecar")}, "initContainers": []any{one("init")},
			"securityContext": map[string]any{"runAsNonRoot": true, "fsGroup": 1000.0},
			"volumes":         []any{map[string]any{"name": "data", "emptyDir": map[string]any{}}},
		},
	}
}

func TestPodPolicies(t *testing.T) {
	set := podPolicies(t)
	find := func([]policy.Extractor) ([]policy.Image, error) { return nil, nil }
	for _, r := range set.Validate(t.Context(), subjectOf(goodPod()), find) {
		if r.Ruling.Result != policy.Pass {
			t.Errorf("%s: %+v %s", r.Policy.Name, r.Ruling, r.Skip)
		}
	}
	bare := map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "bad"},
		"spec": map[string]any{"hostPID": true, "containers": []any{map[string]any{
			"name": "a", "image": "nginx:latest", "ports": []any{map[string]any{"hostPort": 80.0}},
			"securityContext": map[string]any{"privileged": true, "capabilities": map[string]any{"add": []any{"SYS_ADMIN"}}},
		}}},
	}
	failed := 0
	for _, r := range set.Validate(t.Context(), subjectOf(bare), find) {
		if r.Ruling.Result == policy.Fail {
			failed++
		}
	}
	if failed != 10 {
		t.Errorf("%d policies object to the bad pod, want 10", failed)
	}
}

// BenchmarkPodSecurity asks 18 policies about one pod, from its subject to the results.
func BenchmarkPodSecurity(b *testing.B) {
	run := func(b *testing.B, set *set.Set) {
		subject := subjectOf(goodPod())
		find := func([]policy.Extractor) ([]policy.Image, error) { return nil, nil }
		b.ReportAllocs()
		for b.Loop() {
			if results := set.Validate(b.Context(), subject, find); len(results) < 18 {
				b.Fatal(len(results))
			}
		}
	}
	b.Run("own", func(b *testing.B) { run(b, podPolicies(b)) })
	root := os.Getenv("QUAYMASTER_SAMPLES")
	if root == "" {
		return
	}
	b.Run("samples", func(b *testing.B) {
		var list []*policy.Policy
		for _, standard := range []string{"baseline", "restricted"} {
			files, err := filepath.Glob(filepath.Join(root, "kyverno-tests", standard, "*", "*.yaml"))
			if err != nil {
				b.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					b.Fatal(err)
				}
				p, err := newCompiler(b, nil).Compile([]byte(strings.TrimSpace(string(text))), file)
				if err != nil {
					b.Fatal(err)
				}
				list = append(list, p)
			}
		}
		run(b, setOf(b, list...))
	})
}

// TestAllocations bounds the allocations for one pod: at thousands of pods a second,
// garbage collection is most of the cost.
func TestAllocations(t *testing.T) {
	find := func([]policy.Extractor) ([]policy.Image, error) { return nil, nil }
	validated, subject := podPolicies(t), subjectOf(goodPod())
	if got := testing.AllocsPerRun(100, func() { validated.Validate(t.Context(), subject, find) }); got > 160 {
		t.Errorf("18 Pod Security policies: %v allocations, want at most 160", got)
	}
	came := *subject
	came.Request = policy.RequestFrom([]byte(`{"operation": "CREATE", "userInfo": {"username": "ann", "groups": ["a", "b"], "extra": {"c": ["d"]}}}`))
	// A condition that reads one member of the request pays for no other.
	for _, c := range []struct {
		reason, text string
		subject      *policy.Subject
		most         float64
	}{
		{"the object", "{{ request.object.metadata.name }}", subject, 35},
		{"the operation", "{{ request.operation }}", subject, 31},
		{"the user", "{{ request.userInfo.username }}", subject, 29},
		{"the user of a request that came", "{{ request.userInfo.username }}", &came, 28},
		{"a call", "{{ length(request.userInfo.groups) }}", &came, 27},
	} {
		set := setOf(t, compiled(t, c.text))
		if got := testing.AllocsPerRun(100, func() { set.Validate(t.Context(), c.subject, find) }); got > c.most {
			t.Errorf("%s: %v allocations, want at most %v", c.reason, got, c.most)
		}
	}
}

func compiled(tb testing.TB, key string) *policy.Policy {
	tb.Helper()
	value := "none"
	if strings.Contains(key, "request.operation") {
		value = "DELETE"
	}
	text := fmt.Sprintf(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {validationFailureAction: Enforce, rules: [
  {name: r, match: {any: [{resources: {kinds: [Pod]}}]}, validate: {message: m, deny: {conditions: {any: [{key: '%s', operator: Equals, value: %s}]}}}}]}}`, key, value)
	p, err := newCompiler(tb, nil).Compile([]byte(text), "bench")
	if err != nil {
		tb.Fatal(err)
	}
	return p
}
