package memory

import (
	"fmt"
	"testing"
	"time"
)

func TestMemoryForgets(t *testing.T) {
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
		t.Error("what is too old was remembered")
	}
}

func Example() {
	tags := New[string](100, time.Minute)
	tags.Set("app:v1", "sha256:00")
	digest, known := tags.Get("app:v1")
	fmt.Println(digest, known)
	// Output: sha256:00 true
}
