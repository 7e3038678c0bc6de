package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/env"
	"github.com/quaymaster/quaymaster/test/e2e/gateway"
)

// TestReportsAreRecalled: results that a killed gateway had not written yet are restored into
// reports from the decision log, without a scan, and then count for scan --signer.
func TestReportsAreRecalled(t *testing.T) {
	client := define(t, plane(t))
	s := unguarded(t, "recalled")
	binary, err := shared.binary()
	must(t, err)
	logs := filepath.Join(t.TempDir(), "log")
	begin := func(t *testing.T, name string) *gateway.Gateway {
		t.Helper()
		s.endLead(t)
		folder := t.TempDir()
		c := gateway.Configuration{}
		c.Kubernetes.Kubeconfig = filepath.Join(folder, "kubeconfig")
		must(t, controlplane.WriteKubeconfig(c.Kubernetes.Kubeconfig, s.identity))
		c.PlainHTTP(s.env.Registry.Host())
		c.DecisionLog.Folder, c.DecisionLog.Fsync, c.Scan.Disabled = logs, "always", true
		g, err := gateway.Start(t.Context(), gateway.Options{Program: binary, Folder: folder, Configuration: c, Env: []string{"POD_NAME=" + name}})
		must(t, err)
		t.Cleanup(func() {
			g.Kill()
			if t.Failed() {
				t.Logf("the gateway wrote:\n%s", g.Log())
			}
		})
		must(t, g.Ready(t.Context()))
		return g
	}
	s.gateway = s.start(t, gateway.Configuration{}) // its own clean-up takes the webhooks away in the end
	must(t, s.gateway.Ready(t.Context()))
	s.gateway.Kill()
	s.gateway = begin(t, "quaymaster-0")
	s.apply(t, env.Policy{Name: "recalled", Namespaces: []string{"recalled"}})
	signed, err := s.env.Signed("shop/recalled", "1.0")
	must(t, err)
	for _, row := range []struct{ reason, pod, next string }{
		{"its own log", "first", "quaymaster-0"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			made, err := s.create(t, pod(row.pod, signed.Name))
			must(t, err)
			s.gateway.Kill() // reports are written some seconds later
			all, err := reportsIn(t.Context(), client, policyReports, "recalled")
			must(t, err)
			if _, err := owned(all, string(made.UID)); err == nil {
				t.Fatal("the report was written before the gateway was killed")
			}
			s.gateway = begin(t, row.next)
			eventually(t, func(ctx context.Context) error {
				all, err := reportsIn(ctx, client, policyReports, "recalled")
				if err != nil {
					return err
				}
				r, err := owned(all, string(made.UID))
				if err != nil {
					return err
				}
				if len(r.Results) != 1 || r.Results[0].Result != "pass" || r.Results[0].Properties["digest"] == "" || !strings.HasPrefix(r.Results[0].Properties["signer"], "key ") {
					return fmt.Errorf("the report has %+v", r.Results)
				}
				return nil
			})
		})
	}
	t.Run("what stands on the key, by the reports", func(t *testing.T) { s.standsByReports(t, binary) })
}

// standsByReports asks the reports by the command line.
func (s *scene) standsByReports(t *testing.T, binary string) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, controlplane.WriteKubeconfig(kubeconfig, s.plane.Admin()))
	key := filepath.Join(t.TempDir(), "cosign.pub")
	must(t, os.WriteFile(key, s.env.Signer.PublicPEM(), 0o600))
	for signer, want := range map[string][]string{
		key:               {"recalled Pod/first", "1 image, 1 workload and 1 pod"},
		"policy:Policy/x": {"0 images, 0 workloads"},
	} {
		out, err := exec.CommandContext(t.Context(), binary, "scan", "--reports", "--kubeconfig", kubeconfig, "--signer", signer).CombinedOutput()
		for _, each := range want {
			if err != nil || !strings.Contains(string(out), each) {
				t.Errorf("%v, want %s in\n%s", err, each, out)
			}
		}
	}
}
