package health_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/registry/health"
)

func Example() {
	breaker, err := health.New(health.Config{
		Probe: func(context.Context, string) error { return nil }, // (*registry.Client).Ping
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer breaker.Close()
	breaker.Told("a.example", nil)
	breaker.Told("b.example", errors.New("connection refused"))
	fmt.Println(breaker.Rest("b.example"))
	for _, s := range breaker.States() {
		fmt.Println(s.Registry, s.Phase)
	}
	// Output:
	// connection refused true
	// a.example closed
	// b.example open
}
