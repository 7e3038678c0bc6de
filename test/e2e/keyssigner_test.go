package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/test/docs"
	"github.com/quaymaster/quaymaster/test/e2e/controlplane"
	"github.com/quaymaster/quaymaster/test/e2e/process"
	"github.com/quaymaster/quaymaster/test/peers"
)

// signerTime is how long the question may take for a cluster of 10,000 images, and for each
// smaller one.
const signerTime = 10 * time.Second

// TestSignerOfManyImages asks the reports of a cluster what runs on a key: with
// QUAYMASTER_TEST_REPORTS=full of 10,000 images, each of a workload of its own, else of 500.
// Every tenth is of the key that is asked for.
func TestSignerOfManyImages(t *testing.T) {
	count := 500
	if os.Getenv("QUAYMASTER_TEST_REPORTS") == "full" {
		count = 10_000
	}
	client := define(t, plane(t))
	s := unguarded(t, "keys-signer")
	asked, another := fingerprint(t, s.env.Signer.PublicPEM())[:16], fingerprint(t, s.env.Stranger.PublicPEM())[:16]
	s.writeSignerReports(t, client, count, asked, another)
	checkout, err := peers.Checkout()
	must(t, err)
	site, err := docs.Load(checkout)
	must(t, err)
	commands, err := site.Pages["docs/keys.md"].CommandsOf(t.Name())
	must(t, err)
	if len(commands) != 1 {
		t.Fatalf("the page has %d commands for this", len(commands))
	}
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	must(t, controlplane.WriteKubeconfig(kubeconfig, s.plane.Admin()))
	write(t, folder, "cosign.pub", string(s.env.Signer.PublicPEM()), 0o600)
	binary, err := shared.binary()
	must(t, err)
	arguments := strings.Fields(commands[0].Text)[1:]
	began := time.Now()
	command := exec.CommandContext(t.Context(), binary, arguments...)
	command.Dir, command.Env = folder, []string{"HOME=" + folder, "KUBECONFIG=" + kubeconfig}
	said, err := command.CombinedOutput()
	took := time.Since(began)
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	t.Logf("%d reports in %s: %s", count, took.Round(time.Millisecond), lines[len(lines)-1])
	if want := fmt.Sprintf("%d images, %d workloads", count/10, count/10); err != nil || !strings.Contains(string(said), want) {
		t.Errorf("%v, want %q; it prints\n%s ... %s", err, want, lines[0], lines[len(lines)-1])
	}
	if took > signerTime {
		t.Errorf("it took %s, want at most %s", took, signerTime)
	}
}

// writeSignerReports writes so many reports, of which every tenth names one key, and the
// others another.
func (s *scene) writeSignerReports(t *testing.T, client dynamic.Interface, count int, asked, another string) {
	t.Helper()
	const writers = 16
	t.Cleanup(func() { // so many outlive the time that the definition has to go
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*awaitTimeout)
		defer cancel()
		must(t, process.Eventually(ctx, func(ctx context.Context) error {
			return client.Resource(policyReports).Namespace(s.namespace).DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{})
		}))
	})
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for i := w; i < count; i += writers {
				key := another
				if i%10 == 0 {
					key = asked
				}
				if _, err := client.Resource(policyReports).Namespace(s.namespace).Create(t.Context(), signerReport(i, key), meta.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
}

// signerReport is the report of a workload with an image that a key has signed.
func signerReport(i int, key string) *unstructured.Unstructured {
	digest, name := fmt.Sprintf("sha256:%064x", i), fmt.Sprint("web-", i)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport",
		"metadata": map[string]any{"name": "quaymaster-" + name, "labels": map[string]any{"app.kubernetes.io/managed-by": "quaymaster"}},
		"scope":    map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "keys-signer", "name": name, "uid": name},
		"results": []any{map[string]any{
			"source": "quaymaster", "policy": "signed", "rule": "r", "result": "pass", "properties": map[string]any{
				"container": "c", "image": "registry.example/" + name + ":1", "digest": digest, "signer": "key " + key, "evidence": "registry.example/" + name + "@" + digest,
			},
		}},
	}}
}
