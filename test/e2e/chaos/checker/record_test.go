package checker_test

import (
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/chaos/checker"
)

func TestRecord(t *testing.T) {
	l := &checker.Record{}
	moment := time.Now().Add(-time.Minute)
	answer := func(after time.Duration, truth checker.Truth, said checker.Outcome) {
		a := checker.Answer{Pod: "web", Truth: truth, Start: moment.Add(after), End: moment.Add(after + time.Second), Outcome: said}
		l.Begin(&a)
		l.Add(a)
	}
	answer(-2*time.Second, checker.Signed, checker.Unanswered) // before
	answer(-time.Second/2, checker.Signed, checker.Admitted)   // wanted before
	answer(time.Second, checker.Unsigned, checker.Denied)
	answer(2*time.Second, checker.Signed, checker.Admitted)
	answer(3*time.Second, checker.Unsigned, checker.Error)
	answer(5*time.Second, checker.Signed, checker.Admitted)
	got := l.Look(moment)
	if got.First.Sub(moment) != 3*time.Second || got.LastBad.Sub(moment) != 4*time.Second || got.Good != 1 || got.Waiting != 0 || got.Bad == nil {
		t.Errorf("got %+v", got)
	}
	l.Begin(&checker.Answer{Pod: "waits", Start: moment})
	if got := l.Look(moment.Add(5 * time.Second)); got.Waiting < time.Minute || got.Good != 1 || got.Bad != nil {
		t.Errorf("got %+v", got)
	}
}
