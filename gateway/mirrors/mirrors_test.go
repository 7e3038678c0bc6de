package mirrors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/registry/health"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// counts is the mirrorMetrics of tests.
type counts struct {
	states  map[string]metrics.MirrorState
	targets []string
}

func (c *counts) SetMirrors(list []metrics.Mirror) {
	c.states = map[string]metrics.MirrorState{}
	for _, m := range list {
		c.states[m.ID] = m.State
	}
}

func (c *counts) SetTargets(registries []string) { c.targets = registries }

// mirrorBench is mirrors of the cluster and of ConfigMaps.
type mirrorBench struct {
	*Mirrors
	counts *counts
	log    *testkit.Log
}

func newMirrorBench() *mirrorBench {
	b := &mirrorBench{counts: &counts{}, log: &testkit.Log{}}
	b.Mirrors = New(&gate.Current{}, b.counts, slog.New(slog.NewTextHandler(b.log, nil)), &gateway.Signal{})
	return b
}

// upsert adds a RegistryMirror of the cluster.
func (b *mirrorBench) upsert(t *testing.T, name, spec string) {
	t.Helper()
	raw := fmt.Sprintf(`{"apiVersion":"quaymaster.dev/v1alpha1","kind":"RegistryMirror","metadata":{"name":%q,"uid":"u1","generation":3},"spec":%s}`, name, spec)
	d := document.Document{Key: document.Key{Group: kinds.OwnGroup, Resource: kinds.MirrorResource, Name: name}, UID: "u1", Raw: []byte(raw)}
	d.Kind.Group, d.Kind.Version, d.Kind.Kind = kinds.OwnGroup, "v1alpha1", "RegistryMirror"
	b.Changed(t.Context(), []document.Document{d}, nil)
}

func (b *mirrorBench) remove(t *testing.T, name string) {
	t.Helper()
	b.Changed(t.Context(), nil, []document.Key{{Group: kinds.OwnGroup, Resource: kinds.MirrorResource, Name: name}})
}

const (
	oneEntry    = `{"mirrors":[{"sources":["docker.io"],"targets":[{"location":"one.example/hub"}]}]}`
	twoEntry    = `{"mirrors":[{"sources":["docker.io"],"targets":[{"location":"two.example/hub"}]}]}`
	brokenEntry = `{"mirrors":[{"sources":["docker.io"],"target":[{"location":"one.example/hub"}]}]}`
)

// TestMirrorStates: what becomes of a document as it changes.
func TestMirrorStates(t *testing.T) {
	b := newMirrorBench()
	for _, step := range []struct {
		reason string
		do     func()
		state  metrics.MirrorState // empty: there is none
		target string
	}{
		{"broken from the start: it is not there", func() { b.upsert(t, "hub", brokenEntry) }, metrics.MirrorBroken, ""},
		{"corrected", func() { b.upsert(t, "hub", oneEntry) }, metrics.MirrorActive, "one.example"},
		{"broken: the last good version holds", func() { b.upsert(t, "hub", brokenEntry) }, metrics.MirrorOutdated, "one.example"},
		{"corrected to another", func() { b.upsert(t, "hub", twoEntry) }, metrics.MirrorActive, "two.example"},
		{"deleted", func() { b.remove(t, "hub") }, "", ""},
		{"broken after it was deleted: nothing is left of it", func() { b.upsert(t, "hub", brokenEntry) }, metrics.MirrorBroken, ""},
	} {
		step.do()
		if got := b.counts.states["RegistryMirror/hub"]; got != step.state {
			t.Errorf("%s: state %q, want %q", step.reason, got, step.state)
		}
		if got := strings.Join(b.Set().Registries(), " "); got != step.target {
			t.Errorf("%s: the targets are %q, want %q", step.reason, got, step.target)
		}
	}
	if !strings.Contains(b.log.String(), "target") {
		t.Error("the log does not name the field")
	}
}

