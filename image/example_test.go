package image_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/image"
)

func Example() {
	ref, err := image.Parse("nginx:1.27")
	if err != nil {
		fmt.Println(err)
		return
	}
	pinned, err := ref.Pin(image.Descriptor{Digest: image.DigestOf([]byte("the manifest"))})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ref)
	fmt.Println(pinned.Written())
	// Output:
	// docker.io/library/nginx:1.27
	// nginx:1.27@sha256:b802ab9f53cad6bd4004f3c99d9ae71d7a8ff28686bbdc04a30862ee255374dc
}
