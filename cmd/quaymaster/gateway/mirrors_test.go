package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/gateway/endpoints"
	"github.com/quaymaster/quaymaster/gateway/globals"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// mirrorText is a mirror of a registry.
func mirrorText(name, source, target, more string) string {
	return fmt.Sprintf("apiVersion: quaymaster.dev/v1alpha1\nkind: RegistryMirror\nmetadata: {name: %s}\nspec: {mirrors: [{sources: [%q], targets: [{location: %q}]%s}]}\n", name, source, target, more)
}

// TestStandaloneRedirects: two registries, and a file that maps one to the other.
func TestStandaloneRedirects(t *testing.T) {
	d := newEnv(t)
	server := registrytest.Start(registrytest.Options{})
	t.Cleanup(server.Close)
	copied := gatetest.New(server, d.Sigstore).Build("signed", "v1", "1")
	if copied.Manifest.Digest != d.signed.Manifest.Digest {
		t.Fatal("the copy is another image")
	}
	elsewhere := d.Build("elsewhere", "v1", "3")
	d.write(t, "policies/policy.yaml", strings.ReplaceAll(policyText("signed", "Pod", d.key), `"*"`, `"`+d.Registry.Host()+`/signed*", "`+d.Registry.Host()+`/unsigned*"`))
	d.write(t, "mirrors/near.yaml", mirrorText("near", d.Registry.Host(), server.Host(), ", when: Present"))
	r := d.start(t, "mirrors: {files: ["+filepath.Join(d.folder, "mirrors")+"]}\n")

	there := copied.Name + "@" + copied.Manifest.Digest
	redirected := func(allowed bool, patch string) error {
		got, err := r.ask("/mutate", "Pod", "shop", d.signed.Name)
		if err != nil || got.Allowed != allowed || !strings.Contains(string(got.Patch), patch) {
			return fmt.Errorf("allowed %t, patch %s, %s, %w", got.Allowed, got.Patch, got.Status.Message, err)
		}
		return nil
	}
	if err := redirected(true, there); err != nil {
		t.Errorf("a signed image that the mirror has: %v", err)
	}
	if got := r.mustAsk(t, "/validate", "Pod", "shop", there); !got.Allowed {
		t.Errorf("the copy, as it is stored: %s", got.Status.Message)
	}
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", d.unsigned.Name); got.Allowed {
		t.Error("an unsigned image is admitted by way of a mirror")
	}
	if got := r.mustAsk(t, "/mutate", "Pod", "shop", elsewhere.Name); !got.Allowed || strings.Contains(string(got.Patch), server.Host()) {
		t.Errorf("an image that the mirror lacks: allowed %t, patch %s, %s", got.Allowed, got.Patch, got.Status.Message)
	}
	_, page := get(t, "http://"+r.plain+"/metrics")
	for _, line := range []string{
		`quaymaster_mirrors{state="active"} 1`, `quaymaster_mirror_target_resting{registry="` + server.Host() + `"} 0`,
		`quaymaster_redirects_total{mirror="RegistryMirror/near",outcome="chosen"}`, `quaymaster_redirects_total{mirror="RegistryMirror/near",outcome="not-mirrored"} 1`,
	} {
		if !strings.Contains(page, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}

	d.write(t, "mirrors/near.yaml", strings.ReplaceAll(mirrorText("near", d.Registry.Host(), server.Host(), ", when: Present"), "targets", "target"))
	testkit.Eventually(t, func() error {
		if _, page := get(t, "http://"+r.plain+"/metrics"); !strings.Contains(page, `quaymaster_mirrors{state="outdated"} 1`) {
			return errors.New("the metrics do not report the broken file")
		}
		return nil
	})
	if err := redirected(true, there); err != nil {
		t.Errorf("with a file that is broken the version before it does not hold: %v", err)
	}
	if err := os.Remove(filepath.Join(d.folder, "mirrors/near.yaml")); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error { return redirected(true, d.signed.Name+"@") })
}

