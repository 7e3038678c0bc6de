package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/e2e/nodes"
)

// rampImages are used; a user acts once in pace; one in unsignedIn of its requests is
// refused, and one a Deployment of so many pods, which has deployTimeout to be available.
// look is how often users check the number of users.
const (
	rampImages    = 100
	pace          = time.Second
	unsignedIn    = 10
	deployed      = 3
	deployTimeout = time.Minute
	look          = 50 * time.Millisecond
)

// tally is what users saw in a stage.
type tally struct {
	mutex                        sync.Mutex
	admitted, refused, available []time.Duration
	errs                         []error
	wanted                       int // refusals
}

func (t *tally) add(list *[]time.Duration, took time.Duration, err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if err != nil {
		t.errs = append(t.errs, err)
		return
	}
	*list = append(*list, took)
}

// crowd is the users of a ramp.
type crowd struct {
	*stand
	images  []string
	stages  []stage
	start   time.Time
	tallies []tally
	made    atomic.Int64 // Deployments
}

// ramp lets users come and go.
func (s *stand) ramp(ctx context.Context, say *verdicts) error {
	c := &crowd{stand: s, stages: stages(s.settings.users)}
	c.tallies = make([]tally, len(c.stages))
	var err error
	c.images, err = s.yard.signed("ramp", rampImages, false)
	if err != nil {
		return err
	}
	denials, err := s.count(ctx, "quaymaster_admissions_total", "answer", "deny")
	if err != nil {
		return err
	}
	ended, err := s.used(ctx)
	if err != nil {
		return err
	}
	progress("ramp: %d users, %d at most", s.settings.users, most(c.stages))
	c.start = time.Now()
	var work sync.WaitGroup
	for number := range most(c.stages) {
		work.Go(func() { c.live(ctx, number) })
	}
	work.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	spent, server, peak, err := ended()
	if err != nil {
		return err
	}
	counted, err := s.count(ctx, "quaymaster_admissions_total", "answer", "deny")
	if err != nil {
		return err
	}
	c.printTable(say, counted-denials)
	fmt.Fprintf(say.out, "CPU: %.2f s of the replicas, %.2f s of the API server; peak memory of a replica: %d MiB\n", spent.Seconds(), server.Seconds(), peak>>20)
	return s.clear(ctx, rampNamespace)
}

// printTable prints the table and compares the counts.
func (c *crowd) printTable(say *verdicts, denials int) {
	fmt.Fprintf(say.out, "\nramp: users that create an object once a second: a pod, an unsigned pod (one in %d), a Deployment of %d pods (one in %d)\n", unsignedIn, deployed, unsignedIn)
	lines := [][]string{append(latencyHead("stage"), "users", "refused", "p99", "available", "p99", "errors")}
	var refused, wanted int
	var failures []error
	for i := range c.tallies {
		t := &c.tallies[i]
		line := append([]string{c.stages[i].name}, latencies(t.admitted)...)
		lines = append(lines, append(line, fmt.Sprint(c.stages[i].users), fmt.Sprint(len(t.refused)), milliseconds(quantile(t.refused, 0.99)),
			fmt.Sprint(len(t.available)), milliseconds(quantile(t.available, 0.99)), fmt.Sprint(len(t.errs))))
		refused, wanted, failures = refused+len(t.refused), wanted+t.wanted, append(failures, t.errs...)
	}
	table(say.out, lines...)
	say.say(refused == wanted && denials == wanted, "%d unsigned pods: %d refused, and the replicas count %d", wanted, refused, denials)
	said := ""
	if len(failures) > 0 {
		said = ", the first: " + failures[0].Error()
	}
	say.say(len(failures) == 0, "%d errors%s", len(failures), said)
}

// live is a user, which acts while there are more users than its number.
func (c *crowd) live(ctx context.Context, number int) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	next := c.start
	for turn := number; ; {
		users, index := at(c.stages, time.Since(c.start))
		if index == len(c.stages) || ctx.Err() != nil {
			return
		}
		if number < users && !time.Now().Before(next) {
			next = time.Now().Add(pace)
			c.act(ctx, turn, &c.tallies[index])
			turn++
			continue
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// act does one thing.
func (c *crowd) act(ctx context.Context, turn int, t *tally) {
	start, image := time.Now(), c.images[turn%len(c.images)]
	switch turn % unsignedIn {
	case 0:
		t.mutex.Lock()
		t.wanted++
		t.mutex.Unlock()
		_, err := c.create(ctx, rampNamespace, encode(c.bare, nodes.Scheduler))
		switch {
		case errors.As(err, new(*refusal)):
			err = nil
		case err == nil:
			err = errors.New("an unsigned image was admitted")
		}
		t.add(&t.refused, time.Since(start), err)
	case unsignedIn / 2:
		err := c.deploy(ctx, image)
		t.add(&t.available, time.Since(start), err)
	default:
		name, err := c.create(ctx, rampNamespace, encode(image, nodes.Scheduler))
		t.add(&t.admitted, time.Since(start), err)
		if err == nil {
			_ = c.client.CoreV1().Pods(rampNamespace).Delete(ctx, name, meta.DeleteOptions{})
		}
	}
}

// deploy makes a Deployment, waits until its pods run and deletes it.
func (c *crowd) deploy(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, deployTimeout)
	defer cancel()
	name := fmt.Sprint("web-", c.made.Add(1))
	deployments := c.client.AppsV1().Deployments(rampNamespace)
	if err := c.makeDeployment(ctx, rampNamespace, name, image, deployed); err != nil {
		return err
	}
	err := patiently(ctx, func(ctx context.Context) error {
		now, err := deployments.Get(ctx, name, meta.GetOptions{})
		if err == nil && now.Status.AvailableReplicas != deployed {
			err = fmt.Errorf("%s: %d of %d available", name, now.Status.AvailableReplicas, deployed)
		}
		return err
	})
	background := meta.DeletePropagationBackground
	return errors.Join(err, deployments.Delete(ctx, name, meta.DeleteOptions{PropagationPolicy: &background}))
}

// makeDeployment makes one with pods on simulated nodes.
func (s *stand) makeDeployment(ctx context.Context, namespace, name, image string, count int32) error {
	labels := map[string]string{"app": strings.ToLower(name)}
	_, err := s.client.AppsV1().Deployments(namespace).Create(ctx, &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec: apps.DeploymentSpec{
			Replicas: &count, Selector: &meta.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: template(image, nodes.Scheduler)},
		},
	}, meta.CreateOptions{})
	return err
}
