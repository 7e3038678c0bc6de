package enforcement_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/webhook/metrics/enforcement"
)

// A registry takes the collectors.
func ExampleNew() {
	series := enforcement.New("quaymaster_")
	series.NativePolicies(3, 1)
	series.NativeRestored()
	fmt.Println(len(series.Collectors()))
	// Output: 2
}
