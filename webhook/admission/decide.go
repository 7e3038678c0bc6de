package admission

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
	"github.com/quaymaster/quaymaster/workload"
)

// decide handles one request.
func (h *Handler) decide(ctx context.Context, q *pending) response {
	if err := q.check(); err != nil {
		return q.refuse(err)
	}
	q.cause = NotAsked
	if q.passes() || h.matchesNothing(q) {
		return response{allowed: true}
	}
	release, err := h.config.Queue.reserveParsed(ctx, q.request.namespace, q.request.object, q.request.oldObject)
	if err != nil {
		return h.overloaded(q, err)
	}
	defer release()
	if err := q.parse(); err != nil {
		return q.refuse(err)
	}
	if q.unread != nil && h.mayMatch(q) {
		// A rule that compares with the old object would treat it as missing.
		return q.refuse(fmt.Errorf("the old object, which rules may need: %w", q.unread))
	}
	if q.mirror && h.config.Endpoint == Mutate || q.request.subresource == "resize" && q.running && !h.mayMatch(q) {
		return response{allowed: true}
	}
	if h.config.Endpoint == Validate && q.isPod() && !q.old.IsZero() && !q.deleting {
		if err := checkRecord(h.config.Copies, q.object, q.old); err != nil {
			return q.tampered(err)
		}
	}
	restored, err := h.restore(q)
	if err != nil {
		return q.refuse(err)
	}
	q.cause, err = h.evaluate(ctx, q)
	if err != nil {
		q.err = err
	}
	if q.cause != Decided {
		return h.undecided(q, q.cause)
	}
	answer, err := h.compose(q, restored)
	if err != nil {
		return q.refuse(err)
	}
	return answer
}

// overloaded answers a request without enough memory: the request is too large, or the wait timed
// out.
func (h *Handler) overloaded(q *pending, err error) response {
	if errors.Is(err, errTooComplex) {
		return q.refuse(err)
	}
	q.cause, q.err = review.QueueCause(err), err
	return h.undecided(q, q.cause)
}

// refuse answers an invalid request.
func (q *pending) refuse(err error) response {
	q.cause, q.err = Malformed, err
	return malformed(q.title() + ": " + review.Plain(err.Error(), review.MaxField))
}

// restore puts back the pinned images of a Pod if an update contains their original references.
func (h *Handler) restore(q *pending) ([]workload.Operation, error) {
	if h.config.Endpoint != Mutate || !q.isPod() || q.old.IsZero() {
		return nil, nil
	}
	operations, err := restore(h.config.Copies, q.object, q.old)
	if err != nil || len(operations) == 0 {
		return nil, err
	}
	q.object, err = workload.Apply(q.object, operations)
	return operations, err
}

// pinning returns which component replaces tags in the object.
func (h *Handler) pinning(q *pending) gate.Pinning {
	switch {
	case q.mirror: // it is reported as it is, and never changed
		return gate.PinLater
	case isMadeReplicaSet(q.kind(), q.object):
		return gate.PinKept
	case h.mutated[q.kind()]:
	case h.config.OnlyPods:
		return gate.PinKept
	case h.config.Endpoint == Mutate:
		return gate.PinNamed
	default:
		return gate.PinLater
	}
	if h.config.Endpoint == Mutate {
		return gate.PinHere
	}
	return gate.PinDone
}

// isMadeReplicaSet reports whether a controller created the ReplicaSet. A Deployment compares it
// with its own template; a difference would make it create another one each time.
func isMadeReplicaSet(kind Kind, object workload.Object) bool {
	if kind != (Kind{Group: "apps", Kind: "ReplicaSet"}) {
		return false
	}
	for _, owner := range metadata(object).Member("ownerReferences").Elements() {
		if owner.Member("controller").IsTrue() {
			return true
		}
	}
	return false
}

// pins reports whether the mutating endpoint changes images in the object of a request.
func (h *Handler) pins(q *pending) bool {
	return h.mutated[q.kind()] || !h.config.OnlyPods && h.config.Rules != nil && h.config.Rules.MayPin(&q.subject)
}

// matchesNothing reports whether no rule can match a request that contains no image at this
// endpoint. Such a request is admitted at once.
func (h *Handler) matchesNothing(q *pending) bool {
	leaves := q.request.operation == opDelete || q.request.operation == opConnect
	switch {
	case h.config.Endpoint == Mutate && leaves:
		return true
	case h.config.Endpoint == Mutate && !h.pins(q), leaves, q.request.subresource == "status", q.request.subresource == "scale":
		return !h.mayMatch(q)
	}
	return false
}

// mayMatch reports whether a rule about objects may match a request at this endpoint.
func (h *Handler) mayMatch(q *pending) bool {
	switch {
	case h.config.Rules == nil:
		return false
	case h.config.Endpoint == Mutate:
		return h.config.Rules.MayMutate(&q.subject)
	}
	return h.config.Rules.MayValidate(&q.subject)
}

