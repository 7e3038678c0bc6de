package mutating_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
	"github.com/quaymaster/quaymaster/policy/policytest"
)

const onePod = `{containers: [{name: a, image: "a.example/a:1", ports: [{containerPort: 80}]}]}`

// TestConfigurations merges configurations into a pod, and into the templates of its
// controllers.
func TestConfigurations(t *testing.T) {
	for _, c := range []struct{ reason, expression, want string }{
		{"a label", "Object{metadata: Object.metadata{labels: Object.metadata.labels{team: 'b'}}}", `{"metadata":{"labels":{"app":"web","team":"b"}}}`},
		{"labels by a map", "Object{metadata: Object.metadata{labels: {'a.example/team': string(object.metadata.labels.app)}}}", `{"metadata":{"labels":{"a.example/team":"web","app":"web"}}}`},
		{"a field of every container", "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, imagePullPolicy: 'Always'})}}",
			`{"spec":{"containers":[{"image":"a.example/a:1","imagePullPolicy":"Always","name":"a","ports":[{"containerPort":80}]}]}}`},
		{"another container", "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'b', image: 'b.example/b:1'}]}}",
			`{"spec":{"containers":[{"image":"a.example/a:1","name":"a","ports":[{"containerPort":80}]},{"image":"b.example/b:1","name":"b"}]}}`},
		{"a list in a list", "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', env: [Object.spec.containers.env{name: 'A', value: 'b'}]}]}}",
			`{"spec":{"containers":[{"env":[{"name":"A","value":"b"}],"image":"a.example/a:1","name":"a","ports":[{"containerPort":80}]}]}}`},
		{"a list of maps", "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', env: [{'name': 'A', 'value': 'b'}]}]}}",
			`{"spec":{"containers":[{"env":[{"name":"A","value":"b"}],"image":"a.example/a:1","name":"a","ports":[{"containerPort":80}]}]}}`},
		{"a number", "Object{spec: Object.spec{terminationGracePeriodSeconds: 5}}", `{"spec":{"terminationGracePeriodSeconds":5}}`},
		{"what a condition leaves out", "Object{spec: Object.spec{?hostNetwork: has(object.spec.hostNetwork) ? optional.of(false) : optional.none()}}", `{}`},
		{"nothing", "Object{}", `{}`},
	} {
		p := compile(t, head+about("pods", merges(c.expression)))
		for _, k := range []struct {
			kind string
			wrap func(string) string
			at   []string
		}{{"pod", pod, nil}, {"deployment", deployment, []string{"spec", "template"}}, {"cron job", cronJob, []string{"spec", "jobTemplate", "spec", "template"}}} {
			s := subject(t, k.wrap(onePod))
			changed, results := mutate(t, s, []*policy.Policy{p})
			if what, why := verdict(results); what != "pass" {
				t.Errorf("%s: %s: %s %s", c.reason, k.kind, what, why)
				continue
			}
			want := policytest.Object(t, k.wrap(onePod))
			template := want
			for _, step := range k.at {
				template = template[step].(map[string]any)
			}
			for part, value := range policytest.Object(t, c.want) {
				for key, v := range value.(map[string]any) {
					template[part].(map[string]any)[key] = v
				}
			}
			if c.want == "{}" {
				want = nil
			}
			if written(changed) != written(want) || results[0].Changed != (want != nil) {
				t.Errorf("%s: %s:\n%s, want\n%s", c.reason, k.kind, written(changed), written(want))
			}
		}
	}
}

// TestRefusedConfigurations are those that would lose or misplace something.
func TestRefusedConfigurations(t *testing.T) {
	for _, c := range []struct{ reason, expression, want string }{
		{"an atomic list", "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', args: ['-v']}]}}", "would replace all of spec.containers.args: use a JSONPatch, or set spec.evaluation.useServerSideApply"},
		{"an atomic map", "Object{spec: Object.spec{nodeSelector: {'a': 'b'}}}", "would replace all of spec.nodeSelector: use a JSONPatch"},
		{"a type at another place", "Object{spec: Object.spec{securityContext: Object.spec.other{runAsNonRoot: true}}}", "Object.spec.other{...} is used for a field of type Object.spec.securityContext{...}"},
		{"a field that no pod has", "Object{spec: Object.spec{nosuch: 1}}", "the configuration does not fit the type Pod"},
		{"text for a number", "Object{spec: Object.spec{terminationGracePeriodSeconds: '5'}}", "does not fit the type Pod"},
		{"an element twice", "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'b'}, Object.spec.containers{name: 'b', image: 'a'}]}}", "does not fit the type Pod"},
		{"another name", "Object{metadata: Object.metadata{name: 'other'}}", "it changes name, by which the object is known"},
		{"what JSON has no word for", "Object{spec: Object.spec{a: type(1)}}", "JSON has no word"},
	} {
		changed, results := mutate(t, subject(t, pod(onePod)), []*policy.Policy{compile(t, head+about("pods", merges(c.expression)))})
		what, why := verdict(results)
		if what != "indeterminate" || !strings.Contains(why, c.want) || changed != nil || !strings.HasPrefix(why, "spec.mutations[0].applyConfiguration.expression: the mutation cannot be made: ") {
			t.Errorf("%s: %s %q %v", c.reason, what, why, changed)
		}
	}
}

