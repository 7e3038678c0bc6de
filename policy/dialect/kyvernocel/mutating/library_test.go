package mutating_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
	"github.com/quaymaster/quaymaster/policy/set"
)

// style is a policy in the style of public libraries: the result for a pod, and a pod that
// it does not change.
type style struct{ name, more, makes, kept string }

func styles() []style {
	return []style{
		{"default requests", merges(`Object{
  spec: Object.spec{
    containers: object.spec.containers.map(c, Object.spec.containers{
      name: c.name,
      resources: Object.spec.containers.resources{
        requests: Object.spec.containers.resources.requests{
          cpu: c.?resources.?requests.?cpu.orValue("100m"),
          memory: c.?resources.?requests.?memory.orValue("100Mi")}}})}}`),
			`"resources":{"requests":{"cpu":"100m","memory":"100Mi"}}`, "{containers: [{name: a, resources: {requests: {cpu: 1, memory: 1Gi}}}]}"},
		{"a volume in every container", `  matchConditions: [{name: asked, expression: "!object.spec.?volumes.orValue([]).exists(v, v.name == 'certificates')"}]
` + merges(`Object{
  spec: Object.spec{
    containers: object.spec.containers.map(c, Object.spec.containers{
      name: c.name,
      volumeMounts: c.?volumeMounts.orValue([]) + [Object.spec.containers.volumeMounts{name: "certificates", mountPath: "/etc/ssl/certs"}]}),
    volumes: object.spec.?volumes.orValue([]) + [Object.spec.volumes{name: "certificates", configMap: Object.spec.volumes.configMap{name: "ca"}}]}}`),
			`"volumes":[{"configMap":{"name":"ca"},"name":"certificates"}]`, "{containers: [], volumes: [{name: certificates}]}"},
		{"an option of the resolver", patches(`has(object.spec.dnsConfig) && has(object.spec.dnsConfig.options) ?
(object.spec.dnsConfig.options.exists(o, o.name == "ndots") ? [] :
 [JSONPatch{op: "add", path: "/spec/dnsConfig/options/-", value: {"name": "ndots", "value": "1"}}]) :
(has(object.spec.dnsConfig) ?
 [JSONPatch{op: "add", path: "/spec/dnsConfig/options", value: [{"name": "ndots", "value": "1"}]}] :
 [JSONPatch{op: "add", path: "/spec/dnsConfig", value: {"options": [{"name": "ndots", "value": "1"}]}}])`),
			`"dnsConfig":{"options":[{"name":"ndots","value":"1"}]}`, "{containers: [], dnsConfig: {options: [{name: ndots, value: '2'}]}}"},
		{"the image in the environment", patches(`object.spec.containers.filter(c, !has(c.env)).map(c, JSONPatch{
  op: "add",
  path: "/spec/containers/" + string(object.spec.containers.indexOf(c)) + "/env",
  value: [{"name": "IMAGE", "value": string(c.image)}]})`),
			`"env":[{"name":"IMAGE","value":"a.example/a:1"}]`, "{containers: [{name: a, env: []}]}"},
		{"a security context", merges(`Object{spec: Object.spec{securityContext: Object.spec.securityContext{
  runAsNonRoot: object.spec.?securityContext.?runAsNonRoot.orValue(true),
  fsGroup: object.spec.?securityContext.?fsGroup.orValue(2000)}}}`),
			`"securityContext":{"fsGroup":2000,"runAsNonRoot":true}`, "{containers: [], securityContext: {runAsNonRoot: false, fsGroup: 1}}"},
		{"a pull secret", "  evaluation: {useServerSideApply: true}\n" + merges("Object{spec: Object.spec{imagePullSecrets: [Object.spec.imagePullSecrets{name: 'registry'}]}}"),
			`"imagePullSecrets":[{"name":"registry"}]`, "{containers: [], imagePullSecrets: [{name: registry}]}"},
		{"a sidecar", merges(`Object{spec: Object.spec{initContainers: [Object.spec.initContainers{
  name: "proxy", image: "a.example/proxy:1", restartPolicy: "Always",
  ports: [Object.spec.initContainers.ports{containerPort: 9000}]}]}}`),
			`"initContainers":[{"image":"a.example/proxy:1","name":"proxy","ports":[{"containerPort":9000}],"restartPolicy":"Always"}]`,
			"{containers: [], initContainers: [{name: proxy, image: 'a.example/proxy:1', restartPolicy: Always, ports: [{containerPort: 9000}]}]}"},
		{"tolerations", patches(`object.spec.?tolerations.orValue([]).exists(t, t.key == 'spot') ? [] : [JSONPatch{
  op: "add", path: "/spec/tolerations", value: object.spec.?tolerations.orValue([]) + [{"key": "spot", "operator": "Exists"}]}]`),
			`"tolerations":[{"key":"spot","operator":"Exists"}]`, "{containers: [], tolerations: [{key: spot}]}"},
	}
}

