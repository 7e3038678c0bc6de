package discovery

import (
	"context"
	"sync/atomic"
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

// TestNewKindIsReportedAtOnce: and once more when discovery knows of it; nothing is
// reported where no definition changes.
func TestNewKindIsReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var defined gateway.Signal
		var reported atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			WatchDefinitions(ctx, &defined, func() { reported.Add(1) })
		}()
		for _, step := range []struct {
			reason string
			do     func()
			want   int64
		}{
			{"nothing changed", func() { after(time.Hour) }, 0},
			{"one changed", func() { defined.Notify(); synctest.Wait() }, 1},
			{"it changed again before discovery knew", func() { after(discoveryLag / 2); defined.Notify(); synctest.Wait() }, 2},
			{"discovery may not know yet", func() { after(discoveryLag - time.Millisecond) }, 2},
			{"discovery knows", func() { after(time.Millisecond) }, 3},
			{"nothing changes any more", func() { after(time.Hour) }, 3},
		} {
			step.do()
			if got := reported.Load(); got != step.want {
				t.Errorf("%s: reported %d times, want %d", step.reason, got, step.want)
			}
		}
		stop()
		<-done
	})
}
