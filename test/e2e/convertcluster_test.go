package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
)

// ownedByStage denies ConfigMaps whose owner the namespace's stage does not allow; the owners are looked up.
const ownedByStage = `
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: owned-by-stage}
spec:
  background: true
  rules:
    - name: owned
      match: {any: [{resources: {kinds: [ConfigMap], namespaceSelector: {matchLabels: {stage: converting}}}}]}
      context: [{name: owners, configMap: {name: owners, namespace: converting-settings}}]
      preconditions: {all: [{key: "{{ request.object.data.owner || '' }}", operator: NotEquals, value: ''}]}
      validate:
        failureAction: Enforce
        message: "the owner {{ request.object.data.owner }} is not of this stage"
        deny: {conditions: {all: [{key: "{{ request.object.data.owner }}", operator: NotEquals, value: "{{ owners.data.allowed }}"}]}}
`

// TestConvertFromCluster compares a policy with its conversion on the objects of an API server, with its labels and
// look-ups.
func TestConvertFromCluster(t *testing.T) {
	p := plane(t)
	must(t, p.Namespace(t.Context(), "converting", "stage", "converting"), p.Namespace(t.Context(), "converting-settings"),
		p.ApplyYAML(t.Context(), strings.Join([]string{
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: owners, namespace: converting-settings}, data: {allowed: shop}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: right, namespace: converting}, data: {owner: shop}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: wrong, namespace: converting}, data: {owner: heirloom-7}}",
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: elsewhere, namespace: converting-settings}, data: {owner: heirloom-7}}",
		}, "\n---\n")))
	folder := t.TempDir()
	stranger, err := p.User("converting-stranger")
	must(t, err)
	must(t, controlplane.WriteKubeconfig(filepath.Join(folder, "kubeconfig"), p.Admin()),
		controlplane.WriteKubeconfig(filepath.Join(folder, "stranger"), stranger),
		os.WriteFile(filepath.Join(folder, "policy.yaml"), []byte(ownedByStage), 0o600))
	run := func(arguments string) (int, string) {
		binary, err := shared.binary()
		must(t, err)
		c := exec.CommandContext(t.Context(), binary, append([]string{"convert"}, strings.Fields(arguments)...)...)
		c.Dir, c.Env = folder, []string{"HOME=" + folder}
		said, _ := c.CombinedOutput() // the status is compared
		return c.ProcessState.ExitCode(), string(said)
	}
	status, converted := run("--to cel policy.yaml")
	if status != 0 {
		t.Fatalf("exit status %d:\n%s", status, converted)
	}
	lax := strings.ReplaceAll(converted, "variables.owners.data.allowed", "'heir' + 'loom-7'")
	if lax == converted {
		t.Fatalf("no comparison to change:\n%s", converted)
	}
	must(t, os.WriteFile(filepath.Join(folder, "same.yaml"), []byte(converted), 0o600), os.WriteFile(filepath.Join(folder, "lax.yaml"), []byte(lax), 0o600))
	for _, row := range []struct {
		reason, arguments string
		status            int
		has               string
	}{
		{"equal", "--to cel --check --objects 5 --from-cluster --kubeconfig kubeconfig policy.yaml", 0, "no difference"},
		{"the result of a file", "--check --objects 5 --from-cluster --kubeconfig kubeconfig policy.yaml --with same.yaml", 0, "no difference"},
		{"a result that allows an owner of the cluster", "--check --objects 5 --from-cluster --kubeconfig kubeconfig policy.yaml --with lax.yaml", 1, "heirloom-7"},
		{"without a permission", "--to cel --check --objects 5 --from-cluster --kubeconfig stranger policy.yaml", 2, "forbidden"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			if status, said := run(row.arguments); status != row.status || !strings.Contains(said, row.has) {
				t.Errorf("exit status %d, want %d, with %q:\n%s", status, row.status, row.has, said)
			}
		})
	}
}
