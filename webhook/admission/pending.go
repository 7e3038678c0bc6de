package admission

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
	"github.com/quaymaster/quaymaster/workload"
)

// The operations of the API server.
const (
	opCreate  = "CREATE"
	opUpdate  = "UPDATE"
	opDelete  = "DELETE"
	opConnect = "CONNECT"
)

// pending is a request and its result.
type pending struct {
	request request
	// subject describes the request without its objects.
	subject policy.Subject
	// object and old are zero until they are parsed. unread is the error of parsing an update's old
	// object.
	object, old workload.Object
	unread      error
	// deleting: the object is removed once its finalizers are gone. running: it contains no new
	// image. leaving: it is being deleted, and only its finalizers change.
	deleting, running, leaving bool
	// mirror: it is the mirror pod of a static pod.
	mirror bool
	// busy: the deadline passed during its own evaluation, not while waiting for others.
	busy bool

	cause   Cause
	outcome gate.Outcome
	err     error
}

// setSubject sets the subject.
func (q *pending) setSubject(kinds Kinds) {
	r := &q.request
	q.subject = policy.Subject{
		Subresource: r.subresource, Namespace: r.namespace, Name: r.name, Operation: r.operation,
		User: policy.User{Name: r.user, UID: r.userUID, Groups: r.groups, Extra: bytes.Clone(r.extra)}, Time: time.Now(),
	}
	q.setKind(kinds)
}

// withUID sets the UID of the request in a response.
func (q *pending) withUID(answer response) response {
	answer.uid = q.request.uid
	return answer
}

func (q *pending) kind() Kind { return Kind{Group: q.request.group, Kind: q.request.kind} }

func (q *pending) isPod() bool { return q.kind() == Kind{Kind: "Pod"} }

// name returns the object's name, or the prefix of a name that is not generated yet, followed by a
// star.
func (q *pending) name() string {
	if q.request.name != "" || q.object.IsZero() {
		return q.request.name
	}
	_, name, _ := strings.Cut(q.object.String(), " ")
	return name[strings.LastIndexByte(name, '/')+1:]
}

// title returns the object's name for messages.
func (q *pending) title() string {
	name := q.name()
	if q.request.namespace != "" {
		name = q.request.namespace + "/" + name
	}
	kind := q.request.kind
	if q.request.subresource != "" {
		kind += "/" + q.request.subresource
	}
	return strings.TrimSpace(review.Plain(kind, review.MaxField) + " " + review.Plain(name, review.MaxField))
}

// passes reports whether no evaluation is needed, before the objects are parsed.
func (q *pending) passes() bool {
	switch {
	case q.request.object == nil && q.request.oldObject == nil:
		// The deletion of a collection: each object in it gets a request of its own. A deletion
		// with a name contains the object; without it a rule cannot be evaluated.
		return q.request.operation == opDelete && q.request.name == ""
	}
	return q.request.operation == opUpdate && q.request.object != nil && identical(q.request.object, q.request.oldObject)
}

// check rejects invalid requests before any evaluation.
func (q *pending) check() error {
	r := &q.request
	switch r.operation {
	case opCreate, opUpdate, opDelete, opConnect:
	default:
		return fmt.Errorf("operation %q: must be CREATE, UPDATE, DELETE or CONNECT", review.Plain(r.operation, review.MaxField))
	}
	switch {
	case r.kind == "" || r.version == "":
		return errors.New("the request has no kind or version of its object")
	case r.operation == opCreate && r.object == nil:
		return errors.New("the request has no object")
	case r.operation == opUpdate && (r.object == nil || r.oldObject == nil):
		return errors.New("an UPDATE has an object and an oldObject, and one is missing")
	case r.operation == opDelete && r.object != nil:
		return errors.New("a DELETE has no object")
	case r.operation == opConnect && r.object == nil:
		return errors.New("the request has no object")
	}
	return nil
}

// parse parses the objects and compares them with the request.
func (q *pending) parse() error {
	var err error
	if q.request.operation == opDelete {
		if q.request.oldObject == nil {
			return errors.New("a DELETE with a name has an oldObject, and it is missing")
		}
		q.old, err = workload.ParseValue(q.request.oldObject)
		if err != nil {
			return err
		}
		return q.checkIdentity("oldObject", q.old)
	}
	q.object, err = workload.ParseValue(q.request.object)
	if err != nil {
		return err
	}
	if err := q.checkIdentity("object", q.object); err != nil {
		return err
	}
	if q.request.operation == opUpdate {
		// An unreadable old object does not exempt the new one from evaluation, and is no reason to
		// deny images: all of them are evaluated.
		old, err := workload.ParseValue(q.request.oldObject)
		q.unread = err
		if err == nil {
			if err := q.checkIdentity("oldObject", old); err != nil {
				return err
			}
			q.old = old
		}
	}
	q.inspect()
	return nil
}

// checkIdentity returns an error if the object is not the one that the request describes: policies match
// the request, but the object runs. Under matchPolicy Equivalent the object is of request.kind,
// whatever kind the client used.
func (q *pending) checkIdentity(member string, o workload.Object) error {
	r := &q.request
	for _, field := range []struct{ what, request, object string }{
		{"group", r.group, o.Group()}, {"version", r.version, o.Version()}, {"kind", r.kind, o.Kind()},
		{"namespace", r.namespace, o.Namespace()}, {"name", r.name, o.Name()},
	} {
		isNamed := field.what == "namespace" || field.what == "name"
		if field.request == field.object || isNamed && (field.object == "" || field.what == "name" && field.request == "") {
			continue
		}
		return fmt.Errorf("the %s has %s %q, but the request has %q", member, field.what,
			review.Plain(field.object, review.MaxField), review.Plain(field.request, review.MaxField))
	}
	return nil
}

// inspect sets deleting, running, leaving and mirror.
func (q *pending) inspect() {
	q.deleting = q.request.operation == opUpdate && !metadata(q.object).Member("deletionTimestamp").IsNull()
	if (q.deleting || q.request.subresource == "resize") && !q.old.IsZero() {
		same, err := sameImages(q.object, q.old)
		q.running = err == nil && same
	}
	q.leaving = q.deleting && onlyFinalizers(q.kind(), q.request.object, q.request.oldObject)
	q.mirror = q.isMirror()
}

// isMirror reports whether a node created the mirror pod of its own static pod. The annotation
// alone proves nothing, because every user may set it.
func (q *pending) isMirror() bool {
	if !q.isPod() || q.request.operation != opCreate || q.request.subresource != "" {
		return false
	}
	if metadata(q.object).Member("annotations").Member("kubernetes.io/config.mirror").Text() == "" {
		return false
	}
	node := q.object.Root().Member("spec").Member("nodeName").Text()
	return node != "" && q.request.user == "system:node:"+node && slices.Contains(q.request.groups, "system:nodes")
}
