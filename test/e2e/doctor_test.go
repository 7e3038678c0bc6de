package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	registration "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
	"github.com/quaymaster/quaymaster/test/peers"
)

// finding is one of the JSON of quaymaster doctor.
type finding struct{ Check, Subject, Result, Message, Fix string }

// doctor is a gateway that a Deployment has, and folders with kubeconfigs.
type doctor struct {
	*scene
	folder string
	pod    string
}

// TestDoctor: the checks of a healthy gateway are ok, and each fault is a finding with its fix.
func TestDoctor(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a Kubernetes API server")
	}
	d := &doctor{scene: doctorScene(t)}
	d.folder = d.kubeconfig(t)
	address := podAddress(t)
	d.pod = d.deploy(t, address)
	c := gateway.Configuration{}
	c.Listen.Plain = address
	d.gateway = d.start(t, c, "POD_NAME="+d.pod)
	must(t, d.gateway.Ready(t.Context()))
	d.markReady(t, core.ConditionTrue, address)
	policy := env.Policy{Name: "doctor", Namespaces: []string{"doctor"}}
	d.apply(t, policy)

	t.Run("healthy", d.tryHealthy)
	t.Run("a user without permissions", d.tryForbidden)
	t.Run("a missing permission", d.tryPermission)
	t.Run("without the gateway", d.tryKilled)
}

// doctorScene has a control plane of its own, without controllers: the test writes the status of the
// Deployment and of its pod.
func doctorScene(t *testing.T) *scene {
	t.Helper()
	p, err := controlplane.Start(t.Context(), controlplane.Options{Folder: t.TempDir()})
	must(t, err)
	t.Cleanup(p.Close)
	must(t, p.Namespace(t.Context(), "doctor"))
	s := &scene{plane: p, env: openEnv(t, registrytest.Options{}), client: clientset(t, p.Admin()), namespace: "doctor"}
	s.identity, err = p.Install(t.Context())
	must(t, err)
	return s
}

// kubeconfig writes the administrator's into a new folder.
func (d *doctor) kubeconfig(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	must(t, controlplane.WriteKubeconfig(filepath.Join(folder, "kubeconfig"), d.plane.Admin()))
	return folder
}

// podAddress is a free address that is not of loopback: the API server connects to no pod there.
func podAddress(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() && network.IP.To4() != nil {
			listener, err := net.Listen("tcp", net.JoinHostPort(network.IP.String(), "0"))
			must(t, err)
			free := listener.Addr().String()
			must(t, listener.Close())
			return free
		}
	}
	t.Skip("this machine has no address but those of loopback, at which the API server connects to no pod")
	return ""
}

// deploy creates the Deployment of the release, with one replica at an address, and returns the name of its pod.
func (d *doctor) deploy(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	number, err := strconv.Atoi(port)
	must(t, err)
	checkout, err := peers.Checkout()
	must(t, err)
	objects, err := controlplane.ReadManifests(filepath.Join(checkout, "deploy", "install.yaml"))
	must(t, err)
	deployment := &apps.Deployment{}
	for _, object := range objects {
		if object.GetKind() == "Deployment" {
			must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment))
		}
	}
	one := int32(1)
	deployment.Spec.Replicas = &one
	ports := deployment.Spec.Template.Spec.Containers[0].Ports
	for i := range ports {
		if ports[i].Name == "plain" {
			ports[i].ContainerPort = int32(number)
		}
	}
	api := d.client.AppsV1().Deployments(releaseNamespace)
	_, err = api.Create(t.Context(), deployment, meta.CreateOptions{})
	must(t, err)
	template := deployment.Spec.Template
	template.Name = deployment.Name + "-0"
	_, err = d.client.CoreV1().Pods(releaseNamespace).Create(t.Context(), &core.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, meta.CreateOptions{})
	must(t, err)
	return template.Name
}