func TestMirrorsThatCannotBeReadStopTheStart(t *testing.T) {
	d := newEnv(t)
	c, err := config.Parse([]byte(head + "standalone: true\npolicies: {folders: [" + d.folder + "/policies]}\nmirrors: {files: [" + d.folder + "/nothing]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newAssembly(t.Context(), c, Options{Log: &testkit.Log{}, Version: "test"}); err == nil || !strings.Contains(err.Error(), "mirrors.files") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// a map, or an error

// policyCheck refuses all policies.
type policyCheck struct{}

func (policyCheck) Check([]byte) error { return errors.New("a policy") }

func (policyCheck) Warnings([]byte) []string { return []string{"of a policy"} }

const (
	oneEntry    = `{"mirrors":[{"sources":["docker.io"],"targets":[{"location":"one.example/hub"}]}]}`
	brokenEntry = `{"mirrors":[{"sources":["docker.io"],"target":[{"location":"one.example/hub"}]}]}`
	globalCall  = `{"apiCall":{"urlPath":"/api/v1/pods","refreshInterval":"5m","retryLimit":2}}`
)

func TestChecker(t *testing.T) {
	entries, err := globals.New(nil, globalcontext.NewStore(time.Now), nil, metrics.New(metrics.Build{}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	entry := func(spec string) string {
		return `{"apiVersion":"kyverno.io/v2beta1","kind":"GlobalContextEntry","metadata":{"name":"list"},"spec":` + spec + `}`
	}
	own := `{"apiVersion":"quaymaster.dev/v1alpha1","kind":"RegistryMirror","metadata":{"name":"hub"},"spec":%s}`
	for _, c := range []struct{ reason, text, want string }{
		{"a mirror", fmt.Sprintf(own, oneEntry), ""},
		{"a broken mirror, by its path", fmt.Sprintf(own, brokenEntry), "spec.mirrors[0].target"},
		{"an unknown version", strings.ReplaceAll(fmt.Sprintf(own, oneEntry), "v1alpha1", "v9"), "kind"},
		{"a global context entry", entry(globalCall), ""},
		{"a broken one, by its path", entry(`{"apiCall":{"urlPath":"/api/v1/pods","refreshInterval":"soon"}}`), "spec.apiCall.refreshInterval"},
		{"one of two things", entry(`{"apiCall":{"urlPath":"/api/v1/pods"},"kubernetesResource":{"version":"v1","resource":"pods"}}`), "want either kubernetesResource or apiCall"},
		{"one of an unknown version", strings.ReplaceAll(entry(globalCall), "v2beta1", "v9"), "no GlobalContextEntry of kyverno.io/v2"},
		{"a policy", `{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy"}`, "a policy"},
		{"what cannot be read is the policies' matter", `{`, "a policy"},
	} {
		err := endpoints.Checker{Policies: policyCheck{}, Entries: entries}.Check([]byte(c.text))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
}

func TestCopiesAreTheCurrentMirrors(t *testing.T) {
	written, err := image.Parse("docker.io/library/nginx:1")
	if err != nil {
		t.Fatal(err)
	}
	copied, err := image.Parse("one.example/hub/library/nginx:1")
	if err != nil {
		t.Fatal(err)
	}
	state := &gate.Current{}
	if (endpoints.Copies{State: state}).IsCopy(copied, written) {
		t.Error("a copy before anything is known")
	}
	none, err := set.New()
	if err != nil {
		t.Fatal(err)
	}
	state.Replace(gate.Snapshot{Policies: none, Prover: noProver{}})
	mapping, err := mirror.Parse([]byte(fmt.Sprintf(`{"apiVersion":"quaymaster.dev/v1alpha1","kind":"RegistryMirror","metadata":{"name":"hub"},"spec":%s}`, oneEntry)), "hub")
	if err != nil {
		t.Fatal(err)
	}
	set, err := mirror.NewSet(mapping)
	if err != nil {
		t.Fatal(err)
	}
	state.ReplaceMirrors(set)
	if !(endpoints.Copies{State: state}).IsCopy(copied, written) || (endpoints.Copies{State: state}).IsCopy(written, copied) {
		t.Error("the mirrors that are current are not asked")
	}
}

// noProver is a prover that verifies nothing.
type noProver struct{ gate.Prover }
