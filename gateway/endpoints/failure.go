package endpoints

import (
	"context"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// Failure applies the current policies to requests without a decision.
type Failure struct{ State *gate.Current }

// FailOpen implements admission.Failure.
func (f Failure) FailOpen(subject *policy.Subject) bool {
	now, err := f.State.Snapshot(context.Background())
	return err == nil && now.FailOpen(subject)
}

// MayMutate implements admission.ObjectRules. It is true while the policies are not available.
func (f Failure) MayMutate(subject *policy.Subject) bool {
	now, err := f.State.Snapshot(context.Background())
	return err != nil || now.Policies == nil || now.Policies.MayMutate(subject) || now.Policies.NeedsRequester(subject)
}

// MayValidate implements admission.ObjectRules.
func (f Failure) MayValidate(subject *policy.Subject) bool {
	now, err := f.State.Snapshot(context.Background())
	return err != nil || now.Policies == nil || now.Policies.MayValidate(subject)
}

// MayPin implements admission.ObjectRules.
func (f Failure) MayPin(subject *policy.Subject) bool {
	now, err := f.State.Snapshot(context.Background())
	return err != nil || now.Policies == nil || now.Policies.MayPin(subject)
}