// TestOddObjects are merged with as far as they are of their type.
func TestOddObjects(t *testing.T) {
	p := compile(t, head+about("pods", merges("Object{metadata: Object.metadata{labels: {'a': 'b'}}}")))
	for spec, want := range map[string]string{
		onePod: "pass", "{containers: [{name: a, env: [{name: A, value: b}, {name: A, value: c}]}]}": "pass",
		"{containers: [], nosuch: 1}": "indeterminate",
		"{nodeName: 7}":               "indeterminate",
	} {
		changed, results := mutate(t, subject(t, pod(spec)), []*policy.Policy{p})
		what, why := verdict(results)
		if what != want || strings.Contains(why, "valueUnstructured") || want == "indeterminate" && !strings.Contains(why, "the object does not fit the type Pod") || (changed != nil) != (want == "pass") {
			t.Errorf("%s: %s %s %s", spec, what, why, written(changed))
		}
	}
}

// TestServerSideApply: atomic lists are replaced only if the policy sets
// useServerSideApply.
func TestServerSideApply(t *testing.T) {
	for said, want := range map[string]string{"useServerSideApply: true": "pass", "useServerSideApply: false": "indeterminate", "": "indeterminate"} {
		text := head + about("pods", merges("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a', args: ['-v']}]}}")+"  evaluation: {"+said+"}\n")
		changed, results := mutate(t, subject(t, pod(onePod)), []*policy.Policy{compile(t, text)})
		if what, why := verdict(results); what != want || strings.Contains(written(changed), `"args":["-v"]`) != (want == "pass") {
			t.Error(said, what, why, written(changed))
		}
	}
}

const widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 1, parts: [{name: a}]}}"

// TestOtherKinds merges the maps of a kind that is not Kubernetes' own, and no lists.
func TestOtherKinds(t *testing.T) {
	known := func(o *kyvernocel.Options) { o.Kinds = widgets{} }
	for expression, want := range map[string]string{
		"Object{spec: Object.spec{size: 2}}":                               `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"parts":[{"name":"a"}],"size":2}}`,
		"Object{spec: Object.spec{parts: [Object.spec.parts{name: 'b'}]}}": "",
	} {
		for _, serverSide := range []string{"false", "true"} {
			p := compile(t, head+about("example.com/widgets", merges(expression)+"  evaluation: {useServerSideApply: "+serverSide+"}\n"), known)
			changed, results := mutate(t, subject(t, widget), []*policy.Policy{p})
			what, why := verdict(results)
			if want != "" && (what != "pass" || written(changed) != want) || want == "" && (what != "indeterminate" || !strings.Contains(why, "would replace all of spec.parts: use a JSONPatch")) {
				t.Errorf("%s: %s %s %s", expression, what, why, written(changed))
			}
		}
	}
}

