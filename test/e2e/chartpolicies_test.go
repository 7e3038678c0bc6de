package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/test/peers"
)

// TestStarterPolicies: the policies that the chart renders enforce its values. Each pod that
// passes has a twin with one thing wrong, and under Audit all of them run.
func TestStarterPolicies(t *testing.T) {
	if testing.Short() {
		t.Skip("builds Helm and the program")
	}
	h := openEnv(t, registrytest.Options{})
	host := h.Registry.Host()
	signed, err := h.Signed("shop/web", "1.0")
	must(t, err)
	foreign, err := h.SignedBy(h.Stranger, "shop/foreign", "1.0")
	must(t, err)
	bare := h.Unsigned("shop/bare", "1.0")
	keys, err := yaml.Marshal(map[string]any{"signedImages": map[string]any{"registries": []string{host + "/shop"}, "keys": []string{string(h.Signer.PublicPEM())}}})
	must(t, err)

	each, err := yaml.Marshal(map[string]any{"signedImages": map[string]any{"registries": []string{host + "/shop/web", host + "/shop/bare"}, "keys": []string{string(h.Signer.PublicPEM())}}})
	must(t, err)

	with := func(image string, change func(*core.PodSpec)) *core.Pod {
		p := pod("p", image)
		if change != nil {
			change(&p.Spec)
		}
		return p
	}
	yes, no := true, false
	restricted := func(s *core.PodSpec) {
		s.SecurityContext = &core.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault}}
		s.Containers[0].SecurityContext = &core.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}}}
	}
	volume := func(reference string) func(*core.PodSpec) {
		return func(s *core.PodSpec) {
			s.Volumes = []core.Volume{{Name: "v", VolumeSource: core.VolumeSource{Image: &core.ImageVolumeSource{Reference: reference}}}}
		}
	}
	const alone = "podSecurity: {enabled: false}\n"
	one := alone + "allowedRegistries: {registries: [" + host + "/shop/bare]}\n"
	allowed := alone + "allowedRegistries: {registries: [" + host + "/shop, docker.io/official]}\n"
	for _, row := range []struct {
		reason, values, policy string
		good, bad              *core.Pod
	}{
		{"an unsigned image", alone + string(keys), "signed-images", with(signed.Name, nil), with(bare.Name, nil)},
		{"an image signed by another key", alone + string(keys), "signed-images", with(signed.Name, nil), with(foreign.Name, nil)},
		{"an unsigned image of a repository that is named itself", alone + string(each), "signed-images", with(signed.Name, nil), with(bare.Name, nil)},
		{"an unsigned init container", alone + string(keys), "signed-images", with(signed.Name, nil), with(signed.Name, func(s *core.PodSpec) {
			s.InitContainers = []core.Container{{Name: "i", Image: bare.Name}}
		})},
		{"an unsigned ephemeral container", alone + string(keys), "signed-images", with(signed.Name, nil), with(signed.Name, func(s *core.PodSpec) {
			s.EphemeralContainers = []core.EphemeralContainer{{EphemeralContainerCommon: core.EphemeralContainerCommon{Name: "e", Image: bare.Name}}}
		})},
		{"an unsigned image volume", alone + string(keys), "signed-images", with(signed.Name, volume(signed.Name)), with(signed.Name, volume(bare.Name))},
		{"an unsigned image by digest", alone + string(keys), "signed-images", with(signed.Name, nil), with(bare.ByDigest(), nil)},
		{"a repository that is named itself and one that begins like it", one, "allowed-registries", with(bare.Name, nil), with(host+"/shop/barely:1.0", nil)},
		{"an image volume without a tag", one, "allowed-registries", with(bare.Name, volume(host+"/shop/bare")), with(bare.Name, volume(host+"/shop/barely"))},
		{"baseline and the network of the node", "", "pod-security", with(bare.Name, nil), with(bare.Name, func(s *core.PodSpec) { s.HostNetwork = true })},
		{"restricted and a pod that asks for no less", "podSecurity: {level: restricted}", "pod-security", with(bare.Name, restricted), with(bare.Name, nil)},
		{"another registry", allowed, "allowed-registries", with(bare.Name, nil), with("elsewhere.example/web:1", nil)},
		{"another part of the registry", allowed, "allowed-registries", with(bare.Name, nil), with(host+"/other/web:1", nil)},
		{"a name without a registry", allowed, "allowed-registries", with("official/nginx:1.27", nil), with("nginx:1.27", nil)},
		{"a second container", allowed, "allowed-registries", with(bare.Name, nil), pod("p", bare.Name, "elsewhere.example/web:1")},
		{"an init container", allowed, "allowed-registries", with(bare.Name, nil), with(bare.Name, func(s *core.PodSpec) {
			s.InitContainers = []core.Container{{Name: "i", Image: "elsewhere.example/web:1"}}
		})},
		{"an image volume", allowed, "allowed-registries", with(bare.Name, volume(host+"/shop/data:1")), with(bare.Name, volume("elsewhere.example/data:1"))},
	} {
		t.Run(row.reason, func(t *testing.T) {
			for _, action := range []string{"Enforce", "Audit"} {
				folder := starter(t, row.values, action)
				if status, out, errs := judged(t, folder, row.good); status != 0 || strings.Contains(out, "fail  ") {
					t.Errorf("%s: what passes: exit status %d\n%s%s", action, status, out, errs)
				}
				status, out, errs := judged(t, folder, row.bad)
				if want := map[string]int{"Enforce": 1, "Audit": 0}[action]; status != want || !strings.Contains(out, "fail  ClusterPolicy/starter-"+row.policy+"/") {
					t.Errorf("%s: what fails: exit status %d, want %d and the word of %s\n%s%s", action, status, want, row.policy, out, errs)
				}
			}
		})
	}
}

// starter renders the chart of policies into a folder.
func starter(t *testing.T, values, action string) string {
	t.Helper()
	checkout, err := peers.Checkout()
	must(t, err)
	folder, err := os.MkdirTemp(t.TempDir(), "")
	must(t, err)
	file := filepath.Join(folder, "values")
	must(t, os.WriteFile(file, []byte(values), 0o600))
	text := peers.Get(t, peers.Helm).Must(t, "template", "starter", filepath.Join(checkout, "deploy", "helm", "quaymaster-policies"), "--values", file, "--set=action="+action)
	must(t, os.WriteFile(filepath.Join(folder, "policies.yaml"), []byte(text), 0o600))
	return folder
}

// judged asks the program about a pod.
func judged(t *testing.T, folder string, p *core.Pod) (status int, out, errs string) {
	t.Helper()
	file := filepath.Join(folder, fmt.Sprintf("%p.yaml", p))
	must(t, os.WriteFile(file, manifest(t, p), 0o600))
	return command(t, folder, "apply", "policies.yaml", "-r", file)
}
