package background_test

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
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/source"
)

// server is an API server in memory: versions, watches, conflicts, defaults and what
// is forbidden.
type server struct {
	kinds  []background.Kind
	engine *jmespath.Engine

	mu      sync.Mutex
	objects map[string]map[string]any
	version int
	// deletions are all of them, and expired is the version up to which a watch gets none.
	deletions []event
	expired   int
	uids      int
	// subresource is that of the current write; empty for the object itself.
	subresource string
	watchers    map[*watcher]bool
	// forbidden refuses writes of a resource.
	forbidden map[string]bool
	// unreadable are the resources of which no source can be read.
	unreadable map[string]bool
	// conflicts is how many patches are refused, as if the object had changed.
	conflicts int
	// writes are the writes that changed something, requests all of them but reads;
	// dry runs are neither.
	writes, requests []string
	// reads is how many objects were looked for.
	reads int
}

type watcher struct {
	kind  background.Kind
	query string
	to    chan event
}

type event struct {
	what    string
	object  map[string]any
	version int
}

func newServer(engine *jmespath.Engine) *server {
	return &server{
		engine: engine,
		kinds: []background.Kind{
			{Version: "v1", Kind: "Namespace", Resource: "namespaces"},
			{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true},
			{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true},
			{Version: "v1", Kind: "Pod", Resource: "pods", Namespaced: true},
			{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true},
			{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding", Resource: "rolebindings", Namespaced: true},
			{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy", Resource: "networkpolicies", Namespaced: true},
			{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject", Resource: "scaledobjects", Namespaced: true},
		},
		objects: map[string]map[string]any{}, watchers: map[*watcher]bool{}, forbidden: map[string]bool{}, unreadable: map[string]bool{},
	}
}

func nameOf(kind background.Kind, namespace, name string) string {
	return kind.Resource + "/" + namespace + "/" + name
}

func copied(object map[string]any) map[string]any {
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		panic(err)
	}
	return out
}

func metadata(object map[string]any) map[string]any {
	m, _ := object["metadata"].(map[string]any)
	return m
}

func text(object map[string]any, name string) string {
	s, _ := metadata(object)[name].(string)
	return s
}

func (s *server) kindOf(object map[string]any) background.Kind {
	for _, k := range s.kinds {
		if k.APIVersion() == object["apiVersion"] && k.Kind == object["kind"] {
			return k
		}
	}
	panic(fmt.Sprint("no kind for ", object))
}

func (s *server) Served(_ context.Context, target policy.Target) ([]background.Kind, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []background.Kind
	for _, k := range s.kinds {
		if k.Kind == target.Kind {
			list = append(list, k)
		}
	}
	return list, nil
}

func (s *server) Kind(_ context.Context, of policy.ObjectKind) (background.Kind, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kinds {
		if k.APIVersion() == of.APIVersion && k.Kind == of.Kind {
			return k, nil
		}
	}
	return background.Kind{}, fmt.Errorf("%s: %w", of.Kind, background.ErrNotServed)
}

func (s *server) Source(ctx context.Context, of source.Ref) (map[string]any, error) {
	var found map[string]any
	err := s.EachSource(ctx, of, func(object map[string]any) error {
		found = object
		return nil
	})
	if err == nil && found == nil {
		err = source.ErrMissing
	}
	return found, err
}

func (s *server) EachSource(ctx context.Context, of source.Ref, do func(map[string]any) error) error {
	kind, err := s.kindOfSource(of)
	if err != nil {
		return err
	}
	return s.Each(ctx, kind, of.Namespace, of.Labels, func(object map[string]any) error {
		if of.Name != "" && text(object, "name") != of.Name {
			return nil
		}
		return do(object)
	})
}

// kindOfSource refuses a source that is forbidden.
func (s *server) kindOfSource(of source.Ref) (background.Kind, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kinds {
		if k.APIVersion() == of.APIVersion && (k.Kind == of.Kind || k.Resource == of.Resource) {
			if s.unreadable[k.Resource] {
				return k, fmt.Errorf("%s is forbidden", k.Resource)
			}
			return k, nil
		}
	}
	return background.Kind{}, fmt.Errorf("%s: %w", of, background.ErrNotServed)
}

func (s *server) WatchSource(ctx context.Context, of source.Ref, to background.Sink) {
	for {
		kind, err := s.kindOfSource(of)
		if err == nil {
			s.Watch(ctx, kind, of.Namespace, of.Labels, named{to, of.Name})
			return
		}
		to.Failed(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// named passes on the objects of a name; empty means all.
type named struct {
	background.Sink
	name string
}

func (n named) has(object map[string]any) bool { return n.name == "" || text(object, "name") == n.name }

func (n named) Listed(object map[string]any) {
	if n.has(object) {
		n.Sink.Listed(object)
	}
}

func (n named) Changed(object map[string]any, came bool) {
	if n.has(object) {
		n.Sink.Changed(object, came)
	}
}

func (n named) Deleted(object map[string]any) {
	if n.has(object) {
		n.Sink.Deleted(object)
	}
}

func (s *server) Get(_ context.Context, kind background.Kind, namespace, name string) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	object := s.objects[nameOf(kind, namespace, name)]
	if object == nil {
		return nil, background.ErrNotFound
	}
	return as(object, kind), nil
}

// as returns an object in another version of its kind.
func as(object map[string]any, kind background.Kind) map[string]any {
	object = copied(object)
	object["apiVersion"] = kind.APIVersion()
	return object
}

func (s *server) list(kind background.Kind, namespace, query string) []map[string]any {
	var list []map[string]any
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		object := s.objects[key]
		if s.kindOf(object).Resource == kind.Resource && (namespace == "" || text(object, "namespace") == namespace) && selected(object, query) {
			list = append(list, as(object, kind))
		}
	}
	return list
}

// selected understands one requirement, a label and its value.
func selected(object map[string]any, query string) bool {
	name, value, ok := strings.Cut(query, "=")
	labels, _ := metadata(object)["labels"].(map[string]any)
	return !ok || labels[name] == value
}

func (s *server) Each(_ context.Context, kind background.Kind, namespace, query string, do func(map[string]any) error) error {
	s.mu.Lock()
	list := s.list(kind, namespace, query)
	s.mu.Unlock()
	for _, object := range list {
		if err := do(object); err != nil {
			return err
		}
	}
	return nil
}

func (s *server) Watch(ctx context.Context, kind background.Kind, namespace, query string, to background.Sink) {
	w := &watcher{kind: kind, query: query, to: make(chan event, 1000)}
	s.mu.Lock()
	list, listed := s.list(kind, namespace, query), s.version
	s.watchers[w] = true
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, w)
		s.mu.Unlock()
	}()
	to.Listing()
	for _, object := range list {
		to.Listed(object)
	}
	to.Synced()
	follower, follows := to.(background.Follower)
	if follows {
		s.replay(kind, listed, follower)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-w.to:
			if namespace != "" && text(e.object, "namespace") != namespace {
				continue
			}
			switch e.what {
			case "deleted":
				to.Deleted(e.object)
			default:
				to.Changed(e.object, e.what == "added")
			}
			if follows {
				follower.Reached(strconv.Itoa(e.version))
			}
		}
	}
}

