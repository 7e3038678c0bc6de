package policy_test

import (
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy"
)

func TestStaleFrom(t *testing.T) {
	for reason, test := range map[string]struct {
		text string
		want time.Duration
		ok   bool
	}{
		"half a day":                {"12h", 12 * time.Hour, true},
		"never":                     {"0s", 0, true},
		"the most":                  {"168h", policy.MaxStale, true},
		"beyond the most":           {"169h", 0, false},
		"less than nothing":         {"-1h", 0, false},
		"no unit":                   {"12", 0, false},
		"empty is not the default":  {"", 0, false},
		"a word that others use it": {"always", 0, false},
	} {
		age, err := policy.StaleFrom(map[string]string{policy.StaleAnnotation: test.text})
		if (err == nil) != test.ok || test.ok && *age != test.want {
			t.Errorf("%s: %v, %v", reason, age, err)
		}
	}
	if age, err := policy.StaleFrom(nil); age != nil || err != nil {
		t.Errorf("no annotation: %v, %v", age, err)
	}
}
