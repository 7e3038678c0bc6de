package native

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/gateway/native/record"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/set"
)

const own = "quaymaster"

// cluster is an API server with the fields that the component depends on: UIDs, generations, resourceVersions of
// ConfigMaps, and the type check.
type cluster struct {
	t       *testing.T
	dynamic *dynamicfake.FakeDynamicClient
	typed   *fake.Clientset
	log     []string // the writes, in their order
	counter int
	// warns is the warning of type checks; unchecked means that there are none.
	warns     string
	unchecked bool
	// seen reports whether API servers answer probes.
	seen error

	documents  []document
	exceptions []*policy.Exception
	// earlier is in force in place of the document of its ID.
	earlier *policy.Policy
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	lists := map[schema.GroupVersionResource]string{}
	for _, r := range []resource{validatingPolicies, validatingBindings, mutatingPolicies, mutatingBindings} {
		lists[r.in("v1")] = r.kind() + "List"
	}
	c := &cluster{t: t, dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists), typed: fake.NewClientset()}
	c.dynamic.PrependReactor("*", "*", c.react)
	c.typed.PrependReactor("*", "configmaps", c.version)
	c.serve("v1", validatingPolicies, mutatingPolicies)
	return c
}

// serve has the API server serve some kinds of policies.
func (c *cluster) serve(in string, kinds ...resource) {
	served := c.typed.Discovery().(*fakediscovery.FakeDiscovery)
	served.FakedServerVersion = &version.Info{GitVersion: "v1.37.2"}
	list := &meta.APIResourceList{GroupVersion: group + "/" + in}
	for _, r := range kinds {
		list.APIResources = append(list.APIResources, meta.APIResource{Name: string(r)})
	}
	served.Resources = []*meta.APIResourceList{list}
}

// react completes objects as an API server does.
func (c *cluster) react(action clienttesting.Action) (bool, runtime.Object, error) {
	var name string
	switch a := action.(type) {
	case clienttesting.UpdateAction: // a create has the same methods
		object := a.GetObject().(*unstructured.Unstructured)
		name = object.GetName()
		c.counter++
		before, err := c.dynamic.Tracker().Get(action.GetResource(), "", name)
		isNew := err != nil
		switch {
		case (action.GetVerb() == "create") != isNew:
			return false, nil, nil // it is refused
		case isNew:
			object.SetUID(types.UID("uid-" + strconv.Itoa(c.counter)))
			object.SetGeneration(1)
		default:
			was := before.(*unstructured.Unstructured)
			object.SetUID(was.GetUID())
			object.SetGeneration(was.GetGeneration())
			if !reflect.DeepEqual(was.Object["spec"], object.Object["spec"]) {
				object.SetGeneration(was.GetGeneration() + 1)
			}
		}
		c.typeCheck(object)
	case clienttesting.DeleteAction:
		name = a.GetName()
	default:
		return false, nil, nil
	}
	c.log = append(c.log, action.GetVerb()+" "+action.GetResource().Resource+" "+name)
	return false, nil, nil
}

func (c *cluster) typeCheck(object *unstructured.Unstructured) {
	if c.unchecked || object.GetKind() != validatingPolicies.kind() {
		return
	}
	check := map[string]any{}
	if c.warns != "" {
		check["expressionWarnings"] = []any{map[string]any{"fieldRef": "spec.validations[0].expression", "warning": c.warns}}
	}
	object.Object["status"] = map[string]any{"observedGeneration": object.GetGeneration(), "typeChecking": check}
}

// version gives each write of a ConfigMap a version.
func (c *cluster) version(action clienttesting.Action) (bool, runtime.Object, error) {
	if a, ok := action.(clienttesting.UpdateAction); ok {
		c.counter++
		written := a.GetObject().(*core.ConfigMap)
		written.ResourceVersion = strconv.Itoa(c.counter)
		states, err := record.DecodeStates(written.Data)
		for _, id := range slices.Sorted(func(yield func(string) bool) {
			for id := range states {
				if !yield(id) {
					return
				}
			}
		}) {
			c.log = append(c.log, fmt.Sprintf("record %s native=%t", id, states[id].Native))
		}
		if err != nil && written.Name == record.Enforced {
			c.t.Errorf("a malformed record: %v", err)
		}
	}
	return false, nil, nil
}

// Probe and Forget implement Prober.
func (c *cluster) Probe(_ context.Context, marks ...string) error {
	c.log = append(c.log, fmt.Sprintf("probe of %d", len(marks)))
	return c.seen
}

func (c *cluster) Forget() {}

