package registry

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/quaymaster/quaymaster/image"
)

// anonymous is the turn without a credential.
const anonymous = -1

// attempt is a request with one credential.
type attempt struct {
	turn    int
	failure *Error
	// foreign: the author of a workload wrote the credential.
	foreign bool
	// canRetry: another credential may succeed.
	canRetry bool
}

// isClean reports whether the registry answered: this credential has no access to the image, or there
// is nothing that it has access to.
func (a *attempt) isClean() bool { return a.failure.denied || a.failure.missing }

// attempts are the tries of one request. The credential that last succeeded is tried first, or that of
// the first source. After a failure that a credential can cause, the others are tried once each, as by
// the kubelet. The author of a workload writes credentials, so a failure with one of them does not
// show that the registry is down. Only a failure without a credential does: after the first such
// failure there is an anonymous try.
type attempts struct {
	requester *requester
	request   request
	settled   bool // the first turn succeeded before
	isAgain   bool // this is not the first pass
	next      int  // source
	sent      []auth.Credential
	made      []attempt
	answers   bool   // the registry refuses requests without a credential
	bound     *Error // there are more sources than are tried
	// end is when a failure is returned that a workload's credential may have caused; zero
	// without a deadline or such credentials.
	end time.Time
}

// pass repeats the attempts that failed temporarily, and then makes those that are left.
// One pass comes before any pause, so that the deadline does not hide the result of the
// next credential.
func (a *attempts) pass(ctx context.Context) *answer {
	for i := range a.made {
		if !a.made[i].failure.Temporary() || a.isOver(ctx) {
			continue
		}
		if got := a.make(ctx, i); got != nil {
			return got
		}
	}
	for len(a.made) == 0 || !a.isOver(ctx) {
		turn, ok := a.choose(ctx)
		if !ok {
			break
		}
		a.made = append(a.made, attempt{turn: turn})
		if got := a.make(ctx, len(a.made)-1); got != nil {
			return got
		}
	}
	return nil
}

// choose returns the next turn, and whether there is one.
func (a *attempts) choose(ctx context.Context) (turn int, ok bool) {
	has := func(f func(*attempt) bool) bool {
		return slices.ContainsFunc(a.made, func(m attempt) bool { return f(&m) })
	}
	if len(a.made) == 0 {
		return a.request.turn, true
	}
	if has(func(m *attempt) bool { return !m.canRetry }) {
		return 0, false
	}
	bare := !a.answers && !a.request.writes() && !has(func(m *attempt) bool { return m.turn == anonymous })
	if bare && has(func(m *attempt) bool { return !m.isClean() }) {
		return anonymous, true
	}
	for a.next < len(a.requester.credentials) {
		i := a.next
		a.next++
		credential, err := a.requester.credentials.at(ctx, i, a.request.repository)
		switch {
		case kindIs(err, image.Bound):
			a.bound, a.next = a.requester.explain(ctx, a.request, err), len(a.requester.credentials)
		case err != nil || credential == auth.EmptyCredential || slices.Contains(a.sent, credential):
		default:
			return i + 1, true
		}
	}
	return anonymous, bare && (a.aboutImage() || !has(func(m *attempt) bool { return m.failure.missing }))
}

// make makes an attempt, and caches the credential that succeeded.
func (a *attempts) make(ctx context.Context, i int) *answer {
	r, m, q := a.requester, &a.made[i], a.request
	q.turn, q.trail = m.turn, &trail{}
	limited, cancel := a.limit(ctx, m.turn)
	defer cancel()
	got, err := r.try(limited, q)
	if err == nil {
		if len(r.credentials) > 0 && (!a.settled || m.turn != a.request.turn) {
			r.working.Set(q.repository.String(), m.turn)
		}
		return got
	}
	m.failure, _ = errors.AsType[*Error](err)
	a.answers = a.answers || q.trail.refusesBare
	if m.turn == anonymous {
		m.canRetry = i > 0 || m.failure.denied
		return nil
	}
	credential, source, _ := r.credentialOf(ctx, q)
	if credential == auth.EmptyCredential {
		m.canRetry = false
		return nil
	}
	if !slices.Contains(a.sent, credential) {
		a.sent = append(a.sent, credential)
	}
	m.foreign = r.credentials[source].Foreign
	m.canRetry = a.mayBeCause(m, i, q)
	return nil
}

