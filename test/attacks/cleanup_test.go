package attacks

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/background/cleanup"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/policy/ttl"
)

// stored is an API server with ConfigMaps, which lists what an attacker has it list.
type stored struct {
	mu      sync.Mutex
	objects map[string]object // by namespace and name
	onGet   func()            // between the list and the deletion
	deleted []string
}

func configMaps(objects ...object) *stored {
	s := &stored{objects: map[string]object{}}
	for _, o := range objects {
		s.put(o)
	}
	return s
}

func (s *stored) put(o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, _ := o["metadata"].(object)
	namespace, _ := m["namespace"].(string)
	name, _ := m["name"].(string)
	s.objects[namespace+"/"+name] = o
}

func (s *stored) Served(context.Context, policy.Target) ([]background.Kind, error) {
	return []background.Kind{{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true}}, nil
}

func (s *stored) Get(_ context.Context, _ background.Kind, namespace, name string) (map[string]any, error) {
	if s.onGet != nil {
		s.onGet()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[namespace+"/"+name]; o != nil {
		return o, nil
	}
	return nil, background.ErrNotFound
}

// Each lists everything, whatever namespace is asked for.
func (s *stored) Each(_ context.Context, _ background.Kind, _, _ string, do func(map[string]any) error) error {
	s.mu.Lock()
	var list []object
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		list = append(list, s.objects[key])
	}
	s.mu.Unlock()
	for _, o := range list {
		if err := do(o); err != nil {
			return err
		}
	}
	return nil
}

func (s *stored) Delete(_ context.Context, _ background.Kind, of map[string]any, _ policy.Propagation) error {
	m, _ := of["metadata"].(object)
	namespace, _ := m["namespace"].(string)
	name, _ := m["name"].(string)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleted = append(s.deleted, namespace+"/"+name)
	delete(s.objects, namespace+"/"+name)
	return nil
}

// May implements cleanup.Access.
func (s *stored) May(context.Context, string, background.Kind, string) (bool, error) {
	return true, nil
}

// memory keeps the records of runs.
type runMemory struct{ records cleanup.Records }

func (m *runMemory) Load(context.Context) (cleanup.Records, error) { return m.records, nil }
func (m *runMemory) Save(_ context.Context, r cleanup.Records) (string, error) {
	r.Version += "+"
	m.records = r
	return r.Version, nil
}

// inForce are policies that do not change.
type inForce struct{ set *set.Set }

func (f inForce) Policies() *set.Set     { return f.set }
func (inForce) Changed() <-chan struct{} { return nil }
func (inForce) Labels(context.Context, string) (map[string]string, error) {
	return map[string]string{}, nil
}

// endOfRun reports the end of the first run, or of the first pass over lifetimes.
type endOfRun struct {
	once sync.Once
	done chan struct{}
	ttl  bool
}

func (*endOfRun) Deleted(cleanup.Deletion)  {}
func (*endOfRun) Lacking(map[string]string) {}
func (*endOfRun) Failed(error)              {}
func (e *endOfRun) Ended(r cleanup.Run) {
	if (r.Policy == nil) == e.ttl {
		e.once.Do(func() { close(e.done) })
	}
}

// deletes runs the policies of the scene against stored objects, or the lifetimes of these, and returns
// the deleted ones.
func (s *scene) deletes(from *stored, grants cleanup.Grants) []string {
	s.t.Helper()
	snapshot := testkit.Must(s.wire().state.Snapshot(s.t.Context()))(s.t)
	end := &endOfRun{done: make(chan struct{}), ttl: grants != nil}
	c := testkit.Must(cleanup.New(cleanup.Options{
		Cluster: from, Access: from, Policies: inForce{snapshot.Policies}, Namespaces: inForce{}, Store: &runMemory{}, Observer: end, Grants: grants,
	}))(s.t)
	ctx, stop := context.WithTimeout(s.t.Context(), time.Minute)
	defer stop()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		c.Run(ctx)
	}()
	select {
	case <-end.done:
	case <-ctx.Done():
		s.t.Error("nothing was run")
	}
	stop()
	<-stopped
	slices.Sort(from.deleted)
	return from.deleted
}

// expect counts the deleted objects and the others.
func (s *scene) expect(deleted []string, from *stored, want ...string) {
	s.t.Helper()
	if !slices.Equal(deleted, want) {
		s.t.Errorf("deleted are %q, want %q", deleted, want)
	}
	s.admissions += len(deleted)
	s.refusals += len(from.objects)
}