// stage returns the gate's stage for the endpoint. Validation runs after all mutations. Images are
// left to the validating endpoint if the mutating one does not pin them.
func (h *Handler) stage(q *pending) gate.Stage {
	switch {
	case h.config.Endpoint != Mutate:
		return gate.StageValidate
	case h.pins(q):
		return gate.StageMutate
	}
	return gate.StageMutateObject
}

// evaluate waits for a slot and for the gate.
func (h *Handler) evaluate(ctx context.Context, q *pending) (Cause, error) {
	leave, err := h.config.Queue.Enter(ctx, q.request.namespace)
	if err != nil {
		return review.QueueCause(err), err
	}
	request := gate.Request{Object: q.object, Old: q.old, Pinning: h.pinning(q), Stage: h.stage(q), Subject: q.subject}
	if !request.Subject.Request.IsWhole() {
		request.Subject.Request = policy.RequestFrom(q.request.copied())
	}
	if h.config.Kinds != nil {
		request.Subject.Served = h.config.Kinds
	}
	result := review.Run(ctx, leave, func(ctx context.Context) (gate.Outcome, error) {
		err := h.complete(ctx, &request.Subject, request.Object, request.Old)
		return h.config.Decider.Decide(ctx, request), err
	})
	q.outcome, q.busy = result.Value, result.Busy
	return result.Cause, result.Err
}

// complete adds labels and roles to the subject. If they cannot be read they stay unknown, and
// rules that need them cannot be evaluated.
func (h *Handler) complete(ctx context.Context, subject *policy.Subject, object, old workload.Object) error {
	defer waittime.Begin(ctx)()
	var failed error
	if subject.Kind == "Namespace" && subject.Group == "" {
		if object.IsZero() {
			object = old
		}
		subject.NamespaceLabels, subject.NamespaceKnown = metadata(object).Member("labels").Texts(), true
	} else {
		failed = review.SetLabels(ctx, h.config.Namespaces, subject)[subject.Namespace]
	}
	if h.config.Roles == nil {
		return failed
	}
	roles, clusterRoles, err := h.config.Roles.Roles(ctx, subject.User, subject.Namespace)
	if err != nil {
		return fmt.Errorf("roles of %s: %w", subject.User.Name, err)
	}
	subject.User.Roles, subject.User.ClusterRoles, subject.User.RolesKnown = roles, clusterRoles, true
	return failed
}

// compose converts the gate's outcome to a response.
func (h *Handler) compose(q *pending, restored []workload.Operation) (response, error) {
	o := &q.outcome
	notes := notesOf(o)
	switch {
	case q.mirror:
		return response{allowed: true, audit: notes}, nil
	case q.leaving && h.config.Endpoint == Mutate:
		// A change of a rule would be more than the finalizers, and what follows would refuse it.
		return response{allowed: true, patch: restored, audit: notes}, nil
	case o.Result.Admits():
	case q.deleting && q.isOld():
		return response{allowed: true, patch: restored, audit: notes}, nil
	default:
		answer := denied(denial(q.title(), h.blocked(q), q.request.namespace, o, h.config.Reproduce))
		answer.audit, answer.warnings = notes, warnings(o)
		return answer, nil
	}
	answer := response{allowed: true, warnings: warnings(o), audit: notes}
	if h.config.Endpoint != Mutate {
		return answer, nil
	}
	answer.patch = append(restored, o.Patch...)
	object := q.object
	if !o.Changed.IsZero() {
		object = o.Changed // the record describes the object after the mutation rules
	}
	if q.isPod() && q.request.subresource == "" {
		notes, err := record(h.config.Copies, object, q.old, o.Patch[o.Mutations:])
		if err != nil {
			return response{}, err
		}
		answer.patch = append(answer.patch, notes...)
	}
	h.requested(q, object, &answer)
	return answer, nil
}

// isOld reports whether all denied images already run in the object. Denials of the object as a
// whole are ignored only if just its finalizers change: otherwise the owner of a finalizer could
// change the object arbitrarily.
func (q *pending) isOld() bool {
	for i := range q.outcome.Verdicts {
		v := &q.outcome.Verdicts[i]
		isOld := v.Image.Unchanged || q.running && v.Image.Role != string(workload.Custom)
		if !v.Result.Admits() && !isOld {
			return false
		}
	}
	return q.leaving || len(q.outcome.Reasons) == 0
}

// blocked names the object in Kyverno's words; empty where a denial is to have none of them.
func (h *Handler) blocked(q *pending) string {
	if !h.config.KyvernoDenials {
		return ""
	}
	return q.request.kind + "/" + q.request.namespace + "/" + q.name()
}
