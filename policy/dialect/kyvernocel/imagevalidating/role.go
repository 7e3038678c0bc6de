package imagevalidating

import (
	"context"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// rolesOf returns the standard lists of images that an expression reads, other than that of
// containers: all of them where it reads the variable as a whole.
func rolesOf(p *cel.Program) []string {
	return slices.DeleteFunc(categories(), func(name string) bool {
		return name == "containers" || !slices.ContainsFunc(p.Reads(), func(r cel.Read) bool {
			return r.Variable == imagesName && (r.Field == name || r.Field == "")
		})
	})
}

// judgeBare judges images of unknown roles. The members are containers; what passes as such
// must pass in each other list that the validations read.
func (j *judge) judgeBare(ctx context.Context, given []policy.Given) policy.Judgement {
	out := j.judgeMembers(ctx, given)
	for _, role := range j.rule.program.roles {
		other := j.as(role).judgeMembers(ctx, given)
		for i, d := range other.Decisions {
			if own := &out.Decisions[i]; own.Result == policy.Pass && d.Result != policy.Pass {
				*own = policy.Decision{Check: own.Check, Result: policy.Indeterminate, Reasons: slices.Concat(unknownRole(role), d.Reasons)}
			}
		}
		if out.Object.Passes() && !other.Object.Passes() {
			out.Object = policy.Ruling{Result: policy.Indeterminate, Reasons: slices.Concat(unknownRole(role), other.Object.Reasons)}
		}
	}
	return out
}

// unknownRole is the reason why an image passes in one role and not in another.
func unknownRole(role string) []policy.Reason {
	return []policy.Reason{{
		Code: policy.PolicyError, Path: "spec.validations",
		Message: kyvernocel.UnknownHere("the role of each image (images." + role + ")").Error(),
	}}
}

// as returns the judge for the images in one list.
func (j *judge) as(role string) *judge {
	moved := *j
	moved.members = slices.Clone(j.members)
	for i := range moved.members {
		moved.members[i].categories = []string{role}
	}
	return &moved
}
