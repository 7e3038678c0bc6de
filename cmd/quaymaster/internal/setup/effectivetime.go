package setup

import (
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// effectiveTolerance is the greatest age of --effective-time: a pipeline computes the present
// before the call.
const effectiveTolerance = 5 * time.Minute

// clock is the policies' clock: the wall clock, or a clock that is ahead of it by the offset of
// --effective-time. A time in the past would revive expired exceptions.
func (f *Flags) clock() (func() time.Time, error) {
	if f.assumed.effective == "" {
		return time.Now, nil
	}
	at, err := command.OptionalTime("--effective-time", f.assumed.effective)
	if err != nil {
		return nil, err
	}
	ahead := time.Until(at)
	if ahead < -effectiveTolerance {
		return nil, fmt.Errorf("--effective-time %s is in the past: exceptions and overrides that have ended since would count again; what was decided then is in the decision log", f.assumed.effective)
	}
	return func() time.Time { return time.Now().Add(ahead) }, nil
}
