package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/e2e/env"
)

// TestChart installs the charts into a real cluster as users do, runs the gateway with
// the rights and the configuration that came of it, and takes all of it away again.
func TestChart(t *testing.T) {
	r := released(t)
	t.Run("definitions come where there are none", r.tryDefinitions)
	must(t, r.plane.Namespace(t.Context(), releaseNamespace))
	t.Run("the API server takes everything strictly", r.tryStrictly)
	t.Run("and objects of other projects' kinds", r.tryForeignKinds)
	if t.Failed() {
		return
	}
	r.run(t, "install", "quaymaster", r.chart("quaymaster"), "--create-namespace")
	signed, err := r.env.Signed("shop/web", "1.0")
	must(t, err)
	bare := r.env.Unsigned("shop/bare", "1.0")
	text, err := r.env.YAML(env.Policy{Name: "chart-signed", Namespaces: []string{r.namespace}})
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
	r.failure(t, admission.Fail)
	if said, err := r.helm.Run(t.Context(), "--kubeconfig", r.kubeconfig, "--namespace", "other", "install", "second", r.chart("quaymaster"), "--create-namespace", "--set", "crds.install=false"); err == nil || !strings.Contains(said, "a cluster has one gateway") {
		t.Errorf("a second release: %v", err)
	}
	second := r.tryUpgrade(t, first, signed.Name, bare.Name)
	first.may(t)
	r.tryRoles(t, second, signed.Name, bare.Name)
}

// awaitDenial waits until an unsigned image is denied.
func (r *release) awaitDenial(t *testing.T, image string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		_, err := r.dryRun(ctx, pod("probe", image))
		if err == nil || !strings.Contains(err.Error(), "[unsigned]") {
			return fmt.Errorf("not denied yet: %w", errors.Join(err, errAdmitted))
		}
		return nil
	})
}

// failure waits until the webhooks have a failure policy.
func (r *release) failure(t *testing.T, want admission.FailurePolicyType) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		c, err := r.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, "quaymaster", meta.GetOptions{})
		if err != nil {
			return err
		}
		for _, w := range c.Webhooks {
			// Those for policies and for probes are always ignored while the gateway is away.
			if w.Name == "policies.quaymaster.dev" || w.Name == "probe.quaymaster.dev" {
				continue
			}
			if *w.FailurePolicy != want {
				return fmt.Errorf("%s: %s, want %s", w.Name, *w.FailurePolicy, want)
			}
		}
		return nil
	})
}

// tryStrictly has the API server validate all that the charts render, and install.yaml, and
// refuse a copy with an unknown field.
func (r *release) tryStrictly(t *testing.T) {
	render := func(arguments ...string) string {
		return r.run(t, append([]string{"template", "quaymaster", r.chart("quaymaster")}, arguments...)...)
	}
	install, err := os.ReadFile(filepath.Join(r.deploy, "install.yaml"))
	must(t, err)
	builtIn := []string{
		"--set=roles.separate=true,replicas=5,failurePolicy=Ignore,policies.configMaps={company},policies.selector=a=b,certificates.mode=secret,certificates.secretName=q",
		"--set=metrics.service.type=LoadBalancer,metrics.grafanaDashboard.enabled=true,dashboard.expose=true,dashboard.ingress.enabled=true,dashboard.ingress.host=q.example,dashboard.ingress.tlsSecretName=q",
		"--set=rbac.users.aggregatePolicies=true,rbac.users.aggregateExceptions=true,rbac.users.aggregateOverrides=true,pullSecrets.namespaces={default}",
		"--set-json=networkPolicy.endpointsFrom=[{\"ipBlock\":{\"cidr\":\"192.0.2.0/24\"}}],tolerations=[{\"operator\":\"Exists\"}]",
	}
	texts := map[string]string{
		"install.yaml":                 string(install),
		"defaults":                     render(),
		"one replica":                  render("--set=replicas=1"),
		"all that needs no other kind": render(builtIn...),
		"metrics at nodes":             render("--set=metrics.service.type=NodePort,metrics.service.nodePort=30800"),
		"policies": r.run(t, "template", "starter", r.chart("quaymaster-policies"), "--set=allowedRegistries.registries={a.example},signedImages.registries={a.example}",
			"--set=signedImages.identities[0].issuer=i,signedImages.identities[0].subject=s,podSecurity.level=restricted,action=Enforce"),
	}
	for reason, text := range texts {
		if said, err := r.strictly(t, text); err != nil {
			t.Errorf("%s: %v\n%s", reason, err, said)
		}
	}
	if said, err := r.strictly(t, strings.Replace(string(install), "enableServiceLinks:", "enableServiceLink:", 1)); err == nil || !strings.Contains(said, "enableServiceLink") {
		t.Errorf("an unknown field: %v", err)
	}
}

