package comparison_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/policy/lang/pattern/comparison"
)

func ExampleComparison_Holds() {
	c, err := comparison.Compile("128Mi-1Gi & !512Mi")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, value := range []any{"256Mi", "0.5Gi", "2Gi"} {
		fmt.Println(c.Holds(&comparison.Budget{}, value))
	}
	// Output:
	// true <nil>
	// false <nil>
	// false <nil>
}
