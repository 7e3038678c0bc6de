package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// written is the annotation with a pod's original images.
const written = "quaymaster.dev/written"

// scene is a namespace that a gateway guards, with a test environment.
type scene struct {
	plane     *controlplane.ControlPlane
	env       *env.Env
	gateway   *gateway.Gateway
	client    *kubernetes.Clientset
	identity  *rest.Config // of the gateway
	namespace string
}

// set makes a scene: the release, a namespace, and a gateway that enforces a
// policy for it already.
func set(t *testing.T, namespace string, policy env.Policy) *scene {
	t.Helper()
	s := unguarded(t, namespace)
	s.gateway = s.start(t, gateway.Configuration{})
	must(t, s.gateway.Ready(t.Context()))
	policy.Name, policy.Namespaces = namespace, []string{namespace}
	s.apply(t, policy)
	return s
}

// unguarded makes a scene without a gateway.
func unguarded(t *testing.T, namespace string) *scene {
	t.Helper()
	s := &scene{plane: plane(t), env: openEnv(t, registrytest.Options{}), namespace: namespace}
	must(t, s.plane.Namespace(t.Context(), namespace))
	s.client = clientset(t, s.plane.Admin())
	var err error
	s.identity, err = s.plane.Install(t.Context())
	must(t, err)
	return s
}

// start runs a replica until the test ends, and takes its webhook
// configurations away with it: others have pods to create. env is added to its own.
func (s *scene) start(t *testing.T, c gateway.Configuration, env ...string) *gateway.Gateway {
	t.Helper()
	binary, err := shared.binary()
	must(t, err)
	return s.startProgram(t, binary, c, env...)
}

// startProgram is start of another program, which ends as the gateway's.
func (s *scene) startProgram(t *testing.T, binary string, c gateway.Configuration, env ...string) *gateway.Gateway {
	t.Helper()
	folder := t.TempDir()
	c.Kubernetes.Kubeconfig = filepath.Join(folder, "kubeconfig")
	must(t, controlplane.WriteKubeconfig(c.Kubernetes.Kubeconfig, s.identity))
	c.PlainHTTP(s.env.Registry.Host())
	g, err := gateway.Start(t.Context(), gateway.Options{Program: binary, Folder: folder, Configuration: c, Env: env})
	must(t, err)
	t.Cleanup(func() {
		g.Kill()
		if t.Failed() {
			t.Logf("the gateway wrote:\n%s", g.Log())
		}
		registered := s.client.AdmissionregistrationV1()
		ctx := context.WithoutCancel(t.Context())
		_ = registered.MutatingWebhookConfigurations().Delete(ctx, "quaymaster", meta.DeleteOptions{})
		_ = registered.ValidatingWebhookConfigurations().Delete(ctx, "quaymaster", meta.DeleteOptions{})
	})
	return g
}

var clusterPolicies = schema.GroupVersionResource{Group: "kyverno.io", Version: "v1", Resource: "clusterpolicies"}

// apply applies a policy that pins, returns when it has its effect, and takes it
// away when the test ends.
func (s *scene) apply(t *testing.T, policy env.Policy) {
	t.Helper()
	text, err := s.env.YAML(policy)
	must(t, err, s.plane.ApplyYAML(t.Context(), text))
	t.Cleanup(func() {
		client, err := dynamic.NewForConfig(s.plane.Admin())
		if err == nil {
			_ = client.Resource(clusterPolicies).Delete(context.WithoutCancel(t.Context()), policy.Name, meta.DeleteOptions{})
		}
	})
	probe, err := s.env.Signed("probe", policy.Name)
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		got, err := s.dryRun(ctx, pod("probe", probe.Name))
		if err == nil && !slices.Contains(images(got), env.Pinned(probe)) {
			err = fmt.Errorf("%v is not pinned", images(got))
		}
		return err
	})
}

