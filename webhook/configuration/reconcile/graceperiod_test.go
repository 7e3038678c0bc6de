package reconcile

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// TestGracePeriod: removed resources stay selected for the grace period, and changed ones
// are required as they are now.
func TestGracePeriod(t *testing.T) {
	const pods, tasks = " /v1/pods", "tekton.dev/v1/tasks"
	one, other := about([]string{"Pod"}, named("pods")), about([]string{"Task"}, named("tasks"))
	for _, row := range []struct {
		reason   string
		change   func(*configuration.Input)
		after    time.Duration
		required []string
		not      string
	}{
		{"nothing is gone", func(*configuration.Input) {}, gracePeriod, []string{pods, tasks}, "none"},
		{"a policy, at once", func(in *configuration.Input) { in.Policies = in.Policies[1:] }, 0, []string{pods, tasks}, "none"},
		{"a policy, shortly before", func(in *configuration.Input) { in.Policies = in.Policies[1:] }, gracePeriod - 1, []string{pods, tasks}, "none"},
		{"a policy, and its time", func(in *configuration.Input) { in.Policies = in.Policies[1:] }, gracePeriod, []string{tasks}, pods},
		{"all of them, at once", func(in *configuration.Input) { in.Policies = nil }, 0, []string{pods, tasks}, "none"},
		{"all of them, and their time", func(in *configuration.Input) { in.Policies = nil }, gracePeriod, nil, pods},
		{"a policy that matches less", func(in *configuration.Input) {
			in.Policies = []*policy.Policy{one, about([]string{"Job"}, named("tasks"))}
		}, 0, []string{pods, "batch/v1/jobs"}, tasks},
	} {
		t.Run(row.reason, bubble(func(t *testing.T) {
			b := newBench(t, input(t, one, other))
			b.round(t)
			row.change(&b.source.input)
			b.round(t)
			time.Sleep(row.after) //nolint:forbidigo // the clock of the bubble
			b.round(t)
			got := strings.Join(lines(b.validating.object.Webhooks), ";")
			for _, want := range row.required {
				if !strings.Contains(got, want) {
					t.Errorf("%s is not asked about: %s", want, got)
				}
			}
			if strings.Contains(got, row.not) {
				t.Errorf("%s is asked about: %s", row.not, got)
			}
		}))
	}
}

// TestComesBack: a resource that returns within the grace period is required, and has a new one when it goes.
func TestComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		both := []configuration.Input{input(t, about([]string{"Pod"})), input(t)}
		both[0].Mirrors = configuration.MirrorsClosed
		b := newBench(t, both[0])
		for round := range 4 {
			b.source.input = both[round%2]
			b.round(t)
			time.Sleep(gracePeriod - 1) //nolint:forbidigo // the clock of the bubble
			b.round(t)
			got := lines(b.validating.object.Webhooks)
			if len(got) == 0 || !strings.HasPrefix(got[0], "images NotIn") {
				t.Fatalf("round %d: asked is %q", round, got)
			}
		}
		time.Sleep(time.Nanosecond) //nolint:forbidigo // the clock of the bubble
		b.round(t)
		if got := lines(b.validating.object.Webhooks); len(got) != 0 {
			t.Errorf("its time is over, and asked is %q", got)
		}
	})
}

// TestMirrorsLinger: mirrors that deny close the webhook of pods for lingers more.
func TestMirrorsLinger(t *testing.T) {
	for _, row := range []struct {
		reason string
		now    configuration.Mirrors
		after  time.Duration
		want   string
	}{
		{"as they were", configuration.MirrorsClosed, gracePeriod, "images NotIn"},
		{"gone at once", configuration.NoMirrors, 0, "images NotIn"},
		{"gone, shortly before", configuration.NoMirrors, gracePeriod - 1, "images NotIn"},
		{"gone, and their time", configuration.NoMirrors, gracePeriod, ""},
		{"they do not deny any more, shortly before", configuration.MirrorsOpen, gracePeriod - 1, "images NotIn"},
		{"they do not, and the time is over", configuration.MirrorsOpen, gracePeriod, "images-ignore NotIn"},
	} {
		t.Run(row.reason, bubble(func(t *testing.T) {
			in := input(t)
			in.Mirrors = configuration.MirrorsClosed
			b := newBench(t, in)
			b.round(t)
			b.source.input.Mirrors = row.now
			b.round(t)
			time.Sleep(row.after) //nolint:forbidigo // the clock of the bubble
			b.round(t)
			got := strings.Join(lines(b.validating.object.Webhooks), ";")
			if row.want == "" && got != "" || !strings.Contains(got, row.want) {
				t.Errorf("asked is %q, want %q", got, row.want)
			}
		}))
	}
}

// TestRunLetsGo: the grace period ends without a notification.
func TestRunLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, input(t, about([]string{"Pod"})))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.reconciler.Run(ctx)
		}()
		time.Sleep(2 * pause) //nolint:forbidigo // the clock of the bubble
		b.source.set(input(t))
		b.changed <- struct{}{}
		synctest.Wait()
		if got := lines(b.validating.now().Webhooks); len(got) == 0 {
			t.Error("what went only now is not asked about")
		}
		time.Sleep(gracePeriod + pause) //nolint:forbidigo // the clock of the bubble
		synctest.Wait()
		if got := lines(b.validating.now().Webhooks); len(got) != 0 {
			t.Errorf("its time is over, and asked is %q", got)
		}
		stop()
		<-done
	})
}
