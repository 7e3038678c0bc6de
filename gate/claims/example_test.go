package claims_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/image"
)

// A tag is resolved once while its digest is fresh.
func ExampleTags_Resolve() {
	cache, err := claims.New(claims.Config{
		Fact: time.Hour, None: 10 * time.Second, Tag: 10 * time.Second, Timeout: time.Second, Now: time.Now,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ref, err := image.Parse("registry.example/app:v1")
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		pinned, err := cache.Tags().Resolve(context.Background(), "anonymous", "", ref, func(_ context.Context, ref image.Ref) (image.Pinned, error) {
			fmt.Println("request to the registry")
			return ref.Pin(image.Descriptor{Digest: image.DigestOf([]byte("manifest"))})
		})
		fmt.Println(pinned.Digest().String(), err)
	}
	// Output:
	// request to the registry
	// sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f <nil>
	// sha256:05b3abf2579a5eb66403cd78be557fd860633a1fe2103c7642030defe32c657f <nil>
}
