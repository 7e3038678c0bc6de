package discovery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gateway"
)

// after waits on the bubble's clock, until all others wait.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestKindThatComesIsToldAtOnce: and once more when discovery knows of it; nothing is
// told where no definition changes.
func TestKindThatComesIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var defined gateway.Signal
		told := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			WatchDefinitions(ctx, &defined, func() { told++ })
		}()
		for _, step := range []struct {
			reason string
			do     func()
			told   int
		}{
			{"nothing changed", func() { after(time.Hour) }, 0},
			{"one changed", func() { defined.Notify(); synctest.Wait() }, 1},
			{"it changed again before discovery knew", func() { after(discoveryLag / 2); defined.Notify(); synctest.Wait() }, 2},
			{"discovery may not know yet", func() { after(discoveryLag - time.Millisecond) }, 2},
			{"discovery knows", func() { after(time.Millisecond) }, 3},
			{"nothing changes any more", func() { after(time.Hour) }, 3},
		} {
			step.do()
			if told != step.told {
				t.Errorf("%s: told %d times, want %d", step.reason, told, step.told)
			}
		}
		stop()
		<-done
	})
}
