package background_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/set"
)

// idle is a set of dependencies without policies: there is no work in this example.
type idle struct{}

func (idle) Policies() *set.Set                                        { return nil }
func (idle) Changed() <-chan struct{}                                  { return nil }
func (idle) Gone(context.Context, string) (bool, error)                { return false, errors.New("unknown") }
func (idle) Labels(context.Context, string) (map[string]string, error) { return nil, nil }
func (idle) Load(context.Context) (background.Progress, error)         { return background.Progress{}, nil }
func (idle) Save(context.Context, background.Progress) error           { return nil }
func (idle) Worked(w background.Work)                                  { fmt.Println(w.Action, w.Object) }
func (idle) Failed(err error)                                          { fmt.Println(err) }

func Example() {
	keeper, err := record.New(make([]byte, 32))
	if err != nil {
		fmt.Println(err)
		return
	}
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := newServer(engine)
	c, err := background.New(background.Options{
		Cluster: server, Sources: server, Policies: idle{}, Namespaces: idle{}, Records: keeper, Memory: idle{}, Observer: idle{},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the lead was lost
	c.Run(ctx)
	fmt.Println("done")
	// Output: done
}
