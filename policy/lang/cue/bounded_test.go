package cue

import (
	"strings"
	"testing"
	"time"
)

// TestPlaces: what goes on after its time keeps one of few places, and gives it back.
func TestPlaces(t *testing.T) {
	yes := func() (bool, string, error) { return true, "", nil }
	c := &Condition{limit: 10 * time.Millisecond, running: make(chan struct{}, maxRunning)}
	end := make(chan struct{})
	for range maxRunning {
		if held, _, err := c.bounded(func() (bool, string, error) { <-end; return true, "", nil }); held || err == nil || !strings.Contains(err.Error(), "took longer than 10ms") {
			t.Fatalf("%t %v", held, err)
		}
	}
	if held, _, err := c.bounded(yes); held || err == nil || !strings.Contains(err.Error(), "still going on") {
		t.Fatalf("one more: %t %v", held, err)
	}
	close(end)
	c.limit = time.Minute
	for range 2 * maxRunning {
		if held, _, err := c.bounded(yes); !held || err != nil {
			t.Fatalf("after they ended: %t %v", held, err)
		}
		if held, _, err := c.bounded(func() (bool, string, error) { panic("a defect of CUE's") }); held || err == nil || err.Error() != "CUE: a defect of CUE's" {
			t.Fatalf("a panic: %t %v", held, err)
		}
	}
}

func TestWords(t *testing.T) {
	for n, want := range map[int]int{maxWhy: maxWhy, maxWhy + 1: maxWhy + len("...")} {
		if got := words(strangeError(strings.Repeat("x", n))); len(got.Error()) != want {
			t.Errorf("%d bytes of words became %d, want %d", n, len(got.Error()), want)
		}
	}
	if err := words(nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}

// strangeError is none of CUE's own.
type strangeError string

func (e strangeError) Error() string { return string(e) }
