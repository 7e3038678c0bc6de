package endpoints

import (
	"context"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	generated "github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
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

// Copies determines by the current mirrors whether an image is a copy.
type Copies struct{ State *gate.Current }

// IsCopy implements admission.Copies.
func (c Copies) IsCopy(copied, written image.Ref) bool {
	now, err := c.State.Snapshot(context.Background())
	return err == nil && now.Mirrors.IsCopy(copied, written)
}

// Requesters records the requester of triggers for rules that need it.
type Requesters struct {
	State   *gate.Current
	Records *generated.Keeper
}

// Requester implements admission.Requesters.
func (r Requesters) Requester(subject *policy.Subject, object map[string]any) (name, value string, err error) {
	now, err := r.State.Snapshot(context.Background())
	if err != nil || now.Policies == nil || !now.Policies.NeedsRequester(subject) {
		return "", "", err
	}
	value, err = r.Records.Requester(object, subject.User, subject.Time)
	return generated.RequesterAnnotation, value, err
}

// Annotation implements admission.Requesters.
func (r Requesters) Annotation(subject *policy.Subject) string {
	now, err := r.State.Snapshot(context.Background())
	if err != nil || now.Policies == nil || !now.Policies.NeedsRequester(subject) {
		return ""
	}
	return generated.RequesterAnnotation
}