// configMapOf is an object of a team.
func configMapOf(in, name, uid, team string) object {
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{
		"namespace": in, "name": name, "uid": uid, "resourceVersion": "1", "creationTimestamp": "2000-01-01T00:00:00Z", "labels": object{"team": team},
	}}
}

func cleanupAttacks() []attack {
	row := func(name, what, source string, play func(*scene)) attack {
		return attack{name, what, source, only(library), play}
	}
	const schedule = "schedule: '* * * * * * *'"
	const own = "{apiVersion: policies.kyverno.io/v1, kind: NamespacedDeletingPolicy, metadata: {name: own, namespace: shop}, spec: {" + schedule +
		", matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]}}}"
	const old = "{apiVersion: kyverno.io/v2, kind: ClusterCleanupPolicy, metadata: {name: old}, spec: {" + schedule +
		", match: {any: [{resources: {kinds: [ConfigMap], selector: {matchLabels: {team: old}}}}]}}}"
	return []attack{
		row("policy-that-deletes-beyond-its-namespace", "A policy of a namespace selects every ConfigMap, and the list brings those of other namespaces. It deletes those of its own.", "policies in namespaces", func(s *scene) {
			s.policies(own)
			from := configMaps(configMapOf("shop", "a", "u1", "old"), configMapOf("bank", "b", "u2", "old"), configMapOf("kube-system", "c", "u3", "old"))
			s.expect(s.deletes(from, nil), from, "shop/a")
		}),
		row("object-replaced-before-its-deletion", "Between the list and the deletion, another object takes the name of the one that a policy selects. It is neither decided nor deleted, and the policy's other object is.", "kyverno 1.19: deletes by name", func(s *scene) {
			s.policies(old)
			from := configMaps(configMapOf("shop", "a", "u1", "old"), configMapOf("shop", "z", "u2", "old"))
			from.onGet = func() { from.put(configMapOf("shop", "a", "another", "old")) }
			s.expect(s.deletes(from, nil), from, "shop/z")
		}),
		row("object-changed-before-its-deletion", "Between the list and the deletion, an object loses the label that a policy selects by. It is decided again, and stays.", "kyverno 1.19: decides by the list", func(s *scene) {
			s.policies(old)
			from := configMaps(configMapOf("shop", "a", "u1", "old"), configMapOf("shop", "z", "u2", "old"))
			from.onGet = func() { from.put(configMapOf("shop", "a", "u1", "young")) }
			s.expect(s.deletes(from, nil), from, "shop/z")
		}),
		row("label-in-a-protected-namespace", "The author of an object in kube-system gives it the labels that a policy selects by, to have the gateway delete it. It is protected.", "labels that authors choose", func(s *scene) {
			s.policies(old)
			from := configMaps(configMapOf("shop", "a", "u1", "old"), configMapOf("kube-system", "a", "u2", "old"), configMapOf("kube-node-lease", "a", "u3", "old"))
			s.expect(s.deletes(from, nil), from, "shop/a")
		}),
		row("lifetime-without-permission-to-delete", "A user without permission to delete sets the label for a lifetime past the webhook: without a grant, with the grant of another object or of another value, or with a value that wraps around. Each object stays, and one with a grant of its own is deleted.", "kyverno 1.19: the label deletes with the controller's rights", func(s *scene) {
			keeper := testkit.Must(record.New(make([]byte, 32)))(s.t)
			labelled := func(name, uid, value, grant string) object {
				o := configMapOf("shop", name, uid, "old")
				m, _ := o["metadata"].(object)
				m["labels"], m["annotations"] = object{ttl.Label: value}, object{record.LifetimeAnnotation: grant}
				return o
			}
			grant := func(of object) string {
				return testkit.Must(keeper.Lifetime(of, "owner", time.Now()))(s.t)
			}
			granted := labelled("granted", "u1", "1h", "")
			mine := grant(granted)
			from := configMaps(
				labelled("granted", "u1", "1h", mine), labelled("none", "u2", "1h", ""), labelled("copied", "u3", "1h", mine),
				labelled("same-name", "u4", "1h", grant(labelled("same-name", "earlier", "1h", ""))),
				labelled("shortened", "u5", "1s", grant(labelled("shortened", "u5", "1000w", ""))),
				labelled("wrapped", "u6", "99999999999w", grant(labelled("wrapped", "u6", "99999999999w", ""))),
			)
			s.expect(s.deletes(from, keeper), from, "shop/granted")
		}),
	}
}