func (r *release) strictly(t *testing.T, text string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	must(t, os.WriteFile(file, []byte(text), 0o600))
	return r.kubectl.Run(t.Context(), "--kubeconfig", r.kubeconfig, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", file)
}

// tryUpgrade changes the configuration, and replaces the pod as a Deployment does, while
// users go on; then it takes the change back.
func (r *release) tryUpgrade(t *testing.T, first *replica, signed, bare string) *replica {
	crowd := r.gather(t, signed, bare)
	crowd.more(t)
	r.run(t, "upgrade", "quaymaster", r.chart("quaymaster"), "--reset-then-reuse-values", "--set=failurePolicy=Ignore")
	crowd.more(t)
	next := r.pod(t, "quaymaster", 1)
	must(t, first.Stop(t.Context()))
	r.failure(t, admission.Ignore)
	crowd.more(t)
	r.run(t, "rollback", "quaymaster")
	last := r.pod(t, "quaymaster", 2)
	must(t, next.Stop(t.Context()))
	r.failure(t, admission.Fail)
	crowd.more(t)
	crowd.leave()
	crowd.check(t, 0)
	next.may(t)
	return last
}

// tryRoles upgrades to two Deployments, each with an account and rights of its own, and
// uninstalls them.
func (r *release) tryRoles(t *testing.T, before *replica, signed, bare string) {
	before.may(t) // afterwards its account has a part of the rights alone
	r.run(t, "upgrade", "quaymaster", r.chart("quaymaster"), "--reset-then-reuse-values", "--set=roles.separate=true")
	endpoints, controller := r.pod(t, "quaymaster", 3), r.pod(t, "quaymaster-controller", slots)
	must(t, before.Stop(t.Context()))
	made, err := r.create(t, pod("reported", signed))
	must(t, err)
	reports, err := dynamic.NewForConfig(r.plane.Admin())
	must(t, err)
	eventually(t, func(ctx context.Context) error {
		all, err := reportsIn(ctx, reports, policyReports, r.namespace)
		if err == nil {
			_, err = owned(all, string(made.UID))
		}
		return err
	})
	endpoints.may(t)
	controller.may(t)
	r.tryUninstall(t, bare)
	must(t, endpoints.Stop(t.Context()), controller.Stop(t.Context()))
}

// tryUninstall takes the release away while its pods still run, as they do while they
// drain: the webhook configurations go and do not come back, and pods can be created.
func (r *release) tryUninstall(t *testing.T, bare string) {
	r.run(t, "uninstall", "quaymaster")
	registered := r.client.AdmissionregistrationV1()
	absent := func(ctx context.Context) error {
		_, validating := registered.ValidatingWebhookConfigurations().Get(ctx, "quaymaster", meta.GetOptions{})
		_, mutating := registered.MutatingWebhookConfigurations().Get(ctx, "quaymaster", meta.GetOptions{})
		if !apierrors.IsNotFound(validating) || !apierrors.IsNotFound(mutating) {
			return fmt.Errorf("they are still there: %w", errors.Join(validating, mutating, errNotYet))
		}
		return nil
	}
	eventually(t, absent)
	// A change of policies is what has the leader write them.
	text, err := r.env.YAML(env.Policy{Name: "chart-late", Namespaces: []string{"late"}})
	must(t, err, r.plane.ApplyYAML(t.Context(), text))
	for i := range 20 {
		if _, err := r.create(t, pod(fmt.Sprint("after-", i), bare)); err != nil {
			t.Fatalf("pod %d after the release is gone: %v", i, err)
		}
	}
	must(t, absent(t.Context()))
	client, err := dynamic.NewForConfig(r.plane.Admin())
	must(t, err)
	if _, err := client.Resource(definitions).Get(t.Context(), "registrymirrors.quaymaster.dev", meta.GetOptions{}); err != nil {
		t.Errorf("the definitions are kept unless the values set otherwise: %v", err)
	}
	// And it can be installed again, over the definitions that were kept.
	r.run(t, "install", "quaymaster", r.chart("quaymaster"))
	r.run(t, "uninstall", "quaymaster")
}

// foreign is a definition of another owner, older than ours.
const foreign = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterimagepolicies.policy.sigstore.dev}
spec:
  group: policy.sigstore.dev
  scope: Cluster
  names: {plural: clusterimagepolicies, singular: clusterimagepolicy, kind: ClusterImagePolicy, listKind: ClusterImagePolicyList}
  versions:
    - name: v1alpha1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {mode: {type: string}}}}}}
