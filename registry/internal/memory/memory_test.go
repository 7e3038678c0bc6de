package memory

import (
	"fmt"
	"testing"
	"time"
)

func TestMemoryExpires(t *testing.T) {
	m := New[int](3, time.Hour)
	for i := range 10 {
		m.Set(fmt.Sprint(i), i)
		if got, ok := m.Get(fmt.Sprint(i)); !ok || got != i {
			t.Fatalf("%d was not remembered", i)
		}
	}
	if len(m.entries) > 3 {
		t.Errorf("%d entries, want at most 3", len(m.entries))
	}
	old := New[int](3, -time.Second)
	old.Set("a", 1)
	if _, ok := old.Get("a"); ok {
		t.Error("an expired entry was returned")
	}
}

// TestMemoryMakesRoom: old entries are evicted first, and known keys need no room.
func TestMemoryMakesRoom(t *testing.T) {
	m := New[int](3, time.Hour)
	for _, key := range []string{"a", "b", "c"} {
		m.Set(key, 1)
	}
	m.Set("b", 2)
	for key, want := range map[string]int{"a": 1, "b": 2, "c": 1} {
		if got, ok := m.Get(key); !ok || got != want {
			t.Errorf("%s: got %d, %t, want %d", key, got, ok, want)
		}
	}
	if _, ok := m.Get("d"); ok {
		t.Error("a key that was never set was returned")
	}
	m.entries["a"] = remembered[int]{value: 1, until: time.Now().Add(-time.Second)}
	m.Set("d", 3)
	for key, want := range map[string]bool{"a": false, "b": true, "c": true, "d": true} {
		if _, ok := m.Get(key); ok != want {
			t.Errorf("%s: remembered: %t, want %t", key, ok, want)
		}
	}
}

func Example() {
	tags := New[string](100, time.Minute)
	tags.Set("app:v1", "sha256:00")
	digest, known := tags.Get("app:v1")
	fmt.Println(digest, known)
	// Output: sha256:00 true
}
