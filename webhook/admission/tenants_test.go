package admission_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// tarpit holds what a namespace sends until its time is over, and pins for others.
type tarpit struct {
	greedy string
	held   atomic.Int64
	most   atomic.Int64
}

func (d *tarpit) Decide(ctx context.Context, request gate.Request) gate.Outcome {
	if request.Subject.Namespace != d.greedy {
		return pin(request)
	}
	d.most.Store(max(d.most.Load(), d.held.Add(1)))
	defer d.held.Add(-1)
	<-ctx.Done()
	return gate.Outcome{Result: gate.Error}
}

// padded is a pod in a namespace, of some size.
func padded(namespace string, bytes int, values int) object {
	p := pod("nginx")
	p["metadata"] = object{"name": "web", "namespace": namespace, "annotations": object{"pad": strings.Repeat("x", bytes)}}
	if values > 0 {
		list := make([]any, values)
		for i := range list {
			list[i] = object{}
		}
		p["extra"] = list
	}
	return p
}

// TestOneNamespaceLeavesRoomForOthers: for any load of a namespace (many requests,
// large ones, ones that take much memory to read), requests of another are answered at once.
// A request that waited too long gets the cause. A request that waits with a large body while
// memory is scarce is recorded at once.
func TestOneNamespaceLeavesRoomForOthers(t *testing.T) {
	for _, test := range []struct {
		reason   string
		count    int
		bytes    int
		values   int
		most     int64 // at work
		recorded int   // at once that others have to have room
		waiting  int
	}{
		{reason: "many requests", count: 1000, most: 192, waiting: 808},
		{reason: "large requests", count: 60, bytes: 1 << 20, most: 23, recorded: 37},
		{reason: "few requests full of values", count: 10, values: 20000, most: 2, waiting: 8},
		{reason: "large requests full of values", count: 30, bytes: 5 << 19, values: 20000, most: 2, recorded: 21},
	} {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue, err := admission.NewQueue(admission.QueueBounds{})
				if err != nil {
					t.Fatal(err)
				}
				d := &tarpit{greedy: "greedy"}
				seen := &recorder{}
				handler := endpointWith(t, admission.Config{
					Endpoint: admission.Mutate, Decider: d, Namespaces: namespaces{"shop": nil, "greedy": nil}, Failure: failure(false),
				}, withQueue(queue), withRecorder(seen))
				body := review(t, "CREATE", padded("greedy", test.bytes, test.values), nil, nil)
				var all sync.WaitGroup
				for range test.count {
					all.Go(func() { post(handler, "/?timeout=10s", body) })
				}
				synctest.Wait()
				if recorded := len(seen.All()); recorded != test.recorded {
					t.Errorf("%d are recorded at once, want %d", recorded, test.recorded)
				}
				if got := queue.WaitingForShare(); got != int64(test.waiting) {
					t.Errorf("%d wait for their share, want %d", got, test.waiting)
				}
				began := time.Now()
				for i := range 100 {
					a := read(t, post(handler, "/?timeout=10s", review(t, "CREATE", padded("shop", 1<<10*(i%100), 1000), nil, nil)))
					if !a.Response.Allowed {
						t.Fatalf("another namespace: %+v", a.Response)
					}
				}
				if took := time.Since(began); took != 0 { // of the bubble's clock, which stops during work
					t.Errorf("another namespace waited %v", took)
				}
				all.Wait()
				if got := d.most.Load(); got != test.most {
					t.Errorf("%d were at work, want %d", got, test.most)
				}
				shares := 0
				for _, r := range seen.All() {
					if r.Cause == admission.ShareTaken {
						shares++
					}
				}
				if shares < (test.recorded+test.waiting)/4 { // the rest got turns of expired requests, in the same moment
					t.Errorf("%d have the share as the cause, of %d that waited", shares, test.recorded+test.waiting)
				}
				if queue.Working() != 0 || queue.Waiting() != 0 {
					t.Errorf("%d at work, %d waiting at the end", queue.Working(), queue.Waiting())
				}
			})
		})
	}
}

