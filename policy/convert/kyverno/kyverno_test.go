package kyverno_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

var update = flag.Bool("update", false, "write golden files anew")

func TestGolden(t *testing.T) {
	if err := converttest.Golden("testdata/kyverno.yaml", convert.Kyverno, *update); err != nil {
		t.Error(err)
	}
}

// TestImages compares patterns with the matches of policy/lang/reference.
func TestImages(t *testing.T) {
	m := testkit.Must(converttest.NewMatcher())(t)
	for _, c := range []struct {
		references, skip string
		image            string
		want             bool
	}{
		{`["ghcr.io/acme/*"]`, `["ghcr.io/acme/test:*"]`, "ghcr.io/acme/app", true},
		{`["ghcr.io/acme/*"]`, `["ghcr.io/acme/test:*"]`, "ghcr.io/acme/test:v1", false},
		{`["ghcr.io/acme/*"]`, `["ghcr.io/acme/test:*"]`, "ghcr.io/acme/test@" + converttest.Digest, true},
		{`["ghcr.io/acme/*"]`, `["ghcr.io/acme/test*"]`, "ghcr.io/acme/test@" + converttest.Digest, false},
		{`["ghcr.io/acme/*"]`, `["ghcr.io/acme/test"]`, "ghcr.io/acme/test:v1", true},
		{`["nginx"]`, `["x"]`, "docker.io/library/nginx:1", true},
		{`["nginx*"]`, `["x"]`, "nginx@" + converttest.Digest, true},
		{`["nginx:*"]`, `["x"]`, "nginx:1.27", true},
		{`["nginx:*"]`, `["x"]`, "nginx@" + converttest.Digest, true},
		{`["nginx:*"]`, `["x"]`, "ghcr.io/nginx:1", false},
		{`["nginx:1.*"]`, `["x"]`, "docker.io/library/nginx:1.27", true},
		{`["*:1.27"]`, `["x"]`, "docker.io/library/nginx:1.27", true},
		{`["docker.io/nginx:1.*"]`, `["x"]`, "nginx:1.27", true},
		{`["docker.io/nginx:1.*"]`, `["docker.io/nginx:1.27"]`, "index.docker.io/library/nginx:1.27", false},
		{`["*"]`, `["quay.io/*"]`, "quay.io/x/y:1", false},
		{`["*"]`, `["quay.io/*"]`, "evil.example/quay.io/x", true},
		{`["registry.example.com/app:*"]`, `["x"]`, "registry.example.com/app@" + converttest.Digest, true},
		{`["registry.example.com/app"]`, `["x"]`, "registry.example.com/app/x:1", false},
		{`["registry.example.com/app:v1"]`, `["x"]`, "registry.example.com/app:v1", true},
		{`["registry.example.com/app:v1"]`, `["x"]`, "registry.example.com/app:v10", false},
		{`["docker.io/library/nginx"]`, `["x"]`, "nginx", true},
		{`["docker.io/library/nginx"]`, `["x"]`, "docker.io/library/library/nginx", false},
		{`["localhost/app"]`, `["x"]`, "localhost/app:v1", true},
		{`["localhost/app"]`, `["x"]`, "docker.io/localhost/app:v1", false},
		{`["*"]`, `["docker.io/acme/test:*"]`, "acme/test:v1", false},
		{`["*"]`, `["acme/test:*"]`, "acme/test:v1", true},
	} {
		text := fmt.Sprintf(`{"apiVersion":"kyverno.io/v1","kind":"ClusterPolicy","metadata":{"name":"p"},"spec":{"rules":[{"name":"r","match":{"resources":{"kinds":["Pod"]}},
			"verifyImages":[{"imageReferences":%s,"skipImageReferences":%s,"required":false}]}]}}`, c.references, c.skip)
		if got := testkit.Must(m.Matches(testkit.Must(converttest.Policies(text, convert.Options{}))(t)[0], c.image))(t); got != c.want {
			t.Errorf("%s without %s: matches %s: %v, want %v", c.references, c.skip, c.image, got, c.want)
		}
	}
}
