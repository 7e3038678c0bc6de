package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/test/docs"
	"github.com/quaymaster/quaymaster/test/peers"
)

// TestDocumentation runs the commands of the pages that need a cluster, with the charts, one
// page after another: each uninstalls its release.
func TestDocumentation(t *testing.T) {
	r := released(t)
	checkout, err := peers.Checkout()
	must(t, err)
	site, err := docs.Load(checkout)
	must(t, err)
	programs := programs(t)
	for _, name := range site.Names() {
		commands, err := site.Pages[name].Commands()
		if docs.Pages()[name] != docs.Cluster {
			commands, err = site.Pages[name].CommandsOf(t.Name())
		}
		must(t, err)
		if len(commands) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			shell := r.shell(t, checkout, programs, name)
			if err := shell.Run(t.Context(), name, commands); err != nil {
				t.Error(err)
			}
			r.run(t, "uninstall", "quaymaster", "quaymaster-crds", "--ignore-not-found")
			eventually(t, r.awaitNoWebhooks)
			for _, all := range []string{"clusterpolicies.kyverno.io,clusterimagepolicies.policy.sigstore.dev", "pods"} {
				r.kubectl.Must(t, "--kubeconfig", r.kubeconfig, "delete", "-n", "default", all, "--all")
			}
		})
	}
}

// programs returns a folder with what pages call, under their own names.
func programs(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, program := range map[string]string{"cosign": peers.Cosign3, "crane": peers.Crane, "kubectl": peers.Kubectl, "helm": peers.Helm} {
		path, err := peers.Build(t.Context(), program)
		must(t, err, os.Symlink(path, filepath.Join(folder, name)))
	}
	binary, err := shared.binary()
	must(t, err, os.Symlink(binary, filepath.Join(folder, "quaymaster")))
	return folder
}

// shell is where a page runs: a folder beside the checkout's deploy/, an administrator of
// the cluster, and a registry in place of Docker Hub and of the company's.
func (r *release) shell(t *testing.T, checkout, programs, page string) docs.Shell {
	t.Helper()
	folder := t.TempDir()
	must(t, os.Symlink(r.deploy, filepath.Join(folder, "deploy")))
	host := r.env.Registry.Host()
	for _, repository := range []string{"library/nginx", "shop/unsigned"} {
		r.env.Unsigned(repository, "1.27")
	}
	given := filepath.Join(checkout, "test", "docs", "testdata")
	file := filepath.Join(given, "before", strings.TrimSuffix(filepath.Base(page), ".md")+".sh")
	if docs.Pages()[page] != docs.Cluster { // some blocks alone are run here
		file = filepath.Join(given, "running", filepath.Base(file))
	}
	common, err := os.ReadFile(filepath.Join(given, "before", "common.sh"))
	must(t, err)
	before, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	n := &kubelet{release: r}
	return docs.Shell{
		Folder: folder, Before: string(common) + string(before), After: func(_ context.Context, command string) error {
			n.after(t, command)
			return nil
		},
		Names: map[string]string{"docker.io/library": host + "/library", "registry.example": host},
		// There is one cluster, and the checkout's chart replaces that of the next release.
		Calls: map[string]string{"--context production": "--context default", "oci://ghcr.io/quaymaster/charts/quaymaster": "deploy/helm/quaymaster"},
		Env:   r.environment(folder, programs),
	}
}

// environment of an administrator of the cluster.
func (r *release) environment(folder, programs string) []string {
	return []string{
		"HOME=" + folder, "DOCKER_CONFIG=" + folder, "XDG_CACHE_HOME=" + folder, "KUBECONFIG=" + r.kubeconfig,
		"PATH=" + programs + string(filepath.ListSeparator) + os.Getenv("PATH"), "COSIGN_PASSWORD=", "COSIGN_YES=true", "NO_COLOR=1",
		"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1",
	}
}

// kubelet does the part of a cluster's nodes when a test runs Helm.
type kubelet struct {
	*release
	node    *nodeAPI // nil if there are no nodes
	running *replica
	slot    int
}

func (n *kubelet) after(t *testing.T, command string) {
	words := strings.Fields(command)
	switch {
	case len(words) > 2 && words[0] == "helm" && words[2] == "quaymaster" && slices.Contains([]string{"install", "upgrade", "rollback"}, words[1]):
		previous := n.running
		n.start(t)
		n.slot++
		if previous != nil {
			must(t, previous.Stop(t.Context()))
		}
	case len(words) > 2 && slices.Equal(words[:3], []string{"helm", "uninstall", "quaymaster"}):
		must(t, n.stop(t))
		eventually(t, n.awaitNoWebhooks)
	case strings.HasPrefix(command, "kubectl apply -f policy.yaml"):
		scene := *n.scene
		scene.namespace = "quay-start"
		(&release{scene: &scene}).awaitDenial(t, n.env.Registry.Host()+"/library/nginx:1.27")
	}
}

func (n *kubelet) start(t *testing.T) {
	n.running = n.pod(t, "quaymaster", n.slot)
	if n.node != nil {
		n.node.running.Store(n.running)
	}
	eventually(t, n.becomeReady)
}

func (n *kubelet) stop(t *testing.T) error {
	stopped := n.running
	if stopped == nil {
		return nil
	}
	n.running = nil
	if n.node != nil {
		n.node.running.Store(nil)
	}
	return stopped.Stop(t.Context())
}

// becomeReady sets the release's pods, which no kubelet runs, to running.
func (n *kubelet) becomeReady(ctx context.Context) error {
	if n.node != nil {
		if err := n.tend(ctx, n.node.name); err != nil {
			return err
		}
	}
	pods := n.client.CoreV1().Pods(releaseNamespace)
	all, err := pods.List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range all.Items {
		p.Status.Phase = core.PodRunning
		p.Status.Conditions = []core.PodCondition{{Type: core.PodReady, Status: core.ConditionTrue, LastTransitionTime: meta.Now()}}
		if _, err := pods.UpdateStatus(ctx, &p, meta.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	d, err := n.client.AppsV1().Deployments(releaseNamespace).Get(ctx, "quaymaster", meta.GetOptions{})
	if err != nil {
		return err
	}
	if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas < *d.Spec.Replicas || d.Status.AvailableReplicas < *d.Spec.Replicas || d.Status.Replicas > *d.Spec.Replicas {
		return fmt.Errorf("the Deployment has %d of %d replicas: %w", d.Status.AvailableReplicas, *d.Spec.Replicas, errNotYet)
	}
	return nil
}

func (r *release) awaitNoWebhooks(ctx context.Context) error {
	_, err := r.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "quaymaster", meta.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("the webhooks are there: %w", errNotYet)
	}
	return nil
}
