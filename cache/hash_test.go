package cache

import (
	"testing"
	"time"
)

// The seed is random, so the test stores an entry under the hash of another key.
func TestSameHash(t *testing.T) {
	c, err := New(Options[string, int]{MaxCost: 10, MaxTTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other := &pair[string, int]{key: "other", value: 1}
	c.entries.Set(c.hash("key"), entry{pair: other, ttl: time.Hour, deadline: time.Now().Add(time.Hour).UnixNano(), cost: 1})
	if got, ok := c.Get("key"); ok {
		t.Errorf("the key has the value %d of another with its hash", got)
	}
	c.Put("key", 2, time.Hour)
	if got, ok := c.Get("key"); !ok || got != 2 {
		t.Errorf("Get = %d, %t after the key was stored: want 2", got, ok)
	}
}
