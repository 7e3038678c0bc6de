package integer

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestRounded(t *testing.T) {
	for _, tc := range []struct {
		v      float64
		want   bool
		reason string
	}{
		{1<<53 - 1, false, "the last integer with a float64 of its own"},
		{1 << 53, true, "2^53 + 1 is rounded to it"},
		{-(1 << 53), true, "the sign does not matter"},
		{math.MaxInt64, true, "the float64 next to the largest int64"},
		{1e300, false, "Kubernetes decodes a float64, too"},
		{0.5, false, "no integer"},
		{math.NaN(), false, "no integer"},
	} {
		if got := Rounded(tc.v); got != tc.want {
			t.Errorf("Rounded(%g) is %t: %s", tc.v, got, tc.reason)
		}
	}
}

func TestExact(t *testing.T) {
	held := map[string]any{"a": []any{1.0, "9007199254740993", nil, true, int64(1<<53 + 1)}}
	if err := Exact(held); err != nil {
		t.Error(err)
	}
	held["b"] = map[string]any{"c": []any{9007199254740994.0}}
	if err := Exact(held); err == nil || !strings.Contains(err.Error(), "9007199254740994") {
		t.Errorf("a rounded integer in a list: %v", err)
	}
}

func ExampleExact() {
	fmt.Println(Exact(map[string]any{"uid": 9007199254740994.0}))
	// Output: an integer near 9007199254740994 is too large to be read exactly
}
