package sigstore_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

var update = flag.Bool("update", false, "write golden files anew")

func TestGolden(t *testing.T) {
	if err := converttest.Golden("testdata/sigstore.yaml", convert.Sigstore, *update); err != nil {
		t.Error(err)
	}
}

// TestWhichPolicies checks which of the written policies match an image:
// none where the source admits unverified images.
func TestWhichPolicies(t *testing.T) {
	for file, table := range map[string]map[string][]string{
		"sigstore.yaml": {
			"nginx": {"acme"}, "acme/nginx": {"sigstore-unmatched"}, "ghcr.io/acme/app:v1@" + converttest.Digest: {"acme"}, "ghcr.io/acme/app/x": {"sigstore-unmatched"},
			"registry.k8s.io/a/b": {}, "quay.io/old/a/b": {"never"}, "registry.example.com/a/b/c": {"acme"},
		},
	} {
		if err := converttest.Chosen(filepath.Join("testdata", file), table); err != nil {
			t.Error(err)
		}
	}
}