// TestOfTwoMirrorsOneHolds: a file's document stands before the cluster's of the same
// name, which is used once that is gone.
func TestOfTwoMirrorsOneHolds(t *testing.T) {
	b := newMirrorBench()
	folder := t.TempDir()
	path := filepath.Join(folder, "hub.yaml")
	if err := os.WriteFile(path, []byte(mirrorText("hub", "docker.io", "file.example/hub", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	files := &files{read: engine.ReadDocuments, paths: []string{folder}, into: b.Mirrors}
	if err := files.load(); err != nil {
		t.Fatal(err)
	}
	b.upsert(t, "hub", oneEntry)
	if got := strings.Join(b.Set().Registries(), " "); got != "file.example" {
		t.Errorf("the targets are %q", got)
	}
	if b.counts.states["RegistryMirror/hub"] != metrics.MirrorActive || len(b.counts.states) != 2 {
		t.Errorf("states: %v", b.counts.states)
	}
	if err := os.WriteFile(path, []byte("# nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := files.load(); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(b.Set().Registries(), " "); got != "one.example" {
		t.Errorf("without the file the targets are %q", got)
	}
}

// TestMisspeltMirrors: a file whose document loses its kind or name keeps its last valid version, as
// one with an invalid field does. One that is deleted or renamed is another document.
func TestMisspeltMirrors(t *testing.T) {
	good := mirrorText("hub", "docker.io", "file.example/hub", "")
	pairs := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map, namespace: platform}\ndata: {docker.io: file.example/hub}\n"
	replace := func(text string, pair ...string) string {
		out := strings.NewReplacer(pair...).Replace(text)
		if out == text {
			t.Fatalf("%v is not in %s", pair, text)
		}
		return out
	}
	for _, row := range []struct {
		reason, before, after, target string
		fails                         bool
	}{
		{"an unknown kind", good, replace(good, "RegistryMirror", "RegistryMirrors"), "file.example", true},
		{"a kind in small letters", good, replace(good, "RegistryMirror", "registryMirror"), "file.example", true},
		{"an unknown version", good, replace(good, "v1alpha1", "v1alpha9"), "file.example", false},
		{"no name", good, replace(good, "name", "nam"), "file.example", true},
		{"an invalid name", good, replace(good, "hub", "Hub_"), "file.example", true},
		{"an invalid field", good, replace(good, "sources", "sourcez"), "file.example", false},
		{"pairs of an unknown kind", pairs, replace(pairs, "ConfigMap", "Configmap"), "file.example", true},
		{"pairs without a name", pairs, replace(pairs, "name: map", "nam: map"), "file.example", true},
		{"pairs without a registry", pairs, replace(pairs, "docker.io", "docker_io"), "file.example", false},
		{"an invalid document more", good, good + "---\n" + replace(good, "RegistryMirror", "RegistryMirrors"), "file.example", false},
		{"another name", good, replace(good, "name: hub", "name: other", "file.example", "other.example"), "other.example", false},
		{"nothing", good, "# nothing\n", "", false},
		{"a ConfigMap for others", good, good + "---\n" + replace(pairs, "docker.io", "color"), "file.example", false},
	} {
		b := newMirrorBench()
		path := filepath.Join(t.TempDir(), "a.yaml")
		files := &files{read: engine.ReadDocuments, paths: []string{path}, into: b.Mirrors}
		for _, step := range []struct {
			text, target string
			fails        bool
		}{{row.before, "file.example", false}, {row.after, row.target, row.fails}, {row.after, row.target, row.fails}, {"# nothing\n", "", false}} {
			if err := os.WriteFile(path, []byte(step.text), 0o600); err != nil {
				t.Fatal(err)
			}
			err := files.load()
			if got := strings.Join(b.Set().Registries(), " "); got != step.target || (err != nil) != step.fails {
				t.Errorf("%s: the targets are %q, want %q: %v", row.reason, got, step.target, err)
			}
		}
	}
}

// configMaps are looked up in tests.
type configMaps map[string]any

func (c configMaps) ConfigMap(_ context.Context, namespace, name string) (map[string]any, error) {
	switch found := c[namespace+"/"+name].(type) {
	case map[string]any:
		return found, nil
	case error:
		return nil, found
	}
	return nil, &cluster.Error{Kind: "configmap", Namespace: namespace, Name: name, Reason: cluster.ErrNotFound}
}

func TestMirrorsInConfigMaps(t *testing.T) {
	pairs := func(target string) map[string]any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "platform", "name": "map"},
			"data": map[string]any{"docker.io": target}}
	}
	b, found := newMirrorBench(), configMaps{}
	b.await(inConfigMaps)
	named := &followed{names: []string{"platform/map"}, lookup: found, into: b.Mirrors}
	unavailable := &cluster.Error{Kind: "configmap", Reason: cluster.ErrUnavailable}
	for _, step := range []struct {
		reason   string
		now      any
		complete bool
		known    bool
		target   string
	}{
		{"failed at the start: nothing is known", unavailable, false, false, ""},
		{"there", pairs("one.example/hub"), true, true, "one.example"},
		{"indeterminate: it stays", unavailable, false, true, "one.example"},
		{"another", pairs("two.example/hub"), true, true, "two.example"},
		{"broken: the last version holds", pairs("https://three.example/hub"), true, true, "two.example"},
		{"may not be read any more: so it does", &cluster.Error{Kind: "configmap", Reason: cluster.ErrForbidden}, true, true, "two.example"},
		{"deleted", nil, true, true, ""},
	} {
		found["platform/map"] = step.now
		if got := named.look(t.Context()); got != step.complete {
			t.Errorf("%s: complete is %t", step.reason, got)
		}
		known := b.Set() != nil
		if known != step.known {
			t.Errorf("%s: known is %t", step.reason, known)
		}
		if got := strings.Join(b.Set().Registries(), " "); got != step.target {
			t.Errorf("%s: the targets are %q, want %q", step.reason, got, step.target)
		}
	}
}

