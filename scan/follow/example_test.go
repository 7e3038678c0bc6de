package follow_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/scan/follow"
	"github.com/quaymaster/quaymaster/workload"
)

// printer prints the first object.
type printer struct{ done context.CancelFunc }

func (p printer) Look(_ context.Context, kind scan.Kind, object workload.Object, _ time.Time) error {
	fmt.Println("looked at", kind, object.Namespace()+"/"+object.Name())
	p.done()
	return nil
}

// What changes after it was listed is looked at.
func Example() {
	cluster := newStub()
	f, err := follow.New(follow.Options{Cluster: cluster, Observer: &eye{}})
	if err != nil {
		panic(err)
	}
	f.Kinds([]scan.Kind{pods}) // a round does this,
	f.Listed(pods, "7")        // and this when it has listed the pods
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		cluster.events[pods] <- message{change: follow.Change{Namespace: "shop", Name: "web", UID: "1", Mark: 1}}
	}()
	f.Run(ctx, printer{stop})
	// Output: looked at pods.v1 shop/web
}
