package registry_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// A tag is resolved without a counted pull, and the number of requests is known.
func Example() {
	server := registrytest.Start(registrytest.Options{})
	defer server.Close()
	server.PutImage("team/app", "v1", "content")

	client, err := registry.New(registry.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	var meter registry.Meter
	pinned, err := client.With(&meter).Resolve(context.Background(), image.MustParse(server.Host()+"/team/app:v1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(pinned.Digest().String())
	fmt.Println(meter.Requests(), "request,", meter.Pulls(), "counted pulls")

	_, _, err = client.Manifest(context.Background(), pinned.Repository(), "v2")
	fmt.Println(image.KindOf(err))
	// Output:
	// sha256:d385ff3a77129aaa3e6b654ce4f31620f4e138baa5f41d829abb45332a4c2ac9
	// 1 request, 0 counted pulls
	// not-found
}
