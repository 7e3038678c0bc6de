package lease_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/quaymaster/quaymaster/cluster/lease"
)

func ExampleLeader() {
	leader, err := lease.NewLeader(lease.LeaderOptions{
		Client: fake.NewClientset().CoordinationV1(), Namespace: "quaymaster", Name: "quaymaster", Identity: "quaymaster-0",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = leader.Run(ctx, func(context.Context) {
		fmt.Println("leads:", leader.Leads())
		cancel() // the process shuts down
	})
	fmt.Println(err, leader.Leads())
	// Output:
	// leads: true
	// <nil> false
}
