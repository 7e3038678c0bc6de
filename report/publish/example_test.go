package publish_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
)

func ExamplePublisher() {
	kept := newStore()
	p, err := publish.New(publish.Options{
		Stores: map[policyreport.API]publish.Store{policyreport.PolicyReports: kept}, Workloads: workloads{}, Observer: newObserver(),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	p.Take(decided("web-1-abc", "web", true))
	p.Take(decided("web-1-def", "web", false))
	cancel() // what waits is written at the end
	<-done
	for _, name := range kept.names() {
		fmt.Println(name, kept.results(name))
	}
	// Output: shop/quaymaster-uid-web [labels fail web-1-def labels pass]
}
