// Package nodes simulates a scheduler and the kubelets of many nodes.
//
// It keeps Nodes with their Leases, binds pods to them in turn, sets them to running and
// takes them away when they are deleted, as kwok does for a whole cluster. No container runs.
// It handles the pods that name its scheduler, and no others.
package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Scheduler is what pods name in spec.schedulerName to be run here.
const Scheduler = "simulated"

// renewal is how often a kubelet renews its Lease by default.
const renewal = 10 * time.Second

// leases is the namespace that kubelets keep their Leases in; every API server makes it.
const leases = "kube-node-lease"

// workers are how many pods are moved on at once; readyTimeout bounds the start.
const workers, readyTimeout = 16, time.Minute

// Nodes are simulated nodes.
type Nodes struct {
	client  kubernetes.Interface
	names   []string
	next    atomic.Int64
	pods    cache.Store
	control cache.Controller
	queue   workqueue.TypedRateLimitingInterface[string]
	stop    context.CancelFunc
	work    sync.WaitGroup
}

// Start makes count nodes and looks after their pods until Close. It returns when the pods
// that are there are known.
func Start(ctx context.Context, config *rest.Config, count int) (*Nodes, error) {
	if count < 1 {
		return nil, errors.New("simulate nodes: want at least one")
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("simulate nodes: %w", err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	n := &Nodes{
		client: client, stop: stop,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	for i := range count {
		name := fmt.Sprintf("simulated-%d", i)
		if err := n.join(ctx, name); err != nil {
			stop()
			return nil, fmt.Errorf("simulate the node %s: %w", name, err)
		}
		n.names = append(n.names, name)
	}
	n.follow()
	n.work.Go(func() { n.control.RunWithContext(ctx) })
	n.work.Go(func() { n.renew(ctx) })
	for range workers {
		n.work.Go(func() { n.run(ctx) })
	}
	waiting, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	if !cache.WaitForCacheSync(waiting.Done(), n.control.HasSynced) {
		n.Close()
		return nil, errors.New("simulate nodes: the pods cannot be listed")
	}
	return n, nil
}

// Close stops the simulation; nodes and pods stay as they are.
func (n *Nodes) Close() {
	n.stop()
	n.queue.ShutDown()
	n.work.Wait()
}

// join makes a node that is ready, and its Lease.
func (n *Nodes) join(ctx context.Context, name string) error {
	node, err := n.client.CoreV1().Nodes().Create(ctx, &core.Node{ObjectMeta: meta.ObjectMeta{
		Name: name, Labels: map[string]string{core.LabelHostname: name, core.LabelOSStable: "linux"},
	}}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	node.Status.Conditions = []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue, Reason: "Simulated", LastHeartbeatTime: meta.Now()}}
	if _, err := n.client.CoreV1().Nodes().UpdateStatus(ctx, node, meta.UpdateOptions{}); err != nil {
		return err
	}
	seconds, now := int32(renewal.Seconds())*4, meta.NowMicro()
	_, err = n.client.CoordinationV1().Leases(leases).Create(ctx, &coordination.Lease{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec:       coordination.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, meta.CreateOptions{})
	return err
}

// renew renews one Lease after the other, so that each has its turn within the time.
func (n *Nodes) renew(ctx context.Context) {
	tick := time.NewTicker(renewal / time.Duration(len(n.names)))
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		patch, _ := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": meta.NowMicro()}})
		// A renewal that fails is made up for by the next.
		_, _ = n.client.CoordinationV1().Leases(leases).Patch(ctx, n.names[i%len(n.names)], types.MergePatchType, patch, meta.PatchOptions{})
	}
}

// follow watches the pods.
func (n *Nodes) follow() {
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			n.queue.Add(key)
		}
	}
	source := cache.NewFilteredListWatchFromClient(n.client.CoreV1().RESTClient(), "pods", meta.NamespaceAll, func(o *meta.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.schedulerName", Scheduler).String()
	})
	n.pods, n.control = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source, ObjectType: &core.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }},
	})
}

func (n *Nodes) run(ctx context.Context) {
	for {
		key, ended := n.queue.Get()
		if ended {
			return
		}
		if err := n.move(ctx, key); err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
			n.queue.AddRateLimited(key)
		} else {
			n.queue.Forget(key)
		}
		n.queue.Done(key)
	}
}

// move takes the next step in a pod's life: it is bound, it runs, it is gone.
func (n *Nodes) move(ctx context.Context, key string) error {
	object, there, err := n.pods.GetByKey(key)
	if err != nil || !there {
		return err
	}
	pod, ok := object.(*core.Pod)
	if !ok {
		return fmt.Errorf("%s is no pod", key)
	}
	pods := n.client.CoreV1().Pods(pod.Namespace)
	switch {
	case pod.DeletionTimestamp != nil:
		gone := meta.NewPreconditionDeleteOptions(string(pod.UID))
		gone.GracePeriodSeconds = new(int64)
		return pods.Delete(ctx, pod.Name, *gone)
	case pod.Spec.NodeName == "":
		node := n.names[int(n.next.Add(1))%len(n.names)]
		return pods.Bind(ctx, &core.Binding{
			ObjectMeta: meta.ObjectMeta{Name: pod.Name, UID: pod.UID}, Target: core.ObjectReference{Kind: "Node", Name: node},
		}, meta.CreateOptions{})
	case pod.Status.Phase == core.PodPending || pod.Status.Phase == "":
		_, err := pods.UpdateStatus(ctx, running(pod), meta.UpdateOptions{})
		return err
	}
	return nil
}

// running is a pod with all containers running.
func running(pod *core.Pod) *core.Pod {
	pod, now := pod.DeepCopy(), meta.Now()
	pod.Status.Phase, pod.Status.StartTime = core.PodRunning, &now
	pod.Status.Conditions = nil
	for _, kind := range []core.PodConditionType{core.PodInitialized, core.ContainersReady, core.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, core.PodCondition{Type: kind, Status: core.ConditionTrue, LastTransitionTime: now})
	}
	started := true
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, core.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: true, Started: &started,
			State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: now}},
		})
	}
	return pod
}
