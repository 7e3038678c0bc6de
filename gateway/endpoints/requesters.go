package endpoints

import (
	"context"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	generated "github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
)

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
