package gateway

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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/health"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// mirrorText is a mirror of a registry.
func mirrorText(name, source, target, more string) string {
	return fmt.Sprintf("apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: %s}\nspec: {mirrors: [{sources: [%q], targets: [{location: %q}]%s}]}\n", name, source, target, more)
}

// TestStandaloneRedirects: two registries, and a file that says that one has what the
// other has.
func TestStandaloneRedirects(t *testing.T) {
	d := newDock(t)
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	copied := gatetest.New(server, d.Sigstore).Build("signed", "v1", "1")
	if copied.Manifest.Digest != d.signed.Manifest.Digest {
		t.Fatal("the copy is another image")
	}
	elsewhere := d.Build("elsewhere", "v1", "3")
	d.write(t, "policies/policy.yaml", strings.ReplaceAll(policyText("signed", "Pod", d.key), `"*"`, `"`+d.Registry.Host()+`/signed*", "`+d.Registry.Host()+`/unsigned*"`))
	d.write(t, "mirrors/near.yaml", mirrorText("near", d.Registry.Host(), server.Host(), ", when: Present"))
	r := d.start(t, "mirrors: {files: ["+filepath.Join(d.folder, "mirrors")+"]}\n")

	there := copied.Name + "@" + copied.Manifest.Digest
	redirected := func(allowed bool, patch string) error {
		got, err := r.ask("/mutate", "Pod", "shop", d.signed.Name)
		if err != nil || got.Allowed != allowed || !strings.Contains(string(got.Patch), patch) {
			return fmt.Errorf("allowed %t, patch %s, %s, %w", got.Allowed, got.Patch, got.Status.Message, err)
		}
		return nil
	}
	if err := redirected(true, there); err != nil {
		t.Errorf("a signed image that the mirror has: %v", err)
	}
	if got := r.mustAsk(t, "/validate", "Pod", "shop", there); !got.Allowed {
		t.Errorf("the copy, as it is stored: %s", got.Status.Message)
	}
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.unsigned.Name); got.Allowed {
		t.Error("an unsigned image is admitted by way of a mirror")
	}
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", elsewhere.Name); !got.Allowed || strings.Contains(string(got.Patch), server.Host()) {
		t.Errorf("an image that the mirror lacks: allowed %t, patch %s, %s", got.Allowed, got.Patch, got.Status.Message)
	}
	_, page := get(t, "http://"+r.plain+"/metrics")
	for _, line := range []string{
		`quaymaster_mirrors{state="active"} 1`, `quaymaster_mirror_target_resting{registry="` + server.Host() + `"} 0`,
		`quaymaster_redirects_total{mirror="RegistryMirror/near",outcome="chosen"}`, `quaymaster_redirects_total{mirror="RegistryMirror/near",outcome="not-mirrored"} 1`,
	} {
		if !strings.Contains(page, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}

	d.write(t, "mirrors/near.yaml", strings.ReplaceAll(mirrorText("near", d.Registry.Host(), server.Host(), ", when: Present"), "targets", "target"))
	eventually(t, func() error {
		if _, page := get(t, "http://"+r.plain+"/metrics"); !strings.Contains(page, `quaymaster_mirrors{state="outdated"} 1`) {
			return errors.New("nobody says that the file is broken")
		}
		return nil
	})
	if err := redirected(true, there); err != nil {
		t.Errorf("with a file that is broken the version before it does not hold: %v", err)
	}
	if err := os.Remove(filepath.Join(d.folder, "mirrors/near.yaml")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return redirected(true, d.signed.Name+"@") })
}

func TestMirrorsThatCannotBeReadStopTheStart(t *testing.T) {
	d := newDock(t)
	c, err := config.Parse([]byte(head + "standalone: true\npolicies: {folders: [" + d.folder + "/policies]}\nmirrors: {files: [" + d.folder + "/nothing]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newAssembly(t.Context(), c, Options{Log: &diary{}, Version: "test"}); err == nil || !strings.Contains(err.Error(), "mirrors.files") {
		t.Errorf("a file that is not there: %v", err)
	}
}

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
	*mirrors
	counts *counts
	log    *diary
}

