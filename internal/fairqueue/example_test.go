package fairqueue_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/internal/fairqueue"
)

func Example() {
	places, err := fairqueue.New(fairqueue.Bounds{Total: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tenant := range []string{"greedy", "greedy", "greedy", "greedy", "modest"} {
		_, _, ok := places.TryEnter(fairqueue.Claim{Tenant: tenant})
		fmt.Println(tenant, ok)
	}
	// Output:
	// greedy true
	// greedy true
	// greedy true
	// greedy false
	// modest true
}
