package endpointtest_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/webhook/internal/endpointtest"
)

func ExampleNamespaces() {
	namespaces := endpointtest.Namespaces{"shop": {"team": "a"}}
	fmt.Println(namespaces.Labels(context.Background(), "shop"))
	fmt.Println(namespaces.Labels(context.Background(), "bank"))
	// Output:
	// map[team:a] <nil>
	// map[] namespace bank is not there
}

func ExampleQueue() {
	_, full := endpointtest.Queue{Full: true}.Enter(context.Background(), "shop")
	_, dry := endpointtest.Queue{Full: true}.Reserve(context.Background(), "shop", 1)
	fmt.Println(full, dry)
	// Output: full <nil>
}
