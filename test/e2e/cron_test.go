package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// tagAge is how long the gateway here remembers a tag: jobs run when it is over.
const tagAge = 50 * time.Millisecond

// TestControllers: controllers' templates are checked early, and the pods that the real
// controllers make of them are pinned when they come.
func TestControllers(t *testing.T) {
	c := gateway.Configuration{}
	c.Webhooks.MutateControllers = []string{"Deployment"}
	c.Ages.Tag = tagAge.String()
	s := guard(t, "controllers", c)
	s.enforce(t, env.Policy{Name: "controllers", Namespaces: []string{"controllers"}})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")

	t.Run("denied early, or as it was written", func(t *testing.T) { s.tryControllers(t, signed, bare) })
	t.Run("a Deployment that is pinned", func(t *testing.T) { s.tryPinnedDeployment(t, signed, bare) })
	t.Run("a hook of Helm", func(t *testing.T) { s.tryHook(t, signed, bare) })
	t.Run("a CronJob with a tag that moves", s.tryCron)
}

// template is what controllers make pods of.
func template(image string, restart core.RestartPolicy) core.PodTemplateSpec {
	made := core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: map[string]string{"app": "web"}}, Spec: pod("", image).Spec}
	made.Spec.RestartPolicy = restart
	return made
}

func cronJob(name, image string) *batch.CronJob {
	made := &batch.CronJob{ObjectMeta: meta.ObjectMeta{Name: name}, Spec: batch.CronJobSpec{Schedule: "0 0 1 1 *"}}
	made.Spec.JobTemplate.Spec.Template = template(image, core.RestartPolicyNever)
	return made
}

func (s *scene) tryControllers(t *testing.T, signed, bare gatetest.Image) {
	selector := &meta.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for _, row := range []struct {
		kind   string
		create func(name, image string) (core.PodSpec, error)
	}{
		{"StatefulSet", func(name, image string) (core.PodSpec, error) {
			none := int32(0)
			got, err := s.client.AppsV1().StatefulSets(s.namespace).Create(t.Context(), &apps.StatefulSet{
				ObjectMeta: meta.ObjectMeta{Name: name},
				Spec:       apps.StatefulSetSpec{Selector: selector, Replicas: &none, Template: template(image, core.RestartPolicyAlways)},
			}, meta.CreateOptions{})
			return got.Spec.Template.Spec, err
		}},
		{"DaemonSet", func(name, image string) (core.PodSpec, error) {
			got, err := s.client.AppsV1().DaemonSets(s.namespace).Create(t.Context(), &apps.DaemonSet{
				ObjectMeta: meta.ObjectMeta{Name: name},
				Spec:       apps.DaemonSetSpec{Selector: selector, Template: template(image, core.RestartPolicyAlways)},
			}, meta.CreateOptions{})
			return got.Spec.Template.Spec, err
		}},
		{"CronJob", func(name, image string) (core.PodSpec, error) {
			got, err := s.client.BatchV1().CronJobs(s.namespace).Create(t.Context(), cronJob(name, image), meta.CreateOptions{})
			return got.Spec.JobTemplate.Spec.Template.Spec, err
		}},
	} {
		_, err := row.create("bare", bare.Name)
		denied(t, "a "+row.kind+" of an unsigned image", err, "unsigned")
		got, err := row.create("early", signed.Name)
		must(t, err)
		if image := got.Containers[0].Image; image != signed.Name {
			t.Errorf("the %s has %s, want the image as it was written", row.kind, image)
		}
	}
}

