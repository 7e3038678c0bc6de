package document_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"

	"github.com/quaymaster/quaymaster/cluster/document"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	cluster1    = schema.GroupVersionResource{Group: "kyverno.io", Version: "v1", Resource: "clusterpolicies"}
	cluster2    = schema.GroupVersionResource{Group: "kyverno.io", Version: "v2beta1", Resource: "clusterpolicies"}
	exceptions  = schema.GroupVersionResource{Group: "kyverno.io", Version: "v2", Resource: "policyexceptions"}
)

// world is an API server made of client-go's fakes, with definitions of its own.
type world struct {
	t        *testing.T
	dynamic  *fake.FakeDynamicClient
	metadata *metadatafake.FakeMetadataClient

	mu          sync.Mutex
	definitions map[string]string
	broken      bool
	batches     []string
	said        []string
	documents   map[string]document.Document
}

func newWorld(t *testing.T) *world {
	s := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(s); err != nil {
		t.Fatal(err)
	}
	return &world{
		t: t, definitions: map[string]string{}, documents: map[string]document.Document{},
		metadata: metadatafake.NewSimpleMetadataClient(s),
		dynamic: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
			cluster1: "ClusterPolicyList", cluster2: "ClusterPolicyList", exceptions: "PolicyExceptionList",
		}),
	}
}

const (
	keepsAll = `{"properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`
	prunes   = `{"properties":{"spec":{"type":"object","properties":{}}}}`
)

// define makes or replaces a definition that serves the versions.
func (w *world) define(name, schema string, versions ...string) {
	var list []string
	for _, v := range versions {
		list = append(list, fmt.Sprintf(`{"name":%q,"served":true,"schema":{"openAPIV3Schema":%s}}`, v, schema))
	}
	w.mu.Lock()
	_, known := w.definitions[name]
	w.definitions[name] = fmt.Sprintf(`{"spec":{"versions":[%s]},"status":{"conditions":[{"type":"Established","status":"True"}]}}`, strings.Join(list, ","))
	w.mu.Unlock()
	object := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
	var err error
	if known {
		err = w.metadata.Tracker().Update(definitions, object, "")
	} else {
		err = w.metadata.Tracker().Create(definitions, object, "")
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) undefine(name string) {
	w.mu.Lock()
	delete(w.definitions, name)
	w.mu.Unlock()
	if err := w.metadata.Tracker().Delete(definitions, "", name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) Definition(_ context.Context, name string) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return nil, errors.New("connection refused")
	}
	return []byte(w.definitions[name]), nil
}

func policy(resource schema.GroupVersionResource, name, version, spec string) *unstructured.Unstructured {
	kind := map[string]string{"clusterpolicies": "ClusterPolicy", "policyexceptions": "PolicyException"}[resource.Resource]
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resource.GroupVersion().String(), "kind": kind,
		"metadata": map[string]any{
			"name": name, "uid": "uid-" + name, "resourceVersion": version,
			"managedFields": []any{map[string]any{"manager": "kubectl"}},
		},
		"spec":   map[string]any{"text": spec},
		"status": map[string]any{"seen": version},
	}}
}

func (w *world) create(resource schema.GroupVersionResource, name, spec string) {
	if err := w.dynamic.Tracker().Create(resource, policy(resource, name, "1", spec), ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) update(resource schema.GroupVersionResource, name, version, spec string) {
	if err := w.dynamic.Tracker().Update(resource, policy(resource, name, version, spec), ""); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) Changed(_ context.Context, upserts []document.Document, deletes []document.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var words []string
	for _, d := range upserts {
		words = append(words, "+"+d.Key.Name+"@"+d.Kind.Version)
		w.documents[d.Key.String()] = d
	}
	for _, k := range deletes {
		words = append(words, "-"+k.Name)
		delete(w.documents, k.String())
	}
	w.batches = append(w.batches, strings.Join(words, " "))
}

func (w *world) Pruned(kind schema.GroupVersionResource, place string) {
	w.say("pruned " + kind.Resource + " " + place)
}

func (w *world) Served(kind schema.GroupVersionResource, served bool) {
	w.say(fmt.Sprintf("served %s %s %t", kind.Resource, kind.Version, served))
}

func (w *world) Failed(err error) { w.say("failed " + err.Error()) }

func (w *world) say(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, what)
}