// TestLibrary has each policy make the same of a pod and of the templates of its
// controllers, and leave alone what has it; a second time it changes nothing.
func TestLibrary(t *testing.T) {
	for _, c := range styles() {
		p := compile(t, head+about("pods", c.more))
		for _, wrap := range []func(string) string{pod, deployment, cronJob} {
			s := subject(t, wrap(onePod))
			changed, results := mutate(t, s, []*policy.Policy{p})
			if what, why := verdict(results); what != "pass" || !strings.Contains(written(changed), c.makes) {
				t.Errorf("%s: %s %s\n%s", c.name, what, why, written(changed))
				continue
			}
			s.Object = policy.ContentOf(changed)
			if again, _ := mutate(t, s, []*policy.Policy{p}); again != nil {
				t.Errorf("%s: a second time it makes %s", c.name, written(again))
			}
			if kept, results := mutate(t, subject(t, wrap(c.kept)), []*policy.Policy{p}); kept != nil {
				t.Errorf("%s: it makes %s %v", c.name, written(kept), results)
			}
		}
	}
}

// TestConcurrent shares compiled policies, and the types of Kubernetes, between requests.
func TestConcurrent(t *testing.T) {
	set, err := set.New(compile(t, head+about("pods", styles()[0].more)))
	if err != nil {
		t.Fatal(err)
	}
	s := subject(t, deployment(onePod))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				if changed, _ := set.Mutate(t.Context(), s, none); !strings.Contains(written(changed), styles()[0].makes) {
					t.Error(written(changed))
				}
			}
		})
	}
	group.Wait()
}

// TestAttacks are bounded.
func TestAttacks(t *testing.T) {
	var doubling strings.Builder
	doubling.WriteString("[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'a': 'b'}}")
	for range 60 {
		doubling.WriteString(", JSONPatch{op: 'copy', from: '/metadata/annotations', path: '/metadata/annotations/x'}, JSONPatch{op: 'copy', from: '/metadata/annotations', path: '/metadata/annotations/y'}")
	}
	doubling.WriteString("]")
	for _, c := range []struct{ reason, text, want string }{
		{"copies of copies", patches(doubling.String()), "the patch's output"},
		{"a deep pointer", patches("[JSONPatch{op: 'add', path: '" + strings.Repeat("/a", 201) + "', value: 1}]"), "the parts of a pointer"},
		{"a large value", "  variables: [{name: a, expression: \"'" + strings.Repeat("x", 1<<15) + "'\"}, {name: b, expression: 'variables.a + variables.a + variables.a + variables.a + variables.a + variables.a + variables.a + variables.a'}, {name: c, expression: 'variables.b + variables.b + variables.b + variables.b + variables.b + variables.b + variables.b + variables.b'}]\n" +
			patches("[JSONPatch{op: 'add', path: '/metadata/labels/a', value: variables.c}, JSONPatch{op: 'add', path: '/metadata/labels/b', value: variables.c}]"), "the bound of"},
		{"lists of lists", "  variables: [{name: a, expression: '[1, 2]'}, {name: b, expression: '[variables.a, variables.a]'}, {name: c, expression: '[variables.b, variables.b]'}]\n" +
			merges("Object{spec: Object.spec{a: [[variables.c, variables.c], [variables.c, variables.c]].map(a, [a, a, a, a, a, a, a, a, a, a].map(b, [b, b, b, b, b, b, b, b, b, b].map(c, [c, c, c, c, c, c, c, c, c, c].map(d, [d, d, d, d, d, d, d, d, d, d].map(e, [e, e, e, e, e, e, e, e, e, e])))))}}"), "value"},
	} {
		start := time.Now()
		changed, results := mutate(t, subject(t, pod(onePod)), []*policy.Policy{compile(t, head+about("pods", c.text))})
		if what, why := verdict(results); what != "indeterminate" || !strings.Contains(why, c.want) || changed != nil {
			t.Errorf("%s: %s %.200s", c.reason, what, why)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: %s", c.reason, took)
		}
	}
}

func BenchmarkMutate(b *testing.B) {
	for _, c := range styles() {
		b.Run(strings.ReplaceAll(c.name, " ", "-"), func(b *testing.B) {
			set, err := set.New(compile(b, head+about("pods", c.more)))
			if err != nil {
				b.Fatal(err)
			}
			s := subject(b, pod(onePod))
			if changed, _ := set.Mutate(b.Context(), s, none); changed == nil {
				b.Fatal("nothing changes")
			}
			b.ReportAllocs()
			for b.Loop() {
				set.Mutate(b.Context(), s, none)
			}
		})
	}
}

// FuzzCompile compiles arbitrary documents, and applies them.
func FuzzCompile(f *testing.F) {
	for _, c := range styles() {
		f.Add(head + about("pods", c.more))
	}
	f.Add(head + about("example.com/widgets", merges("Object{spec: Object.spec{a: {'b': [1]}}}")))
	compiler := mutating.New(kyvernocel.Options{Kinds: widgets{}})
	f.Fuzz(func(t *testing.T, text string) {
		p, err := compiler.Compile([]byte(text), "fuzz")
		if (p == nil) != (err != nil) {
			t.Fatal(p, err)
		}
		if err != nil {
			compiler.Broken([]byte(text), "fuzz", err)
			return
		}
		for _, object := range []string{pod(onePod), deployment(onePod), widget} {
			mutate(t, subject(t, object), []*policy.Policy{p})
		}
	})
}
