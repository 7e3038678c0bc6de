package redirect_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// shelf is a registry that has one digest.
type shelf struct{ digest image.Digest }

func (shelf) Scope() string { return "" }

func (s shelf) Resolve(_ context.Context, ref image.Ref) (image.Pinned, error) {
	if ref.Registry() == "far.example" {
		return image.Pinned{}, &image.Error{Kind: image.NotFound, Op: "resolve", On: ref.String()}
	}
	return ref.Pin(image.Descriptor{Digest: s.digest})
}

func Example() {
	digest := image.DigestOf([]byte("the manifest that was proved"))
	chooser, err := redirect.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	question := redirect.Request{
		Route: &mirror.Route{When: mirror.Verified, Candidates: []mirror.Candidate{
			{Ref: image.MustParse("far.example/hub/library/nginx:1.27")},
			{Ref: image.MustParse("near.example/hub/library/nginx:1.27")},
		}},
		Open: func(context.Context, image.Repository) (redirect.Session, error) { return shelf{digest}, nil },
	}
	ctx := context.Background()
	early := chooser.Begin(ctx, question) // and meanwhile the source is asked, and the digest proved
	choice := chooser.Choose(ctx, question, early, digest)
	for _, attempt := range choice.Attempts {
		fmt.Println(attempt.Target, attempt.State)
	}
	fmt.Println(choice.Target.Ref(), choice.Target.Digest().String())
	// Output:
	// far.example/hub/library/nginx:1.27 missing
	// near.example/hub/library/nginx:1.27 chosen
	// near.example/hub/library/nginx:1.27 sha256:bd25d527db46afc26fed4e90e4af7cd1f0576f9d1c0ff150a0d0bd81564aadf5
}
