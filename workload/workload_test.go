package workload_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/workload"
)

func read(t testing.TB, manifest string) []workload.Object {
	t.Helper()
	objects, err := workload.Read(strings.NewReader(manifest), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func one(t testing.TB, manifest string) workload.Object {
	t.Helper()
	objects := read(t, manifest)
	if len(objects) != 1 {
		t.Fatalf("%d objects, want one", len(objects))
	}
	return objects[0]
}

// lines names uses in a line each, for tables.
func lines(uses []workload.Use) []string {
	var out []string
	for _, u := range uses {
		out = append(out, fmt.Sprintf("%s %s %s %s", u.Role, u.Container, u.Pointer, u.Image))
	}
	return out
}

const podSpec = `{containers: [{name: web, image: nginx}, {name: log, image: fluent}], initContainers: [{name: init, image: busybox}],
  ephemeralContainers: [{name: debug, image: alpine}], volumes: [{name: tmp, emptyDir: {}}, {name: model, image: {reference: llama, pullPolicy: Always}}]}`

func podUses(at string) []string {
	return []string{
		"container web " + at + "/containers/0/image nginx",
		"container log " + at + "/containers/1/image fluent",
		"init init " + at + "/initContainers/0/image busybox",
		"ephemeral debug " + at + "/ephemeralContainers/0/image alpine",
		"volume model " + at + "/volumes/1/image/reference llama",
	}
}

func TestExtractKnowsEveryWorkload(t *testing.T) {
	template := "{spec: {template: {spec: " + podSpec + "}}, "
	for kind, row := range map[string]struct{ body, at string }{
		"v1 Pod":                              {"{spec: " + podSpec + ", ", "/spec"},
		"v1 PodTemplate":                      {"{template: {spec: " + podSpec + "}, ", "/template/spec"},
		"v1 ReplicationController":            {template, "/spec/template/spec"},
		"apps/v1 Deployment":                  {template, "/spec/template/spec"},
		"apps/v1 StatefulSet":                 {template, "/spec/template/spec"},
		"apps/v1 DaemonSet":                   {template, "/spec/template/spec"},
		"apps/v1 ReplicaSet":                  {template, "/spec/template/spec"},
		"batch/v1 Job":                        {template, "/spec/template/spec"},
		"batch/v1 CronJob":                    {"{spec: {jobTemplate: " + template + "}}, ", "/spec/jobTemplate/spec/template/spec"},
		"argoproj.io/v1alpha1 Rollout":        {template, "/spec/template/spec"},
		"example.com/v1 NightlyRun":           {"{spec: {jobTemplate: " + template + "}}, ", "/spec/jobTemplate/spec/template/spec"},
		"serving.knative.dev/v1 Service":      {template, "/spec/template/spec"},
		"monitoring.coreos.com/v1 Prometheus": {"{spec: " + podSpec + ", ", "/spec"},
	} {
		t.Run(kind, func(t *testing.T) {
			version, name, _ := strings.Cut(kind, " ")
			object := one(t, row.body+"apiVersion: "+version+", kind: "+name+", metadata: {name: x}}")
			uses, err := workload.Extract(object)
			if got := lines(uses); err != nil || !slices.Equal(got, podUses(row.at)) {
				t.Errorf("got %q, %v\nwant %q", got, err, podUses(row.at))
			}
		})
	}
}

func TestExtractOddShapes(t *testing.T) {
	for name, row := range map[string]struct {
		reason   string
		manifest string
		uses     int
		err      string
	}{
		"no spec":            {"a Pod may be asked about before it is complete", `{apiVersion: v1, kind: Pod}`, 0, ""},
		"null containers":    {"null is absent", `{apiVersion: v1, kind: Pod, spec: {containers: null}}`, 0, ""},
		"config map":         {"no pod specification", `{apiVersion: v1, kind: ConfigMap, data: {spec: x}}`, 0, ""},
		"service":            {"its spec is another", `{apiVersion: v1, kind: Service, spec: {ports: [{port: 80}]}}`, 0, ""},
		"empty in template":  {"another program sets it", `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a, image: ""}]}}}}`, 0, ""},
		"blank in template":  {"a blank is a known placeholder", `{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {containers: [{name: a, image: " "}]}}}}`, 0, ""},
		"empty in Pod":       {"nobody fills it in", `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: ""}]}}`, 0, `/spec/containers/0/image: container "a" has no image`},
		"absent in Pod":      {"nobody fills it in", `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a}]}}`, 0, `container "a" has no image`},
		"containers a map":   {"must not be passed over", `{apiVersion: v1, kind: Pod, spec: {containers: {a: {image: x}}}}`, 0, "/spec/containers: want a list, got an object"},
		"container a text":   {"must not be passed over", `{apiVersion: v1, kind: Pod, spec: {containers: [nginx]}}`, 0, "/spec/containers/0: want an object, got text"},
		"image a number":     {"must not be passed over", `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: 7}]}}`, 0, "/spec/containers/0/image: want text, got a number"},
		"spec a list":        {"must not be passed over", `{apiVersion: v1, kind: Pod, spec: []}`, 0, "spec: want an object, got a list"},
		"foreign containers": {"in a kind that is not ours any shape is allowed", `{apiVersion: example.com/v1, kind: Ship, spec: {containers: 12}}`, 0, ""},
		"foreign Job":        {"a kind of the same name in another group", `{apiVersion: batch.volcano.sh/v1, kind: Job, spec: {template: []}}`, 0, ""},
		"other image volume": {"a volume whose image is not one of ours is not passed over", `{apiVersion: v1, kind: Pod, spec: {volumes: [{name: a, image: x}]}}`, 0, "want an object, got text"},
		"rbd volume":         {"an image of another sort", `{apiVersion: v1, kind: Pod, spec: {volumes: [{name: a, rbd: {image: disk}}]}}`, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			uses, err := workload.Extract(one(t, row.manifest))
			if len(uses) != row.uses || (err == nil) != (row.err == "") {
				t.Fatalf("%s: got %q, %v", row.reason, lines(uses), err)
			}
			if err != nil && !strings.Contains(err.Error(), row.err) {
				t.Errorf("%s: error %q does not say %q", row.reason, err, row.err)
			}
		})
	}
}

func TestExtractWith(t *testing.T) {
	task := one(t, `
apiVersion: tekton.dev/v1
kind: Task
metadata: {name: build, annotations: {example.com/image: "docker://debian"}}
spec:
  steps: [{name: compile, image: golang}, {name: say, script: echo}]
  sidecars: {cache: {name: c, image: redis}, proxy: {name: p, image: envoy}}
  extra: [alpine, busybox]
  taskRef: {bundle: reg/bundle, name: ref}
  count: 3
`)
	strip := func(s string) (string, error) {
		if rest, ok := strings.CutPrefix(s, "docker://"); ok {
			return rest, nil
		}
		return "", errors.New("no docker:// reference")
	}
	for name, row := range map[string]struct {
		reason    string
		extractor workload.Extractor
		uses      []string
		err       string
	}{
		"value and key":  {"as Kyverno's documentation has it", workload.Extractor{Name: "steps", Path: "/spec/steps/*", Value: "image", Key: "name"}, []string{"custom steps/compile /spec/steps/0/image golang"}, ""},
		"last element":   {"without a value the path names the image", workload.Extractor{Path: "/spec/steps/*/image"}, []string{"custom custom /spec/steps/0/image golang"}, ""},
		"object":         {"* runs over the members of an object, in order", workload.Extractor{Path: "/spec/sidecars/*", Value: "image"}, []string{"custom custom /spec/sidecars/cache/image redis", "custom custom /spec/sidecars/proxy/image envoy"}, ""},
		"texts":          {"a list of references", workload.Extractor{Path: "/spec/extra/*"}, []string{"custom custom /spec/extra/0 alpine", "custom custom /spec/extra/1 busybox"}, ""},
		"index":          {"RFC 6901 names an element by its number", workload.Extractor{Path: "/spec/extra/1"}, []string{"custom custom /spec/extra/1 busybox"}, ""},
		"escaped":        {"a slash in a name is ~1", workload.Extractor{Path: "/metadata/annotations/example.com~1image", Transform: strip}, []string{"custom custom /metadata/annotations/example.com~1image debian"}, ""},
		"object itself":  {"Tekton's bundle", workload.Extractor{Name: "taskruns", Path: "/spec/taskRef", Value: "bundle", Key: "name"}, []string{"custom taskruns/ref /spec/taskRef/bundle reg/bundle"}, ""},
		"absent":         {"nothing there is no use", workload.Extractor{Path: "/spec/none/*/image"}, nil, ""},
		"beyond":         {"a number past the end is nothing", workload.Extractor{Path: "/spec/extra/9"}, nil, ""},
		"no text":        {"a number is no image", workload.Extractor{Path: "/spec/count"}, nil, "/spec/count: want text, got a number"},
		"an object":      {"an entry is no image", workload.Extractor{Path: "/spec/steps/*"}, nil, "/spec/steps/0: want text, got an object"},
		"through text":   {"the path does not fit", workload.Extractor{Path: "/spec/extra/*", Value: "image"}, nil, "/spec/extra/0: want an object or a list, got text"},
		"name in list":   {"the path does not fit", workload.Extractor{Path: "/spec/steps/image"}, nil, "/spec/steps is a list"},
		"key absent":     {"the entry cannot be named", workload.Extractor{Path: "/spec/steps/*", Value: "image", Key: "id"}, nil, `has no text "id"`},
		"transform":      {"its failure is not passed over", workload.Extractor{Path: "/spec/steps/*/image", Transform: strip}, nil, "no docker:// reference"},
		"no pointer":     {"not a JSON pointer", workload.Extractor{Path: "spec/steps"}, nil, "must begin with /"},
		"bad escape":     {"not a JSON pointer", workload.Extractor{Path: "/spec/~2"}, nil, "~ must be written ~0"},
		"nothing at all": {"it means nothing", workload.Extractor{}, nil, "neither a path nor a value"},
	} {
		t.Run(name, func(t *testing.T) {
			uses, err := workload.ExtractWith(task, []workload.Extractor{row.extractor})
			if got := lines(uses); !slices.Equal(got, row.uses) || (err == nil) != (row.err == "") {
				t.Fatalf("%s: got %q, %v; want %q", row.reason, got, err, row.uses)
			}
			if err != nil && !strings.Contains(err.Error(), row.err) {
				t.Errorf("%s: error %q does not say %q", row.reason, err, row.err)
			}
		})
	}
	steps := workload.Extractor{Path: "/spec/steps/*/image"}
	if uses, err := workload.ExtractWith(task, []workload.Extractor{steps, steps}); err != nil || len(uses) != 1 {
		t.Errorf("the same place twice gave %q, %v", lines(uses), err)
	}
}

func TestRead(t *testing.T) {
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ns}\n"
	jsonPod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"ns"}}`
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'j'; c++ {
		alias := "*" + string(c-1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat(alias+", ", 9) + alias + "]\n"
	}
	long := "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a, y, ", 500) + "]\n"
	chain := "a0: &a0 [x]\n"
	for i := range 300 {
		chain += fmt.Sprintf("a%d: &a%d [*a%d]\n", i+1, i+1, i)
	}
	lists := func(n int) string {
		return strings.Repeat(`{"apiVersion":"v1","kind":"List","items":[`, n) + jsonPod + strings.Repeat("]}", n)
	}
	typedLists := func(n int) string {
		return `{"apiVersion":"v1","kind":"Pod` + strings.Repeat("List", n) + `"` + strings.Repeat(`,"items":[{"metadata":{}`, n) + strings.Repeat("}]", n) + "}"
	}
	for name, row := range map[string]struct {
		reason  string
		input   string
		objects []string
		err     string
	}{
		"one":               {"a document", pod, []string{"Pod ns/a"}, ""},
		"three":             {"documents, comments and gaps between them", "# head\n---\n" + pod + "---\n# nothing\n---\n" + pod + "--- # tail\n" + pod, []string{"Pod ns/a", "Pod ns/a", "Pod ns/a"}, ""},
		"empty":             {"nothing is no object", "", nil, ""},
		"only comments":     {"nothing is no object", "# nothing\n---\n", nil, ""},
		"null":              {"nothing is no object", "null\n", nil, ""},
		"null, tagged":      {"nothing is no object", "!!null\n---\n!!null ~\n---\n&a !<tag:yaml.org,2002:null> null\n", nil, ""},
		"tagged null":       {"a tag on an object does not make it none: kubectl applies it", "!!null\n" + pod, []string{"Pod ns/a"}, ""},
		"tagged, anchored":  {"the same", "&a !!null\n" + pod, []string{"Pod ns/a"}, ""},
		"tagged at length":  {"the same", "!<tag:yaml.org,2002:null>\n" + pod, []string{"Pod ns/a"}, ""},
		"tagged flow":       {"the same", pod + "---\n!!null " + jsonPod, []string{"Pod ns/a", "Pod ns/a"}, ""},
		"tagged sequence":   {"no object, and not nothing", "!!null [a]\n", nil, "want an object, got a list"},
		"tagged text":       {"kubectl cannot read it", "!!null hello\n", nil, "cannot decode !!str"},
		"JSON":              {"an object", jsonPod, []string{"Pod ns/a"}, ""},
		"JSON twice":        {"one after another", jsonPod + "\n" + jsonPod, []string{"Pod ns/a", "Pod ns/a"}, ""},
		"JSON separated":    {"kubectl reads JSON between lines of ---", jsonPod + "\n---\n" + jsonPod + "\n---\n" + pod, []string{"Pod ns/a", "Pod ns/a", "Pod ns/a"}, ""},
		"JSON, then no one": {"the second document is broken", jsonPod + "\n---\n{", nil, "document 2: YAML"},
		"twice, separated":  {"parsers take either", jsonPod + "\n---\n" + `{"apiVersion":"v1","kind":"Pod","kind":"Secret"}`, nil, `key "kind" is already set`},
		"flow":              {"YAML that begins like JSON", "{apiVersion: v1, kind: Pod, metadata: {name: a}}", []string{"Pod a"}, ""},
		"list":              {"unfolded", "apiVersion: v1\nkind: List\nitems: [" + jsonPod + "," + jsonPod + "]", []string{"Pod ns/a", "Pod ns/a"}, ""},
		"typed list":        {"its kind is that of its items", `{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"a"}}]}`, []string{"Pod a"}, ""},
		"list in list":      {"unfolded", "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [" + jsonPod + "]}]", []string{"Pod ns/a"}, ""},
		"list in two":       {"as many as may be", lists(3), []string{"Pod ns/a"}, ""},
		"list in three":     {"one more than may be", lists(4), nil, "item 1, item 1, item 1: more than 3 lists, one in the other (MaxLists); write their items as documents of their own"},
		"typed list in two": {"as many as may be", typedLists(3), []string{"Pod"}, ""},
		"typed in three":    {"each level takes the end off the kind", typedLists(4), nil, "MaxLists"},
		"items in a Pod":    {"kubectl applies the items, and nothing else of it", pod + "items: [" + jsonPod + "]", nil, "document 1: items: kubectl takes a Pod with items for a list"},
		"no items in a Pod": {"kubectl applies nothing, and the Pod is judged", pod + "items: null", []string{"Pod ns/a"}, ""},
		"items none":        {"kubectl applies nothing, and says nothing", pod + "items: []", nil, "kubectl takes a Pod with items for a list"},
		"items an object":   {"kubectl cannot read it", pod + "items: {a: b}", nil, "kubectl takes a Pod with items for a list"},
		"items further in":  {"no list: kubectl looks at the top", pod + "spec: {volumes: [{name: a, configMap: {items: [{key: a, path: a}]}}]}", []string{"Pod ns/a"}, ""},
		"items in an item":  {"the same in a list", "apiVersion: v1\nkind: List\nitems: [" + strings.TrimSuffix(jsonPod, "}") + `,"items":[` + jsonPod + "]}]", nil, "document 1, item 1: items: kubectl takes a Pod with items for a list"},
		"item an empty one": {"in a list, kubectl takes it for an object", "apiVersion: v1\nkind: List\nitems: [{apiVersion: example.com/v1, kind: PriceList, items: null}]", []string{"PriceList"}, ""},
		"items, no kind":    {"not a manifest", "items: [" + jsonPod + "]", nil, "document 1: it has no kind"},
		"item without kind": {"null is absent", `{"apiVersion":"v1","kind":"PodList","items":[{"kind":null,"apiVersion":null,"metadata":{"name":"a"}}]}`, []string{"Pod a"}, ""},
		"item of a kind":    {"its own word counts", `{"apiVersion":"v1","kind":"PodList","items":[{"kind":"Job","apiVersion":"batch/v1","metadata":{"name":"a"}}]}`, []string{"Job a"}, ""},
		"item a text":       {"no object", `{"apiVersion":"v1","kind":"PodList","items":["a"]}`, nil, "item 1: want an object, got text"},
		"items a text":      {"no list", `{"apiVersion":"v1","kind":"PodList","items":"a"}`, nil, "items: want a list, got text"},
		"empty list":        {"no items", "apiVersion: v1\nkind: List\nitems: null", nil, ""},
		"kind named List":   {"no items, so an object", "apiVersion: example.com/v1\nkind: PriceList\nspec: {}", []string{"PriceList"}, ""},
		"generated name":    {"shown as such", "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}", []string{"Pod a-*"}, ""},
		"alias":             {"a fair use of one", "apiVersion: v1\nkind: &k Pod\nmetadata: {name: a, labels: {kind: *k}}", []string{"Pod a"}, ""},
		"anchor and merge":  {"a fair use of one", "x: &x {name: a}\napiVersion: v1\nkind: Pod\nmetadata:\n  <<: *x\n", []string{"Pod a"}, ""},
		"override":          {"kubectl takes what follows the merge", "x: &x {name: a}\napiVersion: v1\nkind: Pod\nmetadata:\n  <<: *x\n  name: b\n", []string{"Pod b"}, ""},
		"override nested":   {"a merge of a merge", "x: &x {name: a, namespace: ns}\ny: &y {<<: *x, name: b}\napiVersion: v1\nkind: Pod\nmetadata: {<<: *y, name: c}\n", []string{"Pod ns/c"}, ""},
		"merge of two":      {"the first has precedence", "x: &x {name: a}\ny: &y {name: b}\napiVersion: v1\nkind: Pod\nmetadata: {<<: [*x, *y]}\n", []string{"Pod a"}, ""},
		"override before":   {"kubectl takes the merged one, others this one", "x: &x {name: a}\napiVersion: v1\nkind: Pod\nmetadata:\n  name: b\n  <<: *x\n", nil, "YAML: line 6: << brings the key \"name\", which is set before it in line 5: write << first"},
		"override twice":    {"one of them is no override", "x: &x {name: a}\napiVersion: v1\nkind: Pod\nmetadata: {<<: *x, name: b, name: c}\n", nil, `key "name" is already set`},
		"no kind":           {"not a manifest", "replicas: 3\n", nil, "document 1: it has no kind"},
		"no version":        {"not a manifest", "kind: Pod\n", nil, "has no apiVersion"},
		"text":              {"not an object", "hello\n", nil, "want an object, got text"},
		"sequence":          {"not an object", "- a\n", nil, "want an object, got a list"},
		"name a boolean":    {"YAML 1.1, which kubectl reads, takes n for false", "apiVersion: v1\nkind: Pod\nmetadata: {name: n}\n", nil, "metadata.name: want text, got true or false"},
		"kind a number":     {"not a manifest", "kind: 1\n", nil, "kind: want text, got a number"},
		"second is bad":     {"the number of the document is told", pod + "---\nkind: 1\n", nil, "test.yaml, document 2"},
		"item is bad":       {"the number of the item is told", "apiVersion: v1\nkind: List\nitems: [" + jsonPod + ", {kind: Pod}]", nil, "document 1, item 2"},
		"tab":               {"not YAML", "a:\n\t- b", nil, "document 1: YAML"},
		"twice, YAML":       {"parsers take either", pod + "kind: Secret\n", nil, `key "kind" is already set in line 2`},
		"twice, once typed": {"the same in JSON", pod + "data: {1: a, \"1\": b}\n", nil, `key "1" is already set`},
		"twice, JSON":       {"parsers take either", `{"apiVersion":"v1","kind":"Pod","kind":"Secret"}`, nil, `the name "kind" stands twice`},
		"twice, deep JSON":  {"parsers take either", `{"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"image":"a","image":"b"}]}}`, nil, `the name "image" stands twice`},
		"after the end":     {"a reader that stops at ... sees one object", pod + "...\n" + pod, nil, "another document follows"},
		"trailing JSON":     {"not JSON", jsonPod + "x", nil, "document 2: JSON"},
		"bomb":              {"ten to the tenth", bomb, nil, "MaxExpanded"},
		"long bomb":         {"one text a thousand times", long, nil, "MaxExpanded"},
		"cycle":             {"an anchor in itself", "a: &a [*a]\n", nil, "contains itself"},
		"deep by aliases":   {"each line adds a level", chain, nil, "YAML: line"},
		"deep":              {"no stack is that deep", "a: " + strings.Repeat("[", 300) + strings.Repeat("]", 300), nil, "MaxDepth"},
		"deep JSON":         {"no stack is that deep", `{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}", nil, "MaxDepth"},
		"key an object":     {"JSON has no such key", "{a: b}: c\n", nil, "a key must be a plain value"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := workload.Read(strings.NewReader(row.input), "test.yaml")
			var got []string
			for _, o := range objects {
				got = append(got, o.String())
			}
			if !slices.Equal(got, row.objects) || (err == nil) != (row.err == "") {
				t.Fatalf("%s: got %q, %v; want %q", row.reason, got, err, row.objects)
			}
			if err != nil && !strings.Contains(err.Error(), row.err) {
				t.Errorf("%s: error %q does not say %q", row.reason, err, row.err)
			}
		})
	}
}

// TestTagsHideNothing: whatever a tag says of what holds an image, the image is seen or
// the document refused.
func TestTagsHideNothing(t *testing.T) {
	for name, row := range map[string]struct{ reason, spec, err string }{
		"none":            {"the plain case", "{containers: [{name: a, image: nginx}]}", ""},
		"on an object":    {"a tag on what holds something is not looked at", "!!null {containers: [{name: a, image: nginx}]}", ""},
		"on a list":       {"the same", "{containers: !!null [{name: a, image: nginx}]}", ""},
		"on an element":   {"the same", "{containers: [!!str {name: a, image: nginx}]}", ""},
		"on the text":     {"a text is not null", "{containers: [{name: a, image: !!null nginx}]}", "cannot decode !!str"},
		"a text is one":   {"as it says", "{containers: [{name: a, image: !!str nginx}]}", ""},
		"of bytes":        {"decoded", "{containers: [{name: a, image: !!binary bmdpbng=}]}", ""},
		"a name of bytes": {"decoded", "{containers: [{name: a, !!binary aW1hZ2U=: nginx}]}", ""},
		"twice":           {"the same name, once decoded", "{containers: [{name: a, image: nginx, !!binary aW1hZ2U=: busybox}]}", `key "image" already set`},
		"a merge":         {"it counts", "{containers: [{name: a, <<: {image: nginx}}]}", ""},
		"no merge":        {"a text is a name", "{containers: [{name: a, image: nginx, !!str <<: {image: busybox}}]}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := workload.Read(strings.NewReader("apiVersion: v1\nkind: Pod\nspec: "+row.spec+"\n"), "test.yaml")
			if row.err != "" {
				if err == nil || !strings.Contains(err.Error(), row.err) {
					t.Errorf("%s: %v, want %q", row.reason, err, row.err)
				}
				return
			}
			if err != nil || len(objects) != 1 {
				t.Fatalf("%s: %v, %v", row.reason, objects, err)
			}
			uses, err := workload.Extract(objects[0])
			if got, want := lines(uses), []string{"container a /spec/containers/0/image nginx"}; err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %q, %v", row.reason, got, err)
			}
		})
	}
}

// TestListsAreReadOnce: lists in lists take no more memory than one with the same object.
func TestListsAreReadOnce(t *testing.T) {
	object := `{"apiVersion":"v1","kind":"ConfigMap","x":[` + strings.Repeat("0,", 100_000) + `0]}`
	allocated := func(lists int) uint64 {
		text := strings.Repeat(`{"apiVersion":"v1","kind":"List","items":[`, lists) + object + strings.Repeat("]}", lists)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := workload.Read(strings.NewReader(text), "test.json"); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	one, most := allocated(1), allocated(workload.MaxLists)
	if most > one+one/10 {
		t.Errorf("%d lists take %d KiB, one %d KiB", workload.MaxLists, most>>10, one>>10)
	}
}

// TestItemsOfResources: what an API server sends is no manifest, and a custom resource
// may have members called items.
func TestItemsOfResources(t *testing.T) {
	const resource = `{"apiVersion":"example.com/v1","kind":"Order","metadata":{"name":"a"},"items":[{"kind":"Pod"}]}`
	for name, parse := range map[string]func() (workload.Object, error){
		"of a watch":  func() (workload.Object, error) { return workload.Parse([]byte(resource)) },
		"of a review": func() (workload.Object, error) { return workload.ParseValue([]byte(resource)) },
	} {
		if object, err := parse(); err != nil || object.String() != "Order a" {
			t.Errorf("%s: %s, %v", name, object, err)
		}
	}
	if objects, err := workload.Read(strings.NewReader(resource), "test.json"); err == nil {
		t.Errorf("in a manifest: %v", objects)
	}
}

func TestParse(t *testing.T) {
	object, err := workload.Parse([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":3}}`))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{object.Group(), object.Version(), object.Kind(), object.Namespace(), object.Name(), object.APIVersion(), object.String()}
	if want := []string{"apps", "v1", "Deployment", "shop", "web", "apps/v1", "Deployment shop/web"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if replicas := object.Content()["spec"].(map[string]any)["replicas"]; replicas != 3.0 {
		t.Errorf("replicas is %T %v, want a float64", replicas, replicas)
	}
	for _, bad := range []string{``, `null`, `[]`, `{}`, `{"kind":"Pod"}`, `{"Kind":"Pod","apiVersion":"v1"}`, `{"apiVersion":"v1","kind":"Pod"} {}`, `{"apiVersion":"v1","kind":"Pod","metadata":[]}`} {
		if _, err := workload.Parse([]byte(bad)); err == nil {
			t.Errorf("Parse(%s) had no error", bad)
		}
	}
}

// TestParseReadsAsEncodingJSON holds the one pass to what it replaced.
func TestParseReadsAsEncodingJSON(t *testing.T) {
	const head = `{"apiVersion":"v1","kind":"Pod","a":`
	for reason, row := range map[string]struct {
		value string
		err   string
	}{
		"plain":                  {`[null,true,false,"x",{},[],{"b":[1]}]`, ""},
		"numbers":                {`[0,-0,1,-1.5,1e3,1E-3,12345678901234567890,0.1]`, ""},
		"escapes":                {`"\"\\\/\b\f\n\r\t\u0041\ud83d\ude00"`, ""},
		"space":                  {" [ 1 ,\n\t2\r] ", ""},
		"other text":             {`"ü\u00fc\u2028"`, ""},
		"a name with escapes":    {`{"\u0061":1,"b":2}`, ""},
		"the same name, escaped": {`{"\u0061":1,"a":2}`, `the name "a" stands twice`},
		"a name for null twice":  {`{"a":null,"a":null}`, `the name "a" stands twice`},
		"a number out of range":  {`1e999`, "out of range"},
		"no UTF-8":               {"\"\xff\"", "UTF-8"},
		"half a surrogate":       {`"\ud83d"`, "surrogate"},
		"no quotes":              {`{a:1}`, "JSON"},
		"a number for a name":    {`{1:1}`, "JSON"},
		"a comma too many":       {`[1,]`, "JSON"},
		"a leading zero":         {`01`, "JSON"},
		"cut":                    {`[1`, "JSON"},
		"as deep as may be":      {strings.Repeat("[", workload.MaxDepth-1) + strings.Repeat("]", workload.MaxDepth-1), ""},
		"deepest value":          {strings.Repeat("[", workload.MaxDepth-1) + "1" + strings.Repeat("]", workload.MaxDepth-1), ""},
		"one deeper":             {strings.Repeat("[", workload.MaxDepth) + "1" + strings.Repeat("]", workload.MaxDepth), "MaxDepth"},
	} {
		t.Run(reason, func(t *testing.T) {
			raw := []byte(head + row.value + "}")
			object, err := workload.Parse(raw)
			if row.err != "" {
				if err == nil || !strings.Contains(err.Error(), row.err) {
					t.Errorf("error %v does not say %q", err, row.err)
				}
				return
			}
			var want map[string]any
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			if err != nil || !reflect.DeepEqual(object.Content(), want) {
				t.Errorf("got %v, %v, want %v", object.Content(), err, want)
			}
			for i := range raw {
				raw[i] = 'x'
			}
			if !reflect.DeepEqual(object.Content(), want) {
				t.Error("the object changes with the bytes that it was read from")
			}
		})
	}
}

func TestPinTwiceIsPinOnce(t *testing.T) {
	object := one(t, `{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {"x/y~z": "debian"}}, spec: `+podSpec+`}`)
	places := []workload.Extractor{{Path: "/metadata/annotations/x~1y~0z"}}
	pin := func(o workload.Object) (workload.Object, int) {
		uses, err := workload.Extract(o)
		if err != nil {
			t.Fatal(err)
		}
		custom, err := workload.ExtractWith(o, places)
		if err != nil {
			t.Fatal(err)
		}
		var all []workload.Operation
		for _, use := range append(uses, custom...) {
			name, _, _ := strings.Cut(use.Image, "@")
			operations, err := workload.Pin(use, name+"@sha256:"+strings.Repeat("0", 64))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, operations...)
		}
		pinned, err := workload.Apply(o, all)
		if err != nil {
			t.Fatal(err)
		}
		return pinned, len(all)
	}
	before, _ := json.Marshal(object.Content())
	first, operations := pin(object)
	if operations != 2*6 {
		t.Errorf("%d operations for six images, want a test and a replacement each", operations)
	}
	if after, _ := json.Marshal(object.Content()); string(after) != string(before) {
		t.Error("the object itself was changed")
	}
	second, operations := pin(first)
	if operations != 0 || !reflect.DeepEqual(first.Content(), second.Content()) {
		t.Errorf("pinning again made %d operations", operations)
	}
}

func TestPinRefuses(t *testing.T) {
	use := workload.Use{Image: "debian", Text: "debian", Pointer: "/spec/image"}
	if operations, err := workload.Pin(use, "debian@x"); err != nil || len(operations) != 2 {
		t.Fatalf("got %v, %v", operations, err)
	}
	if _, err := workload.Pin(use, ""); err == nil {
		t.Error("an empty image was taken")
	}
	use.Text = "docker://debian"
	if _, err := workload.Pin(use, "debian@x"); err == nil || !strings.Contains(err.Error(), "transformation") {
		t.Errorf("a transformed reference was replaced: %v", err)
	}
}

func TestApplyRefuses(t *testing.T) {
	object := one(t, `{apiVersion: v1, kind: Pod, spec: {containers: [{name: a, image: debian}]}}`)
	good := workload.Operation{Op: "test", Path: "/spec/containers/0/image", Value: "debian"}
	if _, err := workload.Apply(object, []workload.Operation{good}); err != nil {
		t.Fatal(err)
	}
	for reason, op := range map[string]workload.Operation{
		"another value":     {Op: "test", Path: good.Path, Value: "alpine"},
		"another operation": {Op: "remove", Path: good.Path},
		"no such member":    {Op: "replace", Path: "/spec/containers/0/tag", Value: "x"},
		"no such element":   {Op: "replace", Path: "/spec/containers/1/image", Value: "x"},
		"leading zero":      {Op: "replace", Path: "/spec/containers/00/image", Value: "x"},
		"through text":      {Op: "replace", Path: good.Path + "/x", Value: "x"},
		"everything":        {Op: "replace", Path: "", Value: "x"},
		"no pointer":        {Op: "replace", Path: "spec", Value: "x"},
	} {
		if _, err := workload.Apply(object, []workload.Operation{op}); err == nil {
			t.Errorf("%s: no error", reason)
		}
	}
}

// TestSamples reads real admission requests, where they are at hand.
func TestSamples(t *testing.T) {
	folder := os.Getenv("QUAYMASTER_SAMPLES")
	if folder == "" {
		folder = filepath.Join("..", "..", "shared", "samples")
	}
	files, err := filepath.Glob(filepath.Join(folder, "admission-reviews", "*.json"))
	if err != nil || len(files) == 0 {
		t.Skip("no samples; set QUAYMASTER_SAMPLES to their folder")
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var review struct {
				Request struct{ Object, OldObject json.RawMessage }
			}
			if err := json.Unmarshal(b, &review); err != nil {
				t.Fatal(err)
			}
			raw := review.Request.Object
			if string(raw) == "null" || len(raw) == 0 {
				raw = review.Request.OldObject
			}
			object, err := workload.Parse(raw)
			if err != nil {
				t.Fatal(err)
			}
			uses, err := workload.Extract(object)
			if err != nil || len(uses) == 0 {
				t.Errorf("%s: uses %q, %v", object, lines(uses), err)
			}
		})
	}
}

// TestNothingIsShared: the objects without members that a reader makes are one,
// and what a list fills in is written into none of them.
func TestNothingIsShared(t *testing.T) {
	objects, err := workload.Read(strings.NewReader(`{"apiVersion":"v1","kind":"PodList","items":[{},{"metadata":{},"spec":{}},{}]}`), "list")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]any{
		{"apiVersion": "v1", "kind": "Pod"},
		{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{}, "spec": map[string]any{}},
		{"apiVersion": "v1", "kind": "Pod"},
	} {
		if got := objects[i].Content(); !reflect.DeepEqual(got, want) {
			t.Errorf("item %d: got %v, want %v", i+1, got, want)
		}
	}
}

// FuzzParse: what is parsed is what encoding/json reads, whether or not its
// grammar was checked before, and what is refused is what the reference refuses.
func FuzzParse(f *testing.F) {
	wide := `{"apiVersion":"v1","kind":"A","list":[` + strings.Repeat("0,", 100) + `1],"members":{`
	for i := range 100 {
		wide += fmt.Sprintf(`"m%d":{},`, i)
	}
	f.Add([]byte(wide + `"last":[]}}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"A","a\u00e9\n":["\"","\\\\","b"],"n":[-1.5e+3,0,1E-7,true,false,null],"":{"":""}}`))
	f.Add([]byte(" {\"kind\" : \"A\",\r\n\t\"apiVersion\":\"v1\" , \"a\" : [ ] } "))
	f.Add([]byte(`{"kind":"A","apiVersion":"v1","a":1,"a":2}`))
	f.Add([]byte(`{"kind":"A","apiVersion":"v1","a":"\ud800"}`))
	f.Add([]byte("{\"kind\":\"A\",\"apiVersion\":\"v1\",\"a\":\"\xff\"}"))
	f.Add([]byte(`{"kind":"A","apiVersion":"v1","a":1e999}`))
	f.Add([]byte(`{"kind":"A","apiVersion":"v1"}{}`))
	f.Fuzz(compare)
}

func FuzzReadManifests(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: Pod\nspec: " + podSpec))
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Pod"}]}`))
	f.Add([]byte("a: &a [x]\nb: [*a, *a]\n---\n...\n"))
	f.Add([]byte("? {a: b}\n: c\n<<: &x {y: *x}"))
	f.Fuzz(func(t *testing.T, input []byte) {
		objects, err := workload.Read(strings.NewReader(string(input)), "fuzz")
		if err != nil {
			return
		}
		for _, o := range objects {
			raw, err := json.Marshal(o.Content())
			if err != nil {
				t.Fatalf("%s is no JSON: %v", o, err)
			}
			if _, err := workload.Parse(raw); err != nil {
				t.Fatalf("%s cannot be read again: %v", o, err)
			}
			uses, err := workload.Extract(o)
			if err != nil {
				continue
			}
			for _, use := range uses {
				operations, err := workload.Pin(use, use.Image+"@pinned")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := workload.Apply(o, operations); err != nil {
					t.Fatalf("the pointer of %+v does not lead to it: %v", use, err)
				}
			}
		}
	})
}
