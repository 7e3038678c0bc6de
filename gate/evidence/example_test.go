package evidence_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/evidence"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// silent is a registry that does not answer.
type silent struct{}

func (silent) Describe(_ context.Context, pinned image.Pinned) (image.Pinned, error) {
	return pinned, unavailable("describe", pinned.Repository())
}

func (silent) Manifest(_ context.Context, repository image.Repository, _ string) (image.Descriptor, []byte, error) {
	return image.Descriptor{}, nil, unavailable("get manifest", repository)
}

func (silent) Blob(_ context.Context, repository image.Repository, _ image.Descriptor, _ int64) ([]byte, error) {
	return nil, unavailable("get blob", repository)
}

func (silent) Referrers(_ context.Context, repository image.Repository, _ image.Digest, _ []string) ([]image.Descriptor, error) {
	return nil, unavailable("list referrers", repository)
}

func unavailable(operation string, repository image.Repository) error {
	return &image.Error{Kind: image.Unavailable, Op: operation, On: repository.String()}
}

// untrusting verifies nothing.
type untrusting struct{}

func (untrusting) Verify(context.Context, image.Pinned, attest.Evidence, verify.Authority) (verify.Fact, error) {
	return verify.Fact{}, &verify.Rejection{Code: verify.BadSignature}
}

// A registry that does not answer leaves a gap: the image is not unsigned.
func ExampleFind() {
	digest, err := image.ParseDigest("sha256:" + strings.Repeat("a", 64))
	if err != nil {
		fmt.Println(err)
		return
	}
	ref, err := image.Parse("registry.example/app:1")
	if err != nil {
		fmt.Println(err)
		return
	}
	subject, err := ref.Pin(image.Descriptor{Digest: digest})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	queries := []evidence.Query{{Question: policy.Question{Role: attest.Signature}, Resolved: verify.Authority{Name: "release"}}}
	found := evidence.Find(ctx, silent{}, subject, subject.Repository(), queries)
	answer := evidence.Verify(ctx, untrusting{}, found, queries)[0]
	fmt.Println(len(answer.Facts), len(answer.Rejections), len(answer.Gaps) > 0)
	// Output: 0 0 true
}
