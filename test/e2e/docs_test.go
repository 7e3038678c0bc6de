package e2e

import (
	"context"
	"errors"
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

// TestDocumentation runs the commands of the pages that need a cluster, with the
// charts, one page after another: each takes away what it installs.
func TestDocumentation(t *testing.T) {
	r := released(t)
	checkout, err := peers.Checkout()
	must(t, err)
	site, err := docs.Load(checkout)
	must(t, err)
	programs := t.TempDir()
	for name, program := range map[string]string{"cosign": peers.Cosign3, "crane": peers.Crane, "kubectl": peers.Kubectl, "helm": peers.Helm} {
		path, err := peers.Build(t.Context(), program)
		must(t, err, os.Symlink(path, filepath.Join(programs, name)))
	}
	binary, err := shared.binary()
	must(t, err, os.Symlink(binary, filepath.Join(programs, "quaymaster")))
	for _, name := range site.Names() {
		if docs.Pages()[name] != docs.Cluster {
			continue
		}
		t.Run(name, func(t *testing.T) {
			commands, err := site.Pages[name].Commands()
			must(t, err)
			shell := r.shell(t, checkout, programs, name)
			if err := shell.Run(t.Context(), name, commands); err != nil {
				t.Error(err)
			}
			r.run(t, "uninstall", "quaymaster", "quaymaster-crds", "--ignore-not-found")
			eventually(t, r.awaitNoWebhooks)
		})
	}
}

// shell is where a page runs: a folder beside the checkout's deploy/, an administrator of
// the cluster, and a registry in place of Docker Hub and of the company's.
func (r *release) shell(t *testing.T, checkout, programs, page string) docs.Shell {
	t.Helper()
	folder := t.TempDir()
	must(t, os.Symlink(r.deploy, filepath.Join(folder, "deploy")))
	host := r.harbour.Registry.Host()
	for _, repository := range []string{"library/nginx", "shop/unsigned"} {
		r.harbour.Unsigned(repository, "1.27")
	}
	before, err := os.ReadFile(filepath.Join(checkout, "test", "docs", "testdata", "before", strings.TrimSuffix(filepath.Base(page), ".md")+".sh"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	n := &kubelet{release: r}
	return docs.Shell{
		Folder: folder, Before: string(before), After: func(_ context.Context, command string) error {
			n.after(t, command)
			return nil
		},
		Names: map[string]string{"docker.io/library": host + "/library", "registry.example": host},
		Env: []string{
			"HOME=" + folder, "DOCKER_CONFIG=" + folder, "XDG_CACHE_HOME=" + folder, "KUBECONFIG=" + r.kubeconfig,
			"PATH=" + programs + string(filepath.ListSeparator) + os.Getenv("PATH"), "COSIGN_PASSWORD=", "COSIGN_YES=true", "NO_COLOR=1",
			"HTTP_PROXY=http://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY=127.0.0.1",
		},
	}
}

// kubelet does what a cluster with nodes would do when somebody runs Helm.
type kubelet struct {
	*release
	running *replica
	slot    int
}

func (n *kubelet) after(t *testing.T, command string) {
	words := strings.Fields(command)
	switch {
	case len(words) > 2 && words[0] == "helm" && words[2] == "quaymaster" && (words[1] == "install" || words[1] == "upgrade"):
		previous := n.running
		n.running = n.pod(t, "quaymaster", n.slot)
		n.slot++
		if previous != nil {
			must(t, previous.Stop(t.Context()))
		}
		eventually(t, n.becomeReady)
	case len(words) > 2 && slices.Equal(words[:3], []string{"helm", "uninstall", "quaymaster"}):
		if n.running != nil {
			must(t, n.running.Stop(t.Context()))
			n.running = nil
		}
		eventually(t, n.awaitNoWebhooks)
	case strings.HasPrefix(command, "kubectl apply -f policy.yaml"):
		in := *n.scene
		in.namespace = "quay-start"
		eventually(t, func(ctx context.Context) error {
			_, err := in.dryRun(ctx, pod("probe", n.harbour.Registry.Host()+"/library/nginx:1.27"))
			if err == nil || !strings.Contains(err.Error(), "[unsigned]") {
				return fmt.Errorf("not denied yet: %w", errors.Join(err, errAdmitted))
			}
			return nil
		})
	}
}

// becomeReady says of the pods of the release, which no kubelet runs, that they run.
func (n *kubelet) becomeReady(ctx context.Context) error {
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
