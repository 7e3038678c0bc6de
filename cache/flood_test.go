package cache_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cache"
)

// TestFloodKeepsUsedEntries: one client requests twenty times as many keys as the cache has
// room for, repeatedly. Entries that other clients requested and still use stay.
func TestFloodKeepsUsedEntries(t *testing.T) {
	const room, used, rounds = 2_000, 100, 5
	c, err := cache.New(cache.Options[string, int]{MaxCost: room, MaxTTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := func(key string) (known bool) {
		_, known = c.Get(key)
		if !known {
			c.Put(key, 1, time.Hour)
		}
		return known
	}
	missed, asked, refused := 0, 0, 0
	for round := range rounds {
		for i := range 20 * room {
			if !ask(fmt.Sprint("flood ", i)) {
				refused++
			}
			if i%40 == 0 { // a fortieth of the keys of the flood
				if !ask(fmt.Sprint("used ", asked%used)) && round > 0 {
					missed++
				}
				asked++
			}
		}
	}
	if missed*100 > asked {
		t.Errorf("%d of %d were missed, more than a hundredth", missed, asked)
	}
	if refused < rounds*10*room {
		t.Errorf("%d of the flood were missed: it is none", refused)
	}
}
