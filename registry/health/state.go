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
	// Forgotten is only told to an observer: nobody asked for a long time, or there
	// were too many registries. Who asks now, asks as if for the first time.
	Forgotten Phase = "forgotten"
)

// State is what is known of one registry.
type State struct {
	// Registry is a host or host:port, as references write it.
	Registry string
	Phase    Phase
	// Since is when it was first known to answer, or not to; a probe that fails
	// does not change it.
	Since time.Time
	// Err is the last failure; nil if there was none. It stays when the registry
	// answers again.
	Err error
}

// entry is one registry.
type entry struct {
	State
	rest  time.Duration // the present rest, or the last
	asked time.Time     // when somebody last wanted to know or told
	doubt time.Time     // when a failure of one image last had it probed
	turn  int           // counts the changes, so that a late probe changes nothing
	timer *time.Timer   // of the next probe; nil when closed
	place *list.Element // in the list of those that answer, or of those that rest
}

func (e *entry) resting() bool { return e.Phase != Closed }

// verdict is what an error says of a registry.
type verdict int

const (
	nothing  verdict = iota // of the registry
	present                 // it answered, or somebody did
	doubtful                // it answered with an error of its own, which may be about one image
	silent
)

// judge sorts an error. What a caller did to itself says nothing: it left, has no
// credential or one that has reached its limit, or could not send its question.
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
