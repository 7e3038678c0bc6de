package scan_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/scan"
)

// quay is a registry in memory that is away on demand.
type quay struct {
	asked int
	err   error
}

func (q *quay) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	return pierced{quay: q}, nil
}

type pierced struct {
	gate.Session
	quay *quay
}

func (p pierced) Resolve(context.Context, image.Ref) (image.Pinned, error) {
	p.quay.asked++
	return image.Pinned{}, p.quay.err
}

// TestCalm: look-ups come at the rate that is set, and a registry that gives no answer is
// left alone for a while, and no other.
func TestCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quay{}
		calm := testkit.Must(scan.NewPacer(q, 10))(t)
		resolve := func(name string) error {
			ref := testkit.Must(image.Parse(name))(t)
			session := testkit.Must(calm.Open(t.Context(), gate.Access{}, ref.Repository()))(t)
			_, err := session.Resolve(t.Context(), ref)
			return err
		}
		began := time.Now()
		for range 110 {
			_ = resolve("one.example/a:1")
		}
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("110 look-ups at 10 a second, 10 of them at once, took %s", took)
		}
		away := &image.Error{Kind: image.Unavailable, Op: "resolve", On: "one.example/a", Err: errors.New("refused")}
		for _, row := range []struct {
			reason string
			after  time.Duration
			name   string
			err    error
			asks   bool
		}{
			{"it does not answer", 0, "one.example/a:1", away, true},
			{"nor is it asked again", 0, "one.example/b:1", away, false},
			{"another is", 0, "two.example/a:1", nil, true},
			{"after a while it is, too", time.Minute, "one.example/b:1", nil, true},
			{"and has answered", 0, "one.example/b:1", nil, true},
			{"not found is an answer", 0, "one.example/b:1", &image.Error{Kind: image.NotFound, Op: "resolve", On: "x", Err: errors.New("404")}, true},
			{"so it is asked for the next", 0, "one.example/c:1", nil, true},
		} {
			timer := time.NewTimer(row.after + time.Second)
			<-timer.C
			q.err = row.err
			before := q.asked
			err := resolve(row.name)
			if (q.asked > before) != row.asks || (err != nil) != (row.err != nil) {
				t.Errorf("%s: asked %t, %v", row.reason, q.asked > before, err)
			}
			if errors.Is(row.err, away) && image.KindOf(err) != image.Unavailable {
				t.Errorf("%s: %v is not unavailable", row.reason, err)
			}
		}
	})
	if _, err := scan.NewPacer(&quay{}, 0); err == nil {
		t.Error("a rate of nothing")
	}
}
