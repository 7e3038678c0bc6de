package e2e

import (
	"context"
	"fmt"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/nodes"
)

// TestSimulatedNodes: a Deployment becomes available on simulated nodes, and its pods go when
// it is deleted; a pod of another scheduler is left alone.
func TestSimulatedNodes(t *testing.T) {
	c := plane(t)
	const namespace = "simulated"
	must(t, c.Namespace(t.Context(), namespace))
	client := clientset(t, c.Admin())
	simulated, err := nodes.Start(t.Context(), c.Admin(), 2)
	must(t, err)
	t.Cleanup(func() {
		simulated.Close()
		for _, name := range []string{"simulated-0", "simulated-1"} {
			_ = client.CoreV1().Nodes().Delete(context.WithoutCancel(t.Context()), name, meta.DeleteOptions{})
			_ = client.CoordinationV1().Leases("kube-node-lease").Delete(context.WithoutCancel(t.Context()), name, meta.DeleteOptions{})
		}
	})
	pods := client.CoreV1().Pods(namespace)
	_, err = pods.Create(t.Context(), pod("other", "a.example/web:1"), meta.CreateOptions{})
	must(t, err)
	const count = 5
	replicas, labels := int32(count), map[string]string{"app": "web"}
	template := pod("", "a.example/web:1")
	template.Labels, template.Spec.SchedulerName = labels, nodes.Scheduler
	_, err = client.AppsV1().Deployments(namespace).Create(t.Context(), &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: "web"},
		Spec: apps.DeploymentSpec{
			Replicas: &replicas, Selector: &meta.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: template.Spec},
		},
	}, meta.CreateOptions{})
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		got, err := client.AppsV1().Deployments(namespace).Get(ctx, "web", meta.GetOptions{})
		if err == nil && got.Status.AvailableReplicas != count {
			err = fmt.Errorf("%d of %d available", got.Status.AvailableReplicas, count)
		}
		return err
	})
	background := meta.DeletePropagationBackground
	must(t, client.AppsV1().Deployments(namespace).Delete(t.Context(), "web", meta.DeleteOptions{PropagationPolicy: &background}))
	eventually(t, func(ctx context.Context) error {
		left, err := pods.List(ctx, meta.ListOptions{LabelSelector: "app=web"})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(left.Items))
		}
		return err
	})
	other, err := pods.Get(t.Context(), "other", meta.GetOptions{})
	if err != nil || other.Spec.NodeName != "" {
		t.Errorf("the pod of another scheduler: node %q, %v", other.Spec.NodeName, err)
	}
	if _, err := client.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "simulated-1", meta.GetOptions{}); apierrors.IsNotFound(err) {
		t.Error("a node has no Lease")
	}
}
