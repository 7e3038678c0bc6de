package workload_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/workload"
)

func Example() {
	manifest := `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: prod}
spec:
  template:
    spec:
      containers:
      - {name: web, image: "nginx:1.27"}
`
	objects, err := workload.Read(strings.NewReader(manifest), "shop.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range objects {
		uses, err := workload.Extract(object)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, use := range uses {
			fmt.Printf("%s: %s %s, at %s, wrote %s\n", object, use.Role, use.Container, use.Pointer, use.Image)
			operations, err := workload.Pin(use, use.Image+"@sha256:0123")
			if err != nil {
				fmt.Println(err)
				return
			}
			patch, _ := json.Marshal(operations[1])
			fmt.Println(string(patch))
		}
	}
	// Output:
	// Deployment prod/shop: container web, at /spec/template/spec/containers/0/image, wrote nginx:1.27
	// {"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nginx:1.27@sha256:0123"}
}
