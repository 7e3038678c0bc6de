package certificate

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// readOnly is a Store that refuses writes, as an API server does without the right.
type readOnly struct{ Store }

func (readOnly) Put(context.Context, map[string][]byte, string) error { return errors.New("forbidden") }

// TestOwnFollows: a follower waits for the entries of others, has the same, and writes
// nothing: neither names that it lacks nor renewals that are due.
func TestOwnFollows(t *testing.T) {
	c, shared := newClock(), &Memory{}
	follower, err := NewOwn(OwnConfig{
		Store: readOnly{shared}, Where: "secret a/b", Names: []string{"another.name"}, Log: slog.New(slog.DiscardHandler), Now: c.now, Follows: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := follower.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "waiting for") || follower.PeerKey() != nil {
		t.Fatalf("before it was made: %v", err)
	}
	maker := newOwn(t, shared, c)
	refresh(t, maker)
	for range 3 {
		refresh(t, follower)
		if !bytes.Equal(follower.PeerKey(), maker.PeerKey()) || !bytes.Equal(follower.Bundle(), maker.Bundle()) || follower.Ready() != nil {
			t.Errorf("it has another key or certificate: %v", follower.Ready())
		}
		c.pass(LeafLife - time.Hour) // it is due
		refresh(t, follower)
		refresh(t, maker)
	}
	if err := shared.Put(t.Context(), map[string][]byte{EntryPeers: []byte("short")}, version(t, shared)); err != nil {
		t.Fatal(err)
	}
	if err := follower.Refresh(t.Context()); err == nil || follower.PeerKey() == nil {
		t.Errorf("a broken entry was taken, or a valid one dropped: %v", err)
	}
	writer := newOwn(t, readOnly{&Memory{}}, c)
	if err := writer.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("its twin, which does not follow, wrote nothing: %v", err)
	}
}

func version(t *testing.T, s Store) string {
	t.Helper()
	content, err := s.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return content.Version
}
