package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/checker"
	"github.com/quaymaster/quaymaster/test/e2e/chaos/line"
	"github.com/quaymaster/quaymaster/test/e2e/nodes"
	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// The storm: so many changes of policies, one each stormPause.
const storms, stormPause = 300, 50 * time.Millisecond

var clusterPolicies = schema.GroupVersionResource{Group: "kyverno.io", Version: "v1", Resource: "clusterpolicies"}

// storm makes, changes and deletes policies of other namespaces, and changes those that the
// load rests on without changing what they want.
func storm(ctx context.Context, s *stand) (func(context.Context) error, error) {
	policies := s.dynamic.Resource(clusterPolicies)
	note := func(ctx context.Context, name string, n int) error {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"note":"%d"}}}`, n)
		_, err := policies.Patch(ctx, name, types.MergePatchType, []byte(patch), meta.PatchOptions{})
		return err
	}
	tick := time.NewTicker(stormPause)
	defer tick.Stop()
	for n := range storms {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return over, context.Cause(ctx)
		}
		name := fmt.Sprint("storm-", n/3)
		var err error
		switch n % 3 {
		case 0:
			text, failed := s.ports[0].Elsewhere(name)
			if err = failed; err == nil {
				err = s.plane.ApplyYAML(ctx, text)
			}
		case 1:
			err = errors.Join(note(ctx, name, n), note(ctx, policyName(n%registries), n))
		case 2:
			err = policies.Delete(ctx, name, meta.DeleteOptions{})
		}
		if err != nil {
			return over, fmt.Errorf("a storm of policies: %w", err)
		}
	}
	return over, nil
}

// many is how many namespaces come at once, made by so many at work; in one of every so many
// there are pods.
const many, makers, visited = 1000, 8, 25

// thousand makes namespaces, wants a signed and an unsigned pod in some as soon as they are
// there, and deletes all.
func thousand(ctx context.Context, s *stand) (func(context.Context) error, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := s.client.CoreV1().Namespaces()
	signed, unsigned := s.ports[0].Image(checker.Signed, 0), s.ports[1].Image(checker.Unsigned, 0)
	var work sync.WaitGroup
	turn := make(chan int)
	for range makers {
		work.Go(func() {
			for n := range turn {
				name := fmt.Sprint(prefix, "of-many-", n)
				if _, err := all.Create(ctx, &core.Namespace{ObjectMeta: meta.ObjectMeta{Name: name}}, meta.CreateOptions{}); err != nil {
					cancel(err)
					continue
				}
				if n%visited == 0 {
					s.want(ctx, name, signed, n%2 == 0)
					s.want(ctx, name, unsigned, n%2 == 0)
				}
			}
		})
	}
	for n := range many {
		turn <- n
	}
	close(turn)
	work.Wait()
	for n := range many {
		if err := all.Delete(ctx, fmt.Sprint(prefix, "of-many-", n), meta.DeleteOptions{}); err != nil {
			cancel(err)
		}
	}
	return over, context.Cause(ctx)
}

// nightPods run before the night; nightTimeout bounds how long those of a node may take to run
// again.
const nightPods, nightTimeout = 9, time.Minute

// night: pods run, and then no registry answers, all gateways are ended and started anew, and
// a node is drained. Its pods have to run again before the registries are back. Who is asked
// most ends last, and saves what it knows: what clocks and restarts did to it before counts.
func night(ctx context.Context, s *stand) (func(context.Context) error, error) {
	if err := s.deploy(ctx, s.ports[0].Image(checker.Signed, 1).Name); err != nil {
		return over, err
	}
	before, err := s.awaitNight(ctx, nil)
	if err != nil {
		return over, err
	}
	last, err := s.busier(ctx)
	if err != nil {
		return over, err
	}
	for _, p := range s.ports {
		p.Line.Set(gone)
	}
	dawn := func(context.Context) error {
		for _, p := range s.ports {
			p.Line.Set(line.Weather{})
		}
		return nil
	}
	for _, r := range s.replicas {
		if r != last {
			r.now().Kill()
		}
	}
	if err := last.now().Terminate(); err != nil {
		return dawn, err
	}
	<-last.now().Done()
	for _, r := range s.replicas {
		if err := r.start(ctx); err != nil {
			return dawn, err
		}
	}
	drained := before[0].Spec.NodeName
	for _, p := range before {
		if p.Spec.NodeName != drained {
			continue
		}
		eviction := &policyv1.Eviction{ObjectMeta: meta.ObjectMeta{Name: p.Name}}
		if err := s.client.CoreV1().Pods(p.Namespace).EvictV1(ctx, eviction); err != nil && !apierrors.IsNotFound(err) {
			return dawn, err
		}
	}
	_, err = s.awaitNight(ctx, before)
	return func(ctx context.Context) error {
		_ = dawn(ctx)
		background := meta.DeletePropagationBackground
		return s.client.AppsV1().Deployments(nightNamespace).Delete(ctx, nightName, meta.DeleteOptions{PropagationPolicy: &background})
	}, err
}

// Where the night's pods are.
const nightNamespace, nightName = prefix + "0", "night"

// deploy makes a Deployment whose pods run on simulated nodes.
func (s *stand) deploy(ctx context.Context, image string) error {
	labels, count := map[string]string{"app": nightName}, int32(nightPods)
	_, err := s.client.AppsV1().Deployments(nightNamespace).Create(ctx, &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: nightName},
		Spec: apps.DeploymentSpec{
			Replicas: &count, Selector: &meta.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{
				ObjectMeta: meta.ObjectMeta{Labels: labels},
				Spec:       core.PodSpec{SchedulerName: nodes.Scheduler, Containers: []core.Container{{Name: "web", Image: image}}},
			},
		},
	}, meta.CreateOptions{})
	return err
}

// awaitNight returns the pods once all run, and those of the node that was drained are others.
func (s *stand) awaitNight(ctx context.Context, before []core.Pod) (pods []core.Pod, err error) {
	ctx, cancel := context.WithTimeout(ctx, nightTimeout)
	defer cancel()
	old := map[types.UID]bool{}
	for _, p := range before {
		if p.Spec.NodeName == before[0].Spec.NodeName {
			old[p.UID] = true
		}
	}
	err = process.Eventually(ctx, func(ctx context.Context) error {
		list, err := s.client.CoreV1().Pods(nightNamespace).List(ctx, meta.ListOptions{LabelSelector: "app=" + nightName})
		if err != nil {
			return err
		}
		pods = pods[:0]
		for _, p := range list.Items {
			if p.Status.Phase == core.PodRunning && p.DeletionTimestamp == nil && !old[p.UID] {
				if !strings.Contains(p.Spec.Containers[0].Image, "@sha256:") {
					return fmt.Errorf("%s runs %s", p.Name, p.Spec.Containers[0].Image)
				}
				pods = append(pods, p)
			}
		}
		if len(pods) != nightPods {
			return fmt.Errorf("%d of %d pods run", len(pods), nightPods)
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("%w; %s", err, s.whyNot(context.WithoutCancel(ctx)))
	}
	return pods, err
}

// whyNot tells what Kubernetes last said of the night's pods that could not be created.
func (s *stand) whyNot(ctx context.Context) string {
	list, err := s.client.CoreV1().Events(nightNamespace).List(ctx, meta.ListOptions{FieldSelector: "reason=FailedCreate"})
	if err != nil {
		return err.Error()
	}
	if len(list.Items) == 0 {
		return "no creation failed"
	}
	last := slices.MaxFunc(list.Items, func(a, b core.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return fmt.Sprintf("%d creations failed, the last: %s", len(list.Items), last.Message)
}