// replay passes on the deletions between the position of a sink and a list.
func (s *server) replay(kind background.Kind, listed int, to background.Follower) {
	if at := to.Position(); at != "" {
		since, _ := strconv.Atoi(at)
		s.mu.Lock()
		missed, list := since < s.expired, slices.Clone(s.deletions)
		s.mu.Unlock()
		if missed {
			to.Missed(errors.New("too old"))
			list = nil
		}
		for _, e := range list {
			if s.kindOf(e.object).Resource == kind.Resource && e.version > since && e.version <= listed {
				to.Deleted(as(e.object, kind))
			}
		}
	}
	to.Reached(strconv.Itoa(listed))
}

func (s *server) tell(what string, before, after map[string]any) {
	for w := range s.watchers {
		object := after
		if object == nil {
			object = before
		}
		if s.kindOf(object).Resource != w.kind.Resource {
			continue
		}
		was, is := before != nil && selected(before, w.query), after != nil && selected(after, w.query)
		switch {
		case was && is:
			w.to <- event{what, as(after, w.kind), s.version}
		case is:
			w.to <- event{"added", as(after, w.kind), s.version}
		case was:
			w.to <- event{"deleted", as(object, w.kind), s.version}
		}
	}
}

// put stores an object as an API server would; the caller holds the lock.
func (s *server) put(object map[string]any, by string) map[string]any {
	kind := s.kindOf(object)
	key := nameOf(kind, text(object, "namespace"), text(object, "name"))
	before := s.objects[key]
	object = defaulted(kind, copied(object))
	m := metadata(object)
	if before == nil {
		s.uids++
		m["uid"], m["creationTimestamp"] = "uid-"+strconv.Itoa(s.uids), time.Now().UTC().Format(time.RFC3339)
	} else {
		m["uid"], m["creationTimestamp"] = metadata(before)["uid"], metadata(before)["creationTimestamp"]
		m["managedFields"], m["resourceVersion"] = metadata(before)["managedFields"], metadata(before)["resourceVersion"]
		if fmt.Sprint(object) == fmt.Sprint(before) {
			return copied(before)
		}
	}
	s.version++
	m["resourceVersion"] = strconv.Itoa(s.version)
	m["managedFields"] = s.managed(before, object, by)
	s.objects[key] = object
	if before == nil {
		s.tell("added", nil, object)
	} else {
		s.tell("modified", before, object)
	}
	if by == "gateway" {
		s.writes = append(s.writes, key)
	}
	return copied(object)
}

