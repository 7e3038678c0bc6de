package peers

import (
	"os"
	"path/filepath"
	"testing"
)

func TestModule(t *testing.T) {
	for path, file := range map[string]string{
		CertManager:        filepath.Join("deploy", "crds", "cert-manager.io_certificates.yaml"),
		Kyverno:            filepath.Join("config", "crds", "kyverno", "kyverno.io_clusterpolicies.yaml"),
		ManifestSigstore:   filepath.Join("pkg", "k8smanifest", "testdata", "testpub"),
		PolicyController:   filepath.Join("config", "300-clusterimagepolicy.yaml"),
		PrometheusOperator: filepath.Join("example", "prometheus-operator-crd", "monitoring.coreos.com_servicemonitors.yaml"),
	} {
		folder, err := Module(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if folder, err := Module(t.Context(), "github.com/quaymaster/nothing"); err == nil {
		t.Errorf("a module that is not pinned is in %s", folder)
	}
}
