package background

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/quaymaster/quaymaster/background"
)

// followerNotes is a background.Follower that records its calls.
type followerNotes struct {
	sinkNotes
	position string
}

func (f *followerNotes) Position() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.position
}

func (f *followerNotes) Reached(version string) {
	f.say("reached "+version, nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.position = version
}

func (f *followerNotes) Missed(error) { f.say("missed", nil) }

// TestWatchFromAPosition: a Follower receives the deletions between its position and the list, and of
// earlier changes nothing, since the list has a later state.
func TestWatchFromAPosition(t *testing.T) {
	const expired = `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}}` + "\n"
	event := func(kind, object string) string {
		return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object)
	}
	replayed := event("ADDED", configMap("two", "6")) + event("DELETED", configMap("gone", "7")) + event("MODIFIED", configMap("one", "10")) +
		event("BOOKMARK", configMap("", "11")) + event("DELETED", configMap("one", "12"))
	listed := []string{"listing", "listed one", "synced"}
	for _, c := range []struct {
		reason, position string
		events           map[string]string // of the first watch from a version
		want             []string
	}{
		{"none", "", map[string]string{"10": event("DELETED", configMap("one", "12"))}, []string{"reached 10", "deleted one", "reached 12"}},
		{"that of the list", "10", map[string]string{"10": event("DELETED", configMap("one", "12"))}, []string{"deleted one", "reached 12"}},
		{"an earlier one", "5", map[string]string{"5": replayed}, []string{
			"reached 6", "deleted gone", "reached 7", "reached 10", "reached 11", "deleted one", "reached 12",
		}},
		{"one of fewer digits", "9", map[string]string{"9": event("ADDED", configMap("new", "11"))}, []string{"came new", "reached 11"}},
		{"one that is unknown", "5", map[string]string{"5": expired, "10": event("DELETED", configMap("one", "12"))}, []string{"missed", "deleted one", "reached 12"}},
		{"one after the list", "11", map[string]string{"10": event("DELETED", configMap("one", "12"))}, []string{"missed", "reached 10", "deleted one", "reached 12"}},
		{"one that is no number", "a5", map[string]string{"10": event("DELETED", configMap("one", "12"))}, []string{"missed", "reached 10", "deleted one", "reached 12"}},
	} {
		t.Run(c.reason, func(t *testing.T) {
			var mu sync.Mutex
			seen := map[string]bool{}
			api := newAPIServer(t, func(w http.ResponseWriter, r *http.Request, _ string) {
				query := r.URL.Query()
				if query.Get("watch") == "" {
					respond(w, fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"10"},"items":[%s]}`, configMap("one", "8")))
					return
				}
				version := query.Get("resourceVersion")
				mu.Lock()
				again := seen[version]
				seen[version] = true
				mu.Unlock()
				if again || c.events[version] == "" {
					<-r.Context().Done()
					return
				}
				respond(w, c.events[version])
			})
			want := append(slices.Clone(listed), c.want...)
			to := &followerNotes{sinkNotes: sinkNotes{want: len(want), done: make(chan struct{})}, position: c.position}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				api.Watch(ctx, configMapKind, "", "", to)
			}()
			select {
			case <-to.done:
			case <-time.After(30 * time.Second):
				t.Error("it takes too long")
			}
			cancel()
			<-ended
			if !slices.Equal(to.said, want) {
				t.Errorf("got %q\nwant %q", to.said, want)
			}
		})
	}
}

// TestPositionsInTheLease: they are stored next to the kinds, and removed with the last of them.
func TestPositionsInTheLease(t *testing.T) {
	m := newProgressStore(fake.NewClientset().CoordinationV1(), "quaymaster", "one")
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, want := range [][]background.Position{nil, {{Kind: configMapKind, Namespace: "shop", Version: "12"}}, nil} {
		if err := m.Save(t.Context(), background.Progress{Until: until, Positions: want}); err != nil {
			t.Fatal(err)
		}
		if p, err := m.Load(t.Context()); err != nil || !p.Until.Equal(until) || !slices.Equal(p.Positions, want) {
			t.Errorf("%+v, %v; want %+v", p, err, want)
		}
	}
}