// transitions records changes of targets.
type transitions struct{ list []string }

func (c *transitions) TargetChanged(registry string, resting bool) {
	c.list = append(c.list, fmt.Sprint(registry, " ", resting))
}

func TestTargetsReportChangesOnly(t *testing.T) {
	seen := &transitions{}
	followed, err := NewTargets(func(context.Context, string) error { return nil }, seen, slog.New(slog.DiscardHandler), &gateway.Signal{})
	if err != nil {
		t.Fatal(err)
	}
	defer followed.Close()
	silence := &image.Error{Kind: image.Unavailable, Op: "resolve", Err: errors.New("connection refused")}
	for _, err := range []error{nil, silence, silence, nil, nil} {
		followed.Told("one.example", err)
	}
	for _, phase := range []health.Phase{health.Open, health.HalfOpen, health.Open, health.HalfOpen, health.Closed, health.Forgotten} {
		followed.seen(health.State{Registry: "two.example", Phase: phase})
	}
	if want := []string{"one.example true", "one.example false", "two.example true", "two.example false"}; !slices.Equal(seen.list, want) {
		t.Errorf("reported %q, want %q", seen.list, want)
	}
}

func TestMirrorStatus(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "quaymaster.dev/v1alpha1", "kind": "RegistryMirror", "metadata": map[string]any{"name": "hub", "uid": "u1"},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Other", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}}},
	}}
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), object)
	b := newMirrorBench()
	var states []health.State
	status := &record.Reporter{
		Kind: "RegistryMirror", Client: client, Desired: func() []record.Desired { return b.Desired(states) }, Failed: func(err error) { t.Error(err) },
	}
	patches := func() (n int) {
		for _, action := range client.Actions() {
			if action.GetVerb() == "patch" && action.GetSubresource() == "status" {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		reason string
		do     func()
		wrote  bool
		want   string // a part of the status
	}{
		{"the target was not asked yet", func() { b.upsert(t, "hub", oneEntry) }, true, `"reason":"Active"`},
		{"nothing changed", func() {}, false, `"state":"unknown"`},
		{"the target rests", func() {
			states = []health.State{{Registry: "one.example", Phase: health.Open, Err: errors.New("connection refused")}, {Registry: "two.example", Phase: health.Closed}}
		}, true, `"message":"connection refused"`},
		{"a probe begins", func() { states[0].Phase = health.HalfOpen }, false, `"state":"resting"`},
		{"it answers", func() { states[0].Phase = health.Closed }, true, `"state":"answering"`},
		{"the document is broken", func() { b.upsert(t, "hub", brokenEntry) }, true, `"reason":"Outdated"`},
	} {
		before := patches()
		step.do()
		status.Round(t.Context())
		if wrote := patches() > before; wrote != step.wrote {
			t.Errorf("%s: written is %t", step.reason, wrote)
		}
		now, err := client.Resource(b.documents[b.keys()[0]].object.Resource).Get(t.Context(), "hub", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(now.Object["status"])
		if err != nil || !strings.Contains(string(text), step.want) || !strings.Contains(string(text), `"type":"Other"`) {
			t.Errorf("%s: the status is %s, want %s and the other's condition in it (%v)", step.reason, text, step.want, err)
		}
	}
	before := patches()
	b.documents[b.keys()[0]].object.UID = "u2"
	status.Round(t.Context())
	if patches() > before {
		t.Error("one of the same name that was made since is written to")
	}
}

// mirrorText is a mirror of a registry.
func mirrorText(name, source, target, more string) string {
	return fmt.Sprintf("apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: %s}\nspec: {mirrors: [{sources: [%q], targets: [{location: %q}]%s}]}\n", name, source, target, more)
}
