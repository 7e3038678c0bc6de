package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// serviceRange is of loopback: what calls a Service's address calls a process here, and
// is refused the connection where none listens, as by a node's proxy rules.
const serviceRange = "127.0.10.0/24"

// coldTimeout is what a gateway may take to serve after everything else was away.
const coldTimeout = time.Minute

// A namespace of a storage driver, which the release leaves out as it does kube-system; and a
// workload in place of those that a cluster cannot start without.
const storageNamespace, systemWorkload = "storage-system", "driver"

// earlyPod is in the gateway's namespace before the gateway is.
const earlyPod = "early"

// cold is a cluster that can be stopped and started again, with a gateway behind its
// Service.
type cold struct {
	*scene
	whole         *testing.T // the test of all starts: at its end the webhook configurations are removed
	configuration gateway.Configuration
	signed, bare  gatetest.Image
}

// coldCluster makes a cluster in which everything runs: the release's Deployment, the
// cluster's own workloads, and a workload of a namespace that is guarded.
func coldCluster(t *testing.T) *cold {
	t.Helper()
	plane(t) // skips in short runs, and builds the programs
	folder := t.TempDir()
	p, err := controlplane.Start(t.Context(), controlplane.Options{
		Folder: folder, Controllers: true, ServiceAccounts: true, Flags: []string{"--service-cluster-ip-range=" + serviceRange},
	})
	must(t, err)
	t.Cleanup(p.Close)
	c := &cold{whole: t, scene: &scene{plane: p, env: openEnv(t, registrytest.Options{}), client: clientset(t, p.Admin()), namespace: "shop"}}
	c.signed, err = c.env.Signed("shop/web", "1.0")
	must(t, err)
	c.bare = c.env.Unsigned("shop/bare", "1.0")
	for _, namespace := range []string{c.namespace, storageNamespace, "kube-system"} {
		must(t, p.Namespace(t.Context(), namespace))
	}
	define(t, p)
	c.precede(t)
	c.identity, err = p.Install(t.Context())
	must(t, err)
	c.deployGateway(t)
	c.serve(t)
	c.gateway = c.start(t, c.configuration)
	must(t, c.gateway.Ready(t.Context()))
	c.apply(t, env.Policy{Name: "signed"})
	c.furnish(t)
	return c
}

// precede makes a pod in what becomes the gateway's namespace, before a release is there to
// keep it.
func (c *cold) precede(t *testing.T) {
	t.Helper()
	own := c.in(t, releaseNamespace)
	early := pod(earlyPod, c.bare.Name)
	restrict(&early.Spec) // as the namespace's Pod Security Standard requires
	_, err := own.create(t, early)
	must(t, err)
}

// deployGateway applies the release's Deployment; no kubelet runs its pods.
func (c *cold) deployGateway(t *testing.T) {
	t.Helper()
	checkout, err := peers.Checkout()
	must(t, err)
	objects, err := controlplane.ReadManifests(filepath.Join(checkout, "deploy", "install.yaml"))
	must(t, err)
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			must(t, c.plane.Apply(t.Context(), object))
		}
	}
}

// serve has the Service's endpoints point to the gateway.
func (c *cold) serve(t *testing.T) {
	t.Helper()
	number, err := process.FreeAddress(t.Context())
	must(t, err)
	services := c.client.CoreV1().Services(releaseNamespace)
	service, err := services.Get(t.Context(), ownName, meta.GetOptions{})
	must(t, err)
	_, err = fmt.Sscan(port(t, number), &service.Spec.Ports[0].Port) // port 443 may need privileges
	must(t, err)
	service, err = services.Update(t.Context(), service, meta.UpdateOptions{})
	must(t, err)
	c.configuration.Webhooks.Service, c.configuration.Webhooks.Port = service.Name, int(service.Spec.Ports[0].Port)
	c.configuration.Webhooks.ExcludedNamespaces = &[]string{"kube-system", storageNamespace}
	c.configuration.Listen.Address = fmt.Sprintf("%s:%d", service.Spec.ClusterIP, service.Spec.Ports[0].Port)
}

// furnish makes the workloads: an aggregated API with a server that is away whenever the
// cluster starts, a node with its Lease, drivers and DNS, and a user's workload.
func (c *cold) furnish(t *testing.T) {
	t.Helper()
	must(t, c.plane.ApplyYAML(t.Context(), `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: metrics-server, namespace: kube-system}
---
apiVersion: v1
kind: Node
metadata: {name: worker-1}
`))
	for _, namespace := range []string{"kube-system", storageNamespace} {
		driver := &apps.DaemonSet{ObjectMeta: meta.ObjectMeta{Name: systemWorkload}}
		driver.Spec.Selector, driver.Spec.Template = c.template(systemWorkload, c.bare.Name)
		driver.Spec.Template.Spec.Tolerations = []core.Toleration{{Operator: core.TolerationOpExists}} // the node is not ready without it
		_, err := c.client.AppsV1().DaemonSets(namespace).Create(t.Context(), driver, meta.CreateOptions{})
		must(t, err)
	}
	for namespace, d := range map[string]*apps.Deployment{
		"kube-system": c.deployment("dns", c.bare.Name, 2),
		c.namespace:   c.deployment("web", c.signed.Name, 1),
	} {
		_, err := c.client.AppsV1().Deployments(namespace).Create(t.Context(), d, meta.CreateOptions{})
		must(t, err)
	}
	c.systemRuns(t)
	c.runs(t, c.namespace, "web", 1)
}

