package redis_test

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkRecall asks for eight facts of 2 KiB over loopback: one round trip.
func BenchmarkRecall(b *testing.B) {
	s := start(b, acl)
	store := open(b, s.configured())
	var all []string
	for i := range 8 {
		all = append(all, fmt.Sprint("key ", i))
		store.Keep(all[i], make([]byte, 2<<10), time.Hour)
	}
	kept(b, store, all[7], string(make([]byte, 2<<10)))
	b.ReportAllocs()
	for b.Loop() {
		if got := store.Get(b.Context(), all); len(got) != len(all) {
			b.Fatalf("%d known: %+v", len(got), store.Status())
		}
	}
}

// BenchmarkRecallUnavailable measures a lookup while the server is down.
func BenchmarkRecallUnavailable(b *testing.B) {
	s := start(b, acl)
	s.kill()
	store := open(b, s.configured())
	store.Get(b.Context(), []string{"a"})
	b.ReportAllocs()
	for b.Loop() {
		store.Get(b.Context(), []string{"a"})
	}
}

// BenchmarkKeep is what telling costs the caller.
func BenchmarkKeep(b *testing.B) {
	s := start(b, acl)
	store := open(b, s.configured())
	value := make([]byte, 2<<10)
	b.ReportAllocs()
	for b.Loop() {
		store.Keep("a", value, time.Hour)
	}
}