// tryPinnedDeployment: where controllers are pinned, too, the same manifest
// changes nothing, and so rolls nothing out.
func (s *scene) tryPinnedDeployment(t *testing.T, signed, bare gatetest.Image) {
	kubectl := s.kubectl(t)
	manifest := func(image string) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"app":"pinned"}},
			"template":{"metadata":{"labels":{"app":"pinned"}},"spec":{"containers":[{"name":"c0","image":%q}]}}}}`, image)
	}
	deployments := s.client.AppsV1().Deployments(s.namespace)
	apply := func(image string) (*apps.Deployment, error) {
		return deployments.Patch(t.Context(), "web", "application/apply-patch+yaml", manifest(image), meta.PatchOptions{FieldManager: "gitops"})
	}
	_, err := apply(bare.Name)
	denied(t, "a Deployment of an unsigned image", err, "unsigned")
	first, err := apply(signed.Name)
	must(t, err)
	if image := first.Spec.Template.Spec.Containers[0].Image; image != env.Pinned(signed) {
		t.Errorf("the Deployment has %s, want %s", image, env.Pinned(signed))
	}
	again, err := apply(signed.Name)
	must(t, err)
	if again.Generation != first.Generation || again.Spec.Template.Spec.Containers[0].Image != env.Pinned(signed) {
		t.Errorf("applied again, generation %d became %d, with %v", first.Generation, again.Generation, again.Spec.Template.Spec.Containers)
	}
	eventually(t, func(ctx context.Context) error { return s.onePod(ctx, "app=pinned", env.Pinned(signed)) })
	if said, err := kubectl("rollout", "history", "deployment/web"); err != nil || strings.Contains(said, "\n2 ") {
		t.Errorf("its history: %v, %s", err, said)
	}
}

// onePod returns nil if one pod has the label, and one image.
func (s *scene) onePod(ctx context.Context, selector, image string) error {
	pods, err := s.client.CoreV1().Pods(s.namespace).List(ctx, meta.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}
	if len(pods.Items) != 1 {
		return fmt.Errorf("%d pods with %s", len(pods.Items), selector)
	}
	if got := images(&pods.Items[0]); !slices.Equal(got, []string{image}) {
		return fmt.Errorf("the pod with %s has %v, want %s", selector, got, image)
	}
	return nil
}

func (s *scene) tryHook(t *testing.T, signed, bare gatetest.Image) {
	jobs := s.client.BatchV1().Jobs(s.namespace)
	hook := func(image string) *batch.Job {
		return &batch.Job{
			ObjectMeta: meta.ObjectMeta{Name: "hook", Annotations: map[string]string{"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-delete-policy": "before-hook-creation"}},
			Spec:       batch.JobSpec{Template: template(image, core.RestartPolicyNever)},
		}
	}
	_, err := jobs.Create(t.Context(), hook(bare.Name), meta.CreateOptions{})
	denied(t, "a hook with an unsigned image", err, "unsigned")
	got, err := jobs.Create(t.Context(), hook(signed.Name), meta.CreateOptions{})
	must(t, err)
	if image := got.Spec.Template.Spec.Containers[0].Image; image != signed.Name {
		t.Errorf("the hook has %s, want the image as it was written", image)
	}
	eventually(t, func(ctx context.Context) error { return s.onePod(ctx, "job-name=hook", env.Pinned(signed)) })
}

// tryCron: each run of a CronJob gets the image that its tag names then, if it is
// signed.
func (s *scene) tryCron(t *testing.T) {
	kubectl := s.kubectl(t)
	first, err := s.env.Signed("shop/nightly", "1.0")
	must(t, err)
	_, err = s.client.BatchV1().CronJobs(s.namespace).Create(t.Context(), cronJob("nightly", first.Name), meta.CreateOptions{})
	must(t, err)
	run := func(name string) (string, error) {
		return kubectl("create", "job", name, "--from=cronjob/nightly")
	}
	// forget waits until the gateway has forgotten where the tag pointed.
	forget := func() { <-time.After(2 * tagAge) }

	_, err = run("run-1")
	must(t, err)
	eventually(t, func(ctx context.Context) error { return s.onePod(ctx, "job-name=run-1", env.Pinned(first)) })

	second, err := s.env.Signed("shop/nightly", "1.0")
	must(t, err)
	forget()
	_, err = run("run-2")
	must(t, err)
	eventually(t, func(ctx context.Context) error { return s.onePod(ctx, "job-name=run-2", env.Pinned(second)) })

	// A job that was admitted before the tag moved makes its pod only now.
	jobs := s.client.BatchV1().Jobs(s.namespace)
	held := &batch.Job{ObjectMeta: meta.ObjectMeta{Name: "held"}, Spec: batch.JobSpec{Template: template(first.Name, core.RestartPolicyNever)}}
	suspended := true
	held.Spec.Suspend = &suspended
	_, err = jobs.Create(t.Context(), held, meta.CreateOptions{})
	must(t, err)
	s.env.Unsigned("shop/nightly", "1.0")
	forget()
	said, err := run("run-3")
	if err == nil || !strings.Contains(said, "[unsigned]") {
		t.Errorf("a run after the tag moved to an unsigned image: %v, %s", err, said)
	}
	_, err = jobs.Patch(t.Context(), "held", "application/merge-patch+json", []byte(`{"spec":{"suspend":false}}`), meta.PatchOptions{})
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		events, err := s.client.CoreV1().Events(s.namespace).List(ctx, meta.ListOptions{FieldSelector: "involvedObject.name=held,reason=FailedCreate"})
		if err == nil && (len(events.Items) == 0 || !strings.Contains(events.Items[0].Message, "[unsigned]")) {
			err = fmt.Errorf("the job's events are %v", events.Items)
		}
		return err
	})
	if err := s.onePod(t.Context(), "job-name=held", ""); err == nil || !strings.HasPrefix(err.Error(), "0 pods") {
		t.Error(errors.Join(errors.New("the held job has a pod"), err))
	}
}
