package fair_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/internal/fair"
)

func Example() {
	places, err := fair.New(fair.Bounds{Total: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tenant := range []string{"greedy", "greedy", "greedy", "greedy", "modest"} {
		_, _, ok := places.TryEnter(fair.Claim{Tenant: tenant})
		fmt.Println(tenant, ok)
	}
	// Output:
	// greedy true
	// greedy true
	// greedy true
	// greedy false
	// modest true
}
