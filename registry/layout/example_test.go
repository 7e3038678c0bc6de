package layout_test

import (
	"context"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	ggcr "github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/layout"
)

// A tag is an annotation in index.json; another tag is not found.
func Example() {
	folder, err := os.MkdirTemp("", "layout")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	written, err := ggcr.Write(folder, empty.Index)
	if err == nil {
		err = written.AppendImage(empty.Image, ggcr.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "v1"}))
	}
	if err != nil {
		fmt.Println(err)
		return
	}

	opened, err := layout.Open(folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = opened.Close() }()
	pinned, err := opened.Resolve(context.Background(), image.MustParse("reg.example/app:v1"))
	fmt.Println(pinned.Digest().String(), err)
	_, err = opened.Resolve(context.Background(), image.MustParse("reg.example/app:v2"))
	fmt.Println(image.KindOf(err))
	// Output:
	// sha256:732112270d7e59418a8c080b134b24cabd67d250d0d0147a97ed95ba5c280aa4 <nil>
	// not-found
}