func (w *world) expect(reason string, want ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.batches, want) {
		w.t.Errorf("%s: reported %q, want %q", reason, w.batches, want)
	}
	w.batches = nil
}

func (w *world) expectSaid(reason string, want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.said, want) {
		w.t.Errorf("%s: logged %q, want %q", reason, w.said, want)
	}
	w.said = nil
}

func (w *world) options() document.Options {
	return document.Options{
		Kinds: []document.Kind{
			{Group: "kyverno.io", Resource: "clusterpolicies", Versions: []string{"v1", "v2beta1"}},
			{Group: "kyverno.io", Resource: "policyexceptions", Versions: []string{"v2"}},
		},
		Dynamic: w.dynamic, Metadata: w.metadata, Definitions: w, Consumer: w, Observer: w,
	}
}

// start runs a Watcher; the returned function ends it and waits.
func (w *world) start() (*document.Watcher, func()) { return w.startWith(w.options()) }

func (w *world) startWith(o document.Options) (*document.Watcher, func()) {
	watcher, err := document.New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); watcher.Run(ctx) }()
	return watcher, func() { cancel(); <-done }
}

func ready(w *document.Watcher) bool {
	select {
	case <-w.Ready():
		return true
	default:
		return false
	}
}

func TestReportsExistingDocumentsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.define("clusterpolicies.kyverno.io", keepsAll, "v2beta1", "v1")
		w.define("policyexceptions.kyverno.io", keepsAll, "v2")
		w.define("others.example.com", prunes, "v1")
		w.create(cluster1, "b", "x")
		w.create(cluster1, "a", "x")
		w.create(exceptions, "e", "x")
		watcher, stop := w.start()
		defer stop()
		w.expect("one batch, sorted, in the version liked best", "+a@v1 +b@v1 +e@v2")
		if !ready(watcher) {
			t.Error("not ready after everything was reported")
		}
		w.expectSaid("both are served, and another's definition is no matter", "served clusterpolicies v1 true", "served policyexceptions v2 true")
		if got := watcher.Served(); !slices.Equal(got, []schema.GroupVersionResource{cluster1, exceptions}) {
			t.Errorf("served are %v", got)
		}
	})
}

func TestNothingServedIsReadyToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		watcher, stop := w.start()
		defer stop()
		w.expect("the first batch comes even when nothing is there", "")
		if !ready(watcher) || len(watcher.Served()) != 0 {
			t.Errorf("ready %t, served %v", ready(watcher), watcher.Served())
		}
	})
}

func TestNotReadyWhileADefinitionCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.broken = true
		w.define("clusterpolicies.kyverno.io", keepsAll, "v1")
		w.create(cluster1, "a", "x")
		watcher, stop := w.start()
		defer stop()
		w.expect("the served versions could not be read")
		if ready(watcher) {
			t.Error("ready without having looked")
		}
		w.mu.Lock()
		w.broken = false
		w.mu.Unlock()
		<-watcher.Ready()
		w.expect("it was tried again", "+a@v1")
	})
}

func TestRelevantChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.define("clusterpolicies.kyverno.io", keepsAll, "v1")
		w.create(cluster1, "a", "x")
		_, stop := w.start()
		defer stop()
		w.expect("at first", "+a@v1")
		w.update(cluster1, "a", "2", "x")
		w.expect("only the status and the version changed")
		w.update(cluster1, "a", "3", "y")
		w.expect("the spec changed", "+a@v1")
		d := w.documents["clusterpolicies.kyverno.io a"]
		if d.UID != "uid-a" || d.ResourceVersion != "3" || d.Kind.Kind != "ClusterPolicy" {
			t.Errorf("reported %+v", d)
		}
		var object map[string]any
		if err := json.Unmarshal(d.Raw, &object); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(object)); !slices.Equal(got, []string{"apiVersion", "kind", "metadata", "spec"}) {
			t.Errorf("the document has %v", got)
		}
		if strings.Contains(string(d.Raw), "managedFields") || strings.Contains(string(d.Raw), "resourceVersion") {
			t.Errorf("the document has what changes with a status: %s", d.Raw)
		}
		if err := w.dynamic.Tracker().Delete(cluster1, "", "a"); err != nil {
			t.Fatal(err)
		}
		w.expect("deleted", "-a")
	})
}

// TestEveryDefinitionIsReported: also one with irrelevant documents, or without
// documents.
func TestEveryDefinitionIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.define("clusterpolicies.kyverno.io", keepsAll, "v1")
		options, told := w.options(), 0
		options.Defined = func() { told++ }
		watcher, err := document.New(options)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); watcher.Run(ctx) }()
		for _, step := range []struct {
			reason string
			do     func()
			told   bool
		}{
			{"the definitions at the start", func() {}, true},
			{"nothing changed", func() {}, false},
			{"another's came", func() { w.define("others.example.com", prunes, "v1") }, true},
			{"it changed, as when it is established", func() { w.define("others.example.com", prunes, "v1", "v2") }, true},
			{"a document came", func() { w.create(cluster1, "a", "x") }, false},
			{"another's went", func() { w.undefine("others.example.com") }, true},
		} {
			step.do()
			synctest.Wait()
			if told > 0 != step.told {
				t.Errorf("%s: reported %d times, want a report: %t", step.reason, told, step.told)
			}
			told = 0
		}
		stop()
		<-done
	})
}

func TestDefinitionsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		watcher, stop := w.start()
		defer stop()
		w.expect("nothing yet", "")

		w.create(cluster2, "a", "x")
		w.create(cluster1, "a", "x")
		w.create(cluster1, "b", "x")
		w.define("clusterpolicies.kyverno.io", prunes, "v2beta1")
		w.expect("a definition that appears later", "+a@v2beta1")
		w.expectSaid("and loses fields", "served clusterpolicies v2beta1 true", "pruned clusterpolicies spec")

		w.define("clusterpolicies.kyverno.io", keepsAll, "v2beta1", "v1")
		w.expect("a version that is liked better", "+a@v1 +b@v1")

		w.said = nil
		w.undefine("clusterpolicies.kyverno.io")
		w.expect("a definition that vanishes", "-a -b")
		w.expectSaid("it is reported", "served clusterpolicies v1 false")
		w.define("clusterpolicies.kyverno.io", keepsAll, "v1")
		w.expect("and back", "+a@v1 +b@v1")
		w.undefine("clusterpolicies.kyverno.io")
		w.expect("a definition that vanishes again", "-a -b")
		w.expectSaid("it is reported", "served clusterpolicies v1 true", "served clusterpolicies v1 false")
		if len(watcher.Served()) != 0 {
			t.Errorf("served are %v", watcher.Served())
		}
	})
}

const unread = "failed customresourcedefinition clusterpolicies.kyverno.io serves none of the versions [v1 v2beta1], so its documents are not read"