// Policies, Texts and Changed implement Policies.
func (c *cluster) Policies() *set.Set {
	c.t.Helper()
	var list []*policy.Policy
	for _, d := range c.documents {
		if c.earlier != nil && c.earlier.ID() == d.entry.Policy.ID() {
			list = append(list, c.earlier)
		} else {
			list = append(list, d.entry.Policy)
		}
	}
	made, err := set.New(list...)
	if err == nil {
		made, err = made.With(c.exceptions...)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return made
}

func (c *cluster) Texts(do func(catalog.Entry, []byte)) {
	for _, d := range c.documents {
		do(d.entry, d.text)
	}
}

func (c *cluster) Changed() <-chan struct{} { return nil }

// put makes a document, in JSON, an active policy in place of the one with its ID.
func (c *cluster) put(text string) {
	c.t.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		c.t.Fatal(err)
	}
	rules, err := kyverno.New(kyverno.Options{Engine: engine})
	if err != nil {
		c.t.Fatal(err)
	}
	compile := rules.Compile
	switch {
	case strings.Contains(text, "ValidatingPolicy"):
		compile = validating.New(kyvernocel.Options{}).Compile
	case strings.Contains(text, "MutatingPolicy"):
		compile = mutating.New(kyvernocel.Options{}).Compile
	}
	compiled, err := compile([]byte(text), "test")
	if err != nil {
		c.t.Fatal(err)
	}
	c.drop(compiled.ID())
	entry := catalog.Entry{Key: kinds.FromCluster + "/" + compiled.ID(), State: catalog.Ours, Policy: compiled}
	c.documents = append(c.documents, document{entry, []byte(text)})
}

func (c *cluster) drop(id string) {
	c.documents = slices.DeleteFunc(c.documents, func(d document) bool { return d.entry.Policy.ID() == id })
}

// start makes a controller, as a process that leads anew.
func (c *cluster) start(mode record.Mode) *controller {
	c.t.Helper()
	runner, err := New(Config{
		Dynamic: c.dynamic, Typed: c.typed, Servers: c, Policies: c, Metrics: counts{}, Log: slog.New(slog.DiscardHandler),
		Settings: Settings{Namespace: own, Mode: mode, ExcludedNamespaces: []string{"kube-system"}, BreakGlass: true},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return runner.controller()
}

type counts struct{}

func (counts) NativePolicies(int, int) {}
func (counts) NativeRestored()         {}

// rounds makes rounds until nothing is pending, at most some.
func (c *cluster) rounds(by *controller) {
	c.t.Helper()
	for range 10 {
		pending, err := by.round(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		if !pending {
			return
		}
		time.Sleep(pendingPause) //nolint:forbidigo // the clock of the bubble
	}
}

func (c *cluster) state(id string) record.State {
	c.t.Helper()
	have, err := c.typed.CoreV1().ConfigMaps(own).Get(c.t.Context(), record.Enforced, meta.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	states, err := record.DecodeStates(have.Data)
	if err != nil {
		c.t.Fatal(err)
	}
	return states[id]
}

// cover records that the webhooks hold the active policies, in knowledge of the states or of earlier ones.
func (c *cluster) cover(known bool) {
	c.t.Helper()
	hashes := map[string]string{}
	for _, d := range c.documents {
		hashes[d.entry.Policy.ID()] = d.entry.Policy.Hash
	}
	if known {
		c.coverWith(hashes)
	} else {
		c.record(record.Coverage{States: "0", Policies: hashes})
	}
}

// coverWith records that the webhooks hold some versions, in knowledge of the states.
func (c *cluster) coverWith(hashes map[string]string) {
	c.t.Helper()
	have, err := c.typed.CoreV1().ConfigMaps(own).Get(c.t.Context(), record.Enforced, meta.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.record(record.Coverage{States: have.ResourceVersion, Policies: hashes})
}

func (c *cluster) record(coverage record.Coverage) {
	c.t.Helper()
	data, err := coverage.Encode()
	if err != nil {
		c.t.Fatal(err)
	}
	api := c.typed.CoreV1().ConfigMaps(own)
	_ = api.Delete(c.t.Context(), record.Covered, meta.DeleteOptions{})
	if _, err := api.Create(c.t.Context(), &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Namespace: own, Name: record.Covered}, Data: data}, meta.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// until is a context that ends after some time.
func (c *cluster) until(wait time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(c.t.Context(), wait)
	c.t.Cleanup(cancel)
	return ctx
}

// notLoaded are policies that are not loaded yet.
type notLoaded struct{ *cluster }

func (notLoaded) Policies() *set.Set { return nil }

// stored returns an object; nil for none.
func (c *cluster) stored(r resource, name string) *unstructured.Unstructured {
	have, err := c.dynamic.Tracker().Get(r.in("v1"), "", name)
	if err != nil {
		return nil
	}
	return have.(*unstructured.Unstructured)
}

// names are those of the objects of policies.
func (c *cluster) names() []string {
	c.t.Helper()
	have, err := (api{c.dynamic}).list(c.t.Context(), versions{validating: "v1", mutating: "v1"})
	if err != nil {
		c.t.Fatal(err)
	}
	var names []string
	for at := range have {
		names = append(names, string(at.resource)+" "+at.name)
	}
	slices.Sort(names)
	return names
}

var errNotSeen = errors.New("one API server does not show the mark")
