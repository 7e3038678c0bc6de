package gateway

import (
	"context"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	generated "github.com/quaymaster/quaymaster/policy/generating/record"
)

// requesters records the requester of triggers for rules that need it.
type requesters struct {
	state   *gate.Current
	records *generated.Keeper
}

// Requester implements admission.Requesters.
func (r requesters) Requester(subject *policy.Subject, object map[string]any) (name, value string, err error) {
	now, err := r.state.Snapshot(context.Background())
	if err != nil || now.Policies == nil || !now.Policies.NeedsRequester(subject) {
		return "", "", err
	}
	value, err = r.records.Requester(object, subject.User, subject.Time)
	return generated.RequesterAnnotation, value, err
}

// Annotation implements admission.Requesters.
func (r requesters) Annotation(subject *policy.Subject) string {
	now, err := r.state.Snapshot(context.Background())
	if err != nil || now.Policies == nil || !now.Policies.NeedsRequester(subject) {
		return ""
	}
	return generated.RequesterAnnotation
}
