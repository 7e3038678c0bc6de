package record_test

import (
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/quaymaster/quaymaster/cluster/record"
)

func ExampleEvents() {
	events, err := record.NewEvents(record.EventOptions{
		Client: fake.NewClientset(), Controller: "quaymaster.dev/gateway", Instance: "quaymaster-0",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); events.Run(ctx) }()
	events.Record(record.Event{
		Regarding: core.ObjectReference{APIVersion: "kyverno.io/v1", Kind: "ClusterPolicy", Name: "signed"},
		Type:      core.EventTypeWarning, Reason: "PolicyBroken", Action: "Load", Note: "spec.rules[0].colour: unknown field",
	})
	events.Record(record.Event{Note: "about nothing"})
	fmt.Println("dropped", events.Dropped())
	cancel()
	<-done
	// Output: dropped 1
}
