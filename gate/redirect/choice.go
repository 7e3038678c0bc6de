package redirect

import (
	"context"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// Session sends the requests to a target.
type Session interface {
	// Resolve returns the digest that the reference resolves to now. For a reference with a
	// digest it checks that the registry has it.
	Resolve(ctx context.Context, ref image.Ref) (image.Pinned, error)
	// Scope names the credentials.
	Scope() string
}

// Health reports unresponsive registries. With a nil Health every target is asked.
type Health interface {
	// Rest reports that the registry (host or host:port) did not answer a moment
	// ago, and why; it is then not asked.
	Rest(registry string) (why string, resting bool)
	// Told records the result of a request to the registry: nil, or an error as image.KindOf
	// classifies it. Only image.Unavailable and timeouts count against the registry.
	Told(registry string, err error)
}

// Request is one image that a mirror matches.
type Request struct {
	Route *mirror.Route
	// Open returns a session for a target's repository. An error means that the target could
	// not be asked. It is called on the caller's goroutine, and must heed its context.
	Open func(ctx context.Context, repository image.Repository) (Session, error)
}

// State is the result for a candidate.
type State string

// The states. They are a contract of the versioned record.
const (
	Chosen   State = "chosen"    // it serves the digest, or need not be asked
	Missing  State = "missing"   // it answered and does not have the digest
	Differs  State = "differs"   // its tag resolves to another digest, and it does not have this one
	Failed   State = "failed"    // the request failed
	Resting  State = "resting"   // it did not answer a moment ago and was not asked
	NotAsked State = "not-asked" // an earlier candidate was chosen, or nothing was to be asked
)

// Attempt is the answer of one candidate.
type Attempt struct {
	Target image.Ref
	State  State
	// Tag is the digest that the candidate's tag resolves to; zero where it was not requested
	// or not returned.
	Tag image.Digest
	// Err is why it could not be queried, or was refused; nil for the chosen one.
	Err error
	// Took is the duration of its requests; zero for a cache hit.
	Took time.Duration
}

// Choice is the result of a question.
type Choice struct {
	// Target is the image at the chosen candidate, pinned; zero where none
	// qualifies.
	Target image.Pinned
	// Attempts has an entry for each candidate, in order.
	Attempts []Attempt
}

// Words describes the result for a candidate in a message.
func (a Attempt) Words() string {
	switch a.State {
	case Chosen:
		return "serves the digest"
	case Missing:
		return "does not have the digest"
	case Differs:
		return fmt.Sprintf("has another digest behind the tag (%s) and does not have this one", a.Tag)
	case Resting:
		return "did not answer recently and was not queried" + a.because()
	case Failed:
		return "could not be queried" + a.because()
	}
	return "was not queried"
}

func (a Attempt) because() string {
	if a.Err == nil {
		return ""
	}
	return ": " + a.Err.Error()
}
