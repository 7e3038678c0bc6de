package cleanup_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/background/cleanup"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// podKind is the kind of the tests' objects, and nodeKind that of objects in no namespace.
var (
	podKind       = background.Kind{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true}
	nodeKind      = background.Kind{Version: "v1", Kind: "Node", Resource: "nodes"}
	namespaceKind = background.Kind{Version: "v1", Kind: "Namespace", Resource: "namespaces"}
)

// pod returns an object with a label that rules of the tests read.
func pod(namespace, name, uid, state string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{
		"namespace": namespace, "name": name, "uid": uid, "resourceVersion": "1", "creationTimestamp": "2000-01-01T00:00:00Z",
		"labels": map[string]any{"state": state},
	}}
}

func metadataOf(object map[string]any) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	return metadata
}

func text(members map[string]any, name string) string {
	value, _ := members[name].(string)
	return value
}

// cluster is a fake API server that keeps preconditions, and misbehaves where a test asks for it.
type cluster struct {
	mu      sync.Mutex
	kinds   []background.Kind
	objects map[string]map[string]any // by namespace/name
	deleted []string                  // UIDs, in order
	how     []policy.Propagation
	listed  []string // namespaces
	// The hooks run before the request, without the lock.
	onGet    func(name string)
	onDelete func(name string) error
	listErr  error
}

func newCluster(objects ...map[string]any) *cluster {
	c := &cluster{kinds: []background.Kind{podKind}, objects: map[string]map[string]any{}}
	for _, o := range objects {
		c.put(o)
	}
	return c
}

func (c *cluster) put(object map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := metadataOf(object)
	c.objects[text(m, "namespace")+"/"+text(m, "name")] = object
}

func (c *cluster) Served(_ context.Context, target policy.Target) ([]background.Kind, error) {
	var list []background.Kind
	for _, k := range c.kinds {
		if target.Kind == "*" || target.Kind == k.Kind {
			list = append(list, k)
		}
	}
	return list, nil
}

