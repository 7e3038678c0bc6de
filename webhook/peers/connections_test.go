package peers_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
)

// TestConnectionsOutliveAnAnswer: of two replicas the one that knows answers first, each
// time. The other one is asked over few connections all the same, and not over a new one,
// with a handshake for both sides, for each question.
func TestConnectionsOutliveAnAnswer(t *testing.T) {
	const questions = 20
	asked, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2*questions)
	knows, knowsNot := path(t, ourKey, memory{"a": []byte("A")}), path(t, ourKey, memory{})
	fast := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-asked // so that the other one has the question, too
		knows.ServeHTTP(w, r)
	}))
	var opened, answered atomic.Int64
	slow := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-release
		knowsNot.ServeHTTP(w, r)
		if r.Context().Err() == nil {
			answered.Add(1)
		}
	}))
	slow.Config.ErrorLog = quiet()
	slow.Config.ConnState = func(_ netConn, state http.ConnState) {
		switch state {
		case http.StateNew:
			opened.Add(1)
		case http.StateClosed:
			ended <- struct{}{}
		default:
		}
	}
	slow.StartTLS()
	t.Cleanup(slow.Close)
	c := client(t, ourKey, nil, fast, &replica{Server: slow})
	// A connection can be used again when the client has put it back, which is after the server
	// has sent the response.
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{PutIdleConn: func(error) { ended <- struct{}{} }})
	for range questions {
		if got := c.Get(ctx, []string{"a"}); len(got) != 1 {
			t.Fatal("the fast replica's answer is lost")
		}
		release <- struct{}{}
		<-ended // of either replica
		<-ended
	}
	if n := opened.Load(); n > questions/4 {
		t.Errorf("%d connections for %d questions, of which %d were answered", n, questions, answered.Load())
	}
}

// BenchmarkRecall asks two replicas of which one knows, as a pod does that was admitted by
// that one a moment ago.
func BenchmarkRecall(b *testing.B) {
	var opened atomic.Int64
	replicas := make([]*replica, 2)
	for i, facts := range []memory{{"a": []byte("A")}, {}} {
		r := httptest.NewUnstartedServer(path(b, ourKey, facts))
		r.Config.ErrorLog = quiet()
		r.Config.ConnState = func(_ netConn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		r.StartTLS()
		b.Cleanup(r.Close)
		replicas[i] = &replica{Server: r}
	}
	c := client(b, ourKey, nil, replicas...)
	for b.Loop() {
		if got := c.Get(b.Context(), []string{"a"}); len(got) != 1 {
			b.Fatal("the answer is lost")
		}
	}
	b.ReportMetric(float64(opened.Load())/float64(b.N), "connections/op")
}
