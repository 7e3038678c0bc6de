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

// Kind is a custom resource to watch.
type Kind struct {
	// Group and Resource identify it, as in kyverno.io and clusterpolicies; required.
	Group, Resource string
	// Versions are the supported versions, the preferred one first; required. While a CRD serves
	// none of them, the Observer is called and its documents are retained.
	Versions []string
	// Awaited: the Watcher is not ready while the CRD exists and serves none of the versions.
	Awaited bool
}

// name is the name of the CustomResourceDefinition.
func (k Kind) name() string { return k.Resource + "." + k.Group }

// Key identifies a document, independent of the version.
type Key struct {
	Group, Resource string
	// Namespace is empty for cluster-scoped resources.
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

// Document is one object as stored in the API server.
type Document struct {
	Key Key
	// Kind is the kind and version of Raw.
	Kind schema.GroupVersionKind
	// UID and ResourceVersion are those of the reported state.
	UID, ResourceVersion string
	// Raw is the object as JSON, without managedFields, resourceVersion and status. A write of
	// the status therefore changes neither the text nor the hash of the compiled policy. The
	// Consumer owns it; the Watcher stores only its hash.
	Raw []byte
}

// Consumer receives the documents.
type Consumer interface {
	// Changed is called with added or changed documents, and with deleted ones, each sorted by
	// key and without duplicates. The first call has all documents, and is made even without any.
	// Calls are sequential; changes during a call are joined in the next.
	Changed(ctx context.Context, upserts []Document, deletes []Key)
}

// Observer receives events for operators. Calls must return quickly.
type Observer interface {
	// Pruned: the API server drops fields that the CRD's schema does not contain, from place on
	// ("spec", "spec.rules[]"), before they can be rejected. It is called once for each
	// definition and version.
	Pruned(kind schema.GroupVersionResource, place string)
	// Served: the resource is now watched (in that version). With false it is no longer watched:
	// its definition was deleted, or Failed reports the reason.
	Served(kind schema.GroupVersionResource, served bool)
	// Failed: a read failed; it is retried.
	Failed(err error)
}

// sum is the hash of a document, to detect changes.
type sum [sha256.Size]byte

// strip removes the fields on which no policy depends. It modifies the object, which was decoded
// for the Watcher.
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

// encode encodes an object without its resourceVersion, which changes with every write of the
// status.
func encode(u *unstructured.Unstructured) ([]byte, error) {
	version := u.GetResourceVersion()
	u.SetResourceVersion("")
	defer u.SetResourceVersion(version)
	return u.MarshalJSON()
}

// read returns the document of an object that keep has processed.
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
