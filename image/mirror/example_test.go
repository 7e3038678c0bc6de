package mirror_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

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
		fmt.Println(err)
		return
	}
	set, err := mirror.NewSet(document)
	if err != nil {
		fmt.Println(err)
		return
	}
	route, err := set.Route(image.MustParse("nginx:1.27"), mirror.Subject{})
	if err != nil {
		fmt.Println(err)
		return
	}
	copied := route.Candidates[0].Ref
	fmt.Println(copied, "by", route.Mirror, "when", route.When)
	fmt.Println("which is", set.Origins(copied)[0].Ref)
	// Output:
	// cache.example.com/hub/library/nginx:1.27 by RegistryMirror/hub[0] when Verified
	// which is docker.io/library/nginx:1.27
}
