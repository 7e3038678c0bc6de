package gateway_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/gateway"
)

func ExampleGroup() {
	var components gateway.Group
	closed := make(chan struct{})
	close(closed)
	components.OnClose(func() { fmt.Println("closed") })
	components.Add("policies", gateway.Loop(func(ctx context.Context) {
		<-ctx.Done()
		fmt.Println("policies ended")
	}))
	ctx, stop := context.WithCancel(context.Background())
	front := gateway.Front{Open: closed, Run: func(ctx context.Context) error {
		stop()
		<-ctx.Done()
		fmt.Println("drained")
		return nil
	}}
	fmt.Println(components.Run(ctx, front))
	components.Close()
	// Output:
	// drained
	// policies ended
	// <nil>
	// closed
}