func newMirrorBench() *mirrorBench {
	b := &mirrorBench{counts: &counts{}, log: &diary{}}
	b.mirrors = newMirrors(&gate.Current{}, b.counts, slog.New(slog.NewTextHandler(b.log, nil)), &gateway.Signal{})
	return b
}

// upsert tells of a RegistryMirror of the cluster.
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
		if got := strings.Join(b.set().Registries(), " "); got != step.target {
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
	files := &mirrorFiles{paths: []string{folder}, into: b.mirrors}
	if err := files.load(); err != nil {
		t.Fatal(err)
	}
	b.upsert(t, "hub", oneEntry)
	if got := strings.Join(b.set().Registries(), " "); got != "file.example" {
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
	if got := strings.Join(b.set().Registries(), " "); got != "one.example" {
		t.Errorf("without the file the targets are %q", got)
	}
}

// configMaps are looked up in tests.
type configMaps map[string]any // a map, or an error

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
	b.await(mirrorsInConfigMaps)
	named := &mirrorConfigMaps{names: []string{"platform/map"}, lookup: found, into: b.mirrors}
	unavailable := &cluster.Error{Kind: "configmap", Reason: cluster.ErrUnavailable}
	for _, step := range []struct {
		reason   string
		now      any
		complete bool
		known    bool
		target   string
	}{
		{"could not look at the start: nothing is known", unavailable, false, false, ""},
		{"there", pairs("one.example/hub"), true, true, "one.example"},
		{"could not look: it stays", unavailable, false, true, "one.example"},
		{"another", pairs("two.example/hub"), true, true, "two.example"},
		{"broken: the last version holds", pairs("https://three.example/hub"), true, true, "two.example"},
		{"may not be read any more: so it does", &cluster.Error{Kind: "configmap", Reason: cluster.ErrForbidden}, true, true, "two.example"},
		{"deleted", nil, true, true, ""},
	} {
		found["platform/map"] = step.now
		if got := named.look(t.Context()); got != step.complete {
			t.Errorf("%s: complete is %t", step.reason, got)
		}
		known := b.set() != nil
		if known != step.known {
			t.Errorf("%s: known is %t", step.reason, known)
		}
		if got := strings.Join(b.set().Registries(), " "); got != step.target {
			t.Errorf("%s: the targets are %q, want %q", step.reason, got, step.target)
		}
	}
}

// policyCheck refuses all policies.
type policyCheck struct{}

func (policyCheck) Check([]byte) error { return errors.New("a policy") }

func (policyCheck) Warnings([]byte) []string { return []string{"of a policy"} }