// markReady writes the status of the pod, as a kubelet does, and that of the Deployment.
func (d *doctor) markReady(t *testing.T, ready core.ConditionStatus, address string) {
	t.Helper()
	host, _, err := net.SplitHostPort(address)
	must(t, err)
	api := d.client.CoreV1().Pods(releaseNamespace)
	eventually(t, func(ctx context.Context) error {
		p, err := api.Get(ctx, d.pod, meta.GetOptions{})
		if err != nil {
			return err
		}
		p.Status.Phase, p.Status.PodIP, p.Status.PodIPs = core.PodRunning, host, []core.PodIP{{IP: host}}
		p.Status.Conditions = []core.PodCondition{{Type: core.PodReady, Status: ready, LastTransitionTime: meta.Now()}}
		_, err = api.UpdateStatus(ctx, p, meta.UpdateOptions{})
		return err
	})
	deployments := d.client.AppsV1().Deployments(releaseNamespace)
	eventually(t, func(ctx context.Context) error {
		of, err := deployments.Get(ctx, "quaymaster", meta.GetOptions{})
		if err != nil {
			return err
		}
		of.Status.Replicas, of.Status.ReadyReplicas = 1, 0
		if ready == core.ConditionTrue {
			of.Status.ReadyReplicas = 1
		}
		_, err = deployments.UpdateStatus(ctx, of, meta.UpdateOptions{})
		return err
	})
}

// ask runs quaymaster doctor, and returns its findings and its exit status.
func (d *doctor) ask(t *testing.T, folder string, args ...string) ([]finding, int) {
	t.Helper()
	status, out, errs := command(t, folder, append([]string{"doctor", "-o", "json"}, args...)...)
	var read struct {
		Kind  string
		Items []finding
	}
	if err := json.Unmarshal([]byte(out), &read); err != nil || read.Kind != "GatewayDiagnosis" {
		t.Fatalf("exit status %d, %v: %s%s", status, err, out, errs)
	}
	return read.Items, status
}

func (d *doctor) tryHealthy(t *testing.T) {
	eventually(t, func(context.Context) error {
		findings, status := d.ask(t, d.folder)
		if len(findings) != 12 || status != 0 || slices.ContainsFunc(findings, func(f finding) bool { return f.Result != "ok" }) {
			return fmt.Errorf("exit status %d: %+v", status, findings)
		}
		return nil
	})
	status, out, errs := command(t, d.folder, "status")
	t.Logf("status:\n%s", out)
	for _, want := range []string{"mode enforce", "1 of 1 ready (Deployment quaymaster)", d.pod + " (Lease quaymaster", "quaymaster intact", "ClusterPolicy 1 ready", "0 problems"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Errorf("exit status %d, no %q: %s%s", status, want, out, errs)
		}
	}
	_, out, _ = command(t, d.folder, "doctor")
	t.Logf("doctor:\n%s", out)
	status, out, errs = command(t, d.folder, "status", "-o", "yaml")
	if status != 0 || !strings.Contains(out, "kind: GatewayStatus\n") {
		t.Errorf("exit status %d: %s%s", status, out, errs)
	}
	if findings, status := d.ask(t, d.folder, "-n", "default"); status != 1 || !hasFinding(findings, "replicas", "", "problem", "no gateway in the namespace default") {
		t.Errorf("in another namespace: exit status %d: %+v", status, findings)
	}
}

func hasFinding(findings []finding, check, subject, result, message string) bool {
	return slices.ContainsFunc(findings, func(f finding) bool {
		return f.Check == check && f.Subject == subject && f.Result == result && strings.Contains(f.Message, message) && (f.Fix != "" || result == "ok")
	})
}