func (c *cold) template(name, image string) (*meta.LabelSelector, core.PodTemplateSpec) {
	labels := map[string]string{"app": name}
	return &meta.LabelSelector{MatchLabels: labels}, core.PodTemplateSpec{ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: pod("", image).Spec}
}

func (c *cold) deployment(name, image string, replicas int32) *apps.Deployment {
	d := &apps.Deployment{ObjectMeta: meta.ObjectMeta{Name: name}}
	d.Spec.Replicas = &replicas
	d.Spec.Selector, d.Spec.Template = c.template(name, image)
	return d
}

// systemRuns waits until controllers made the pods that a cluster starts with.
func (c *cold) systemRuns(t *testing.T) {
	t.Helper()
	c.runs(t, "kube-system", systemWorkload, 1)
	c.runs(t, storageNamespace, systemWorkload, 1)
	c.runs(t, "kube-system", "dns", 2)
	c.runs(t, releaseNamespace, "", 4) // three of the gateway, and the early one
}

// runs waits until a namespace has so many pods of an application that are not going.
func (c *cold) runs(t *testing.T, namespace, application string, count int) {
	t.Helper()
	options := meta.ListOptions{}
	if application != "" {
		options.LabelSelector = "app=" + application
	}
	until(t, awaitTimeout, func(ctx context.Context) error {
		list, err := c.client.CoreV1().Pods(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		left := 0
		for _, p := range list.Items {
			if p.DeletionTimestamp == nil {
				left++
			}
		}
		if left != count {
			return fmt.Errorf("%d pods of %s/%s, want %d: %w", left, namespace, application, count, errNotYet)
		}
		return nil
	})
}

// until is eventually with its own timeout; its error is the last cause and not the timeout.
func until(t *testing.T, most time.Duration, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	var last error
	must(t, process.Eventually(ctx, func(ctx context.Context) error {
		if err := check(ctx); err == nil || ctx.Err() == nil {
			last = err
		}
		return last
	}))
}

// stop ends the gateway, the controllers and the API server at once, as a power cut does;
// etcd keeps its data. The webhook configurations are there and fail closed.
func (c *cold) stop(t *testing.T) {
	t.Helper()
	c.gateway.Kill()
	c.plane.KillControllers()
	c.plane.KillAPIServer()
}

// restart starts the API server and the controllers again, and takes the pods away that
// no longer run: each has to be made anew, past the webhooks.
func (c *cold) restart(t *testing.T, flags ...string) {
	t.Helper()
	began := time.Now()
	must(t, c.plane.StartAPIServer(t.Context(), flags...))
	t.Logf("the API server was ready after %s, without a gateway", time.Since(began).Round(time.Millisecond))
	now := meta.DeleteOptions{GracePeriodSeconds: new(int64)}
	for _, namespace := range []string{"kube-system", storageNamespace, releaseNamespace} {
		must(t, c.client.CoreV1().Pods(namespace).DeleteCollection(t.Context(), now, meta.ListOptions{FieldSelector: "metadata.name!=" + earlyPod}))
	}
	must(t, c.plane.StartControllers(t.Context()))
}

// returns starts the gateway, by program, and reports the time until it admitted a signed
// image and denied an unsigned one.
func (c *cold) returns(t *testing.T, configuration gateway.Configuration, program string, env ...string) {
	t.Helper()
	began := time.Now()
	c.gateway = c.startProgram(c.whole, program, configuration, env...)
	ctx, cancel := context.WithTimeout(t.Context(), coldTimeout)
	defer cancel()
	must(t, c.gateway.Await(ctx, func(ctx context.Context) error {
		_, err := c.dryRun(ctx, pod("signed", c.signed.Name))
		return err
	}))
	t.Logf("a signed image was admitted %s after the gateway's start", time.Since(began).Round(time.Millisecond))
	_, err := c.dryRun(t.Context(), pod("bare", c.bare.Name))
	denied(t, "an unsigned image after a cold start", err, "unsigned")
}

// program is the gateway's.
func (c *cold) program(t *testing.T) string {
	t.Helper()
	binary, err := shared.binary()
	must(t, err)
	return binary
}

// write puts a file into a folder, and returns its name.
func write(t *testing.T, folder, name, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(folder, name)
	must(t, os.WriteFile(file, []byte(text), mode))
	return file
}