func TestChecker(t *testing.T) {
	entries, _, _ := newGlobalBench(t)
	entry := func(spec string) string { return string(globalDocument("list", spec).Raw) }
	own := `{"apiVersion":"quaymaster.dev/v1alpha1","kind":"RegistryMirror","metadata":{"name":"hub"},"spec":%s}`
	for _, c := range []struct{ reason, text, want string }{
		{"a mirror", fmt.Sprintf(own, oneEntry), ""},
		{"a broken mirror, by its path", fmt.Sprintf(own, brokenEntry), "spec.mirrors[0].target"},
		{"a version that nobody knows", strings.ReplaceAll(fmt.Sprintf(own, oneEntry), "v1alpha1", "v9"), "kind"},
		{"a global context entry", entry(globalCall), ""},
		{"a broken one, by its path", entry(`{"apiCall":{"urlPath":"/api/v1/pods","refreshInterval":"soon"}}`), "spec.apiCall.refreshInterval"},
		{"one of two things", entry(`{"apiCall":{"urlPath":"/api/v1/pods"},"kubernetesResource":{"version":"v1","resource":"pods"}}`), "want either kubernetesResource or apiCall"},
		{"one of a version that nobody knows", strings.ReplaceAll(entry(globalCall), "v2beta1", "v9"), "no GlobalContextEntry of kyverno.io/v2"},
		{"a policy", `{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy"}`, "a policy"},
		{"what cannot be read is the policies' matter", `{`, "a policy"},
	} {
		err := checker{policies: policyCheck{}, entries: entries}.Check([]byte(c.text))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
}

// consumed is a document.Consumer that remembers.
type consumed struct{ calls []string }

func (c *consumed) Changed(_ context.Context, upserts []document.Document, deletes []document.Key) {
	text := ""
	for _, d := range upserts {
		text += "+" + d.Key.Resource
	}
	for _, key := range deletes {
		text += "-" + key.Resource
	}
	c.calls = append(c.calls, text)
}

func TestSorter(t *testing.T) {
	policies, mirrors, globals := &consumed{}, &consumed{}, &consumed{}
	s := &sorter{policies: policies, mirrors: mirrors, globals: globals}
	own := document.Key{Group: kinds.KyvernoGroup, Resource: "policies", Name: "p"}
	mirror := document.Key{Group: kinds.OwnGroup, Resource: kinds.MirrorResource, Name: "m"}
	sets := document.Key{Group: "config.openshift.io", Resource: "imagetagmirrorsets", Name: "s"}
	s.Changed(t.Context(), nil, nil)
	s.Changed(t.Context(), []document.Document{{Key: own}}, []document.Key{mirror})
	s.Changed(t.Context(), []document.Document{{Key: sets}}, nil)
	s.Changed(t.Context(), []document.Document{{Key: document.Key{Group: kinds.KyvernoGroup, Resource: kinds.GlobalContextResource, Name: "g"}}}, nil)
	if want := []string{"", "+globalcontextentries"}; !slices.Equal(globals.calls, want) {
		t.Errorf("global context entries were told %q, want %q", globals.calls, want)
	}
	if want := []string{"", "+policies"}; !slices.Equal(policies.calls, want) {
		t.Errorf("policies were told %q, want %q", policies.calls, want)
	}
	if want := []string{"", "-registrymirrors", "+imagetagmirrorsets"}; !slices.Equal(mirrors.calls, want) {
		t.Errorf("mirrors were told %q, want %q", mirrors.calls, want)
	}
}

// transitions are told of targets.
type transitions struct{ list []string }

func (c *transitions) TargetChanged(registry string, resting bool) {
	c.list = append(c.list, fmt.Sprint(registry, " ", resting))
}

func TestTargetsTellOfChangesAlone(t *testing.T) {
	seen := &transitions{}
	followed, err := newTargets(func(context.Context, string) error { return nil }, seen, slog.New(slog.DiscardHandler), &gateway.Signal{})
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
		t.Errorf("told of %q, want %q", seen.list, want)
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
	status := &mirrorStatus{
		client: client, reports: func() []mirrorReport { return b.reports(states) }, changed: &gateway.Signal{}, failed: func(err error) { t.Error(err) },
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
		{"nobody asked the target yet", func() { b.upsert(t, "hub", oneEntry) }, true, `"reason":"Active"`},
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
		status.round(t.Context())
		if wrote := patches() > before; wrote != step.wrote {
			t.Errorf("%s: written is %t", step.reason, wrote)
		}
		now, err := client.Resource(b.documents[b.keys()[0]].object.Resource).Get(t.Context(), "hub", getOptions())
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
	status.round(t.Context())
	if patches() > before {
		t.Error("one of the same name that was made since is written to")
	}
}

func TestCopiesAreTheCurrentMirrors(t *testing.T) {
	b := newMirrorBench()
	written, err := image.Parse("docker.io/library/nginx:1")
	if err != nil {
		t.Fatal(err)
	}
	copied, err := image.Parse("one.example/hub/library/nginx:1")
	if err != nil {
		t.Fatal(err)
	}
	state := b.state
	if (copies{state}).IsCopy(copied, written) {
		t.Error("a copy before anything is known")
	}
	none, err := policy.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	state.Replace(gate.Snapshot{Policies: none, Prover: nobody{}})
	b.upsert(t, "hub", oneEntry)
	if !(copies{state}).IsCopy(copied, written) || (copies{state}).IsCopy(written, copied) {
		t.Error("the mirrors that are current are not asked")
	}
}
