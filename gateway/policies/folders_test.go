package policies

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy/catalog"
	"github.com/quaymaster/quaymaster/webhook/metrics"
	"github.com/quaymaster/quaymaster/workload"
)

// TestUnreadPolicies: a document in a folder that is meant as a policy and is of no known kind or
// version is an error, with and without a cluster. All other documents are taken or left alone.
func TestUnreadPolicies(t *testing.T) {
	compilers, err := engine.NewCompilers(engine.CompilerOptions{ConfigMaps: engine.NewResources()})
	if err != nil {
		t.Fatal(err)
	}
	unread := []string{ // of which the log warns
		"apps/v1 Deployment", "nvidia.com/v1 ClusterPolicy", "wgpolicyk8s.io/v1alpha2 PolicyReport", "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
		"policy.kyverno.io/v1 ValidatingPolicy", "quaymaster.io/v1alpha1 ImageOverride",
		"kyverno.io/v2 GlobalContextEntry",
		"quaymaster.dev/v1alpha1 RegistryMirror", "quaymaster.dev/v1alpha1 Configuration", "v2 ConfigMap",
	}
	for head, want := range map[string]string{ // taken, other, or error
		"policies.kyverno.io/v1 ValidatingPolicy":                   "taken",
		"policies.kyverno.io/v1alpha1 MutatingPolicy":               "taken",
		"policies.kyverno.io/v1beta1 NamespacedValidatingPolicy":    "taken",
		"policies.kyverno.io/v1 PolicyException":                    "taken",
		"kyverno.io/v1 ClusterPolicy":                               "taken",
		"kyverno.io/v2 PolicyException":                             "taken",
		"policy.sigstore.dev/v1beta1 ClusterImagePolicy":            "taken",
		"policy.sigstore.dev/v1alpha1 TrustRoot":                    "taken",
		"quaymaster.dev/v1alpha1 ImageOverride":                     "taken",
		"kyverno.io/v2 GlobalContextEntry":                          "other",
		"kyverno.io/v2 CleanupPolicy":                               "taken",
		"policies.kyverno.io/v1 DeletingPolicy":                     "taken",
		"quaymaster.dev/v1alpha1 RegistryMirror":                    "other",
		"quaymaster.dev/v1alpha1 Configuration":                     "other",
		"v1 ConfigMap":                                              "other",
		"v2 ConfigMap":                                              "other",
		"apps/v1 Deployment":                                        "other",
		"nvidia.com/v1 ClusterPolicy":                               "other",
		"wgpolicyk8s.io/v1alpha2 PolicyReport":                      "other",
		"admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": "other",
		"policies.kyverno.io/v2 ValidatingPolicy":                   "error",
		"policies.kyverno.io/V1 ValidatingPolicy":                   "error",
		"policies.kyverno.io ValidatingPolicy":                      "error",
		"Policies.kyverno.io/v1 ValidatingPolicy":                   "error",
		"kyverno.io/v1 ValidatingPolicy":                            "error",
		"policies.kyverno.io/v1 ClusterPolicy":                      "error",
		"policies.kyverno.io/v1 validatingPolicy":                   "error",
		"policies.kyverno.io/v1 ValidatingPolicies":                 "error",
		"policies.kyverno.io/v1 ClusterValidatingPolicy":            "error",
		"kyverno.io/v3 ClusterPolicy":                               "error",
		"kyverno.io/v1 PolicyException":                             "error",
		"kyverno.io/v1 cleanupPolicy":                               "error",
		"policies.kyverno.io/v1 CleanupPolicy":                      "error",
		"policy.sigstore.dev/v1 ClusterImagePolicy":                 "error",
		"policy.sigstore.dev/v1beta1 TrustRoot":                     "error",
		"quaymaster.dev/v1alpha1 ImageOverrides":                    "error",
		"kyverno.oi/v1 ClusterPolicy":                               "error",
		"kyvrno.io/v1 ClusterPolicy":                                "error",
		"policy.kyverno.io/v1 ValidatingPolicy":                     "other",
		"policies.kyverno.oi/v1 ValidatingPolicy":                   "error",
		"policy.sigstor.dev/v1beta1 ClusterImagePolicy":             "error",
		"quaymaster.io/v1alpha1 ImageOverride":                      "other",
	} {
		apiVersion, kind, _ := strings.Cut(head, " ")
		path := filepath.Join(t.TempDir(), "a.yaml")
		text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: a}\nspec: {}\n", apiVersion, kind)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, cluster := range []bool{false, true} {
			made, err := catalog.New(catalog.Options{
				Dialects: compilers.Dialects(), Exceptions: compilers.Exceptions(), Overrides: compilers.Overrides(), TrustRoots: compilers.TrustRoots,
			})
			if err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			p := New(Config{Catalog: made, State: &gate.Current{}, Metrics: metrics.New(metrics.Build{}), Log: slog.New(slog.NewTextHandler(&log, nil))})
			passed := 0
			hasEffect := !slices.Contains(unread, head)
			others := func(objects []workload.Object) error { passed += len(objects); return nil }
			if cluster {
				others = nil
			}
			_, err = p.WatchFolders([]string{path}, others)
			entries, got := len(made.Snapshot().Entries), "other"
			switch {
			case err != nil && strings.Contains(err.Error(), path) && strings.Contains(err.Error(), "is not a policy that this version reads"):
				got = "error"
			case err != nil:
				got = err.Error()
			case entries > 0:
				got = "taken"
			}
			if warns := strings.Contains(log.String(), "have no effect") && strings.Contains(log.String(), head); warns == hasEffect {
				t.Errorf("%s, cluster %t: the log has %q", head, cluster, log.String())
			}
			wantPassed := want == "other" && !cluster
			if got != want || (passed > 0) != wantPassed {
				t.Errorf("%s, cluster %t: %s, want %s, %d passed on", head, cluster, got, want, passed)
			}
		}
	}
}
