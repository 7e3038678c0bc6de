package containers_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

var update = flag.Bool("update", false, "write golden files anew")

func TestGolden(t *testing.T) {
	for _, sample := range []struct {
		file   string
		format convert.Format
	}{
		{"containers.json", convert.Containers},
		{"openshift.yaml", convert.OpenShift},
	} {
		if err := converttest.Golden(filepath.Join("testdata", sample.file), sample.format, *update); err != nil {
			t.Error(err)
		}
	}
}

// TestWhichPolicies checks which of the written policies match an image:
// none where the source admits unverified images.
func TestWhichPolicies(t *testing.T) {
	for file, table := range map[string]map[string][]string{
		"containers.json": {
			"registry.example.com/app": {"containers-registry-example-com"}, "registry.example.com/tools/x": {},
			"registry.example.com/tools/shell:stable": {"containers-registry-example-com-tools-shell-stable"}, "registry.example.com/tools/shell:stable@" + converttest.Digest: {},
			"a.corp.example.com/locked/x": {"containers-a-corp-example-com-locked"}, "a.corp.example.com/x": {"containers-any-corp-example-com"}, "nginx": {"containers-default"},
		},
		"openshift.yaml": {
			"quay.io/acme/app": {"acme"}, "quay.io/acme/tools/x": {"acme-tools"}, "r.acme.example.com/x": {"acme"}, "quay.io/x": {"team"}, "nginx": {},
		},
	} {
		if err := converttest.Chosen(filepath.Join("testdata", file), table); err != nil {
			t.Error(err)
		}
	}
}
