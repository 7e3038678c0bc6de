package registry

import (
	"context"
	"errors"
	"testing"

	"github.com/quaymaster/quaymaster/internal/fairqueue"
)

// TestSeat: a request that may prove needless takes a free seat or none, and waits for none.
func TestSeat(t *testing.T) {
	concurrency, err := fairqueue.New(fairqueue.Bounds{Total: 1})
	if err != nil {
		t.Fatal(err)
	}
	claim := fairqueue.Claim{Host: "a.example", Alone: true}
	needless := context.WithValue(t.Context(), needlessKey{}, true)
	hold, err := seat(needless, concurrency, claim)
	if err != nil {
		t.Fatalf("a seat is free: %v", err)
	}
	if _, err := seat(needless, concurrency, claim); !errors.Is(err, errNoSeat) || !notAsked(request{}, err).final {
		t.Errorf("no seat is free: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	var waited *fairqueue.WaitError
	if _, err := seat(ended, concurrency, claim); !errors.As(err, &waited) {
		t.Errorf("a request that is needed waits: %v", err)
	}
	hold.Leave()
	hold, err = seat(needless, concurrency, claim)
	if err != nil {
		t.Errorf("the seat is free again: %v", err)
	}
	hold.Leave()
}