// TestOperations carries out JSON patches on a pod.
func TestOperations(t *testing.T) {
	for _, c := range []struct{ reason, expression, want string }{
		{"add", "[JSONPatch{op: 'add', path: '/metadata/labels/team', value: 'b'}]", `"labels":{"app":"web","team":"b"}`},
		{"add to the end", "[JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'b'}}]", `"ports":[{"containerPort":80}]},{"name":"b"}]`},
		{"add at the beginning", "[JSONPatch{op: 'add', path: '/spec/containers/0', value: {'name': 'b'}}]", `"containers":[{"name":"b"},{`},
		{"an escaped key", "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a.example/b~c'), value: 'b'}]", `"a.example/b~c":"b"`},
		{"replace", "[JSONPatch{op: 'replace', path: '/spec/containers/0/image', value: 'b.example/' + object.spec.containers[0].image}]", `"image":"b.example/a.example/a:1"`},
		{"for every container", "object.spec.containers.map(c, JSONPatch{op: 'add', path: '/spec/containers/' + string(object.spec.containers.map(n, n.name).indexOf(c.name)) + '/tty', value: true})", `"tty":true`},
		{"remove", "[JSONPatch{op: 'remove', path: '/spec/containers/0/ports'}]", `"containers":[{"image":"a.example/a:1","name":"a"}]`},
		{"copy", "[JSONPatch{op: 'copy', from: '/metadata/labels/app', path: '/metadata/labels/of'}]", `"labels":{"app":"web","of":"web"}`},
		{"move", "[JSONPatch{op: 'move', from: '/metadata/labels/app', path: '/metadata/labels/of'}]", `"labels":{"of":"web"}`},
		{"a test that holds", "[JSONPatch{op: 'test', path: '/metadata/labels/app', value: 'web'}, JSONPatch{op: 'remove', path: '/metadata/labels/app'}]", `"labels":{}`},
		{"of a number", "[JSONPatch{op: 'test', path: '/spec/containers/0/ports/0/containerPort', value: 80}, JSONPatch{op: 'remove', path: '/metadata/labels/app'}]", `"labels":{}`},
		{"of a missing member", "[JSONPatch{op: 'test', path: '/metadata/labels/b', value: null}, JSONPatch{op: 'remove', path: '/metadata/labels/app'}]", `"labels":{}`},
		{"a test that fails", "[JSONPatch{op: 'remove', path: '/metadata/labels/app'}, JSONPatch{op: 'test', path: '/spec/containers/0/name', value: 'b'}]", "null"},
		{"no operation", "[JSONPatch{op: 'remove', path: '/metadata/labels/app'}].filter(p, false)", "null"},
	} {
		changed, results := mutate(t, subject(t, pod(onePod)), []*policy.Policy{compile(t, head+about("pods", patches(c.expression)))})
		if what, why := verdict(results); what != "pass" || !strings.Contains(written(changed), c.want) {
			t.Errorf("%s: %s %s\n%s, want %s", c.reason, what, why, written(changed), c.want)
		}
	}
}

// TestRefusedOperations cannot be carried out, and so nothing is.
func TestRefusedOperations(t *testing.T) {
	const first = "JSONPatch{op: 'add', path: '/metadata/labels/team', value: 'b'}, "
	for _, c := range []struct{ reason, operation, want string }{
		{"below a missing member", "JSONPatch{op: 'add', path: '/metadata/annotations/a', value: 'b'}", "the operation 1, add /metadata/annotations/a: there is nothing at the place"},
		{"remove a missing member", "JSONPatch{op: 'remove', path: '/metadata/annotations'}", "there is nothing"},
		{"replace a missing member", "JSONPatch{op: 'replace', path: '/metadata/annotations', value: {'a': 'b'}}", "there is nothing"},
		{"past the end", "JSONPatch{op: 'add', path: '/spec/containers/2', value: {'name': 'b'}}", "there is nothing"},
		{"replace past the end", "JSONPatch{op: 'replace', path: '/spec/containers/1', value: {'name': 'b'}}", "there is nothing"},
		{"remove past the end", "JSONPatch{op: 'remove', path: '/spec/containers/1'}", "there is nothing"},
		{"from past the end", "JSONPatch{op: 'copy', from: '/spec/containers/1/name', path: '/metadata/labels/a'}", "there is nothing"},
		{"from no pointer", "JSONPatch{op: 'copy', from: 'spec', path: '/spec/a'}", "from: \"spec\" is no JSON pointer"},
		{"below an invalid index", "JSONPatch{op: 'add', path: '/spec/containers/x/tty', value: true}", `"x" is no index`},
		{"a test of an invalid index", "JSONPatch{op: 'test', path: '/spec/containers/x', value: null}", `"x" is no index`},
		{"the deepest pointer", "JSONPatch{op: 'add', path: '" + strings.Repeat("/a", 200) + "', value: 1}", "there is nothing"},
		{"a deeper one", "JSONPatch{op: 'add', path: '" + strings.Repeat("/a", 201) + "', value: 1}", "the parts of a pointer"},
		{"before the beginning", "JSONPatch{op: 'remove', path: '/spec/containers/-1'}", `"-1" is no index`},
		{"an index with a zero", "JSONPatch{op: 'remove', path: '/spec/containers/00'}", `"00" is no index`},
		{"in a text", "JSONPatch{op: 'add', path: '/metadata/name/a', value: 'b'}", "there is nothing"},
		{"no value", "JSONPatch{op: 'add', path: '/metadata/labels/a'}", "it has no value"},
		{"no operation", "JSONPatch{op: 'put', path: '/metadata/labels/a', value: 'b'}", `"put" is no operation`},
		{"the whole object", "JSONPatch{op: 'replace', path: '', value: {'a': 'b'}}", "is no JSON pointer to a field"},
		{"no pointer", "JSONPatch{op: 'remove', path: 'spec'}", "is no JSON pointer"},
		{"from nowhere", "JSONPatch{op: 'copy', from: '/spec/none', path: '/spec/a'}", "from /spec/none: there is nothing"},
		{"into itself", "JSONPatch{op: 'move', from: '/spec', path: '/spec/a'}", "there is nothing"},
		{"a test below a missing member", "JSONPatch{op: 'test', path: '/spec/none/a', value: 1}", "there is nothing"},
		{"the kind", "JSONPatch{op: 'replace', path: '/kind', value: 'Secret'}", "it changes kind"},
		{"a type at another place", "JSONPatch{op: 'add', path: '/spec/securityContext', value: Object.spec.a{b: Object.spec.c{d: 1}}}", "Object.spec.c{...} is used for a field of type Object.spec.a.b{...}"},
	} {
		changed, results := mutate(t, subject(t, pod(onePod)), []*policy.Policy{compile(t, head+about("pods", patches("["+first+c.operation+"]")))})
		what, why := verdict(results)
		if what != "indeterminate" || !strings.Contains(why, c.want) || changed != nil {
			t.Errorf("%s: %s %q %v", c.reason, what, why, written(changed))
		}
	}
}

