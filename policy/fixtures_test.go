package policy_test

import (
	"context"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

func authority(name string) *verify.Authority {
	return &verify.Authority{Name: name, Key: &verify.Key{Ref: "PEM of " + name}}
}

func set(threshold int, names ...string) policy.Requirement {
	r := policy.Requirement{Name: "attestors[0]", Threshold: threshold}
	for _, name := range names {
		r.Members = append(r.Members, policy.Member{Authority: authority(name)})
	}
	return r
}

func check(requirements ...policy.Requirement) *policy.Check {
	return &policy.Check{Entry: "verifyImages[0]", Image: policy.Image{Ref: image.MustParse("registry.test/app:v1")}, Claims: policy.Claims{Requirements: requirements}}
}

// silentJudge decides nothing.
type silentJudge struct{}

func (silentJudge) Judge(context.Context, []policy.Given) policy.Judgement {
	return policy.Judgement{}
}
