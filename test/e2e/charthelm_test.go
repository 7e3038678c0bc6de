package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/e2e/balancer"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// slots are how many pods with endpoints run here at most; each has its addresses. The next
// ones are of a pod that the Service does not know.
const slots = 4

// release is a control plane into which Helm installs the charts, and the pods of the
// installed Deployments, which run here.
type release struct {
	*scene
	helm, kubectl *peers.Program
	kubeconfig    string
	front         *balancer.Balancer // in place of the Service
	backends      []balancer.Backend
	deploy        string // the folder
	dashboard     string // address of a pod's dashboard; empty: the default
}

// released starts a control plane of its own, for a chart is for a whole cluster.
func released(t *testing.T) *release {
	t.Helper()
	return releasedWith(t, controlplane.Options{}, peers.Helm)
}

// releasedWith is released on a control plane with these options, by a version of Helm.
func releasedWith(t *testing.T, o controlplane.Options, helm string) *release {
	t.Helper()
	plane(t) // skips in short runs, and builds the programs
	folder := t.TempDir()
	o.Folder, o.Controllers = folder, true
	c, err := controlplane.Start(t.Context(), o)
	must(t, err)
	t.Cleanup(c.Close)
	checkout, err := peers.Checkout()
	must(t, err)
	r := &release{
		scene: &scene{plane: c, env: openEnv(t, registrytest.Options{}), client: clientset(t, c.Admin()), namespace: "shop"},
		helm:  peers.Get(t, helm), kubectl: peers.Get(t, peers.Kubectl),
		kubeconfig: filepath.Join(folder, "admin.kubeconfig"), deploy: filepath.Join(checkout, "deploy"),
	}
	must(t, controlplane.WriteKubeconfig(r.kubeconfig, c.Admin()), c.Namespace(t.Context(), r.namespace))
	for range slots + 1 {
		endpoints, err := process.FreeAddress(t.Context())
		must(t, err)
		plain, err := process.FreeAddress(t.Context())
		must(t, err)
		r.backends = append(r.backends, balancer.Backend{Address: endpoints, Ready: "http://" + plain + "/readyz"})
	}
	r.front, err = balancer.Listen(t.Context(), r.backends[:slots]...)
	must(t, err)
	t.Cleanup(r.front.Close)
	return r
}

// run runs Helm as a user does.
func (r *release) run(t *testing.T, arguments ...string) string {
	t.Helper()
	return r.helm.Must(t, append([]string{"--kubeconfig", r.kubeconfig, "--namespace", releaseNamespace}, arguments...)...)
}

// chart is the folder of a chart.
func (r *release) chart(name string) string { return filepath.Join(r.deploy, "helm", name) }

// replica is a pod of the release.
type replica struct {
	*process.Process
	ready string // URL
}

// pod runs the container of a Deployment of the release, with the ServiceAccount and the
// configuration that it names. Of the configuration it changes the settings that a process
// outside the cluster needs: the API server's address, its own, and plain HTTP for the
// registry.
func (r *release) pod(t *testing.T, deployment string, slot int) *replica {
	t.Helper()
	d, err := r.client.AppsV1().Deployments(releaseNamespace).Get(t.Context(), deployment, meta.GetOptions{})
	must(t, err)
	spec := d.Spec.Template.Spec
	folder := t.TempDir()
	identity, err := r.plane.ServiceAccount(t.Context(), releaseNamespace, spec.ServiceAccountName)
	must(t, err, controlplane.WriteKubeconfig(filepath.Join(folder, "kubeconfig"), identity))
	file := filepath.Join(folder, "gateway.yaml")
	must(t, os.WriteFile(file, r.configuration(t, spec, folder, slot), 0o600))
	var arguments []string
	for _, argument := range spec.Containers[0].Args {
		arguments = append(arguments, strings.Replace(argument, "/etc/quaymaster/gateway.yaml", file, 1))
	}
	binary, err := shared.binary()
	must(t, err)
	const nobody = "http://127.0.0.1:1"
	started, err := process.Start(process.Options{Path: binary, Folder: folder, Args: arguments, Env: []string{
		"HOME=" + folder, "DOCKER_CONFIG=" + folder, "TMPDIR=" + folder, "HTTP_PROXY=" + nobody, "HTTPS_PROXY=" + nobody, "NO_PROXY=127.0.0.1",
		fmt.Sprint("POD_NAME=", deployment, "-", slot),
	}})
	must(t, err)
	t.Cleanup(func() {
		started.Kill()
		if t.Failed() {
			t.Logf("%s wrote:\n%s", deployment, started.Log())
		}
	})
	p := &replica{Process: started, ready: r.backends[slot].Ready}
	ctx, cancel := context.WithTimeout(t.Context(), awaitTimeout)
	defer cancel()
	must(t, p.Await(ctx, p.isReady))
	return p
}

func (p *replica) isReady(ctx context.Context) error {
	return process.Answers(ctx, http.DefaultClient, p.ready)
}

// may fails if the API server refused a request of a replica, by its log.
func (p *replica) may(t *testing.T) {
	t.Helper()
	for line := range strings.Lines(p.Log()) {
		if strings.Contains(line, "forbidden") {
			t.Errorf("it was refused: %s", line)
		}
	}
}

func (r *release) configuration(t *testing.T, spec core.PodSpec, folder string, slot int) []byte {
	t.Helper()
	source := spec.Volumes[0].ConfigMap.Name
	m, err := r.client.CoreV1().ConfigMaps(releaseNamespace).Get(t.Context(), source, meta.GetOptions{})
	must(t, err)
	var c map[string]any
	must(t, yaml.Unmarshal([]byte(m.Data["gateway.yaml"]), &c))
	set := func(section string, values map[string]any) {
		fields, _ := c[section].(map[string]any)
		if fields == nil {
			fields = map[string]any{}
		}
		for name, value := range values {
			fields[name] = value
		}
		c[section] = fields
	}
	set("kubernetes", map[string]any{"kubeconfig": filepath.Join(folder, "kubeconfig")})
	set("listen", map[string]any{
		"address": r.backends[slot].Address, "drainDelay": "1s",
		"plain": strings.TrimSuffix(strings.TrimPrefix(r.backends[slot].Ready, "http://"), "/readyz"),
	})
	set("webhooks", map[string]any{"url": "https://" + r.front.Address()})
	set("trust", map[string]any{"cacheFolder": folder})
	if r.dashboard != "" {
		set("dashboard", map[string]any{"address": r.dashboard})
	}
	set("registries", map[string]any{"hosts": map[string]any{r.env.Registry.Host(): map[string]any{"plainHTTP": true}}})
	r.mount(t, c, folder)
	text, err := yaml.Marshal(c)
	must(t, err)
	return text
}

// mount puts the policies of ConfigMaps below a folder, and sets it in a configuration.
func (r *release) mount(t *testing.T, configuration map[string]any, folder string) {
	t.Helper()
	policies, _ := configuration["policies"].(map[string]any)
	folders, _ := policies["folders"].([]any)
	for i, from := range folders {
		name := filepath.Base(fmt.Sprint(from))
		m, err := r.client.CoreV1().ConfigMaps(releaseNamespace).Get(t.Context(), name, meta.GetOptions{})
		must(t, err)
		to := filepath.Join(folder, name)
		must(t, os.Mkdir(to, 0o700))
		for file, text := range m.Data {
			must(t, os.WriteFile(filepath.Join(to, file), []byte(text), 0o600))
		}
		folders[i] = to
	}
}
