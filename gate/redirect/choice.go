package redirect

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// Session is what is asked of a target.
type Session interface {
	// Resolve returns the digest that the reference stands for now, or for a
	// reference with a digest that the registry has it.
	Resolve(ctx context.Context, ref image.Ref) (image.Pinned, error)
	// Scope names the credentials.
	Scope() string
}

// Health knows which registries answer. A nil Health knows nothing, and every
// target is asked.
type Health interface {
	// Rest reports that the registry (host or host:port) did not answer a moment
	// ago, and why; it is then not asked.
	Rest(registry string) (why string, resting bool)
	// Told says how asking the registry ended: nil, or an error as image.KindOf
	// sorts them. Only image.Unavailable, and time that ran out, speak against it.
	Told(registry string, err error)
}

// Question is one image that a mirror speaks of.
type Question struct {
	Route *mirror.Route
	// Open returns a session for a target's repository. An error is could-not-look.
	// It is called on the caller's goroutine, and must heed its context.
	Open func(ctx context.Context, repository image.Repository) (Session, error)
}

// State is what became of a candidate.
type State string

// The states. They are a contract of the versioned record.
const (
	Chosen   State = "chosen"    // it serves the digest, or need not be asked
	Missing  State = "missing"   // it answered and does not have the digest
	Differs  State = "differs"   // its tag stands for another digest, and it does not have this one
	Failed   State = "failed"    // it could not be looked at
	Resting  State = "resting"   // it did not answer a moment ago and was not asked
	NotAsked State = "not-asked" // an earlier candidate was chosen, or nothing was to be asked
)

// Attempt is what one candidate answered.
type Attempt struct {
	Target image.Ref
	State  State
	// Tag is the digest that the candidate's tag stands for; zero where it was not
	// asked or did not say.
	Tag image.Digest
	// Err is why it could not be looked at, or why it was refused; nil for who was
	// chosen.
	Err error
	// Took is how long it was asked; zero when memory knew.
	Took time.Duration
}

// Choice is what came of a question.
type Choice struct {
	// Target is the image at the chosen candidate, pinned; zero where none
	// qualifies.
	Target image.Pinned
	// Attempts has an entry for each candidate, in order.
	Attempts []Attempt
}

// Words says to a person what became of a candidate.
func (a Attempt) Words() string {
	switch a.State {
	case Chosen:
		return "serves the digest"
	case Missing:
		return "does not have the digest"
	case Differs:
		return "has another digest behind the tag (" + a.Tag.Short() + ") and does not have this one"
	case Resting:
		return "did not answer a moment ago and was not asked" + a.because()
	case Failed:
		return "could not be looked at" + a.because()
	}
	return "was not asked"
}

func (a Attempt) because() string {
	if a.Err == nil {
		return ""
	}
	return ": " + a.Err.Error()
}
