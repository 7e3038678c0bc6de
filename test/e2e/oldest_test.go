package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/peers"
)

// TestOldest repeats TestChart with the oldest versions that the charts allow: of the API
// server, and of Helm.
func TestOldest(t *testing.T) {
	peers.Long(t)
	r := releasedWith(t, controlplane.Options{Oldest: true}, peers.Helm3)
	r.tryVersions(t)
	must(t, r.plane.Namespace(t.Context(), releaseNamespace))
	r.run(t, "install", "definitions", r.chart("quaymaster-crds"))
	t.Run("the API server takes everything strictly", r.tryStrictly)
	t.Run("and objects of other projects' kinds", r.tryForeignKinds)
	t.Run("both versions of Helm make the same of the charts", r.tryRendering)
	if t.Failed() {
		return
	}
	r.run(t, "install", "quaymaster", r.chart("quaymaster"), "--create-namespace")
	signed, err := r.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := r.env.Unsigned("shop/bare", "1.0")
	policy := env.Policy{Name: "oldest-signed", Namespaces: []string{r.namespace}}
	text, err := r.env.YAML(policy)
	must(t, err, r.plane.ApplyYAML(t.Context(), text))

	first := r.pod(t, "quaymaster", 0)
	r.awaitDenial(t, bare.Name)
	_, err = r.create(t, pod("denied", bare.Name))
	denied(t, "an unsigned image", err, "unsigned")
	made, err := r.create(t, pod("running", signed.Name))
	must(t, err)
	if image := images(made)[0]; image != env.Pinned(signed) {
		t.Errorf("the signed image became %s", image)
	}
	t.Run("a Deployment is checked and not changed", func(t *testing.T) { r.tryDeployment(t, signed.Name, bare.Name) })
	t.Run("an ephemeral container", func(t *testing.T) {
		r.tryEphemeral(t, signed.Name, env.Pinned(signed), bare.Name)
	})
	t.Run("the endpoint of policies", func(t *testing.T) { r.tryEndpointOfPolicies(t, policy) })
	t.Run("reports", func(t *testing.T) { r.tryReported(t, string(made.UID)) })
	t.Run("the gateway's own namespace", r.tryOwnNamespace)
	r.failure(t, admission.Fail)
	second := r.tryUpgrade(t, first, signed.Name, bare.Name)
	first.may(t)
	second.may(t) // afterwards its account has no rights
	r.tryUninstall(t, bare.Name)
	must(t, second.Stop(t.Context()))
}

// tryVersions: the API server is the one of the charts' kubeVersion, and no older one is
// rendered for.
func (r *release) tryVersions(t *testing.T) {
	server, err := r.client.Discovery().ServerVersion()
	must(t, err)
	for _, name := range []string{"quaymaster", "quaymaster-crds", "quaymaster-policies"} {
		content, err := os.ReadFile(filepath.Join(r.chart(name), "Chart.yaml"))
		must(t, err)
		var chart struct{ KubeVersion string }
		must(t, yaml.Unmarshal(content, &chart))
		if want := fmt.Sprintf(">=%s.%s.0-0", server.Major, server.Minor); chart.KubeVersion != want {
			t.Errorf("%s wants Kubernetes %s; what runs here as the oldest is %s", name, chart.KubeVersion, server.GitVersion)
		}
		if said, err := r.helm.Run(t.Context(), "template", "older", r.chart(name), "--kube-version", "1.29.15"); err == nil || !strings.Contains(said, "1.29.15") {
			t.Errorf("%s for an older Kubernetes: %v", name, err)
		}
	}
}

// tryRendering compares the objects that two versions of Helm make of the charts.
func (r *release) tryRendering(t *testing.T) {
	newest := peers.Get(t, peers.Helm)
	objects := func(helm *peers.Program, arguments ...string) map[string]any {
		list, err := controlplane.ParseManifests([]byte(helm.Must(t, append(arguments, "--namespace", releaseNamespace)...)))
		must(t, err)
		named := map[string]any{}
		for _, o := range list {
			named[o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName()] = o.Object
		}
		return named
	}
	for _, arguments := range [][]string{
		{"template", "quaymaster", r.chart("quaymaster")},
		{"template", "quaymaster", r.chart("quaymaster"), "--set=roles.separate=true,certificates.mode=certManager,metrics.serviceMonitor.enabled=true,metrics.prometheusRule.enabled=true"},
		{"template", "definitions", r.chart("quaymaster-crds")},
		{"template", "starter", r.chart("quaymaster-policies")},
	} {
		older, newer := objects(r.helm, arguments...), objects(newest, arguments...)
		if len(older) == 0 || len(older) != len(newer) {
			t.Errorf("%v: %d objects by Helm 3, %d by Helm 4", arguments, len(older), len(newer))
		}
		for name := range older {
			if !reflect.DeepEqual(older[name], newer[name]) {
				t.Errorf("%v: %s: Helm 3 gives\n%v\nand Helm 4\n%v", arguments, name, older[name], newer[name])
			}
		}
	}
}

// tryEndpointOfPolicies: a policy that cannot be compiled is refused when it is written, and
// the same without the mistake is not.
func (r *release) tryEndpointOfPolicies(t *testing.T, policy env.Policy) {
	policy.Name, policy.Namespaces = "oldest-broken", []string{"nobodys"}
	whole, err := r.env.YAML(policy)
	must(t, err)
	broken := strings.Replace(whole, "BEGIN PUBLIC KEY", "BEGIN NOTHING", 1)
	if broken == whole {
		t.Fatal("the policy has no key to break")
	}
	if err := r.plane.ApplyYAML(t.Context(), broken); err == nil || !strings.Contains(err.Error(), "policies.quaymaster.dev") {
		t.Errorf("a broken policy: %v", err)
	}
	must(t, r.plane.ApplyYAML(t.Context(), whole))
	client, err := dynamic.NewForConfig(r.plane.Admin())
	must(t, err, client.Resource(clusterPolicies).Delete(t.Context(), policy.Name, meta.DeleteOptions{}))
}

// tryOwnNamespace: the Deployment has its pods made in it, with volumes from before image
// volumes, and a pod of another image is refused.
func (r *release) tryOwnNamespace(t *testing.T) {
	eventually(t, func(ctx context.Context) error {
		list, err := r.client.CoreV1().Pods(releaseNamespace).List(ctx, meta.ListOptions{})
		if err == nil && len(list.Items) == 0 {
			err = errNotYet
		}
		return err
	})
	if err := r.own(t.Context(), pod("foreign", "a.example/foreign:1")); err == nil || !strings.Contains(err.Error(), "ownNamespace.images") {
		t.Errorf("a foreign image: %v", err)
	}
}

// tryReported waits for the report of a pod.
func (r *release) tryReported(t *testing.T, uid string) {
	reports, err := dynamic.NewForConfig(r.plane.Admin())
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		all, err := reportsIn(ctx, reports, policyReports, r.namespace)
		if err == nil {
			_, err = owned(all, uid)
		}
		return err
	})
}
