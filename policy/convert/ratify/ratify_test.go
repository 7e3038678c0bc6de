package ratify_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

var update = flag.Bool("update", false, "write golden files anew")

func TestGolden(t *testing.T) {
	for _, file := range []string{"ratify-cosign.yaml", "ratify-notation.yaml", "ratify-executor.yaml"} {
		if err := converttest.Golden(filepath.Join("testdata", file), convert.Ratify, *update); err != nil {
			t.Error(err)
		}
	}
}

// TestWhichPolicies checks which of the written policies match an image:
// none where the source admits unverified images.
func TestWhichPolicies(t *testing.T) {
	for file, table := range map[string]map[string][]string{
		"ratify-cosign.yaml": {
			"ghcr.io/acme/x": {"ratify-keyed"}, "ghcr.io/other/app:v1": {"ratify-keyed"}, "ghcr.io/other/app:v2": {"ratify-keyless"},
		},
		"ratify-notation.yaml": {
			"nginx": {"ratify-default"},
		},
		"ratify-executor.yaml": {
			"ghcr.io/acme/app": {"app"}, "ghcr.io/acme/app/x": {"registries"}, "a.azurecr.io/x": {"registries"}, "a.b.azurecr.io/x": {"ratify-unmatched"}, "nginx": {"ratify-unmatched"},
		},
	} {
		if err := converttest.Chosen(filepath.Join("testdata", file), table); err != nil {
			t.Error(err)
		}
	}
}
