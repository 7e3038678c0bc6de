// Package documents has what the components for policies, mirrors, global context entries and trust
// roots share: the sources that their documents come from, the guard of a compiler, the object of a
// document in the cluster, and which states have changed since they were reported. The last good
// version of a policy is in policy/catalog, and statuses are written by cluster/record.
package documents

import (
	"encoding/json"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/cluster/record"
)

// Sources are those of the documents of a kind. Documents are not used before each source has all of
// its initial ones: half of them would decide otherwise than all. It is not safe for concurrent use,
// but for the channel.
type Sources struct {
	awaited map[string]bool
	ready   chan struct{} // closed after the first use
}

// NewSources makes Sources that await none.
func NewSources() Sources { return Sources{map[string]bool{}, make(chan struct{})} }

// Await delays the use of documents until the source has arrived.
func (s Sources) Await(source string) { s.awaited[source] = true }

// Arrived records that a source has all of its initial documents, and reports whether all have.
// Empty names no source.
func (s Sources) Arrived(source string) bool {
	delete(s.awaited, source)
	return len(s.awaited) == 0
}

// Used records that the documents are in use.
func (s Sources) Used() {
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
}

// Ready returns a channel that is closed after the first use.
func (s Sources) Ready() <-chan struct{} { return s.ready }

// States are the last reported states, by the key of a document. It is not safe for concurrent use.
type States map[string]string

// Changed records a state, and reports whether it differs from the last one of the document.
func (s States) Changed(key, state string) bool {
	before, known := s[key]
	s[key] = state
	return !known || before != state
}

// Keep removes the documents that no longer exist.
func (s States) Keep(there func(key string) bool) {
	maps.DeleteFunc(s, func(key, _ string) bool { return !there(key) })
}

// Object is the object of a document in the cluster; zero for a document of another source.
type Object struct {
	record.Object
	Generation int64 // metadata.generation
}

// ObjectOf returns the object of a document.
func ObjectOf(d document.Document) Object {
	return Object{Generation: Generation(d.Raw), Object: record.Object{
		Resource:  schema.GroupVersionResource{Group: d.Kind.Group, Version: d.Kind.Version, Resource: d.Key.Resource},
		Namespace: d.Key.Namespace, Name: d.Key.Name, UID: types.UID(d.UID),
	}}
}

// Generation reads metadata.generation of a document; 0 where there is none.
func Generation(text []byte) int64 {
	var head struct {
		Metadata struct {
			Generation int64 `json:"generation"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(text, &head) // the condition then has no generation
	return head.Metadata.Generation
}

// Compile compiles a document. One that makes its compiler panic is broken, and does not end the
// process.
func Compile[T any](compile func() (T, error)) (made T, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("internal error, which is a defect: %v", panicked)
		}
	}()
	return compile()
}