// TestShareMessage: the message names the share, and never an unsigned image.
func TestShareMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, err := admission.NewQueue(admission.QueueBounds{Requests: 4})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := queue.Enter(t.Context(), "shop"); err != nil {
				t.Fatal(err)
			}
		}
		for _, open := range []bool{false, true} {
			seen := &recorder{}
			handler := endpointWith(t, admission.Config{Endpoint: admission.Validate, Decider: &pinner{}, Namespaces: shop, Failure: failure(open)},
				withQueue(queue), withRecorder(seen))
			a := read(t, post(handler, within, review(t, "CREATE", pod("nginx"), nil, nil)))
			if a.Response.Allowed || seen.Last(t).Cause != admission.ShareTaken { // the namespace fills its share
				t.Errorf("open %v: %+v, %s", open, a.Response, seen.Last(t).Cause)
			}
			message := a.Response.Status.Message + strings.Join(a.Response.Warnings, "")
			if !strings.Contains(message, "the namespace has reached its share") || strings.Contains(message, "unsigned") {
				t.Errorf("open %v: %q", open, message)
			}
		}
		leave, err := queue.Enter(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		leave()
	})
}

// TestATurnThatComesTooLate: a request that would get its turn at the timeout gets the
// cause before that. A request with an earlier turn is decided.
func TestATurnThatComesTooLate(t *testing.T) {
	for reason, row := range map[string]struct {
		freed    time.Duration // of eight seconds
		recorded string
	}{
		"with time left": {6 * time.Second, ""},
		"at the end":     {7500 * time.Millisecond, "the namespace has reached its share"},
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue, err := admission.NewQueue(admission.QueueBounds{Requests: 4})
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					leave, err := queue.Enter(t.Context(), "shop")
					if err != nil {
						t.Fatal(err)
					}
					time.AfterFunc(row.freed, leave)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
				defer cancel()
				_, err = queue.Enter(ctx, "shop")
				if recorded := fmt.Sprint(err); (err != nil) != (row.recorded != "") || !strings.Contains(recorded, row.recorded) {
					t.Errorf("got %v, want %q", err, row.recorded)
				}
			})
		})
	}
}

// BenchmarkBeside measures a namespace's requests alone, and next to a thousand requests of
// another namespace, which all wait for registries that never answer.
func BenchmarkBeside(b *testing.B) {
	for _, greedy := range []int{0, 1000} {
		b.Run(fmt.Sprintf("waiting=%d", greedy), func(b *testing.B) {
			queue, err := admission.NewQueue(admission.QueueBounds{})
			if err != nil {
				b.Fatal(err)
			}
			handler := endpointWith(b, admission.Config{
				Endpoint: admission.Mutate, Decider: &tarpit{greedy: "greedy"}, Namespaces: namespaces{"shop": nil, "greedy": nil}, Failure: failure(false),
			}, withQueue(queue))
			body := review(b, "CREATE", padded("greedy", 0, 0), nil, nil)
			ctx, end := context.WithCancel(b.Context())
			var all sync.WaitGroup
			for range greedy {
				all.Go(func() {
					r := httptest.NewRequest(http.MethodPost, "/?timeout=30s", strings.NewReader(string(body))).WithContext(ctx)
					r.Header.Set("Content-Type", "application/json")
					handler.ServeHTTP(httptest.NewRecorder(), r)
				})
			}
			for greedy > 0 && queue.Waiting() < int64(greedy)-192 {
				time.Sleep(time.Millisecond) //nolint:forbidigo // the clock of a benchmark
			}
			measure(b, handler, review(b, "CREATE", small(), nil, nil))
			end()
			all.Wait()
		})
	}
}

// TestOneAddressLeavesRoomForOthers: bodies that never end hold memory, those of one
// address no more than their share. An address without a share comes first where some wait.
func TestOneAddressLeavesRoomForOthers(t *testing.T) {
	const server = "10.0.0.1:1"
	for _, test := range []struct {
		reason string
		from   []string // each sends as many bodies as it can
		admits bool
	}{
		{"no other address", nil, true},
		{"another address", []string{"10.244.0.9"}, true},
		{"another IPv6 address", []string{"fd00::9"}, true},
		{"two other addresses", []string{"10.244.0.9", "10.244.0.8"}, true},
		{"the same address", []string{"10.0.0.1"}, false},
	} {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue, err := admission.NewQueue(admission.QueueBounds{})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				for _, host := range test.from {
					for port := range 100 {
						go func() { _, _ = queue.Reserve(ctx, net.JoinHostPort(host, strconv.Itoa(1+port)), 1<<20) }()
					}
					synctest.Wait()
				}
				soon, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				release, err := queue.Reserve(soon, server, 1<<20)
				if (err == nil) != test.admits {
					t.Errorf("a body of the API server: %v", err)
				}
				if err == nil {
					release()
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}