// tryForbidden: nothing is ok for a user that may read nothing, and each finding names the permission.
func (d *doctor) tryForbidden(t *testing.T) {
	user, err := d.plane.User("doctor-reader")
	must(t, err)
	folder := t.TempDir()
	must(t, controlplane.WriteKubeconfig(filepath.Join(folder, "kubeconfig"), user))
	findings, status := d.ask(t, folder, "--timeout", "10s")
	if status != 3 {
		t.Errorf("exit status %d, want 3", status)
	}
	for _, f := range findings {
		if f.Result != "unknown" || f.Fix == "" {
			t.Errorf("%+v", f)
		}
	}
	for check, permission := range map[string]string{
		"settings": "get configmaps", "replicas": "list deployments.apps", "leader": "list leases.coordination.k8s.io", "webhooks": "get mutatingwebhookconfigurations",
	} {
		if !hasFinding(findings, check, "", "unknown", permission) {
			t.Errorf("%s does not name %s: %+v", check, permission, findings)
		}
	}
}

func (d *doctor) tryPermission(t *testing.T) {
	api := d.client.RbacV1().RoleBindings("default")
	binding, err := api.Get(t.Context(), "quaymaster-api-servers", meta.GetOptions{})
	must(t, err, api.Delete(t.Context(), binding.Name, meta.DeleteOptions{}))
	restore := func() {
		binding.ResourceVersion, binding.UID = "", ""
		_, err := api.Create(context.WithoutCancel(t.Context()), binding, meta.CreateOptions{})
		must(t, err)
	}
	defer restore()
	eventually(t, func(context.Context) error {
		findings, status := d.ask(t, d.folder)
		if status != 1 || !hasFinding(findings, "permissions", "system:serviceaccount:quaymaster:quaymaster", "problem", "get on endpointslices.discovery.k8s.io kubernetes in the namespace default") {
			return fmt.Errorf("exit status %d: %+v", status, findings)
		}
		return nil
	})
}

// tryKilled kills the gateway, edits a webhook configuration, which no leader restores, and
// adds a broken policy.
func (d *doctor) tryKilled(t *testing.T) {
	d.gateway.Kill()
	d.markReady(t, core.ConditionFalse, d.gateway.Configuration.Listen.Plain)
	ignore := registration.Ignore
	api := d.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	hooks, err := api.Get(t.Context(), "quaymaster", meta.GetOptions{})
	must(t, err)
	for i := range hooks.Webhooks {
		hooks.Webhooks[i].FailurePolicy = &ignore
	}
	_, err = api.Update(t.Context(), hooks, meta.UpdateOptions{})
	must(t, err, d.plane.ApplyYAML(t.Context(), misspelt))
	client, err := dynamic.NewForConfig(d.plane.Admin())
	must(t, err)
	t.Cleanup(func() {
		_ = client.Resource(clusterPolicies).Delete(context.WithoutCancel(t.Context()), "misspelt", meta.DeleteOptions{})
	})
	eventually(t, func(context.Context) error {
		findings, status := d.ask(t, d.folder)
		for _, want := range []finding{
			{Check: "replicas", Subject: "Deployment/quaymaster", Result: "problem", Message: "0 of 1"},
			{Check: "metrics", Subject: d.pod, Result: "unknown", Message: "could not be read"},
			{Check: "leader", Subject: "Lease/quaymaster", Result: "problem", Message: "has not renewed"},
			{Check: "webhooks", Subject: "ValidatingWebhookConfiguration/quaymaster", Result: "problem", Message: "another client"},
			{Check: "policies", Subject: "ClusterPolicy/misspelt", Result: "problem", Message: "imageReferencez"},
			{Check: "trust", Result: "unknown", Message: "metrics"},
		} {
			if status != 1 || !hasFinding(findings, want.Check, want.Subject, want.Result, want.Message) {
				return fmt.Errorf("no %+v: exit status %d: %+v", want, status, findings)
			}
		}
		return nil
	})
	_, out, _ := command(t, d.folder, "doctor")
	t.Logf("doctor:\n%s", out)
	status, out, errs := command(t, d.folder, "status")
	t.Logf("status, exit status %d:\n%s%s", status, out, errs)
	if status != 0 || !strings.Contains(out, "✗ problem  leader") || !strings.Contains(out, "quaymaster changed") {
		t.Errorf("exit status %d: %s%s", status, out, errs)
	}
}
