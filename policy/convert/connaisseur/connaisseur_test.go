package connaisseur_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

var update = flag.Bool("update", false, "write golden files anew")

func TestGolden(t *testing.T) {
	for _, file := range []string{"connaisseur.yaml", "connaisseur-warn.yaml"} {
		if err := converttest.Golden(filepath.Join("testdata", file), convert.Connaisseur, *update); err != nil {
			t.Error(err)
		}
	}
}

// TestWhichPolicies checks which of the written policies match an image:
// none where the source admits unverified images.
func TestWhichPolicies(t *testing.T) {
	for file, table := range map[string]map[string][]string{
		"connaisseur.yaml": {
			"nginx:1.10": {"connaisseur-docker-io-library-any"}, "nginx:1.27": {"connaisseur-docker-io-library-nginx-1-2-any"},
			"registry.k8s.io/pause:3": {}, "evil.example/registry.k8s.io/pause:3": {}, "ghcr.io/acme/app": {"connaisseur-ghcr-io-acme-any"},
			"ghcr.io/acme/tools/app": {"connaisseur-ghcr-io-ac-any-tools-any"}, "quay.io/x/y": {"connaisseur-any-any"},
		},
	} {
		if err := converttest.Chosen(filepath.Join("testdata", file), table); err != nil {
			t.Error(err)
		}
	}
}
