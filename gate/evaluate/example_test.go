package evaluate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/evaluate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

// unsigned is a registry of images without evidence.
type unsigned struct{ digest image.Digest }

func (unsigned) Scope() string { return "anonymous" }

func (u unsigned) Resolve(_ context.Context, ref image.Ref) (image.Pinned, error) {
	return ref.Pin(image.Descriptor{Digest: u.digest})
}

func (unsigned) Describe(_ context.Context, pinned image.Pinned) (image.Pinned, error) {
	return pinned, nil
}

func (unsigned) Manifest(_ context.Context, repository image.Repository, _ string) (image.Descriptor, []byte, error) {
	return image.Descriptor{}, nil, &image.Error{Kind: image.NotFound, Op: "get manifest", On: repository.String()}
}

func (unsigned) Blob(_ context.Context, repository image.Repository, _ image.Descriptor, _ int64) ([]byte, error) {
	return nil, &image.Error{Kind: image.NotFound, Op: "get blob", On: repository.String()}
}

func (unsigned) Referrers(context.Context, image.Repository, image.Digest, []string) ([]image.Descriptor, error) {
	return nil, nil
}

// untrusting verifies nothing.
type untrusting struct{}

func (untrusting) Generation() string { return "none" }

func (untrusting) Resolve(_ context.Context, authority verify.Authority) (verify.Authority, error) {
	return authority, nil
}

func (untrusting) Verify(context.Context, image.Pinned, attest.Evidence, verify.Authority) (verify.Fact, error) {
	return verify.Fact{}, &verify.Rejection{Code: verify.BadSignature}
}

// A check that requires a signature fails for an image without one.
func ExampleEvaluator() {
	known, err := claims.New(claims.Config{Fact: time.Hour, None: time.Minute, Tag: time.Minute, Timeout: time.Minute, Now: time.Now})
	if err != nil {
		fmt.Println(err)
		return
	}
	evaluator, err := evaluate.New(evaluate.Config{Claims: known, Now: time.Now, Parallel: 4, Age: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	ref, err := image.Parse("registry.example/shop/app:1")
	if err != nil {
		fmt.Println(err)
		return
	}
	digest, err := image.ParseDigest("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
	if err != nil {
		fmt.Println(err)
		return
	}
	evaluation := evaluator.Evaluate(evaluate.Reference{Ref: ref, Registry: unsigned{digest}, Prover: untrusting{}})
	team := verify.Identity{Issuer: verify.Exactly("https://accounts.example"), Subject: verify.Exactly("team@example.com")}
	signer := policy.Member{Authority: &verify.Authority{Name: "team", Keyless: &verify.Keyless{Identities: []verify.Identity{team}}}}
	at := evaluation.Add(&policy.Check{
		Image: policy.Image{Ref: ref}, Claims: policy.Claims{Requirements: []policy.Requirement{{Threshold: 1, Members: []policy.Member{signer}}}},
	})
	result := evaluation.Run(context.Background())
	fmt.Println(result.Pinned)
	fmt.Println(result.Decide(at).Result, result.Decide(at).Reasons[0].Code)
	// Output:
	// registry.example/shop/app:1@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
	// fail unsigned
}