// TestNoKnownVersion: documents that cannot be read stay as reported, until they can
// be read again or their definition is gone.
func TestNoKnownVersion(t *testing.T) {
	const name = "clusterpolicies.kyverno.io"
	remove := func(w *world, resource schema.GroupVersionResource, name string) {
		if err := w.dynamic.Tracker().Delete(resource, "", name); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, row := range []struct {
		reason string
		do     func(*world)
		want   []string
	}{
		{"it is served again, and nothing has changed", func(w *world) { w.define(name, keepsAll, "v1") }, nil},
		{"it is served again, and a document changed, came or went meanwhile", func(w *world) {
			w.update(cluster1, "a", "2", "y")
			remove(w, cluster1, "b")
			w.create(cluster1, "c", "x")
			w.define(name, keepsAll, "v1")
		}, []string{"+a@v1 +c@v1 -b"}},
		{"another known version is served", func(w *world) {
			w.create(cluster2, "a", "x")
			w.define(name, keepsAll, "v2beta1")
		}, []string{"+a@v2beta1 -b"}},
		{"the definition goes, and its documents with it", func(w *world) { w.undefine(name) }, []string{"-a -b"}},
		{"another unknown version is served", func(w *world) { w.define(name, keepsAll, "v10") }, nil},
	} {
		for _, served := range [][]string{nil, {"v9"}} { // no version, or only an unknown one
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.define(name, keepsAll, "v1")
				w.create(cluster1, "a", "x")
				w.create(cluster1, "b", "x")
				watcher, stop := w.start()
				defer stop()
				w.expect("at first", "+a@v1 +b@v1")
				w.said = nil
				w.define(name, keepsAll, served...)
				w.expect("no version that is understood")
				w.expectSaid("it is reported", unread, "served clusterpolicies v1 false")
				if len(watcher.Served()) != 0 || !ready(watcher) {
					t.Errorf("served are %v, ready %t", watcher.Served(), ready(watcher))
				}
				w.update(cluster1, "b", "2", "y")
				w.expect("nothing is watched")
				w.update(cluster1, "b", "3", "x")
				row.do(w)
				w.expect(fmt.Sprint(row.reason, " after ", served), row.want...)
			})
		}
	}
}

// TestAwaitsAKnownVersion: a watcher that starts without existing documents is not ready.
func TestAwaitsAKnownVersion(t *testing.T) {
	for _, row := range []struct {
		reason  string
		awaited bool
		settle  func(*world)
		want    string
	}{
		{"a known version is served", true, func(w *world) { w.define("clusterpolicies.kyverno.io", keepsAll, "v9", "v1") }, "+a@v1 +e@v2"},
		{"the definition is deleted", true, func(w *world) { w.undefine("clusterpolicies.kyverno.io") }, "+e@v2"},
		{"the kind is not awaited", false, func(*world) {}, "+e@v2"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.define("clusterpolicies.kyverno.io", keepsAll, "v9")
			w.define("policyexceptions.kyverno.io", keepsAll, "v2")
			w.create(cluster1, "a", "x")
			w.create(exceptions, "e", "x")
			options := w.options()
			options.Kinds[0].Awaited = row.awaited
			watcher, stop := w.startWith(options)
			defer stop()
			synctest.Wait()
			if ready(watcher) == row.awaited || (len(w.batches) == 0) != row.awaited {
				t.Errorf("%s: ready %t, reported %q", row.reason, ready(watcher), w.batches)
			}
			w.expectSaid("the error is reported", unread, "served policyexceptions v2 true")
			row.settle(w)
			w.expect(row.reason, row.want)
			if !ready(watcher) {
				t.Errorf("%s: it is not ready", row.reason)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	w := newWorld(t)
	for _, row := range []struct {
		reason string
		change func(*document.Options)
		want   string
	}{
		{"all that is required", func(*document.Options) {}, ""},
		{"no observer is no harm", func(o *document.Options) { o.Observer = nil }, ""},
		{"no consumer", func(o *document.Options) { o.Consumer = nil }, "required"},
		{"no kinds", func(o *document.Options) { o.Kinds = nil }, "kinds"},
		{"a kind without versions", func(o *document.Options) { o.Kinds[0].Versions = nil }, "versions"},
		{"a kind that is named twice", func(o *document.Options) { o.Kinds[1] = o.Kinds[0] }, "twice"},
	} {
		o := w.options()
		row.change(&o)
		_, err := document.New(o)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v, want %q", row.reason, err, row.want)
		}
	}
}