func (c *cluster) Get(ctx context.Context, _ background.Kind, namespace, name string) (map[string]any, error) {
	if c.onGet != nil {
		c.onGet(name)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	object := c.objects[namespace+"/"+name]
	if object == nil {
		return nil, background.ErrNotFound
	}
	return object, nil
}

func (c *cluster) Each(_ context.Context, kind background.Kind, namespace, query string, do func(map[string]any) error) error {
	c.mu.Lock()
	c.listed = append(c.listed, namespace)
	err := c.listErr
	var page []map[string]any
	for _, key := range slices.Sorted(maps.Keys(c.objects)) {
		o := c.objects[key]
		labels, _ := metadataOf(o)["labels"].(map[string]any)
		_, labelled := labels[query]
		if text(o, "kind") == kind.Kind && (namespace == "" || text(metadataOf(o), "namespace") == namespace) && (query == "" || labelled) {
			page = append(page, o)
		}
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	for _, o := range page {
		if err := do(o); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) Delete(ctx context.Context, _ background.Kind, object map[string]any, how policy.Propagation) error {
	m := metadataOf(object)
	if c.onDelete != nil {
		if err := c.onDelete(text(m, "name")); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := text(m, "namespace") + "/" + text(m, "name")
	current := metadataOf(c.objects[key])
	switch {
	case current == nil:
		return background.ErrNotFound
	case text(current, "uid") != text(m, "uid"), text(current, "resourceVersion") != text(m, "resourceVersion"):
		return background.ErrConflict
	}
	c.deleted, c.how = append(c.deleted, text(m, "uid")), append(c.how, how)
	delete(c.objects, key)
	return nil
}

func (c *cluster) gone() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.deleted)
}

// May implements cleanup.Access.
type access map[string]bool // verb resource: not permitted

func (a access) May(_ context.Context, verb string, kind background.Kind, _ string) (bool, error) {
	return !a[verb+" "+kind.Resource], nil
}

// policies are those in force.
type policies struct {
	mu      sync.Mutex
	set     *set.Set
	changed chan struct{}
}

func newPolicies(t testing.TB, list ...*policy.Policy) *policies {
	p := &policies{changed: make(chan struct{})}
	p.replace(t, list...)
	return p
}

func (p *policies) replace(t testing.TB, list ...*policy.Policy) {
	made, err := set.New(list...)
	if err != nil {
		t.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.set = made
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *policies) Policies() *set.Set {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.set
}

func (p *policies) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// Labels implements cleanup.Namespaces.
func (*policies) Labels(context.Context, string) (map[string]string, error) {
	return nil, errors.New("unknown")
}

// rule deletes the pods with state old at every full hour.
type rule struct {
	kind        string
	propagation policy.Propagation
	panics      bool
}

func (rule) Name() string { return "old" }
func (r rule) Targets() []policy.Target {
	if r.kind != "" {
		return []policy.Target{{Version: "v1", Kind: r.kind}}
	}
	return []policy.Target{{Version: "v1", Kind: "Pod"}}
}
func (rule) Labels() string                    { return "" }
func (r rule) Propagation() policy.Propagation { return r.propagation }
func (rule) Next(after time.Time) time.Time    { return after.Truncate(time.Hour).Add(time.Hour) }
func (r rule) Decide(_ context.Context, about policy.Case) policy.DeletionDecision {
	labels, _ := metadataOf(about.Subject.Object.Map())["labels"].(map[string]any)
	if r.panics {
		panic("a defect")
	}
	switch text(labels, "state") {
	case "old":
		return policy.DeletionDecision{Result: policy.Pass}
	case "unknown":
		return policy.DeletionDecision{Result: policy.Indeterminate, Reasons: []policy.Reason{{Message: "the service did not answer"}}}
	}
	return policy.DeletionDecision{}
}

// policyWith returns a policy that was created long ago.
func policyWith(name string, r rule) *policy.Policy {
	return &policy.Policy{Kind: "ClusterCleanupPolicy", Name: name, Hash: "hash-of-" + name, ObjectRules: policy.ObjectRules{Deletions: []policy.Deletion{r}}}
}

// store keeps the records, with a version.
type store struct {
	mu      sync.Mutex
	records cleanup.Records
	writes  int
	saveErr error
	before  func() // before each write, without the lock
}

func (s *store) Load(context.Context) (cleanup.Records, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cleanup.Records{Version: s.records.Version, Runs: maps.Clone(s.records.Runs)}, nil
}

func (s *store) Save(ctx context.Context, r cleanup.Records) (string, error) {
	if s.before != nil {
		s.before()
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saveErr != nil {
		return "", s.saveErr
	}
	if r.Version != s.records.Version {
		return "", cleanup.ErrConflict
	}
	s.writes++
	r.Version = fmt.Sprint(s.writes)
	s.records = cleanup.Records{Version: r.Version, Runs: maps.Clone(r.Runs)}
	return r.Version, nil
}

// only returns the one record.
func (s *store) only(t testing.TB) cleanup.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.records.Runs) != 1 {
		t.Errorf("%d records", len(s.records.Runs))
	}
	for _, r := range s.records.Runs {
		return r
	}
	return cleanup.Record{}
}

// notes records the calls of an observer.
type notes struct {
	mu        sync.Mutex
	deletions []cleanup.Deletion
	runs      []cleanup.Run
	lacking   []map[string]string
	errs      []string
}

func (n *notes) Deleted(d cleanup.Deletion) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deletions = append(n.deletions, d)
}

func (n *notes) Ended(r cleanup.Run) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs = append(n.runs, r)
}

func (n *notes) Lacking(permissions map[string]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lacking = append(n.lacking, permissions)
}

func (n *notes) Failed(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.errs = append(n.errs, err.Error())
}

// ends are the ends of the runs of policies.
func (n *notes) ends() []cleanup.End {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []cleanup.End
	for _, r := range n.runs {
		if r.Policy != nil {
			list = append(list, r.End)
		}
	}
	return list
}

// outcomes are those of objects, as in "deleted a".
func (n *notes) outcomes() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []string
	for _, d := range n.deletions {
		list = append(list, strings.TrimSpace(string(d.Outcome)+" "+d.Name))
	}
	return list
}

// scene is a controller with its surroundings.
type scene struct {
	cluster  *cluster
	policies *policies
	store    *store
	notes    *notes
	access   access
	options  cleanup.Options
}

func newScene(t testing.TB, objects []map[string]any, list ...*policy.Policy) *scene {
	t.Helper()
	s := &scene{cluster: newCluster(objects...), policies: newPolicies(t, list...), store: &store{}, notes: &notes{}, access: access{}}
	s.options = cleanup.Options{
		Cluster: s.cluster, Access: s.access, Policies: s.policies, Namespaces: s.policies, Store: s.store, Observer: s.notes,
	}
	return s
}

// start runs a controller until the returned function is called, which waits for its end.
func (s *scene) start(t testing.TB) (stop func()) {
	t.Helper()
	c, err := cleanup.New(s.options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}