`

// tryDefinitions: those of others are left alone, and ours are kept and never taken back.
func (r *release) tryDefinitions(t *testing.T) {
	must(t, r.plane.ApplyYAML(t.Context(), foreign))
	client, err := dynamic.NewForConfig(r.plane.Admin())
	must(t, err)
	get := func(name string) *unstructured.Unstructured {
		t.Helper()
		d, err := client.Resource(definitions).Get(t.Context(), name, meta.GetOptions{})
		must(t, err)
		return d
	}
	const theirs, ours = "clusterimagepolicies.policy.sigstore.dev", "clusterpolicies.kyverno.io"
	before := get(theirs)
	untouched := func(when string) {
		t.Helper()
		if now := get(theirs); now.GetGeneration() != before.GetGeneration() || len(now.GetAnnotations()) > 0 || len(now.GetLabels()) > 0 {
			t.Errorf("%s: a foreign definition was changed: %v", when, now.GetAnnotations())
		}
	}
	chart := r.chart("quaymaster-crds")
	said := r.run(t, "install", "definitions", chart, "--create-namespace")
	untouched("after the installation")
	if !strings.Contains(said, theirs) {
		t.Errorf("it is not reported: %s", said)
	}
	for _, name := range []string{ours, "trustroots.policy.sigstore.dev", "validatingpolicies.policies.kyverno.io", "policyreports.wgpolicyk8s.io"} {
		if get(name).GetAnnotations()["meta.helm.sh/release-name"] != "definitions" {
			t.Errorf("%s is not the release's", name)
		}
	}
	// One of ours that differs is brought up to date; one of a later version is left.
	mark := func(name, version string) {
		t.Helper()
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"quaymaster.dev/definitions-version":%q}},"spec":{"names":{"shortNames":["marked"]}}}`, version)
		_, err := client.Resource(definitions).Patch(t.Context(), name, types.MergePatchType, []byte(patch), meta.PatchOptions{})
		must(t, err)
	}
	marked := func(name string) bool {
		short, _, _ := unstructured.NestedStringSlice(get(name).Object, "spec", "names", "shortNames")
		return len(short) == 1 && short[0] == "marked"
	}
	mark(ours, "0.0.1")
	later := map[string]string{"policies.kyverno.io": "99.0.0", "globalcontextentries.kyverno.io": "99.0.0-rc.1"}
	for name, version := range later {
		mark(name, version)
	}
	r.run(t, "upgrade", "definitions", chart, "--force-conflicts")
	untouched("after an upgrade")
	if marked(ours) {
		t.Error("an older one is left as it was")
	}
	for name, version := range later {
		if !marked(name) {
			t.Errorf("%s of %s was taken back", name, version)
		}
	}
	r.run(t, "uninstall", "definitions")
	untouched("after it was uninstalled")
	get(ours)
	get("policies.kyverno.io")
	r.run(t, "install", "definitions", chart)
	untouched("after it was installed again")
}