func (s *scene) create(t *testing.T, p *core.Pod) (*core.Pod, error) {
	t.Helper()
	return s.client.CoreV1().Pods(s.namespace).Create(t.Context(), p, meta.CreateOptions{})
}

func (s *scene) dryRun(ctx context.Context, p *core.Pod) (*core.Pod, error) {
	return s.client.CoreV1().Pods(s.namespace).Create(ctx, p, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
}

func images(p *core.Pod) []string {
	var names []string
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		names = append(names, c.Image)
	}
	return names
}

// denied checks that err is the gateway's refusal, and names the reason.
func denied(t *testing.T, what string, err error, code string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "quaymaster") || !strings.Contains(err.Error(), "["+code+"]") {
		t.Errorf("%s: got %v, want a refusal with [%s]", what, err, code)
	}
}

func TestAdmission(t *testing.T) {
	s := set(t, "admission", env.Policy{})
	signed, err := s.env.Signed("shop/web", "1.0")
	must(t, err)
	next, err := s.env.Signed("shop/web", "1.1")
	must(t, err)
	foreign, err := s.env.SignedBy(s.env.Stranger, "shop/foreign", "1.0")
	must(t, err)
	bare := s.env.Unsigned("shop/bare", "1.0")

	t.Run("a signed image is pinned, and the original is kept", func(t *testing.T) {
		got, err := s.create(t, pod("signed", signed.Name))
		must(t, err)
		if want := []string{env.Pinned(signed)}; !slices.Equal(images(got), want) {
			t.Errorf("images %v, want %v", images(got), want)
		}
		var kept map[string]string
		if err := json.Unmarshal([]byte(got.Annotations[written]), &kept); err != nil || kept["c0"] != signed.Name || len(kept) != 1 {
			t.Errorf("the annotation %q (%v), want c0 to be %s", got.Annotations[written], err, signed.Name)
		}
	})

	t.Run("others are denied, each for its reason", func(t *testing.T) {
		_, err := s.create(t, pod("bare", bare.Name))
		denied(t, "an unsigned image", err, "unsigned")
		_, err = s.create(t, pod("foreign", foreign.Name))
		denied(t, "an image signed by another key", err, "wrong-key")
		_, err = s.create(t, pod("second", signed.Name, bare.Name))
		denied(t, "an unsigned second container", err, "unsigned")
	})

	t.Run("a forged annotation changes nothing", func(t *testing.T) {
		p := pod("forged", bare.ByDigest())
		p.Annotations = map[string]string{written: `{"c0":"` + signed.Name + `"}`}
		_, err := s.create(t, p)
		denied(t, "a forged annotation", err, "unsigned")
	})

	t.Run("an update is asked about its changes", func(t *testing.T) { s.tryUpdate(t, signed.Name, env.Pinned(next), next.Name, bare.Name) })
	t.Run("an ephemeral container", func(t *testing.T) { s.tryEphemeral(t, signed.Name, env.Pinned(signed), bare.Name) })
	t.Run("an image volume", func(t *testing.T) {
		p := pod("volume", signed.Name)
		p.Spec.Volumes = []core.Volume{{Name: "data", VolumeSource: core.VolumeSource{Image: &core.ImageVolumeSource{Reference: bare.Name}}}}
		_, err := s.create(t, p)
		denied(t, "an unsigned image volume", err, "unsigned")
		p.Spec.Volumes[0].Image.Reference = signed.Name
		got, err := s.create(t, p)
		must(t, err)
		if volume := got.Spec.Volumes[0].Image.Reference; volume != env.Pinned(signed) {
			t.Errorf("the volume is %s, want %s", volume, env.Pinned(signed))
		}
	})
	t.Run("a Deployment is checked and not changed", func(t *testing.T) { s.tryDeployment(t, signed.Name, bare.Name) })
}

