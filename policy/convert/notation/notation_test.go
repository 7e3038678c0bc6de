package notation_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

var update = flag.Bool("update", false, "write golden files anew")

func TestGolden(t *testing.T) {
	for _, file := range []string{"notation.json", "notation-global.json"} {
		if err := converttest.Golden(filepath.Join("testdata", file), convert.Notation, *update); err != nil {
			t.Error(err)
		}
	}
}

// TestWhichPolicies checks which of the written policies match an image:
// none where the source admits unverified images.
func TestWhichPolicies(t *testing.T) {
	for file, table := range map[string]map[string][]string{
		"notation.json": {
			"registry.acme-rockets.io/software/net-monitor:v1": {"notation-wabbit-images"}, "redis": {"notation-wabbit-images"},
			"registry.acme-rockets.io/software/net-monitor/x": {"notation-unmatched"}, "registry.acme-rockets.io/software/tools@" + converttest.Digest: {"notation-builders"},
			"registry.acme-rockets.io/software/unsigned/net-utils": {}, "quay.io/redis": {"notation-unmatched"},
		},
		"notation-global.json": {
			"registry.acme-rockets.io/software/tools": {}, "nginx": {"notation-everything-else"},
		},
	} {
		if err := converttest.Chosen(filepath.Join("testdata", file), table); err != nil {
			t.Error(err)
		}
	}
}
