package set_test

import (
	"context"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

func authority(name string) *verify.Authority {
	return &verify.Authority{Name: name, Key: &verify.Key{Ref: "PEM of " + name}}
}

func requirement(threshold int, names ...string) policy.Requirement {
	r := policy.Requirement{Name: "attestors[0]", Threshold: threshold}
	for _, name := range names {
		r.Members = append(r.Members, policy.Member{Authority: authority(name)})
	}
	return r
}

func check(requirements ...policy.Requirement) *policy.Check {
	return &policy.Check{Entry: "verifyImages[0]", Image: policy.Image{Ref: image.MustParse("registry.test/app:v1")}, Claims: policy.Claims{Requirements: requirements}}
}

func signedBy(signers ...string) policy.Answer {
	var a policy.Answer
	for _, s := range signers {
		a.Facts = append(a.Facts, verify.Fact{Role: attest.Signature, Signer: verify.Signer{KeyFingerprint: s}})
	}
	return a
}

// silentJudge decides nothing.
type silentJudge struct{}

func (silentJudge) Judge(context.Context, []policy.Given) policy.Judgement {
	return policy.Judgement{}
}
