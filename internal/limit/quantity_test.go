package limit_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// TestQuantity: only what has the form of a quantity is beyond its bounds.
func TestQuantity(t *testing.T) {
	for text, exceeds := range map[string]bool{
		"1": false, "-1.5": false, "100m": false, "5Ei": false, "5E": false, "1e3": false, "1e1000": false, "1E-1000": false, "": false,
		"1e1001": true, "-1.5E-1001": true, "1e99999999": true, "1e99999999999": true, "e99999999": true, "1e+99999999": true,
		"1e99999999999999999999": false, "1e99999999x": false, "a1e99999999": false, "sha1e99999999": false,
		"0aed6dcda825376d9db8635e834cbb84909e0462baed40cd5eff1297de472425": false,
		strings.Repeat("1", 1024): false, strings.Repeat("1", 1025): true, strings.Repeat("1", 1025) + "Ki": true, strings.Repeat("1", 1025) + "abc": false,
	} {
		if err := limit.Quantity(text); (err != nil) != exceeds {
			t.Errorf("%.40q: %v, want exceeded: %t", text, err, exceeds)
		}
	}
}