// mayBeCause reports whether the credential may be the cause of a failure.
func (a *attempts) mayBeCause(m *attempt, i int, q request) bool {
	failure := m.failure
	settled := i == 0 && a.settled // it has access to the repository
	switch {
	case failure.denied:
		return !q.lacks(failure.Status) || !settled && q.method != http.MethodHead
	case q.writes():
		return false
	case failure.missing:
		return !settled && q.trail.mattered
	case failure.Kind != image.Unavailable || isUnread(failure):
		return false
	case q.lacks(failure.Status) && (settled || q.method == http.MethodHead):
		return false // the fallback request shows it
	}
	return q.trail.mattered || failure.rests
}

// lacks reports whether a status may mean that the registry does not have the requested
// method or the referrers API, independent of the credential.
func (q request) lacks(status int) bool {
	switch status {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return q.method == http.MethodHead || q.endpoint == endpointReferrers
	case http.StatusBadRequest, http.StatusNotAcceptable:
		return q.endpoint == endpointReferrers
	}
	return false
}

// isUnread reports whether a credential could not be read.
func isUnread(failure *Error) bool {
	_, ok := errors.AsType[*credentialError](failure.Err)
	return ok
}

// credentialTimeout bounds the try with one credential of a workload, which may make a registry hang.
// Slow registries take less. In later passes it has the remaining time.
const credentialTimeout = 2 * time.Second

// errorMargin is how long before its deadline a caller gets a failure that a workload's credential may
// have caused. Otherwise the caller would see only its own deadline, as when a registry is down.
const errorMargin = 300 * time.Millisecond

func (c credentials) haveForeign() bool {
	return slices.ContainsFunc(c, func(s Source) bool { return s.Foreign })
}

// isOver reports whether no further attempt is to be made.
func (a *attempts) isOver(ctx context.Context) bool {
	return ctx.Err() != nil || !a.end.IsZero() && !time.Now().Before(a.end)
}

// limit keeps time for the other credentials, and for the answer.
func (a *attempts) limit(ctx context.Context, turn int) (context.Context, context.CancelFunc) {
	switch {
	case !a.requester.credentials.haveForeign() || turn == anonymous || a.isAgain && a.end.IsZero():
		return ctx, func() {}
	case a.isAgain:
		return context.WithDeadline(ctx, a.end)
	case a.end.IsZero():
		return context.WithTimeout(ctx, credentialTimeout)
	}
	return context.WithTimeout(ctx, min(credentialTimeout, time.Until(a.end)/2))
}

func (a *attempts) aboutImage() bool {
	return a.request.op == opResolve || a.request.op == opDescribe
}

// decisive is the most significant attempt: one that ended the others, else "not found",
// then a failed lookup, then a refusal.
func (a *attempts) decisive() *attempt {
	var missing, open, bareMissing *attempt
	isRefused := false
	for i := range a.made {
		m := &a.made[i]
		isBare := m.turn == anonymous
		switch {
		case !m.canRetry:
			return m
		case m.failure.missing && isBare:
			bareMissing = m
		case m.failure.missing && missing == nil:
			missing = m
		case m.failure.denied:
			isRefused = isRefused || !isBare
		case !m.failure.missing && !isBare && open == nil:
			open = m
		}
	}
	switch {
	case missing != nil:
		return missing
	case bareMissing != nil && (!isRefused || !a.aboutImage()):
		return bareMissing
	case open != nil:
		return open
	}
	return &a.made[0]
}

// failure is the error of the decisive attempt.
func (a *attempts) failure(m *attempt) *Error {
	isDown := slices.ContainsFunc(a.made, func(m attempt) bool { return m.turn == anonymous && !m.isClean() })
	switch {
	case m.canRetry && a.bound != nil:
		return a.bound
	case m.canRetry && m.foreign && !m.isClean() && !isDown:
		m.failure.byCredential = true
		m.failure.Hint = "the credential may be the cause: " + a.requester.blame(context.Background(), a.request.repository)
	}
	return m.failure
}
