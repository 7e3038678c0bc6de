package redirection_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/report/redirection"
)

// Without registries the report lists the targets of a mapping.
func Example() {
	document, err := mirror.Parse([]byte(`
apiVersion: quaymaster.dev/v1alpha1
kind: RegistryMirror
metadata: {name: hub}
spec:
  mirrors:
    - sources: [docker.io]
      targets: [{location: cache.example.com/hub}]
`), "hub.yaml")
	if err != nil {
		panic(err)
	}
	mirrors, err := mirror.NewSet(document)
	if err != nil {
		panic(err)
	}
	reporter := redirection.Reporter{Mirrors: mirrors}
	for _, name := range []string{"nginx:1.27", "quay.io/shop/web:1"} {
		found := reporter.Report(context.Background(), image.MustParse(name), gate.Request{}, 0)
		fmt.Println(found.Reference, found.Result, len(found.Candidates))
		for _, candidate := range found.Candidates {
			fmt.Println(candidate.Target, candidate.State)
		}
	}
	// Output:
	// docker.io/library/nginx:1.27 listed 1
	// cache.example.com/hub/library/nginx:1.27 not-asked
	// quay.io/shop/web:1 not-mapped 0
}
