package decide

import (
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/age"
)

// SignedCondition is a condition that may read the verified time of signing of the statement.
type SignedCondition interface {
	policy.Condition
	// Signed returns the condition for one statement. Where it reads the time and there is none, the
	// result is an error that wraps age.ErrUnknown.
	Signed(age.Signing) policy.Condition
}

// Signed returns a condition for a statement that was signed at a time; the condition itself if it
// reads no time.
func Signed(c policy.Condition, at age.Signing) policy.Condition {
	if signed, ok := c.(SignedCondition); ok {
		return signed.Signed(at)
	}
	return c
}
