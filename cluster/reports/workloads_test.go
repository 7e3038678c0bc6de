package reports_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/report"
)

func controller(apiVersion, kind, name string, by *report.Owner) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
	}
	if by != nil {
		yes := true
		object.OwnerReferences = []metav1.OwnerReference{{APIVersion: by.APIVersion, Kind: by.Kind, Name: by.Name, UID: types.UID(by.UID), Controller: &yes}}
	}
	return object
}

func owner(apiVersion, kind, name string) *report.Owner {
	return &report.Owner{APIVersion: apiVersion, Kind: kind, Name: name, UID: "uid-" + name}
}

func newClient(t *testing.T, objects ...runtime.Object) *fake.FakeMetadataClient {
	t.Helper()
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewSimpleMetadataClient(scheme, objects...)
}

func newWorkloads(t *testing.T, client *fake.FakeMetadataClient) *reports.Workloads {
	t.Helper()
	w, err := reports.NewWorkloads(client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

func pod(of *report.Owner) report.Resource {
	return report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "web-1", UID: "uid-pod", Owner: of}
}

// TestWorkload: the workload of a pod.
func TestWorkload(t *testing.T) {
	stale := owner("apps/v1", "ReplicaSet", "web-1")
	stale.UID = "uid-before"
	for _, row := range []struct {
		reason string
		of     *report.Owner
		want   string
		asked  int
	}{
		{"it has no owner", nil, "", 0},
		{"a ReplicaSet of a Deployment", owner("apps/v1", "ReplicaSet", "web-1"), "Deployment web", 1},
		{"a ReplicaSet made by hand", owner("apps/v1", "ReplicaSet", "alone"), "ReplicaSet alone", 1},
		{"a Job of a CronJob", owner("batch/v1", "Job", "nightly-1"), "CronJob nightly", 1},
		{"a Job without an owner", owner("batch/v1", "Job", "once"), "Job once", 1},
		{"a StatefulSet, which nothing is behind", owner("apps/v1", "StatefulSet", "db"), "StatefulSet db", 0},
		{"a controller of another kind", owner("argoproj.io/v1alpha1", "Workflow", "build"), "Workflow build", 0},
		{"a static pod, which a node made", owner("v1", "Node", "node-1"), "", 0},
		{"a ReplicaSet that is gone", owner("apps/v1", "ReplicaSet", "gone"), "", 1},
		{"another ReplicaSet has the name by now", stale, "", 1},
	} {
		t.Run(row.reason, func(t *testing.T) {
			client := newClient(t,
				controller("apps/v1", "ReplicaSet", "web-1", owner("apps/v1", "Deployment", "web")), controller("apps/v1", "ReplicaSet", "alone", nil),
				controller("batch/v1", "Job", "nightly-1", owner("batch/v1", "CronJob", "nightly")), controller("batch/v1", "Job", "once", nil))
			w := newWorkloads(t, client)
			for range 2 {
				got, err := w.Workload(t.Context(), pod(row.of))
				if err != nil {
					t.Fatal(err)
				}
				name := ""
				if got != nil {
					name = got.Kind + " " + got.Name
				}
				if name != row.want {
					t.Errorf("it runs for %q, want %q", name, row.want)
				}
			}
			if len(client.Actions()) != row.asked {
				t.Errorf("%d requests for two questions, want %d", len(client.Actions()), row.asked)
			}
		})
	}
}

// TestWorkloadNoAnswer: an API error is returned and not cached. Without the right to read
// the owner, the pod's owner reference is the workload.
func TestWorkloadNoAnswer(t *testing.T) {
	client := newClient(t, controller("apps/v1", "ReplicaSet", "web-1", owner("apps/v1", "Deployment", "web")))
	answer := errors.New("connection refused")
	client.PrependReactor("get", "replicasets", func(kubetesting.Action) (bool, runtime.Object, error) { return answer != nil, nil, answer })
	w := newWorkloads(t, client)
	of := pod(owner("apps/v1", "ReplicaSet", "web-1"))
	if got, err := w.Workload(t.Context(), of); err == nil {
		t.Errorf("got %v from an API server that is down", got)
	}
	answer = nil
	if got, err := w.Workload(t.Context(), of); err != nil || got == nil || got.Kind != "Deployment" {
		t.Errorf("once it answers: %v, %v", got, err)
	}
	answer = apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "replicasets"}, "web-2", nil)
	if got, err := w.Workload(t.Context(), pod(owner("apps/v1", "ReplicaSet", "web-2"))); err != nil || got == nil || got.Name != "web-2" {
		t.Errorf("without the right to read: got %v, %v, want the pod's owner reference", got, err)
	}
}

func ExampleWorkloads() {
	scheme := fake.NewTestScheme()
	_ = metav1.AddMetaToScheme(scheme)
	w, err := reports.NewWorkloads(fake.NewSimpleMetadataClient(scheme, controller("apps/v1", "ReplicaSet", "web-1", owner("apps/v1", "Deployment", "web"))))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer w.Close()
	found, err := w.Workload(context.Background(), pod(owner("apps/v1", "ReplicaSet", "web-1")))
	fmt.Println(found.Kind, found.Name, err)
	// Output: Deployment web <nil>
}
