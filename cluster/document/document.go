package document

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a custom resource that matters.
type Kind struct {
	// Group and Resource name it, as in kyverno.io and clusterpolicies; required.
	Group, Resource string
	// Versions are those that the caller understands, the one it likes best
	// first; required. While a CRD serves none of them the Observer is told, and
	// what was told of its documents stays so.
	Versions []string
	// Awaited: the Watcher is not ready at the start while the CRD serves none of them.
	Awaited bool
}

// name is that of the CustomResourceDefinition.
func (k Kind) name() string { return k.Resource + "." + k.Group }

// Key names a document, whatever version it is read in.
type Key struct {
	Group, Resource string
	// Namespace is empty for resources of the cluster.
	Namespace, Name string
}

// String returns "resource.group namespace/name".
func (k Key) String() string {
	name := k.Name
	if k.Namespace != "" {
		name = k.Namespace + "/" + k.Name
	}
	return k.Resource + "." + k.Group + " " + name
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Document is one object as the API server keeps it.
type Document struct {
	Key Key
	// Kind says as what Raw is written.
	Kind schema.GroupVersionKind
	// UID and ResourceVersion are those of the state that is told.
	UID, ResourceVersion string
	// Raw is the object as JSON, without managedFields, resourceVersion and status,
	// so that it is the same text after a write of the status, and so is the hash of
	// a policy that is compiled from it. It belongs to the Consumer; the Watcher keeps
	// only its hash.
	Raw []byte
}

// Consumer is told what is there.
type Consumer interface {
	// Changed tells documents that came or changed, and those that went, each
	// sorted by key and in neither list twice. The first call holds everything
	// that is there, and comes even when nothing is. Calls come one at a time;
	// what changes meanwhile is told together in the next.
	Changed(ctx context.Context, upserts []Document, deletes []Key)
}

// Observer is told what an operator should know. Calls must return quickly.
type Observer interface {
	// Pruned: the API server drops fields that the CRD's schema does not name,
	// from place on ("spec", "spec.rules[]"), before anyone can see and refuse
	// them. Said once for each definition and version.
	Pruned(kind schema.GroupVersionResource, place string)
	// Served: the resource is watched from now on (in that version), or, with
	// false, not any more: its definition is gone, or Failed says why.
	Served(kind schema.GroupVersionResource, served bool)
	// Failed: a look did not work; it is tried again.
	Failed(err error)
}

// sum is what the Watcher keeps of a document: enough to know a change.
type sum [sha256.Size]byte

// strip takes away what no policy rests on. The object is ours: it was decoded
// for us.
func strip(object runtime.Object) (*unstructured.Unstructured, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("a %T is not unstructured", object)
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(u.Object, "status")
	return u, nil
}

// keep returns the hash of a document's Raw.
func keep(object runtime.Object) (sum, error) {
	u, err := strip(object)
	if err != nil {
		return sum{}, err
	}
	raw, err := encode(u)
	if err != nil {
		return sum{}, err
	}
	return sha256.Sum256(raw), nil
}

// encode writes an object without its resourceVersion, which moves with every write of
// the status.
func encode(u *unstructured.Unstructured) ([]byte, error) {
	version := u.GetResourceVersion()
	u.SetResourceVersion("")
	defer u.SetResourceVersion(version)
	return u.MarshalJSON()
}

// read returns the document in an object that keep has seen.
func read(kind Kind, object runtime.Object) (Document, error) {
	u, err := strip(object)
	if err != nil {
		return Document{}, err
	}
	raw, err := encode(u)
	if err != nil {
		return Document{}, err
	}
	return Document{
		Key:  Key{Group: kind.Group, Resource: kind.Resource, Namespace: u.GetNamespace(), Name: u.GetName()},
		Kind: u.GroupVersionKind(), UID: string(u.GetUID()), ResourceVersion: u.GetResourceVersion(), Raw: raw,
	}, nil
}