// TestBodies merges a configuration into the object that a subresource receives, which may be of a
// kind of its own.
func TestBodies(t *testing.T) {
	const scale = "apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {name: web, namespace: shop}\nspec: {replicas: 5}\n"
	const eviction = "apiVersion: policy/v1\nkind: Eviction\nmetadata: {name: web, namespace: shop}\n"
	for _, c := range []struct{ reason, resource, group, kind, body, expression, want string }{
		{"a Scale", "apps/deployments/scale", "apps", "Deployment", scale, "Object{spec: Object.spec{replicas: 1}}", `"spec":{"replicas":1}`},
		{"a Scale of another kind", "apps/statefulsets/scale", "apps", "StatefulSet", scale, "Object{metadata: Object.metadata{labels: {'a': 'b'}}}", `"labels":{"a":"b"}`},
		{"an Eviction", "/pods/eviction", "", "Pod", eviction, "Object{deleteOptions: Object.deleteOptions{gracePeriodSeconds: 30}}", `"deleteOptions":{"gracePeriodSeconds":30}`},
		{"the object itself", "/pods/ephemeralcontainers", "", "Pod", pod(onePod), "Object{metadata: Object.metadata{labels: {'a': 'b'}}}", `"labels":{"a":"b","app":"web"}`},
		{"a text in place of an object", "/pods/ephemeralcontainers", "", "Pod", pod(onePod), "Object{spec: Object.spec{securityContext: 'none'}}", "does not fit the type Pod"},
		{"an operation on a body", "apps/deployments/scale", "apps", "Deployment", scale, "", `"spec":{"replicas":1}`},
	} {
		mutation := merges(c.expression)
		if c.expression == "" {
			mutation = patches("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 1}]")
		}
		p := compile(t, head+about(c.resource, mutation))
		s := subject(t, c.body, func(s *policy.Subject) {
			s.Group, s.Version, s.Kind, s.Operation = c.group, "v1", c.kind, "UPDATE"
			_, s.Subresource, _ = strings.Cut(c.resource[strings.Index(c.resource, "/")+1:], "/")
		})
		changed, results := mutate(t, s, []*policy.Policy{p})
		what, why := verdict(results)
		got := written(changed)
		if changed == nil {
			got = why
		}
		if fits := !strings.Contains(c.want, "does not fit"); (what == "pass") != fits || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s %s, want %s", c.reason, what, got, c.want)
		}
	}
}

