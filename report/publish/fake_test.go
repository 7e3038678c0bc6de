package publish_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
)

// store is an API server that keeps objects under resource versions, with the failures that
// a test sets.
type store struct {
	// before is asked before each request, and may refuse it, or write first. May be
	// nil.
	before func(verb, name string) error

	mu      sync.Mutex
	objects map[string]map[string]any
	version int
	counts  map[string]int // by verb
	writes  map[string]int // by name
}

func newStore() *store {
	return &store{objects: map[string]map[string]any{}, counts: map[string]int{}, writes: map[string]int{}}
}

func (s *store) begin(verb, name string) error {
	if s.before != nil {
		if err := s.before(verb, name); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.counts[verb]++
	if verb != "get" {
		s.writes[name]++
	}
	return nil
}

// Get implements publish.Store.
func (s *store) Get(_ context.Context, namespace, name string) ([]byte, error) {
	if err := s.begin("get", namespace+"/"+name); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	object := s.objects[namespace+"/"+name]
	if object == nil {
		return nil, publish.ErrNotFound
	}
	return json.Marshal(object)
}

// Put implements publish.Store.
func (s *store) Put(_ context.Context, text []byte) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	name := nameOf(object)
	if err := s.begin("put", name); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	version, _ := object["metadata"].(map[string]any)["resourceVersion"].(string)
	there := s.objects[name]
	switch {
	case there == nil && version != "":
		return nil, publish.ErrNotFound
	case there != nil && versionOf(there) != version:
		return nil, publish.ErrConflict
	}
	s.keep(object)
	return json.Marshal(object)
}

// keep gives an object a new version; the caller holds the lock.
func (s *store) keep(object map[string]any) {
	s.version++
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
	s.objects[nameOf(object)] = object
}

// Delete implements publish.Store.
func (s *store) Delete(_ context.Context, namespace, name, version string) error {
	if err := s.begin("delete", namespace+"/"+name); err != nil {
		return err
	}
	defer s.mu.Unlock()
	there := s.objects[namespace+"/"+name]
	switch {
	case there == nil:
		return publish.ErrNotFound
	case versionOf(there) != version:
		return publish.ErrConflict
	}
	delete(s.objects, namespace+"/"+name)
	return nil
}

// touch edits an object as another writer does, behind the publisher's back.
func (s *store) touch(name string, edit func(object map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object := s.objects[name]; object != nil {
		edit(object)
		s.keep(object)
	}
}

// names returns the names of all objects.
func (s *store) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// results returns the results of an object as text: policy, resource, result.
func (s *store) results(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var words []string
	entries, _ := s.objects[name]["results"].([]any)
	for _, each := range entries {
		e := each.(map[string]any)
		word := fmt.Sprint(e["policy"], " ", e["result"])
		if of, _ := e["resources"].([]any); len(of) > 0 {
			word += " " + of[0].(map[string]any)["name"].(string)
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return words
}

// summary returns the counts of a report, as in "fail:1 pass:2".
func (s *store) summary(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	summary, _ := s.objects[name]["summary"].(map[string]any)
	var counts []string
	for status, count := range summary {
		if count != 0.0 {
			counts = append(counts, fmt.Sprint(status, ":", count))
		}
	}
	slices.Sort(counts)
	return strings.Join(counts, " ")
}

func nameOf(object map[string]any) string {
	metadata := object["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	return namespace + "/" + metadata["name"].(string)
}

func versionOf(object map[string]any) string {
	return object["metadata"].(map[string]any)["resourceVersion"].(string)
}

// workloads knows of a ReplicaSet NAME-1 that it is of the Deployment NAME.
type workloads struct{ fail func() error }

func (w workloads) Workload(_ context.Context, of report.Resource) (*report.Owner, error) {
	if w.fail != nil {
		if err := w.fail(); err != nil {
			return nil, err
		}
	}
	if of.Owner == nil || of.Owner.Kind != "ReplicaSet" {
		return of.Owner, nil
	}
	name := of.Owner.Name[:len(of.Owner.Name)-len("-1")]
	return &report.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: name, UID: "uid-" + name}, nil
}

// observer counts.
type observer struct {
	mu     sync.Mutex
	wrote  map[publish.Written]int
	drops  map[publish.Drop]int
	failed []error
	served []bool
}

func newObserver() *observer {
	return &observer{wrote: map[publish.Written]int{}, drops: map[publish.Drop]int{}}
}

func (o *observer) Wrote(what publish.Written) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wrote[what]++
}

func (o *observer) Dropped(why publish.Drop, count int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drops[why] += count
}

func (o *observer) Failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = append(o.failed, err)
}

func (o *observer) Served(_ policyreport.API, served bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.served = append(o.served, served)
}

// decided is one policy's result for a pod NAME in shop of a Deployment OF, or without an
// owner for an empty one.
func decided(name, of string, passes bool, changes ...func(*report.Decided, *policy.Subject)) report.Decided {
	metadata := map[string]any{"name": name, "namespace": "shop", "uid": "uid-" + name}
	if of != "" {
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": of + "-1", "uid": "uid-1-" + of, "controller": true,
		}}
	}
	subject := &policy.Subject{
		Object: policy.ContentOf(map[string]any{"metadata": metadata}), Version: "v1", Kind: "Pod", Namespace: "shop", Name: name, Operation: "CREATE",
	}
	rule := policy.RuleResult{Policy: &policy.Policy{Kind: "ClusterPolicy", Name: "labels", Hash: "h1"}, Rule: "team", Kind: policy.ValidateRule, Action: policy.Audit}
	if !passes {
		rule.Ruling = policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Violated, Message: "no label"}}}
	}
	d := report.Decided{
		Occasion: report.Occasion{Time: time.Now(), Process: report.ProcessAdmission, Operation: "CREATE", Allowed: true},
		Outcome:  gate.Outcome{Subject: subject, Rules: []policy.RuleResult{rule}},
	}
	for _, change := range changes {
		change(&d, subject)
	}
	return d
}

var errDown = errors.New("500 internal server error")

// publisher is one that runs until the test ends, or stop is called.
type publisher struct {
	*publish.Publisher
	told *observer
	stop func()
}

func run(t *testing.T, s publish.Store, change ...func(*publish.Options)) *publisher {
	t.Helper()
	told := newObserver()
	o := publish.Options{
		Stores: map[policyreport.API]publish.Store{policyreport.PolicyReports: s}, Workloads: workloads{}, Observer: told,
	}
	for _, each := range change {
		each(&o)
	}
	p, err := publish.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	stop := sync.OnceFunc(func() { cancel(); <-done })
	return &publisher{Publisher: p, told: told, stop: stop}
}

// wait lets time pass.
func wait(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
