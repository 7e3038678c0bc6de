package health

import (
	"container/list"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/image"
)

// Phase is whether a registry is asked.
type Phase string

// The phases.
const (
	Closed   Phase = "closed"    // it is asked
	Open     Phase = "open"      // it rests
	HalfOpen Phase = "half-open" // it rests, and is being probed
	// Forgotten is only reported to an observer: the entry was unused for long, or was
	// evicted. The next request starts a new one.
	Forgotten Phase = "forgotten"
)

// State is the state of one registry.
type State struct {
	// Registry is a host or host:port, as references write it.
	Registry string
	Phase    Phase
	// Since is when it was first found to answer, or not to; a failed probe does not change
	// it.
	Since time.Time
	// Err is the last failure; nil if there was none. It stays when the registry
	// answers again.
	Err error
}

// entry is one registry.
type entry struct {
	State
	rest  time.Duration // the present rest, or the last
	asked time.Time     // time of the last use
	doubt time.Time     // when a failure of one image last had it probed
	turn  int           // counts the changes, so that a late probe changes nothing
	timer *time.Timer   // of the next probe; nil when closed
	place *list.Element // in the list of those that answer, or of those that rest
}

func (e *entry) resting() bool { return e.Phase != Closed }

// verdict is the meaning of an error for a registry.
type verdict int

const (
	nothing  verdict = iota // of the registry
	present                 // it, or another server, answered
	doubtful                // it answered with an error of its own, which may be about one image
	silent
)

// judge classifies an error. Failures on the caller's side do not count: it was cancelled,
// has no credential or one that has reached its limit, or could not send its request.
func judge(err error) verdict {
	if failure, ok := errors.AsType[interface {
		error
		IsSilence() bool
		IsLimited() bool
		HasAnswered() bool
	}](err); ok && image.KindOf(err) == image.Unavailable {
		switch {
		case failure.IsLimited() || !failure.IsSilence():
			return nothing
		case failure.HasAnswered():
			return doubtful
		}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return silent
	case errors.Is(err, context.Canceled):
		return nothing
	case image.KindOf(err) != image.Unavailable: // success, too
		return present
	}
	return silent
}

// reason is a failure in one line of a bounded length.
func reason(err error) string {
	const most = 300
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
