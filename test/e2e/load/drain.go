package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// evicting are evicted at once; they have drainTimeout to be replaced.
const evicting, drainTimeout = 50, 2 * time.Minute

// drain is a cluster that is to be drained.
type drain struct {
	*stand
	pods []core.Pod
}

// fill makes Deployments with running pods, before there is a gateway.
func (s *stand) fill(ctx context.Context) (*drain, error) {
	names, err := s.yard.signed("drain", drained, false)
	if err != nil {
		return nil, err
	}
	for i, image := range names {
		count := int32(s.settings.pods / drained)
		if i < s.settings.pods%drained {
			count++
		}
		if err := s.makeDeployment(ctx, drainNamespace, fmt.Sprint("drained-", i), image, count); err != nil {
			return nil, err
		}
	}
	d := &drain{stand: s}
	d.pods, err = d.await(ctx)
	return d, err
}

// await returns the pods once all of them run and none is of those that were there before.
func (d *drain) await(ctx context.Context) ([]core.Pod, error) {
	before := map[string]bool{}
	for _, p := range d.pods {
		before[p.Name] = true
	}
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	var all []core.Pod
	err := patiently(ctx, func(ctx context.Context) error {
		list, err := d.client.CoreV1().Pods(drainNamespace).List(ctx, meta.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		all = all[:0]
		for _, p := range list.Items {
			if p.Status.Phase == core.PodRunning && p.DeletionTimestamp == nil && !before[p.Name] {
				all = append(all, p)
			}
		}
		if len(all) != d.settings.pods {
			return fmt.Errorf("%d of %d pods run", len(all), d.settings.pods)
		}
		return nil
	})
	return all, err
}

// run evicts all pods and waits until others run in their place.
func (d *drain) run(ctx context.Context, say *verdicts) error {
	late, err := d.late(ctx)
	if err != nil {
		return err
	}
	ended, err := d.used(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := d.evict(ctx); err != nil {
		return err
	}
	now, err := d.await(ctx)
	if err != nil {
		return err
	}
	took := time.Since(start)
	spent, server, peak, err := ended()
	if err != nil {
		return err
	}
	unpinned := 0
	for _, p := range now {
		if !strings.Contains(p.Spec.Containers[0].Image, "@sha256:") {
			unpinned++
		}
	}
	lateNow, err := d.late(ctx)
	if err != nil {
		return err
	}
	failures, err := d.failures(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(say.out, "\ndrain: %d pods of %d uncached images, evicted at once: all run again after %.1f s\n"+
		"CPU: %.2f s of the replicas, %.2f s of the API server; peak memory of a replica: %d MiB\n",
		d.settings.pods, drained, took.Seconds(), spent.Seconds(), server.Seconds(), peak>>20)
	say.say(lateNow == late && len(failures) == 0, "%d requests timed out, %d pods could not be created at first %s", lateNow-late, len(failures), strings.Join(failures[:min(1, len(failures))], ""))
	say.say(unpinned == 0, "%d pods run that the gateway did not pin", unpinned)
	return d.empty(ctx)
}

// late is how many requests the replicas could not answer in time.
func (d *drain) late(ctx context.Context) (sum int, err error) {
	for _, cause := range []string{"timed-out", "queue-full", "share-taken"} {
		count, err := d.count(ctx, "quaymaster_admissions_total", "cause", cause)
		if err != nil {
			return 0, err
		}
		sum += count
	}
	return sum, nil
}

// failures are the controllers' events about pods that they could not create.
func (d *drain) failures(ctx context.Context) (said []string, err error) {
	list, err := d.client.CoreV1().Events(drainNamespace).List(ctx, meta.ListOptions{FieldSelector: "reason=FailedCreate"})
	if err != nil {
		return nil, err
	}
	for _, e := range list.Items {
		said = append(said, e.Message)
	}
	return said, nil
}

func (d *drain) evict(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	turn := make(chan string)
	for range evicting {
		work.Go(func() {
			for name := range turn {
				err := d.client.CoreV1().Pods(drainNamespace).EvictV1(ctx, &policyv1.Eviction{ObjectMeta: meta.ObjectMeta{Name: name}})
				if err != nil && !apierrors.IsNotFound(err) {
					cancel(fmt.Errorf("evict %s: %w", name, err))
				}
			}
		})
	}
	for _, p := range d.pods {
		turn <- p.Name
	}
	close(turn)
	work.Wait()
	return context.Cause(ctx)
}

// empty takes the Deployments away, and returns when their pods are gone.
func (d *drain) empty(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	background := meta.DeletePropagationBackground
	if err := d.client.AppsV1().Deployments(drainNamespace).DeleteCollection(ctx, meta.DeleteOptions{PropagationPolicy: &background}, meta.ListOptions{}); err != nil {
		return err
	}
	return patiently(ctx, func(ctx context.Context) error {
		left, err := d.client.CoreV1().Pods(drainNamespace).List(ctx, meta.ListOptions{Limit: 1})
		if err == nil && len(left.Items) > 0 {
			err = fmt.Errorf("pods are left in %s", drainNamespace)
		}
		return err
	})
}
