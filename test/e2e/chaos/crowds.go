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

// storm makes, changes and deletes policies of other namespaces, and changes those of the
// load without changing their requirements.
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

// outagePods run before the outage; outageTimeout bounds the time until those of a node run
// again.
const outagePods, outageTimeout = 9, time.Minute

// outage: pods run, and then no registry answers, all gateways are ended and started anew,
// and a node is drained. Its pods have to run again before the registries are back. The
// busiest gateway ends last, and saves its cache: the effects of earlier clock changes and
// restarts on it count.
func outage(ctx context.Context, s *stand) (func(context.Context) error, error) {
	if err := s.deploy(ctx, s.ports[0].Image(checker.Signed, 1).Name); err != nil {
		return over, err
	}
	before, err := s.awaitOutage(ctx, nil)
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
	restore := func(context.Context) error {
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
		return restore, err
	}
	<-last.now().Done()
	for _, r := range s.replicas {
		if err := r.start(ctx); err != nil {
			return restore, err
		}
	}
	drained := before[0].Spec.NodeName
	for _, p := range before {
		if p.Spec.NodeName != drained {
			continue
		}
		eviction := &policyv1.Eviction{ObjectMeta: meta.ObjectMeta{Name: p.Name}}
		if err := s.client.CoreV1().Pods(p.Namespace).EvictV1(ctx, eviction); err != nil && !apierrors.IsNotFound(err) {
			return restore, err
		}
	}
	_, err = s.awaitOutage(ctx, before)
	return func(ctx context.Context) error {
		_ = restore(ctx)
		background := meta.DeletePropagationBackground
		return s.client.AppsV1().Deployments(outageNamespace).Delete(ctx, outageName, meta.DeleteOptions{PropagationPolicy: &background})
	}, err
}

// The Deployment of the outage.
const outageNamespace, outageName = prefix + "0", "outage"

// deploy makes a Deployment with pods on simulated nodes.
func (s *stand) deploy(ctx context.Context, image string) error {
	labels, count := map[string]string{"app": outageName}, int32(outagePods)
	_, err := s.client.AppsV1().Deployments(outageNamespace).Create(ctx, &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: outageName},
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

// awaitOutage returns the pods once all run, and those of the node that was drained are others.
func (s *stand) awaitOutage(ctx context.Context, before []core.Pod) (pods []core.Pod, err error) {
	ctx, cancel := context.WithTimeout(ctx, outageTimeout)
	defer cancel()
	old := map[types.UID]bool{}
	for _, p := range before {
		if p.Spec.NodeName == before[0].Spec.NodeName {
			old[p.UID] = true
		}
	}
	err = process.Eventually(ctx, func(ctx context.Context) error {
		list, err := s.client.CoreV1().Pods(outageNamespace).List(ctx, meta.ListOptions{LabelSelector: "app=" + outageName})
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
		if len(pods) != outagePods {
			return fmt.Errorf("%d of %d pods run", len(pods), outagePods)
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("%w; %s", err, s.whyNot(context.WithoutCancel(ctx)))
	}
	return pods, err
}

// whyNot returns the last event of an outage pod that could not be created.
func (s *stand) whyNot(ctx context.Context) string {
	list, err := s.client.CoreV1().Events(outageNamespace).List(ctx, meta.ListOptions{FieldSelector: "reason=FailedCreate"})
	if err != nil {
		return err.Error()
	}
	if len(list.Items) == 0 {
		return "no creation failed"
	}
	last := slices.MaxFunc(list.Items, func(a, b core.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
	return fmt.Sprintf("%d creations failed, the last: %s", len(list.Items), last.Message)
}
