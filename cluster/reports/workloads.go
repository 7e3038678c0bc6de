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

// Workloads finds the workload that an object runs for, by the metadata of the
// controllers between: the Deployment of a ReplicaSet's pod, the CronJob of a Job's.
// What it finds is remembered by the UID of the controller, so that the memory grows
// with workloads and not with pods. It is safe for concurrent use. Make one with
// NewWorkloads.
type Workloads struct {
	client metadata.Interface
	memory *cache.Cache[string, *report.Owner]
}

// NewWorkloads makes Workloads; it refuses to do without a client.
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

// Close stops the goroutine that clears away what has ended.
func (w *Workloads) Close() { w.memory.Close() }

// Workload returns the controller of an object, or the one behind it; nil for an
// object that runs for none: nobody made it, a node did (a static pod), or who it says
// made it is not there any more. An error means that the API server gave no answer.
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

// behind asks for the controller of a controller, and says how long the answer holds.
func (w *Workloads) behind(ctx context.Context, resource schema.GroupVersionResource, namespace string, owner report.Owner) (*report.Owner, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	got, err := w.client.Resource(resource).Namespace(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err): // who may not look takes what the object says
		return &owner, absentAge, nil
	case apierrors.IsNotFound(err):
		return nil, absentAge, nil
	case err != nil:
		return nil, 0, fmt.Errorf("look up the controller of %s %s/%s: %w", owner.Kind, namespace, owner.Name, err)
	case string(got.UID) != owner.UID: // another one of the same name
		return nil, absentAge, nil
	}
	if by := metav1.GetControllerOf(got); by != nil {
		return &report.Owner{APIVersion: by.APIVersion, Kind: by.Kind, Name: by.Name, UID: string(by.UID)}, workloadAge, nil
	}
	return &owner, workloadAge, nil
}

// between reports whether a controller is of a kind that others make for each of their
// versions or runs, and where such controllers are.
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