// TestLargeIntegers: an integer that a float64 rounds is neither written nor compared. One that is
// exact, or that no operation reads, is left as it is.
func TestLargeIntegers(t *testing.T) {
	crate := "apiVersion: example.test/v1\nkind: Crate\nmetadata: {name: a, labels: {app: web}}\n" +
		"spec: {big: 9007199254740993, top: 9223372036854775807, in: {deep: [9007199254740993]}, low: -9007199254740993, last: 9007199254740991, half: 0.5, huge: 1.0e+300}\n"
	const then = ", JSONPatch{op: 'remove', path: '/metadata/labels/app'}"
	operation := func(text string) string { return patches("[" + text + "]") }
	for _, c := range []struct{ mutation, want string }{ // the message where it begins with "an " or "the "
		{operation("JSONPatch{op: 'move', from: '/spec/big', path: '/spec/x'}"), "an integer near 9007199254740992"},
		{operation("JSONPatch{op: 'copy', from: '/spec/big', path: '/spec/x'}"), "an integer near 9007199254740992"},
		{operation("JSONPatch{op: 'copy', from: '/spec/low', path: '/spec/x'}"), "an integer near -9007199254740992"},
		{operation("JSONPatch{op: 'copy', from: '/spec/top', path: '/spec/x'}"), "an integer near 9223372036854775808"},
		{operation("JSONPatch{op: 'copy', from: '/spec/in', path: '/spec/x'}"), "an integer near"},
		{operation("JSONPatch{op: 'move', from: '/spec', path: '/data'}"), "an integer near"},
		{operation("JSONPatch{op: 'test', path: '/spec/big', value: 9007199254740992}" + then), "an integer near"},
		{operation("JSONPatch{op: 'test', path: '/spec/in', value: {'deep': [9007199254740992]}}" + then), "an integer near"},
		{operation("JSONPatch{op: 'test', path: '/spec/big', value: 9007199254740993}" + then), "the integer 9007199254740993"},
		{operation("JSONPatch{op: 'add', path: '/spec/x', value: 9007199254740993}"), "the integer 9007199254740993"},
		{operation("JSONPatch{op: 'replace', path: '/spec/last', value: {'a': [-9007199254740993]}}"), "the integer -9007199254740993"},
		{operation("JSONPatch{op: 'add', path: '/spec/x', value: 9223372036854775807}"), "the integer 9223372036854775807"},
		{operation("JSONPatch{op: 'add', path: '/spec/x', value: 18446744073709551615u}"), "the integer 18446744073709551615"},
		{merges("Object{spec: Object.spec{x: 9007199254740993}}"), "the integer 9007199254740993"},
		{merges("Object{spec: Object.spec{x: {'a': dyn(9007199254740993u)}}}"), "the integer 9007199254740993"},
		{operation("JSONPatch{op: 'move', from: '/spec/last', path: '/spec/x'}"), `"x":9007199254740991`},
		{operation("JSONPatch{op: 'copy', from: '/spec/half', path: '/spec/x'}"), `"x":0.5`},
		{operation("JSONPatch{op: 'copy', from: '/spec/huge', path: '/spec/x'}"), `"x":1e+300`},
		{operation("JSONPatch{op: 'test', path: '/spec/last', value: 9007199254740991}" + then), `"labels":{}`},
		{operation("JSONPatch{op: 'test', path: '/spec/big', value: 7}" + then), "null"},
		{operation("JSONPatch{op: 'add', path: '/spec/x', value: 9007199254740992}"), `"x":9007199254740992`},
		{operation("JSONPatch{op: 'add', path: '/spec/x', value: {'a': -9007199254740991}}"), `"x":{"a":-9007199254740991}`},
		{operation("JSONPatch{op: 'remove', path: '/spec/big'}"), `"spec":{"half"`},
		{merges("Object{spec: Object.spec{x: 9007199254740991}}"), `"x":9007199254740991`},
	} {
		p := compile(t, head+about("example.test/crates", c.mutation))
		changed, results := mutate(t, subject(t, crate), []*policy.Policy{p})
		what, why := verdict(results)
		refused := strings.HasPrefix(c.want, "an ") || strings.HasPrefix(c.want, "the ")
		got := written(changed)
		if refused {
			got = why
		}
		if (what == "indeterminate") != refused || refused && changed != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s %s\n%s, want %s", c.mutation, what, why, written(changed), c.want)
		}
	}
}

// TestBounds: the largest patches are applied, and larger ones are refused.
func TestBounds(t *testing.T) {
	nested := func(depth int, empty, end string) string {
		text := "JSONPatch{op: 'add', path: '/metadata/a', value: {'a': 'b'}}"
		for range depth - 1 {
			text += ", JSONPatch{op: 'move', from: '/metadata/a', path: '/metadata/b'}, JSONPatch{op: 'add', path: '/metadata/a', value: " + empty + "}, JSONPatch{op: 'move', from: '/metadata/b', path: '/metadata/a/" + end + "'}"
		}
		return text + ", JSONPatch{op: 'copy', from: '/metadata/a', path: '/metadata/c'}"
	}
	third := "JSONPatch{op: 'copy', from: '/metadata/annotations/a', path: '/metadata/labels/a'}"
	thirds := strings.Join([]string{third, third, third}, ", ")
	large := func(text int) string {
		return strings.Replace(pod(onePod), "labels:", "annotations: {a: "+strings.Repeat("x", text)+"}, labels:", 1)
	}
	for _, c := range []struct{ reason, object, operations, want string }{
		{"the deepest value", pod(onePod), nested(200, "{}", "x"), ""},
		{"a deeper one", pod(onePod), nested(201, "{}", "x"), "the depth of the patch's output"},
		{"the deepest list", pod(onePod), nested(200, "['a']", "-"), ""},
		{"a deeper one", pod(onePod), nested(201, "['a']", "-"), "the depth of the patch's output"},
		{"as much as may be written", large(1<<20 - 8), thirds, ""},
		{"and one value more", large(1<<20 - 8), thirds + ", JSONPatch{op: 'add', path: '/metadata/labels/b', value: ''}", "the patch's output"},
		{"and one byte more, in the last value", large(1<<20 - 7), thirds, "the patch's output"},
	} {
		changed, results := mutate(t, subject(t, c.object), []*policy.Policy{compile(t, head+about("pods", patches("["+c.operations+"]")))})
		what, why := verdict(results)
		if c.want == "" && (what != "pass" || changed == nil) || c.want != "" && (what != "indeterminate" || !strings.Contains(why, c.want)) {
			t.Errorf("%s: %s %.300s", c.reason, what, why)
		}
	}
}

