package scan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/workload"
)

var (
	pods        = scan.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}
	namespaces  = scan.Kind{Version: "v1", Kind: "Namespace", Resource: "namespaces"}
	configMaps  = scan.Kind{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true}
	deployments = scan.Kind{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true}
	events      = scan.Kind{Version: "v1", Kind: "Event", Resource: "events", Namespaced: true}
)

// stub is a cluster in memory that is hostile on demand.
type stub struct {
	kinds []scan.Kind
	// most replaces the size of pages; 0 leaves it.
	most int
	// before is asked before each page; an error is the answer.
	before func(kind scan.Kind, from string) error

	mu      sync.Mutex
	objects map[scan.Kind][]workload.Object
	listed  []string // kind and where from, of each page
}

func (s *stub) Kinds(context.Context) ([]scan.Kind, error) { return s.kinds, nil }

func (s *stub) List(_ context.Context, kind scan.Kind, from string, most int) (scan.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listed = append(s.listed, kind.Resource+"/"+from)
	if s.before != nil {
		if err := s.before(kind, from); err != nil {
			return scan.Page{}, err
		}
	}
	if s.most > 0 {
		most = s.most
	}
	at, _ := strconv.Atoi(from)
	all := s.objects[kind]
	end := min(at+most, len(all))
	page := scan.Page{Objects: all[at:end], Remaining: int64(len(all) - end), Version: "v0"}
	if end < len(all) {
		page.Continue = strconv.Itoa(end)
	}
	return page, nil
}

func (s *stub) pages() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.listed)
}

func (s *stub) add(t testing.TB, kind scan.Kind, objects ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects == nil {
		s.objects = map[scan.Kind][]workload.Object{}
	}
	if !slices.Contains(s.kinds, kind) {
		s.kinds = append(s.kinds, kind)
	}
	for _, text := range objects {
		s.objects[kind] = append(s.objects[kind], testkit.Must(workload.Parse([]byte(text)))(t))
	}
}

// pod is a pod of a namespace that runs images.
func pod(namespace, name string, images ...string) string {
	containers := make([]any, len(images))
	for i, image := range images {
		containers[i] = map[string]any{"name": fmt.Sprintf("c%d", i), "image": image}
	}
	text, _ := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": namespace, "name": name, "uid": "uid-" + namespace + "-" + name},
		"spec": map[string]any{"containers": containers},
	})
	return string(text)
}

// kept is a sink that keeps everything.
type kept struct {
	mu      sync.Mutex
	decided []report.Decided
}

func (k *kept) Take(d report.Decided) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.decided = append(k.decided, d)
}

// answers returns what became of each object, by its name.
func (k *kept) answers() map[string]gate.Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := map[string]gate.Result{}
	for _, d := range k.decided {
		r := d.Resource()
		all[r.Kind+" "+r.Namespace+"/"+r.Name] = d.Outcome.Result
	}
	return all
}

func (k *kept) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.decided)
}

// watching is an observer that records its calls.
type watching struct {
	mu      sync.Mutex
	ended   []scan.Summary
	refused []scan.Kind
	failed  []error
	ends    func(scan.Summary) // may be nil
}

func (*watching) Began(scan.Position) {}

func (w *watching) Ended(s scan.Summary, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, s)
	if w.ends != nil {
		w.ends(s)
	}
}

func (*watching) Looked(scan.Kind, int, int64) {}

func (w *watching) Refused(kind scan.Kind, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = append(w.refused, kind)
}

func (w *watching) Failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = append(w.failed, err)
}

func (w *watching) rounds() []scan.Summary {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.ended)
}

// labelled knows the labels of namespaces, and none of one that is called unknown.
type labelled map[string]map[string]string

func (l labelled) Labels(_ context.Context, name string) (map[string]string, error) {
	if name == "unknown" {
		return nil, errors.New("not looked up")
	}
	return l[name], nil
}

// world is a scan with real parts on a stub of a cluster.
type world struct {
	*stub
	*kept
	*watching
	env     *gatetest.Env
	state   *gate.Current
	gate    *gate.Gate
	passed  []scan.Pass
	options scan.Options
}

func newWorld(t testing.TB, policies ...string) *world {
	t.Helper()
	h := testkit.Must(gatetest.NewEnv())(t)
	t.Cleanup(h.Close)
	w := &world{stub: &stub{}, kept: &kept{}, watching: &watching{}, env: h, state: &gate.Current{}}
	w.state.Replace(gate.Snapshot{Policies: w.set(t, policies...), Prover: h.Prover})
	view := scan.NewView(w.state)
	w.gate = testkit.Must(gate.New(gate.Config{Registries: h, State: view}))(t)
	w.options = scan.Options{
		Cluster: w.stub, Decider: w.gate, State: view, Namespaces: labelled{}, Observer: w.watching, Sinks: []report.Sink{w.kept}, Passes: w,
	}
	return w
}

// Passed implements scan.PassReceiver.
func (w *world) Passed(_ context.Context, p scan.Pass) { w.passed = append(w.passed, p) }

func (w *world) set(t testing.TB, policies ...string) *set.Set {
	t.Helper()
	compiled := make([]*policy.Policy, len(policies))
	for i, text := range policies {
		compiled[i] = testkit.Must(w.env.Policy(text))(t)
	}
	return testkit.Must(set.New(compiled...))(t)
}

func (w *world) scanner(t testing.TB) *scan.Scanner {
	t.Helper()
	return testkit.Must(scan.New(w.options))(t)
}

func (w *world) round(t testing.TB) scan.Summary {
	t.Helper()
	return testkit.Must(w.scanner(t).Round(t.Context()))(t)
}

// signedPolicy wants images of the registry to be signed; namedPolicy wants objects of a
// kind to have a label.
const signedPolicy = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: signed}
spec:
  validationFailureAction: Enforce
  rules:
  - name: by-key
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["HOST/*"]
      attestors: [{entries: [{keys: {publicKeys: KEY, rekor: {ignoreTlog: true}}}]}]
`

func labelPolicy(name, kind, more string) string {
	return `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: ` + name + `, annotations: {pod-policies.kyverno.io/autogen-controllers: none}}
spec:
  validationFailureAction: Enforce` + more + `
  rules:
  - name: labelled
    match: {any: [{resources: {kinds: ["` + kind + `"]}}]}
    validate: {message: label it, pattern: {metadata: {labels: {team: "?*"}}}}
`
}
