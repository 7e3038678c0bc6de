package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// guard makes a scene with a gateway that is ready and has no policy yet. It
// leads at once: the lease of one that was killed is taken away.
func guard(t *testing.T, namespace string, c gateway.Configuration) *scene {
	t.Helper()
	s := unguarded(t, namespace)
	s.endLead(t)
	s.gateway = s.start(t, c)
	must(t, s.gateway.Ready(t.Context()))
	return s
}

// endLead takes the lease of a gateway that was killed away, now and when the
// test is over, for others need not wait until it ends.
func (s *scene) endLead(t *testing.T) {
	t.Helper()
	drop := func() {
		for _, name := range []string{"quaymaster", "quaymaster-cleanup-leader", "quaymaster-native-leader"} {
			_ = s.client.CoordinationV1().Leases("quaymaster").Delete(context.WithoutCancel(t.Context()), name, meta.DeleteOptions{})
		}
	}
	drop()
	t.Cleanup(drop)
}

// loseGateway kills the gateway, and lets requests pass without it and another one lead at once.
func (s *scene) loseGateway(t *testing.T) {
	t.Helper()
	s.gateway.Kill()
	must(t, s.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(t.Context(), "quaymaster", meta.DeleteOptions{}))
	s.endLead(t)
}

// in returns the same scene in another namespace, which is made.
func (s *scene) in(t *testing.T, namespace string, labels ...string) *scene {
	t.Helper()
	must(t, s.plane.Namespace(t.Context(), namespace, labels...))
	other := *s
	other.namespace = namespace
	return &other
}

// effect makes a change to policies or exceptions, and returns when the gateway
// took it: it logs the hash of its policies each time that it swaps them. From
// then on the next request, the very first, has to be answered by it.
func (s *scene) effect(t *testing.T, change func(context.Context) error) {
	t.Helper()
	// Not the test's own context: it has ended when a test cleans up.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), awaitTimeout)
	defer cancel()
	before, _ := s.taken()
	must(t, change(ctx))
	must(t, process.Eventually(ctx, func(context.Context) error {
		if now, err := s.taken(); err != nil || now == before {
			return errors.Join(err, fmt.Errorf("the gateway still rests on the policies %s", before))
		}
		return nil
	}))
}

// taken returns the gateway's last log line of its policies: how often it loaded them, the
// number of documents, and their hash.
func (s *scene) taken() (string, error) {
	lines, err := s.gateway.Lines()
	said := ""
	for _, line := range lines {
		if line["msg"] == "policies" {
			said = fmt.Sprint(line["documents"], " ", line["active"], " ", line["hash"])
		}
	}
	return said, err
}

// put applies manifests until the test ends and returns when the gateway took
// them. They must change something of its policies. drop takes them away before.
func (s *scene) put(t *testing.T, text string) (drop func()) {
	t.Helper()
	objects, err := controlplane.ParseManifests([]byte(text))
	must(t, err)
	client, err := dynamic.NewForConfig(s.plane.Admin())
	must(t, err)
	s.effect(t, func(ctx context.Context) error { return s.plane.ApplyYAML(ctx, text) })
	drop = func() { s.withdraw(t, client, objects) }
	t.Cleanup(drop)
	return drop
}

// withdraw deletes the objects that are left, and returns when a running gateway has seen it:
// its log line of a removal must not be taken for the effect of the next change.
func (s *scene) withdraw(t *testing.T, client dynamic.Interface, objects []*unstructured.Unstructured) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), awaitTimeout)
	defer cancel()
	before, _ := s.documents()
	removed := 0
	for _, object := range objects {
		kind := object.GroupVersionKind()
		resource := client.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: plural(kind.Kind)})
		var named dynamic.ResourceInterface = resource
		if object.GetNamespace() != "" {
			named = resource.Namespace(object.GetNamespace())
		}
		if named.Delete(ctx, object.GetName(), meta.DeleteOptions{}) == nil {
			removed++
		}
	}
	if removed == 0 || s.gateway.IsReady(ctx) != nil {
		return
	}
	must(t, process.Eventually(ctx, func(context.Context) error {
		if now, err := s.documents(); err != nil || now > before-removed {
			return errors.Join(err, fmt.Errorf("the gateway still has %d of %d documents, of which %d were removed", now, before, removed))
		}
		return nil
	}))
}

// documents returns of how many the gateway logged last.
func (s *scene) documents() (int, error) {
	said, err := s.taken()
	count, _, _ := strings.Cut(said, " ")
	number, _ := strconv.Atoi(count)
	return number, err
}

// enforce applies a policy that pins until the test ends, and returns when both
// the gateway and the API server took it.
func (s *scene) enforce(t *testing.T, policy env.Policy) {
	t.Helper()
	text, err := s.env.YAML(policy)
	must(t, err)
	s.effect(t, func(ctx context.Context) error { return s.plane.ApplyYAML(ctx, text) })
	s.apply(t, policy)
}

// kubectl is the real program, as the administrator in the scene's namespace.
func (s *scene) kubectl(t *testing.T) func(args ...string) (string, error) {
	t.Helper()
	file := t.TempDir() + "/kubeconfig"
	must(t, controlplane.WriteKubeconfig(file, s.plane.Admin()))
	program := peers.Get(t, peers.Kubectl)
	return func(args ...string) (string, error) {
		return program.Run(t.Context(), append([]string{"--kubeconfig", file, "--namespace", s.namespace}, args...)...)
	}
}

// ear hears the warnings that an API server sends along.
type ear struct {
	mutex sync.Mutex
	heard []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (e *ear) HandleWarningHeader(_ int, _, text string) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.heard = append(e.heard, text)
}

// listening returns a client, and a function that returns the warnings since the last call.
func (s *scene) listening(t *testing.T) (*kubernetes.Clientset, func() []string) {
	t.Helper()
	e, config := &ear{}, s.plane.Admin()
	config.WarningHandler = e
	return clientset(t, config), func() []string {
		e.mutex.Lock()
		defer e.mutex.Unlock()
		heard := e.heard
		e.heard = nil
		return heard
	}
}

// eventsIn returns the events that the gateway wrote in a namespace.
func (s *scene) eventsIn(ctx context.Context, namespace string) ([]events.Event, error) {
	list, err := s.client.EventsV1().Events(namespace).List(ctx, meta.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(e events.Event) bool { return e.ReportingController != "quaymaster.dev/gateway" }), nil
}

// verdicts returns the log's lines about an object's images, by an endpoint.
func (s *scene) verdicts(t *testing.T, endpoint, name string) []map[string]any {
	t.Helper()
	lines, err := s.gateway.Lines()
	must(t, err)
	return slices.DeleteFunc(lines, func(line map[string]any) bool {
		return line["msg"] != "verdict" || line["endpoint"] != endpoint || line["name"] != name || line["namespace"] != s.namespace
	})
}

// cost returns how many requests the registry has seen since it was last asked.
func (s *scene) cost() int {
	n := len(s.env.Registry.Requests())
	s.env.Registry.Reset()
	return n
}

// withVolume adds an image volume to a pod.
func withVolume(p *core.Pod, image string) *core.Pod {
	p.Spec.Volumes = append(p.Spec.Volumes, core.Volume{
		Name: "data", VolumeSource: core.VolumeSource{Image: &core.ImageVolumeSource{Reference: image}},
	})
	return p
}