// managed returns the managedFields after a write; a binding leaves no entry.
func (s *server) managed(before, object map[string]any, by string) []any {
	had, _ := metadata(before)["managedFields"].([]any)
	if s.subresource == "binding" {
		return had
	}
	list := slices.DeleteFunc(slices.Clone(had), func(e any) bool {
		of, _ := e.(map[string]any)["subresource"].(string)
		return of == s.subresource
	})
	entry := map[string]any{"manager": by, "time": time.Now().UTC().Format(time.RFC3339)}
	if s.subresource != "" {
		entry["subresource"] = s.subresource
	}
	if s.subresource == "scale" { // as by an API server
		delete(entry, "time")
	}
	replicas := func(object map[string]any) any {
		spec, _ := object["spec"].(map[string]any)
		return spec["replicas"]
	}
	if replicas(before) != replicas(object) { // this write owns them
		for i, e := range list {
			list[i] = maps.Clone(e.(map[string]any))
			delete(list[i].(map[string]any), "fieldsV1")
		}
		entry["fieldsV1"] = map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}}
	}
	return append(list, entry)
}

// defaulted writes what a rule leaves out.
func defaulted(kind background.Kind, object map[string]any) map[string]any {
	if kind.Kind == "NetworkPolicy" {
		if spec, _ := object["spec"].(map[string]any); spec != nil && spec["policyTypes"] == nil {
			spec["policyTypes"] = []any{"Ingress"}
		}
	}
	return object
}

func (s *server) refuses(verb string, kind background.Kind, name string) error {
	s.requests = append(s.requests, verb+" "+name)
	if s.forbidden[kind.Resource] {
		return fmt.Errorf("%s is forbidden", kind.Resource)
	}
	return nil
}

