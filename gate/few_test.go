package gate

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestFewIsAMap does the same to both, with few keys and with many.
func TestFewIsAMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, keys := range []int{1, 3, maxFew, maxFew + 1, 5 * maxFew} {
		var f few[int, int]
		want := map[int]int{}
		for step := range 500 {
			key := random.IntN(keys)
			switch random.IntN(10) {
			case 0:
				is := func(k, v int) bool { return k == key || v%7 == 0 }
				f.drop(is)
				maps.DeleteFunc(want, is)
			default:
				f.set(key, step)
				want[key] = step
			}
			got, ok := f.get(key)
			value, there := want[key]
			if all := maps.Collect(f.all()); !maps.Equal(all, want) || got != value || ok != there {
				t.Fatalf("%d keys: %v, want %v", keys, all, want)
			}
		}
	}
}