// TestTemplates has operations on a pod change the template of its controllers, and
// nothing else of them.
func TestTemplates(t *testing.T) {
	for _, c := range []struct{ reason, operation, want string }{
		{"a label", "JSONPatch{op: 'add', path: '/metadata/labels/team', value: 'b'}", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"own":"mine"},"name":"web"},"spec":{"replicas":2,"template":{"metadata":{"labels":{"app":"web","team":"b"}},"spec":{"containers":[{"name":"a"}]}}}}`},
		{"all of the metadata", "JSONPatch{op: 'remove', path: '/metadata'}", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"labels":{"own":"mine"},"name":"web"},"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"a"}]}}}}`},
		{"what no template has", "JSONPatch{op: 'add', path: '/status', value: {'a': 'b'}}", ""},
		{"what only the controller has", "JSONPatch{op: 'replace', path: '/spec/replicas', value: 3}", ""},
	} {
		changed, results := mutate(t, subject(t, deployment("{containers: [{name: a}]}")), []*policy.Policy{compile(t, head+about("pods", patches("["+c.operation+"]")))})
		what, why := verdict(results)
		if c.want == "" && what != "indeterminate" || c.want != "" && (what != "pass" || written(changed) != c.want) {
			t.Errorf("%s: %s %s\n%s", c.reason, what, why, written(changed))
		}
	}
	if changed, results := mutate(t, subject(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}"), []*policy.Policy{compile(t, head+about("pods", merges("Object{}")))}); changed != nil || results[0].Changed {
		t.Error("without a template:", written(changed))
	}
}

// TestOrder: each mutation, and the variables that it reads, see the result of the
// mutations before.
func TestOrder(t *testing.T) {
	text := head + about("pods", `  variables: [{name: count, expression: object.spec.containers.size()}]
  matchConditions: [{name: few, expression: variables.count < 2}]
`+merges("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'b'}]}}",
		"Object{metadata: Object.metadata{annotations: {'count': string(variables.count)}}}")+
		"  auditAnnotations: [{key: count, valueExpression: \"string(object.metadata.annotations.count)\"}]\n")
	p := compile(t, text)
	changed, results := mutate(t, subject(t, pod(onePod)), []*policy.Policy{p})
	if !strings.Contains(written(changed), `"count":"2"`) || results[0].Properties["count"] != "2" {
		t.Error(written(changed), results)
	}
	faulty := compile(t, head+about("pods", merges("Object{metadata: Object.metadata{annotations: {'a': 'b'}}}")+
		"  auditAnnotations: [{key: count, valueExpression: \"string(object.metadata.annotations.count)\"}]\n"))
	changed, results = mutate(t, subject(t, pod(onePod)), []*policy.Policy{faulty})
	if what, why := verdict(results); changed != nil || what != "indeterminate" || !strings.Contains(why, "spec.auditAnnotations") {
		t.Error("an annotation that cannot be evaluated:", written(changed), what, why)
	}
	two := subject(t, pod("{containers: [{name: a}, {name: b}]}"))
	if what, why := verdict(second(mutate(t, two, []*policy.Policy{p}))); what != "skip" {
		t.Error("a condition that does not hold:", what, why)
	}
	again := *two
	again.Object = policy.ContentOf(policytest.Object(t, pod(onePod)))
	once, _ := mutate(t, &again, []*policy.Policy{compile(t, head+about("pods", merges("Object{metadata: Object.metadata{labels: {'a': 'b'}}}")))})
	again.Object = policy.ContentOf(once)
	if twice, _ := mutate(t, &again, []*policy.Policy{compile(t, head+about("pods", merges("Object{metadata: Object.metadata{labels: {'a': 'b'}}}")))}); twice != nil {
		t.Error("a second time it changes", written(twice))
	}
}

func second(_ map[string]any, results []policy.RuleResult) []policy.RuleResult { return results }