func (s *server) Create(_ context.Context, kind background.Kind, object map[string]any) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := nameOf(kind, text(object, "namespace"), text(object, "name"))
	if err := s.refuses("create", kind, key); err != nil {
		return nil, err
	}
	if s.objects[key] != nil {
		return nil, background.ErrExists
	}
	return s.put(object, "gateway"), nil
}

func (s *server) Update(_ context.Context, kind background.Kind, object map[string]any, how background.Writing) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := nameOf(kind, text(object, "namespace"), text(object, "name"))
	have := s.objects[key]
	if !how.DryRun {
		if err := s.refuses("update", kind, key); err != nil {
			return nil, err
		}
	}
	switch {
	case have == nil && !how.Apply:
		return nil, background.ErrNotFound
	case !how.Apply && text(have, "resourceVersion") != text(object, "resourceVersion"):
		return nil, background.ErrConflict
	}
	if how.Apply && have != nil {
		whole := copied(have)
		for name, value := range copied(object) {
			if name != "metadata" {
				whole[name] = value
			}
		}
		maps.Copy(metadata(whole), metadata(copied(object)))
		object = whole
	}
	if how.DryRun {
		return defaulted(kind, copied(object)), nil
	}
	return s.put(object, "gateway"), nil
}

func (s *server) Patch(_ context.Context, kind background.Kind, namespace, name string, operations []patch.Operation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := nameOf(kind, namespace, name)
	if err := s.refuses("patch", kind, key); err != nil {
		return err
	}
	have := s.objects[key]
	if have == nil {
		return background.ErrNotFound
	}
	if s.conflicts > 0 {
		s.conflicts--
		return background.ErrConflict
	}
	list, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	var plain []any
	if err := json.Unmarshal(list, &plain); err != nil {
		return err
	}
	compiled, err := patch.CompileJSON(s.engine, plain)
	if err != nil {
		return err
	}
	object, err := compiled.Apply(nil, copied(have))
	if err != nil {
		return err
	}
	if text(object, "resourceVersion") != text(have, "resourceVersion") {
		return background.ErrConflict
	}
	s.put(object, "gateway")
	return nil
}

func (s *server) Delete(_ context.Context, kind background.Kind, object map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := nameOf(kind, text(object, "namespace"), text(object, "name"))
	if err := s.refuses("delete", kind, key); err != nil {
		return err
	}
	have := s.objects[key]
	switch {
	case have == nil:
		return background.ErrNotFound
	case text(have, "resourceVersion") != text(object, "resourceVersion"):
		return background.ErrConflict
	}
	s.writes = append(s.writes, key)
	s.remove(key)
	return nil
}

// What users do.

func (s *server) userPuts(object map[string]any) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(object, "user")
}

func (s *server) userDeletes(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
}

// remove removes an object; the caller holds the lock.
func (s *server) remove(key string) {
	before := s.objects[key]
	delete(s.objects, key)
	s.version++
	s.deletions = append(s.deletions, event{"deleted", before, s.version})
	s.tell("deleted", before, nil)
}

// userEdits changes an object that is there.
func (s *server) userEdits(key string, change func(map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object := copied(s.objects[key])
	change(object)
	s.put(object, "user")
}

// userRequests changes an object by a request for its subresource.
func (s *server) userRequests(key, subresource string, change func(map[string]any)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subresource = subresource
	object := copied(s.objects[key])
	change(object)
	s.put(object, "user")
	s.subresource = ""
}

func (s *server) object(key string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[key] == nil {
		return nil
	}
	return copied(s.objects[key])
}

func (s *server) forbid(resource string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forbidden[resource] = is
}

// written returns how often an object was written, and all requests that were made.
func (s *server) written(key string) (times, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.writes {
		if one == key {
			times++
		}
	}
	return times, len(s.requests)
}

// looked returns how many objects were looked for.
func (s *server) looked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// forbidSources has sources of a resource be unreadable.
func (s *server) forbidSources(resource string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreadable[resource] = is
}

// watching returns the number of open watches.
func (s *server) watching() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watchers)
}
