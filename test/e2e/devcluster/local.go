package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/peers"
)

// namespace is that of the demonstration.
const namespace = "quay-start"

// effectTimeout bounds how long the policy may take until the API server applies it.
const effectTimeout = time.Minute

// local runs everything as processes, until the context ends.
func local(ctx context.Context, s settings, to *steps) error {
	folder, err := os.MkdirTemp("", "quaymaster-dev-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	c := &cluster{folder: folder}
	defer c.close()
	to.next("Build kubectl, etcd and kube-apiserver from Go modules (minutes, once)")
	kubectl, err := peers.Build(ctx, peers.Kubectl)
	if err != nil {
		return err
	}
	to.next("Start etcd and kube-apiserver")
	c.plane, err = controlplane.Start(ctx, controlplane.Options{Folder: folder})
	if err != nil {
		return err
	}
	to.next("Start a registry, with a signed and an unsigned image")
	c.env, err = env.Open(registrytest.Options{})
	if err != nil {
		return err
	}
	to.next("Install the definitions and roles, build the gateway, and start it")
	if err := c.startGateway(ctx); err != nil {
		return err
	}
	to.next("Apply the policy: images in the namespace %s are signed by the key", namespace)
	signed, unsigned, err := c.images()
	if err != nil {
		return err
	}
	if err := c.policy(ctx); err != nil {
		return err
	}
	kubeconfig := filepath.Join(folder, "admin.kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, c.plane.Admin()); err != nil {
		return err
	}
	d := demonstration{kubectl: kubectl, kubeconfig: kubeconfig, signed: signed, unsigned: unsigned}
	if err := d.run(ctx, to); err != nil || s.once {
		return err
	}
	to.next("The cluster runs until Ctrl-C. In another terminal:")
	to.show("export KUBECONFIG="+kubeconfig, "")
	to.show(kubectl+" get clusterpolicies", "")
	<-ctx.Done()
	return nil
}

// cluster is what runs.
type cluster struct {
	folder  string
	plane   *controlplane.ControlPlane
	env     *env.Env
	gateway *gateway.Gateway
}

func (c *cluster) close() {
	if c.gateway != nil {
		c.gateway.Kill()
	}
	if c.env != nil {
		c.env.Close()
	}
	if c.plane != nil {
		c.plane.Close()
	}
}

func (c *cluster) startGateway(ctx context.Context) error {
	identity, err := c.plane.Install(ctx)
	if err != nil {
		return err
	}
	folder := filepath.Join(c.folder, "gateway")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	program := filepath.Join(c.folder, "quaymaster")
	if err := peers.BuildQuaymaster(ctx, program); err != nil {
		return err
	}
	var settings gateway.Configuration
	settings.Kubernetes.Kubeconfig = filepath.Join(folder, "kubeconfig")
	if err := controlplane.WriteKubeconfig(settings.Kubernetes.Kubeconfig, identity); err != nil {
		return err
	}
	settings.PlainHTTP(c.env.Registry.Host())
	c.gateway, err = gateway.Start(ctx, gateway.Options{Program: program, Folder: folder, Configuration: settings})
	if err != nil {
		return err
	}
	return c.gateway.Ready(ctx)
}

// images returns the names of a signed and an unsigned image.
func (c *cluster) images() (signed, unsigned string, err error) {
	image, err := c.env.Signed("shop/web", "v1")
	return image.Name, c.env.Unsigned("shop/unsigned", "v1").Name, err
}

func (c *cluster) policy(ctx context.Context) error {
	if err := c.plane.Namespace(ctx, namespace); err != nil {
		return err
	}
	text, err := c.env.YAML(env.Policy{Name: "start", Namespaces: []string{namespace}})
	if err != nil {
		return err
	}
	return c.plane.ApplyYAML(ctx, text)
}

// demonstration shows a denial and an admission.
type demonstration struct{ kubectl, kubeconfig, signed, unsigned string }

func (d demonstration) run(ctx context.Context, to *steps) error {
	to.next("Wait until the policy is ready: each API server applies it")
	out, err := d.ask(ctx, "wait", "--for=condition=Ready", "clusterpolicy/start", "--timeout", effectTimeout.String())
	if err != nil {
		return fmt.Errorf("wait for the policy: %w: %s", err, out)
	}
	to.next("Create a pod of an unsigned image, which is denied, and of a signed one")
	denied, err := d.ask(ctx, "-n", namespace, "run", "unsigned", "--image", d.unsigned)
	to.show("kubectl -n "+namespace+" run unsigned --image "+d.unsigned, denied)
	if err == nil || !strings.Contains(denied, "[unsigned]") {
		return errors.New("the unsigned image was not denied")
	}
	created, err := d.ask(ctx, "-n", namespace, "run", "web", "--image", d.signed)
	to.show("kubectl -n "+namespace+" run web --image "+d.signed, created)
	if err != nil {
		return errors.New("the signed image was denied")
	}
	pinned, err := d.ask(ctx, "-n", namespace, "get", "pod", "web", "-o", "jsonpath={.spec.containers[0].image}")
	to.show("kubectl -n "+namespace+" get pod web -o jsonpath={.spec.containers[0].image}", pinned+"\n")
	if err != nil || !strings.Contains(pinned, "@sha256:") {
		return errors.New("the signed image was not pinned to its digest")
	}
	return nil
}

// ask runs kubectl, and returns all that it prints.
func (d demonstration) ask(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, d.kubectl, append([]string{"--kubeconfig", d.kubeconfig}, args...)...)
	out, err := command.CombinedOutput()
	return string(out), err
}

func indent(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("     " + line)
	}
	return out.String()
}
