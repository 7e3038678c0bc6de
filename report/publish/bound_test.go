package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/workload"

	"github.com/quaymaster/quaymaster/gate"
)

func of(name string, at int) report.Decided {
	return report.Decided{
		Occasion: report.Occasion{Time: time.Unix(int64(at), 0)},
		Outcome:  gate.Outcome{Subject: &policy.Subject{Kind: "Pod", Namespace: "shop", Name: name}},
	}
}

// TestQueueIsBounded: when it is full, what something newer is known of goes first, the
// oldest before all others, and never the last word about an object that waits.
func TestQueueIsBounded(t *testing.T) {
	type entry struct {
		name string
		at   int
	}
	for _, row := range []struct {
		reason            string
		given             []entry
		left              []entry
		outdated, refused int
	}{
		{"there is room", []entry{{"a", 1}, {"a", 2}, {"b", 3}}, []entry{{"a", 1}, {"a", 2}, {"b", 3}}, 0, 0},
		{"an older one of the same waits", []entry{{"a", 1}, {"b", 2}, {"c", 3}, {"a", 4}}, []entry{{"b", 2}, {"c", 3}, {"a", 4}}, 1, 0},
		{"an older one of another waits", []entry{{"a", 1}, {"b", 2}, {"b", 3}, {"c", 4}}, []entry{{"a", 1}, {"b", 3}, {"c", 4}}, 1, 0},
		{"the oldest of several goes", []entry{{"a", 1}, {"a", 2}, {"a", 3}, {"b", 4}, {"c", 5}}, []entry{{"a", 3}, {"b", 4}, {"c", 5}}, 2, 0},
		{"only last words wait", []entry{{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}}, []entry{{"a", 1}, {"b", 2}, {"c", 3}}, 0, 1},
	} {
		q := newQueue(3)
		outdated, refused := 0, 0
		for _, e := range row.given {
			o, r := q.add(of(e.name, e.at))
			if o {
				outdated++
			}
			if r {
				refused++
			}
		}
		var left []entry
		for d, ok := q.next(); ok; d, ok = q.next() {
			left = append(left, entry{d.Outcome.Subject.Name, int(d.Occasion.Time.Unix())})
		}
		if fmt.Sprint(left) != fmt.Sprint(row.left) || outdated != row.outdated || refused != row.refused {
			t.Errorf("%s: left %v, %d outdated, %d refused", row.reason, left, outdated, refused)
		}
		if q.size() != 0 || len(q.last) != 0 || q.outdated.Len() != 0 {
			t.Errorf("%s: something is left in an empty queue", row.reason)
		}
	}
}

// TestQueueOfLargeObjects: large objects fill it sooner, and what goes makes room.
func TestQueueOfLargeObjects(t *testing.T) {
	large, err := workload.Parse([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + strings.Repeat("x", 2<<20) + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	heavy := func(name string) report.Decided {
		d := of(name, 1)
		d.Outcome.Object = large
		return d
	}
	q := newQueue(1000)
	most := maxHeld / int(report.Weight(heavy("a")))
	for i := range most {
		if _, refused := q.add(heavy(fmt.Sprint("a", i))); refused {
			t.Fatalf("%d of %d is refused", i, most)
		}
	}
	if _, refused := q.add(heavy("b")); !refused {
		t.Error("there is room beyond the bound")
	}
	if outdated, refused := q.add(heavy("a0")); !outdated || refused {
		t.Errorf("a newer word of one that waits: outdated %t, refused %t", outdated, refused)
	}
	if _, ok := q.next(); !ok {
		t.Fatal("nothing waits")
	}
	if _, refused := q.add(heavy("b")); refused {
		t.Error("the taken change makes no room")
	}
}

// TestPendingIsBounded: a change without room waits until another is taken out,
// and is due then.
func TestPendingIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	p := newPending(3*changeCost, func() time.Time { return now })
	add := func(ctx context.Context, name string) error {
		c := newChange(policyreport.Place{Namespace: "shop", Name: name})
		c.item(report.Resource{Kind: "Pod", Namespace: "shop", Name: name}).add(entryOf(result.Result{Rule: "r"}))
		return p.add(ctx, c)
	}
	for _, name := range []string{"a", "b"} {
		if err := add(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if c, _ := p.take(); c != nil {
		t.Error("something is due before it has waited")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := add(ended, "c"); !errors.Is(err, context.Canceled) {
		t.Errorf("what has no room was taken in: %v", err)
	}
	added := make(chan error)
	go func() { added <- add(t.Context(), "c") }()
	c, _ := p.take()
	if c == nil {
		t.Fatal("what waits is not due while there is no room")
	}
	if err := <-added; err != nil {
		t.Error(err)
	}
	p.done(c.address())
	results, bytes := p.size()
	if results != 2 || bytes <= 0 {
		t.Errorf("%d results in %d bytes wait, want 2", results, bytes)
	}
	for range 2 {
		if c, _ := p.take(); c != nil {
			p.done(c.address())
		}
	}
	now = now.Add(time.Minute)
	if c, _ := p.take(); c != nil {
		p.done(c.address())
	}
	if results, bytes := p.size(); results != 0 || bytes != 0 || !p.idle() {
		t.Errorf("%d results in %d bytes are left", results, bytes)
	}
}
