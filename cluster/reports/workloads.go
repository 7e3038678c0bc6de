package reports

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/report"
)

// Workloads finds the workload of an object, by the metadata of its controllers: the Deployment
// of a ReplicaSet's pod, the CronJob of a Job's. Results are cached by the UID of the controller,
// so that the cache grows with workloads and not with pods. It is safe for concurrent use. Create
// one with NewWorkloads.
type Workloads struct {
	client metadata.Interface
	memory *cache.Cache[string, *report.Owner]
}

// NewWorkloads creates Workloads; the client is required.
func NewWorkloads(client metadata.Interface) (*Workloads, error) {
	if client == nil {
		return nil, errors.New("workloads: the client is required")
	}
	memory, err := cache.New(cache.Options[string, *report.Owner]{MaxCost: maxWorkloads, MaxTTL: workloadAge})
	if err != nil {
		return nil, fmt.Errorf("workloads: %w", err)
	}
	return &Workloads{client: client, memory: memory}, nil
}

// Close stops the goroutine that evicts expired entries.
func (w *Workloads) Close() { w.memory.Close() }

// Workload returns the root controller of an object. It returns nil for an object without one: it
// has no owner, a node owns it (a static pod), or its owner no longer exists. An error means that
// the API server did not respond.
func (w *Workloads) Workload(ctx context.Context, of report.Resource) (*report.Owner, error) {
	if of.Owner == nil || of.Namespace == "" || of.Owner.UID == "" || of.Owner.Kind == "Node" && of.Owner.APIVersion == "v1" {
		return nil, nil
	}
	resource, between := between(*of.Owner)
	if !between {
		return of.Owner, nil
	}
	if known, ok := w.memory.Get(of.Owner.UID); ok {
		return known, nil
	}
	found, age, err := w.behind(ctx, resource, of.Namespace, *of.Owner)
	if err == nil {
		w.memory.Put(of.Owner.UID, found, age)
	}
	return found, err
}

// behind looks up the controller of a controller, and returns the lifetime of the result.
func (w *Workloads) behind(ctx context.Context, resource schema.GroupVersionResource, namespace string,
	owner report.Owner) (*report.Owner, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	got, err := w.client.Resource(resource).Namespace(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err): // without permission the object's own owner reference is used
		return &owner, absentAge, nil
	case apierrors.IsNotFound(err):
		return nil, absentAge, nil
	case err != nil:
		return nil, 0, fmt.Errorf("look up the controller of %s %s/%s: %w", owner.Kind, namespace, owner.Name, err)
	case string(got.UID) != owner.UID: // another object with that name
		return nil, absentAge, nil
	}
	if by := metav1.GetControllerOf(got); by != nil {
		return &report.Owner{APIVersion: by.APIVersion, Kind: by.Kind, Name: by.Name, UID: string(by.UID)}, workloadAge, nil
	}
	return &owner, workloadAge, nil
}

// between reports whether another controller creates controllers of this kind, and returns their
// resource.
func between(c report.Owner) (schema.GroupVersionResource, bool) {
	switch schema.FromAPIVersionAndKind(c.APIVersion, c.Kind).GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}:
		return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}, true
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}, true
	default:
		return schema.GroupVersionResource{}, false
	}
}
