package waittime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/internal/waittime"
)

func TestMostly(t *testing.T) {
	for _, c := range []struct {
		reason string
		spend  func(ctx context.Context)
		want   bool
	}{
		{"all of it", func(ctx context.Context) { defer waittime.Begin(ctx)(); <-time.After(time.Second) }, true},
		{"none of it", func(context.Context) { <-time.After(time.Second) }, false},
		{"half of it", func(ctx context.Context) {
			<-time.After(time.Second)
			end := waittime.Begin(ctx)
			<-time.After(time.Second)
			end()
		}, true},
		{"less than half of it", func(ctx context.Context) {
			end := waittime.Begin(ctx)
			<-time.After(time.Second)
			end()
			<-time.After(1001 * time.Millisecond)
		}, false},
		{"it still waits", func(ctx context.Context) { waittime.Begin(ctx); <-time.After(time.Second) }, true},
		{"two at a time wait no longer than one", func(ctx context.Context) {
			one, other := waittime.Begin(ctx), waittime.Begin(ctx)
			<-time.After(time.Second)
			one()
			other()
			<-time.After(1500 * time.Millisecond)
		}, false},
		{"the first clock counts", func(ctx context.Context) {
			<-time.After(time.Second)
			defer waittime.Begin(waittime.With(ctx))()
			<-time.After(time.Second / 2)
		}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := waittime.With(t.Context())
			c.spend(ctx)
			if waittime.Mostly(ctx) != c.want {
				t.Errorf("%s: %t", c.reason, !c.want)
			}
		})
	}
	waittime.Begin(t.Context())()
	if !waittime.Mostly(t.Context()) {
		t.Error("a context without a clock: Mostly returned false")
	}
}