// TestMatchedSubjects: the objects that a policy matches.
func TestMatchedSubjects(t *testing.T) {
	label := merges("Object{metadata: Object.metadata{labels: {'a': 'b'}}}")
	owner := func(s *policy.Subject) { s.User.Name = "ann" }
	for _, c := range []struct {
		reason, text string
		subject      *policy.Subject
		want         string
	}{
		{"a kind that it matches", about("pods", label), subject(t, pod(onePod)), "pass"},
		{"another kind", about("pods", label), subject(t, "{apiVersion: v1, kind: Service, metadata: {name: a}}"), "nothing"},
		{"another operation", strings.Replace(about("pods", label), "CREATE, UPDATE", "UPDATE", 1), subject(t, pod(onePod)), "nothing"},
		{"a deletion", strings.Replace(about("pods", label), "CREATE, UPDATE", "'*'", 1), subject(t, pod(onePod), deleted), "nothing"},
		{"no controllers, with ephemeral containers", strings.Replace(about("pods", label), "[pods]", "[pods, pods/ephemeralcontainers]", 1), subject(t, deployment(onePod)), "nothing"},
		{"pods, with ephemeral containers", strings.Replace(about("pods", label), "[pods]", "[pods, pods/ephemeralcontainers]", 1), subject(t, pod(onePod)), "pass"},
		{"no controllers, with another subresource", strings.Replace(about("pods", label), "[pods]", "[pods, pods/exec]", 1), subject(t, deployment(onePod)), "nothing"},
		{"no controllers", about("pods", label+"  autogen: {podControllers: {controllers: []}}\n"), subject(t, deployment(onePod)), "nothing"},
		{"a condition that does not hold", about("pods", label+"  matchConditions: [{name: a, expression: 'false'}]\n"), subject(t, pod(onePod)), "skip"},
		{"a condition that cannot be evaluated", about("pods", label+"  matchConditions: [{name: a, expression: 'dyn(object.spec).none == 1'}]\n"), subject(t, pod(onePod)), "indeterminate"},
		{"an expression that fails", about("pods", merges("Object{metadata: Object.metadata{labels: {'a': string(dyn(object.spec).none)}}}")), subject(t, pod(onePod)), "indeterminate"},
		{"a policy for scans, at admission", about("pods", label+"  evaluation: {admission: {enabled: false}, mutateExisting: {enabled: true}}\n"), subject(t, pod(onePod), owner), "nothing"},
		{"and on the command line", about("pods", label+"  evaluation: {admission: {enabled: false}, mutateExisting: {enabled: true}}\n"), subject(t, pod(onePod)), "pass"},
		{"an unknown namespace", strings.Replace(about("pods", label), "  mutations", "    namespaceSelector: {matchLabels: {team: a}}\n  mutations", 1), subject(t, pod(onePod), unknown), "indeterminate"},
		{"and that is known", strings.Replace(about("pods", label), "  mutations", "    namespaceSelector: {matchLabels: {team: a}}\n  mutations", 1), subject(t, pod(onePod)), "pass"},
	} {
		changed, results := mutate(t, c.subject, []*policy.Policy{compile(t, head+c.text)})
		if what, why := verdict(results); what != c.want || (changed != nil) != (what == "pass") {
			t.Errorf("%s: %s %s %s", c.reason, what, why, written(changed))
		}
	}
}

// TestDocuments: a policy of every kind changes objects, and no document that is none.
func TestDocuments(t *testing.T) {
	text := strings.Replace(about("*/'*'", patches("[JSONPatch{op: 'add', path: '/a', value: 'b'}]")), "[v1]", "['*']", 1)
	rule := compile(t, head+text).Mutations[0]
	widgets := subject(t, widget)
	document := *widgets
	document.Group, document.Version, document.Kind, document.Document = "", "", "", true
	for s, want := range map[*policy.Subject]policy.Result{widgets: policy.Pass, &document: ""} {
		if got := rule.Mutate(t.Context(), policy.Case{Subject: s}); got.Result != want || (got.Object != nil) != (want == policy.Pass) {
			t.Errorf("kind %q: %+v", s.Kind, got)
		}
	}
}

func deleted(s *policy.Subject) {
	s.Operation, s.OldObject, s.Object = "DELETE", s.Object, policy.Content{}
}

func unknown(s *policy.Subject) { s.NamespaceKnown, s.NamespaceLabels = false, nil }

func TestNamespaced(t *testing.T) {
	text := "apiVersion: policies.kyverno.io/v1\nkind: NamespacedMutatingPolicy\nmetadata: {name: test, namespace: shop}\n" + about("pods", merges("Object{metadata: Object.metadata{labels: {'a': 'b'}}}"))
	p := compile(t, text)
	if changed, _ := mutate(t, subject(t, pod(onePod)), []*policy.Policy{p}); changed == nil {
		t.Error("its own namespace")
	}
	if changed, _ := mutate(t, subject(t, pod(onePod), func(s *policy.Subject) { s.Namespace = "other" }), []*policy.Policy{p}); changed != nil {
		t.Error("another namespace")
	}
}

func TestEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := compile(t, head+about("pods", merges("Object{}"))).Mutations[0].Mutate(ctx, policy.Case{Subject: subject(t, pod(onePod))})
	if got.Result != policy.Indeterminate {
		t.Error("after the end:", got)
	}
}

func TestExceptions(t *testing.T) {
	const exception = "apiVersion: policies.kyverno.io/v1\nkind: PolicyException\nmetadata: {name: e, namespace: shop}\nspec:\n  policyRefs: [{kind: MutatingPolicy, name: NAME}]\n"
	p := compile(t, head+about("pods", merges("Object{metadata: Object.metadata{labels: {'a': 'b'}}}")))
	for name, want := range map[string]string{"test": "skip", "other": "pass"} {
		for _, wrap := range []func(string) string{pod, cronJob} {
			_, results := mutate(t, subject(t, wrap(onePod)), []*policy.Policy{p}, strings.Replace(exception, "NAME", name, 1))
			if what, why := verdict(results); what != want {
				t.Errorf("%s: %s %s", name, what, why)
			}
		}
	}
}

// TestWhatExceptionsAllow: expressions read the images and the values of exceptions for the object, which leave the rest
// of the policy as it is.
func TestWhatExceptionsAllow(t *testing.T) {
	const (
		exception = "apiVersion: policies.kyverno.io/v1\nkind: PolicyException\nmetadata: {name: e, namespace: shop}\nspec:\n  policyRefs: [{kind: MutatingPolicy, name: test}]\n"
		label     = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}"
		allowed   = "object.spec.containers.exists(c, c.image in exceptions.allowedImages) || 'a' in exceptions.allowedValues"
		condition = "  matchConditions: [{name: a, expression: \"!(" + allowed + ")\"}]\n"
	)
	read := compile(t, head+about("pods", merges(allowed+" ? Object{} : "+label)))
	asked := compile(t, head+about("pods", condition+merges(label)))
	blind := compile(t, head+about("pods", merges(label)))
	for _, c := range []struct {
		reason, more string
		p            *policy.Policy
		changed      bool
		want         string
	}{
		{"the image", "  images: ['a.example/a:1']\n", read, false, "pass"},
		{"another image", "  images: ['a.example/b:1']\n", read, true, "pass"},
		{"a value", "  allowedValues: [a]\n", read, false, "pass"},
		{"another value", "  allowedValues: [b]\n", read, true, "pass"},
		{"the image, in a condition", "  images: ['a.example/a:1']\n", asked, false, "skip"},
		{"another image, in a condition", "  images: ['a.example/b:1']\n", asked, true, "pass"},
		{"nothing reads the image", "  images: ['a.example/a:1']\n", blind, true, "pass"},
		{"all of it", "", blind, false, "skip"},
		{"it has ended", "  images: ['a.example/a:1']\n  expiresAt: 2020-01-01T00:00:00Z\n", read, true, "pass"},
	} {
		for _, wrap := range []func(string) string{pod, cronJob} {
			changed, results := mutate(t, subject(t, wrap(onePod)), []*policy.Policy{c.p}, exception+c.more)
			if what, why := verdict(results); what != c.want || (changed != nil) != c.changed {
				t.Errorf("%s: %s %v %s", c.reason, what, changed, why)
			}
		}
	}
}

func TestBroken(t *testing.T) {
	compiler := mutating.New(kyvernocel.Options{})
	why := errors.New("it is broken")
	p := compiler.Broken([]byte(head+about("pods", merges("not CEL"))), "test.yaml", why)
	for text, want := range map[string]string{pod(onePod): "indeterminate", deployment(onePod): "indeterminate", "{apiVersion: v1, kind: Service, metadata: {name: a}}": "nothing"} {
		if what, got := verdict(second(mutate(t, subject(t, text), []*policy.Policy{p}))); what != want {
			t.Errorf("%s: %s %s", text, what, got)
		}
	}
	service, own := subject(t, "{apiVersion: v1, kind: Service, metadata: {name: a}}"), subject(t, pod(onePod))
	for s, want := range map[*policy.Subject]policy.Result{service: "", own: policy.Indeterminate} {
		if got := p.Mutations[0].Mutate(t.Context(), policy.Case{Subject: s}); got.Result != want || (want == "") != (len(got.Reasons) == 0) {
			t.Errorf("asked itself about a %s: %+v", s.Kind, got)
		}
	}
	if compiler.Broken([]byte("{"), "", why) != nil {
		t.Error("a policy without a document")
	}
}

func TestNames(t *testing.T) {
	p := compile(t, head+about("pods", merges("Object{}")))
	var names []string
	for _, m := range p.Mutations {
		names = append(names, m.Name())
	}
	if want := []string{"test", "autogen-test", "autogen-cronjobs-test"}; !reflect.DeepEqual(names, want) {
		t.Error(names)
	}
}