func (s *scene) tryUpdate(t *testing.T, first, pinned, next, bare string) {
	got, err := s.create(t, pod("update", first))
	must(t, err)
	pods := s.client.CoreV1().Pods(s.namespace)
	s.env.Registry.Reset()
	got.Labels = map[string]string{"team": "blue"}
	got, err = pods.Update(t.Context(), got, meta.UpdateOptions{})
	must(t, err)
	if n := len(s.env.Registry.Requests()); n != 0 {
		t.Errorf("a label cost %d registry requests", n)
	}
	got.Spec.Containers[0].Image = bare
	_, err = pods.Update(t.Context(), got, meta.UpdateOptions{})
	denied(t, "an update to an unsigned image", err, "unsigned")
	got.Spec.Containers[0].Image = next
	got, err = pods.Update(t.Context(), got, meta.UpdateOptions{})
	must(t, err)
	if !slices.Equal(images(got), []string{pinned}) {
		t.Errorf("after the update %v, want %s", images(got), pinned)
	}
}

func (s *scene) tryEphemeral(t *testing.T, signed, pinned, bare string) {
	got, err := s.create(t, pod("debug", signed))
	must(t, err)
	pods := s.client.CoreV1().Pods(s.namespace)
	for _, image := range []string{bare, signed} {
		with := got.DeepCopy()
		with.Spec.EphemeralContainers = []core.EphemeralContainer{{EphemeralContainerCommon: core.EphemeralContainerCommon{Name: "shell", Image: image}}}
		after, err := pods.UpdateEphemeralContainers(t.Context(), "debug", with, meta.UpdateOptions{})
		if image == bare {
			denied(t, "an unsigned ephemeral container", err, "unsigned")
			continue
		}
		must(t, err)
		if added := after.Spec.EphemeralContainers[0].Image; added != pinned {
			t.Errorf("the ephemeral container is %s, want %s", added, pinned)
		}
	}
}

func (s *scene) tryDeployment(t *testing.T, signed, bare string) {
	labels := map[string]string{"app": "web"}
	deployment := func(name, image string) *apps.Deployment {
		d := &apps.Deployment{ObjectMeta: meta.ObjectMeta{Name: name}}
		d.Spec.Selector = &meta.LabelSelector{MatchLabels: labels}
		d.Spec.Template = core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: pod("", image).Spec}
		return d
	}
	deployments := s.client.AppsV1().Deployments(s.namespace)
	_, err := deployments.Create(t.Context(), deployment("bare", bare), meta.CreateOptions{})
	denied(t, "a Deployment of an unsigned image", err, "unsigned")
	got, err := deployments.Create(t.Context(), deployment("web", signed), meta.CreateOptions{})
	must(t, err)
	if image := got.Spec.Template.Spec.Containers[0].Image; image != signed {
		t.Errorf("the template's image is %s, want it as it was written", image)
	}
}

func TestActions(t *testing.T) {
	s := set(t, "actions", env.Policy{})
	bare := s.env.Unsigned("shop/bare", "1.0")
	_, err := s.dryRun(t.Context(), pod("bare", bare.Name))
	denied(t, "enforced", err, "unsigned")

	text, err := s.env.YAML(env.Policy{
		Name: s.namespace, Namespaces: []string{s.namespace}, Action: "Audit", Rule: map[string]any{"mutateDigest": false},
	})
	must(t, err, s.plane.ApplyYAML(t.Context(), text))
	eventually(t, func(ctx context.Context) error {
		_, err := s.dryRun(ctx, pod("bare", bare.Name))
		if err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("while the policy changes: %v", err)
		}
		return err
	})
	got, err := s.create(t, pod("audited", bare.Name))
	must(t, err)
	if !slices.Equal(images(got), []string{bare.Name}) {
		t.Errorf("the audited image became %v", images(got))
	}
	samples, err := s.gateway.Metrics(t.Context())
	must(t, err)
	if len(samples) == 0 {
		t.Error("there are no metrics")
	}
}
